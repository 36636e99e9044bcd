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

//go:build services

package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	_ "dubbo.apache.org/dubbo-go/v3/metadata/mapping/metadata"
	_ "dubbo.apache.org/dubbo-go/v3/metadata/report/zookeeper"
	_ "dubbo.apache.org/dubbo-go/v3/registry/servicediscovery"
	_ "dubbo.apache.org/dubbo-go/v3/registry/zookeeper"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
)

// zookeeper is a way over a real registry, from a provider in a process of its
// own: by interface, or by application.
func zookeeper(byApplication bool) way {
	return func(t *testing.T, d declaring) (provider, func(map[string]string) *harness.Consumer) {
		t.Helper()
		address := os.Getenv("WEIR_TEST_ZOOKEEPER")
		require.NotEmpty(t, address, "WEIR_TEST_ZOOKEEPER names no registry, see .ci/services.sh")
		r := harness.Registry{
			Protocol: "zookeeper", Address: address, Service: byApplication, Application: "provider-" + d.protocol + "-" + d.group,
		}
		spec := harness.ProviderSpec{Protocol: d.protocol, Group: d.group, Port: d.port, Params: d.params, Registry: &r}
		if d.section != "" {
			file := filepath.Join(t.TempDir(), "weir.yaml")
			require.NoError(t, os.WriteFile(file, []byte(section(d)), 0o600))
			spec.Env = map[string]string{"WEIR_CONFIG_PATH": file}
		}
		p := harness.SpawnProvider(t, spec)
		r.Application = "consumer"
		return p, func(params map[string]string) *harness.Consumer {
			// References to one service share what a registry by interface has to say, so
			// that the second one hears of no provider for a long time.
			r.Client = fmt.Sprint(clients.Add(1))
			return harness.Dial(t, harness.ConsumerConfig{
				Providers: []harness.Endpoint{p.Endpoint}, Params: params, Client: r.ClientOptions(),
				Reference: []client.ReferenceOption{client.WithURL("")},
			})
		}
	}
}

var clients atomic.Int64

func TestAProviderDeclaresInZooKeeper(t *testing.T) {
	t.Run("by_interface", func(t *testing.T) { declares(t, zookeeper(false), true) })
	t.Run("by_application", func(t *testing.T) { declares(t, zookeeper(true), true) })
}

func TestAProviderAsksForCallersInZooKeeper(t *testing.T) {
	t.Run("by_interface", func(t *testing.T) { asks(t, zookeeper(false)) })
	t.Run("by_application", func(t *testing.T) { asks(t, zookeeper(true)) })
}

func TestAWeightInZooKeeper(t *testing.T) {
	t.Run("by_interface", func(t *testing.T) { weighs(t, zookeeper(false), true, false) })
	t.Run("by_application", func(t *testing.T) { weighs(t, zookeeper(true), true, true) })
}

// dubbo's own balancers go by what a provider says: one that is drained gets no calls.
// By application they learn of methods' weights only.
func TestDubboSendsNothingToADrainedProviderInZooKeeper(t *testing.T) {
	for name, byApplication := range map[string]bool{"by_interface": false, "by_application": true} {
		for _, protocol := range harness.Protocols {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				weights := func(sayHello, echo string) map[string]string {
					if byApplication {
						return map[string]string{"methods.SayHello.weir.weight": sayHello, "methods.Echo.weir.weight": echo}
					}
					return map[string]string{"weir.weight": sayHello, "methods.Echo.weir.weight": echo}
				}
				d := declaring{protocol: protocol, group: harness.NewGroup(), params: weights("0", "100")}
				drained, _ := zookeeper(byApplication)(t, d)
				d.params = weights("100", "0")
				other, dial := zookeeper(byApplication)(t, d)
				c := dial(nil)
				harness.Eventually(t, "the consumer has heard of both", func() bool {
					_, _ = c.SayHello(background, "x")
					_, _ = c.Echo(background, "x")
					return other.Stats("SayHello").Total > 0 && drained.Stats("Echo").Total > 0
				})
				before, elsewhere := drained.Stats("SayHello").Total, other.Stats("Echo").Total
				for range 50 {
					_, err := c.SayHello(background, "x")
					require.NoError(t, err)
					_, err = c.Echo(background, "x")
					require.NoError(t, err)
				}
				require.Equal(t, before, drained.Stats("SayHello").Total)
				require.Equal(t, elsewhere, other.Stats("Echo").Total)
				runtime.KeepAlive(c)
			})
		}
	}
}

func TestConsumersFollowWhatAProviderDeclaresInZooKeeper(t *testing.T) {
	for name, byApplication := range map[string]bool{"by_interface": false, "by_application": true} {
		for _, protocol := range harness.Protocols {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				harness.SkipUnderRaceDetector(t, protocol) // the first provider's sessions end here
				d := declaring{
					protocol: protocol, group: harness.NewGroup(), port: harness.FreePort(),
					params: map[string]string{"actives": "2", "methods.Echo.actives": "3"},
				}
				first, dial := zookeeper(byApplication)(t, d)
				c := dial(nil)
				call(t, c)
				require.Equal(t, []int64{2}, limitsOf(d.group, "SayHello"))
				require.Equal(t, []int64{3}, limitsOf(d.group, "Echo"))

				first.(*harness.ChildProvider).Leave()
				first.(*harness.ChildProvider).Kill()
				d.params = map[string]string{"actives": "5", "methods.Echo.actives": "6"}
				zookeeper(byApplication)(t, d)
				harness.Eventually(t, "the new value is in force", func() bool {
					_, err := c.SayHello(background, "x")
					limits := limitsOf(d.group, "SayHello")
					return err == nil && len(limits) == 1 && limits[0] == 5
				})
				require.Equal(t, []int64{6}, limitsOf(d.group, "Echo"))
				runtime.KeepAlive(c)
			})
		}
	}
}

func TestAGroupInZooKeeper(t *testing.T) {
	t.Run("by_interface", func(t *testing.T) { belongs(t, zookeeper(false), true) })
	t.Run("by_application", func(t *testing.T) { belongs(t, zookeeper(true), true) })
}
