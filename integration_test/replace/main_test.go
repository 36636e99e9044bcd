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

// Package replace tests Weir's filters under names of dubbo-go's. What is replaced is so
// for a whole process, so each provider has one of its own.
package replace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, harness.Roles{}) }

// eachProtocol runs a test over each.
func eachProtocol(t *testing.T, f func(t *testing.T, protocol string)) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) { f(t, protocol) })
	}
}

// provider starts one whose service in the dubbo configuration has these lines, beside a
// weir section.
func provider(t *testing.T, protocol, section string, lines ...string) *harness.ChildProvider {
	t.Helper()
	spec := harness.ProviderSpec{Protocol: protocol, Group: harness.NewGroup(), Port: harness.FreePort()}
	spec.Document = fmt.Sprintf(`
dubbo:
  application: {name: replace}
  protocols:
    greet: {name: %s, ip: 127.0.0.1, port: %d}
  provider:
    services:
      GreetProvider:
        interface: %s
        group: %s
        %s
weir: %s
`, protocol, spec.Port, greet.GreetServiceName, spec.Group, strings.Join(lines, "\n        "), section)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	require.NoError(t, os.WriteFile(file, []byte(spec.Document), 0o600))
	spec.Env = map[string]string{"WEIR_CONFIG_PATH": file}
	return harness.SpawnProvider(t, spec)
}
