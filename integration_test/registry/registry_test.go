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
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/harness"
)

func TestAURLDeclares(t *testing.T) {
	declares(t, func(t *testing.T, d declaring) (provider, func(map[string]string) *harness.Consumer) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: d.protocol, Group: d.group})
		query := url.Values{}
		for key, value := range d.params {
			query.Set(key, value)
		}
		return local{p}, func(params map[string]string) *harness.Consumer {
			return harness.Dial(t, harness.ConsumerConfig{
				Providers: []harness.Endpoint{p.Endpoint}, Params: params,
				Reference: []client.ReferenceOption{client.WithURL(p.URL() + "?" + query.Encode())},
			})
		}
	}, false)
}

// inMemory starts a provider that registers in the registry of this process.
func inMemory(t *testing.T, d declaring) (provider, func(map[string]string) *harness.Consumer) {
	t.Helper()
	if d.section != "" {
		file := filepath.Join(t.TempDir(), "weir.yaml")
		require.NoError(t, os.WriteFile(file, []byte(section(d)), 0o600))
		require.NoError(t, weir.Load(file))
		// The file is polled, so it has to be there for as long as this process.
		defer func() { require.NoError(t, weir.Load("testdata/empty.yaml")) }()
	}
	memory := &harness.Registry{Protocol: memoryProtocol, Address: "127.0.0.1:1", Application: "provider"}
	p := harness.StartProvider(t, harness.ProviderConfig{
		Protocol: d.protocol, Group: d.group, Port: d.port, Params: d.params, Server: memory.ServerOptions(),
	})
	consumer := *memory
	consumer.Application = "consumer"
	return local{p}, func(params map[string]string) *harness.Consumer {
		return harness.Dial(t, harness.ConsumerConfig{
			Providers: []harness.Endpoint{p.Endpoint}, Params: params, Client: consumer.ClientOptions(),
			Reference: []client.ReferenceOption{client.WithURL("")},
		})
	}
}

func TestAProviderDeclaresInARegistryOfInterfaces(t *testing.T) { declares(t, inMemory, true) }

func TestAProviderAsksForCallersInARegistryOfInterfaces(t *testing.T) { asks(t, inMemory) }

func TestConsumersFollowWhatAProviderDeclares(t *testing.T) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) {
			c, d := followed(t, protocol)
			require.Equal(t, []int64{5}, limitsOf(d.group, "SayHello"))
			runtime.KeepAlive(c)
		})
	}
}

// followed is a consumer of a provider that declared 2 and then 5.
func followed(t *testing.T, protocol string) (*harness.Consumer, declaring) {
	t.Helper()
	harness.SkipUnderRaceDetector(t, protocol) // the sessions to the former URL end here
	d := declaring{protocol: protocol, group: harness.NewGroup(), port: harness.FreePort(), params: map[string]string{"actives": "2"}}
	first, dial := inMemory(t, d)
	c := dial(nil)
	call(t, c)
	require.Equal(t, []int64{2}, limitsOf(d.group, "SayHello"))

	// The same service, address and reference, with another value.
	withdraw(t, first.(local).Provider)
	d.params = map[string]string{"actives": "5"}
	inMemory(t, d)
	harness.Eventually(t, "the new value is in force", func() bool {
		_, _ = c.SayHello(background, "x")
		limits := limitsOf(d.group, "SayHello") // once: a reference may come or go between two looks
		return len(limits) == 1 && limits[0] == 5
	})
	return c, d
}

func TestAFormerDeclarationDoesNotComeBack(t *testing.T) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
			c, d := followed(t, protocol)
			for range 10 { // the order of plans is chance
				require.NoError(t, weir.Configure(conf.Config{Consumer: conf.Section{Policies: conf.Policies{Stats: conf.Of(true)}}}))
				call(t, c)
				require.Equal(t, []int64{5}, limitsOf(d.group, "SayHello"))
			}
			runtime.KeepAlive(c)
		})
	}
}
