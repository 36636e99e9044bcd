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

package registry

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/harness"
)

// belongs checks that consumers get to know of which group a provider is, whether its
// params say so or its section.
func belongs(t *testing.T, w way, sections bool) {
	for name, d := range map[string]declaring{
		"by_params": {params: map[string]string{"weir.group": "core|pay"}}, "by_the_section": {section: "{group: 'core|pay'}"},
	} {
		if d.section != "" && !sections {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, protocol := range harness.Protocols {
				t.Run(protocol, func(t *testing.T) {
					d := d
					faults := weir.Snapshot().ConfigErrors
					d.protocol, d.group = protocol, harness.NewGroup()
					_, dial := w(t, d)
					// One reference: each has connections of its own to a registry.
					c := dial(map[string]string{"weir.group": "core|pay"})
					call(t, c)
					for own, served := range map[string]bool{"core|pay": true, "core|pay|vip": true, "core": false, "noncore": false, "none": false} {
						_, err := c.SayHello(weir.WithGroup(background, own), "x")
						if served {
							require.NoError(t, err, own)
							continue
						}
						e, ok := weir.AsRejected(err)
						require.True(t, ok, "%v", err)
						require.Equal(t, [2]string{conf.GroupGuard, "no-provider"}, [2]string{e.Guard, e.Reason})
						require.ErrorContains(t, err, `there are 1 of group "core|pay"`)
					}
					require.Equal(t, faults, weir.Snapshot().ConfigErrors, "nothing is wrong with the configuration")
				})
			}
		})
	}
}

func TestAGroupInARegistryOfInterfaces(t *testing.T) { belongs(t, inMemory, true) }
