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

package monitoring

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

const rulesFile = "weir-alerts.yml"

func readRules(t *testing.T) []rulefmt.Rule {
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}))
	require.Empty(t, errs)
	var rules []rulefmt.Rule
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	require.NotEmpty(t, rules)
	return rules
}

// alertLabels is every label that some alert has.
func alertLabels(t *testing.T) set {
	c := newChecker(t)
	all := setOf("alertname", "alertstate")
	for _, r := range readRules(t) {
		names, err := c.labels(r.Expr)
		require.NoError(t, err, r.Alert)
		for n := range names {
			all[n] = true
		}
		for n := range r.Labels {
			all[n] = true
		}
	}
	return all
}

func TestTheQueriesOfTheAlertsCanBeAnswered(t *testing.T) {
	c := newChecker(t)
	seen := map[string]bool{}
	for _, r := range readRules(t) {
		require.False(t, seen[r.Alert], "two alerts %s", r.Alert)
		seen[r.Alert] = true
		names, err := c.labels(r.Expr)
		require.NoError(t, err, r.Alert)
		require.True(t, names["job"], "%s: an alert says whose it is", r.Alert)
		require.Contains(t, []string{"critical", "warning", "info"}, r.Labels["severity"], r.Alert)
		for _, key := range []string{"summary", "description", "runbook_url"} {
			require.NotEmpty(t, r.Annotations[key], "%s has no %s", r.Alert, key)
			for _, l := range named(r.Annotations[key]) {
				require.True(t, names[l], "%s: %s shows %s, of %s", r.Alert, key, l, names)
			}
		}
	}
}

// TestThePageTellsOfEveryAlert compares the table of README.md with the rules,
// and finds the heading to which each alert's link leads.
func TestThePageTellsOfEveryAlert(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	page := string(text)
	rows := 0
	threshold := regexp.MustCompile(`> (0\.\d+|\d+)`)
	for _, r := range readRules(t) {
		require.Contains(t, page, "\n### "+r.Alert+"\n")
		require.Equal(t, "https://github.com/weir-go/weir/blob/main/docs/monitoring/README.md#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
		row := regexp.MustCompile(`(?m)^\| \[` + r.Alert + `\]\(#` + strings.ToLower(r.Alert) + `\) \| (\w+) \| ([^|]+) \| ([^|]+) \|$`).FindStringSubmatch(page)
		require.NotNil(t, row, "%s has no row", r.Alert)
		rows++
		require.Equal(t, r.Labels["severity"], row[1], r.Alert)
		wait := r.For.String()
		if r.For == 0 {
			wait = "at once"
		}
		require.Equal(t, wait, row[3], r.Alert)
		// The first one that is not only whether there is anything.
		for _, m := range threshold.FindAllStringSubmatch(r.Expr, -1) {
			if m[1] == "0" {
				continue
			}
			var n float64
			_, err := fmt.Sscan(m[1], &n)
			require.NoError(t, err)
			require.True(t, strings.Contains(row[2], m[1]) || strings.Contains(row[2], fmt.Sprintf("%g %%", n*100)), "%s: %s is not in %q", r.Alert, m[1], row[2])
			break
		}
	}
	require.Len(t, regexp.MustCompile(`(?m)^\| \[Weir`).FindAllString(page, -1), rows, "the page tells of an alert that is not there")
}
