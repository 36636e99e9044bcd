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

package etcd

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/metadata"
	_ "dubbo.apache.org/dubbo-go/v3/metadata/mapping/metadata"
	_ "dubbo.apache.org/dubbo-go/v3/metadata/report/etcd"
	"dubbo.apache.org/dubbo-go/v3/registry"
	_ "dubbo.apache.org/dubbo-go/v3/registry/directory"
	_ "dubbo.apache.org/dubbo-go/v3/registry/etcdv3"
	_ "dubbo.apache.org/dubbo-go/v3/registry/servicediscovery"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"

	_ "github.com/weir-go/weir"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, nil) }

// server is an etcd that the test may stop, and start with its data kept.
type server struct {
	t    *testing.T
	dir  string
	port int
	etcd *embed.Etcd
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), port: harness.FreePort()}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *server) address() string { return fmt.Sprint("127.0.0.1:", s.port) }

func (s *server) start() {
	s.t.Helper()
	clients, peers := []url.URL{{Scheme: "http", Host: s.address()}}, []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c := embed.NewConfig()
	c.Dir = filepath.Join(s.dir, "data")
	c.ListenClientUrls, c.AdvertiseClientUrls = clients, clients
	c.ListenPeerUrls, c.AdvertisePeerUrls = peers, peers
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.LogLevel, c.LogOutputs = "error", []string{filepath.Join(s.dir, "log")}
	var err error
	s.etcd, err = embed.StartEtcd(c)
	require.NoError(s.t, err)
	select {
	case <-s.etcd.Server.ReadyNotify():
	case <-time.After(harness.Patience):
		s.t.Fatal("etcd is not ready")
	}
}

func (s *server) stop() {
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

// registry is a way to use the server: by application, or by interface.
func (s *server) registry(byApplication bool, application string) harness.Registry {
	return harness.Registry{Protocol: "etcdv3", Address: s.address(), Service: byApplication, Application: application, Client: application}
}

// each runs a test for each way of discovery.
func each(t *testing.T, test func(t *testing.T, byApplication bool, protocol string)) {
	for protocol, byApplication := range map[string]bool{harness.Triple: false, harness.Dubbo: true} {
		t.Run(map[bool]string{false: "by_interface", true: "by_application"}[byApplication], func(t *testing.T) { test(t, byApplication, protocol) })
	}
}

// reaches waits until calls of a consumer come to the provider.
func reaches(t *testing.T, c *harness.Consumer, p *harness.ChildProvider) {
	t.Helper()
	before := p.Stats("").Total
	harness.Eventually(t, "calls come to "+p.Addr, func() bool {
		_, _ = c.SayHello(context.Background(), "x")
		return p.Stats("").Total > before
	})
}

// The group of a registry keeps nobody apart. This and the next test say what dubbo-go 3.3.2
// makes of it; once they fail, docs/groups-by-registry.md has to change.
//
// By interface consumers look where those without a group stand, whatever theirs is.
func TestTheGroupOfARegistryByInterfaceInEtcd(t *testing.T) {
	s, group := newServer(t), harness.NewGroup()
	r := s.registry(false, "provider-"+group)
	r.Group = "core"
	core := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: harness.Triple, Group: group, Registry: &r})
	r.Group = ""
	none := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: harness.Triple, Group: group, Registry: &r})
	r = s.registry(false, "consumer-"+group)
	r.Group = "core"
	c := harness.Dial(t, harness.ConsumerConfig{
		Providers: []harness.Endpoint{{Protocol: harness.Triple, Group: group}}, Client: r.ClientOptions(),
		Reference: []client.ReferenceOption{client.WithURL("")},
	})
	reaches(t, c, none)
	for range 20 {
		_, err := c.SayHello(context.Background(), "x")
		require.NoError(t, err)
	}
	require.Zero(t, core.Stats("").Total, "nobody finds it")
	runtime.KeepAlive(c)
}

// By application the group is ignored, where metadata lie in one place as they have to.
func TestTheGroupOfARegistryByApplicationInEtcd(t *testing.T) {
	s, group, port := newServer(t), harness.NewGroup(), harness.FreePort()
	noncore := harness.SpawnProvider(t, harness.ProviderSpec{
		Protocol: harness.Triple, Group: group, Port: port, Document: fmt.Sprintf(`
dubbo:
  application: {name: provider-%[1]s, metadata-type: remote}
  logger: {level: error}
  registries:
    noncore: {protocol: etcdv3, address: %[2]q, group: noncore, registry-type: service, use-as-meta-report: false}
  metadata-report: {protocol: etcdv3, address: %[2]q}
  protocols:
    p: {name: tri, ip: 127.0.0.1, port: %[3]d}
  provider:
    services:
      Greeter: {interface: %[4]s, group: %[1]s}
`, group, s.address(), port, greet.GreetServiceName),
	})
	// It makes the metadata report of this process.
	_, err := dubbo.NewInstance(dubbo.WithMetadataReport(metadata.WithEtcdV3(), metadata.WithAddress(s.address())))
	require.NoError(t, err)
	core := client.WithClientRegistry(registry.WithEtcdV3(), registry.WithAddress(s.address()), registry.WithGroup("core"),
		registry.WithRegisterService(), registry.WithoutUseAsMetaReport(), registry.WithID("core"))
	c := harness.Dial(t, harness.ConsumerConfig{
		Providers: []harness.Endpoint{{Protocol: harness.Triple, Group: group}}, Client: []client.ClientOption{core},
		Reference: []client.ReferenceOption{client.WithURL("")},
	})
	reaches(t, c, noncore)
	runtime.KeepAlive(c)
}

// By tag core and non-core are apart on etcd, also while it is away and when it is back.
func TestTagsInEtcd(t *testing.T) {
	each(t, func(t *testing.T, byApplication bool, protocol string) {
		harness.SkipUnderRaceDetector(t, protocol)
		s, group := newServer(t), harness.NewGroup()
		provider := func(tag string) *harness.ChildProvider {
			r := s.registry(byApplication, "provider-"+group)
			return harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group, Registry: &r, Params: map[string]string{"weir.group": tag}})
		}
		providers := map[string]*harness.ChildProvider{"core": provider("core"), "noncore": provider("noncore")}
		var stop atomic.Bool
		var wg sync.WaitGroup
		made := map[string]*atomic.Int64{}
		consumers := map[string]*harness.Consumer{}
		for tag := range providers {
			r := s.registry(byApplication, "consumer-"+tag+group)
			consumers[tag] = harness.Dial(t, harness.ConsumerConfig{
				Providers: []harness.Endpoint{{Protocol: protocol, Group: group}}, Client: r.ClientOptions(),
				Params:    map[string]string{"weir.group": tag, "weir.group.match": "strict"},
				Reference: []client.ReferenceOption{client.WithURL("")},
			})
			made[tag] = new(atomic.Int64)
		}
		// Core consumers call another method than the others, so that a provider can tell.
		call := func(tag string) (err error) {
			if tag == "core" {
				_, err = consumers[tag].SayHello(context.Background(), "x")
			} else {
				_, err = consumers[tag].Echo(context.Background(), "x")
			}
			return err
		}
		succeed := func() {
			t.Helper()
			for tag := range providers {
				harness.Eventually(t, "calls succeed", func() bool {
					for range 20 {
						if call(tag) != nil {
							return false
						}
					}
					return true
				})
			}
		}
		apart := func() {
			t.Helper()
			for _, n := range made {
				until := n.Load() + 100
				harness.Eventually(t, "calls go on", func() bool { return n.Load() >= until })
			}
			require.Zero(t, providers["core"].Stats("Echo").Total, "noncore calls that came to core")
			require.Zero(t, providers["noncore"].Stats("SayHello").Total, "core calls that came to noncore")
		}
		succeed()
		for tag := range providers {
			wg.Go(func() {
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for ; !stop.Load(); <-tick.C {
					_ = call(tag)
					made[tag].Add(1)
				}
			})
		}
		defer wg.Wait()
		defer stop.Store(true)
		apart()
		s.stop()
		apart()
		s.start()
		apart()
		succeed()
		apart()
	})
}
