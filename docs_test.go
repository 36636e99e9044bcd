// Copyright The Weir Authors.
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package weir_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestTheYAMLOfTheDocsIsRight reads every YAML sample that a user may copy.
func TestTheYAMLOfTheDocsIsRight(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	files = append(files, "README.md", "README_CN.md")
	found := 0
	check := func(file, text string) {
		found++
		r := conf.Validate(file, []byte(text))
		require.Empty(t, r.Faults, "%s:\n%s", file, text)
		require.Empty(t, r.Warnings, "%s:\n%s", file, text)
		require.True(t, r.Section || r.Services > 0 || r.References > 0, "%s: nothing of Weir in\n%s", file, text)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			check(file, m[1])
		}
	}
	// In Go's own docs a sample is an indented block that begins with a section.
	docs, err := filepath.Glob("filter/*/doc.go")
	require.NoError(t, err)
	for _, file := range append(docs, "doc.go") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var block []string
		for line := range strings.Lines(string(text)) {
			code, ok := strings.CutPrefix(line, "//\t")
			if ok && (len(block) > 0 || strings.HasPrefix(code, "dubbo:") || strings.HasPrefix(code, "weir:")) {
				block = append(block, code)
				continue
			}
			if len(block) > 0 && strings.TrimSpace(line) != "//" {
				check(file, strings.Join(block, ""))
				block = nil
			}
		}
	}
	require.GreaterOrEqual(t, found, 8)
}

// TestTheDocsNameWhatIsThere compares the table of keys with the code.
func TestTheDocsNameWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("docs/configuration.md")
	require.NoError(t, err)
	for _, name := range conf.KeyNames() {
		require.Contains(t, string(text), "| `"+name+"` |", "docs/configuration.md has no row for it")
	}
	rows := regexp.MustCompile("(?m)^\\| `((?:weir\\.)?(?:executes|actives|tps|flow|bulkhead|overload|breaker|fallback|weight|group|retry|stats|business)[^`]*)` \\|").FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, len(conf.KeyNames()))
	metrics := regexp.MustCompile("`(weir_[a-z_]+)`").FindAllStringSubmatch(string(text), -1)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	code, err := os.ReadFile("internal/metrics/collector.go")
	require.NoError(t, err)
	for _, m := range append(metrics, regexp.MustCompile("`(weir_[a-z_]+)`").FindAllStringSubmatch(string(readme), -1)...) {
		require.Contains(t, string(code), `"`+m[1]+`"`, "the docs name a metric that is not there")
	}
}

// guides are the pages whose Go is copied from tests.
var guides = []string{"docs/refusals.md", "docs/rollout.md", "docs/sizing.md", "docs/migration.md", "docs/breaker.md", "docs/fallback.md", "docs/bulkhead.md", "docs/alarms.md", "docs/overload.md", "docs/loadbalance.md", "docs/groups.md", "docs/groups-by-registry.md"}

// TestTheGoOfTheDocsIsTested finds every Go sample in a test, line by line but for
// the indentation.
func TestTheGoOfTheDocsIsTested(t *testing.T) {
	tests, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var code strings.Builder
	for _, file := range tests {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code.WriteString(unindented(string(text)))
	}
	found := 0
	for _, file := range guides {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range goBlock.FindAllStringSubmatch(string(text), -1) {
			found++
			require.Contains(t, code.String(), "\n"+unindented(m[1]), "%s: no test has\n%s", file, m[1])
		}
	}
	require.GreaterOrEqual(t, found, 8)
}

// TestTheGuidesNameMetricsThatAreThere looks for every metric of the guides' queries
// in the code.
func TestTheGuidesNameMetricsThatAreThere(t *testing.T) {
	code, err := os.ReadFile("internal/metrics/collector.go")
	require.NoError(t, err)
	found := 0
	for _, file := range guides {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`\bweir_[a-z_]+`).FindAllString(string(text), -1) {
			found++
			require.Contains(t, string(code), `"`+strings.TrimSuffix(name, "_bucket")+`"`, file)
		}
	}
	require.GreaterOrEqual(t, found, 20)
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

func unindented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

// TestTheRefusalsOfTheDocsAreRight reads every refusal that the docs show as text.
func TestTheRefusalsOfTheDocsAreRight(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	found := 0
	for _, file := range append(files, "README.md", "README_CN.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if !strings.HasPrefix(line, "weir: call refused: ") {
				continue
			}
			found++
			refusal, ok := call.Parse(line)
			require.True(t, ok, "%s: %s", file, line)
			require.Equal(t, line, refusal.Error(), file)
		}
	}
	require.GreaterOrEqual(t, found, 4)
}
