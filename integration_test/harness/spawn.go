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

package harness

import (
	"fmt"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/global"
	"dubbo.apache.org/dubbo-go/v3/registry"
	"dubbo.apache.org/dubbo-go/v3/server"
)

const providerRole = "harness.provider"

// ProviderSpec is a ProviderConfig for a process of its own.
type ProviderSpec struct {
	Protocol string
	Group    string // default: one that this process has not used yet
	Version  string
	Port     int // default: a free one
	Params   map[string]string
	// WarmUp is how long its weight takes to grow, in whole seconds; default: dubbo's.
	WarmUp time.Duration
	// Registry is where it registers; the test binary has to import what serves
	// the registry's protocol.
	Registry *Registry
	// Env are variables of the child's environment.
	Env map[string]string
	// Document is a dubbo configuration in YAML. With one the provider is started by
	// dubbo.Load, and what stands above counts as far as it says the same.
	Document string
}

// Registry is a registry, and how providers and consumers use it.
type Registry struct {
	Protocol string // zookeeper
	Address  string // host:port
	// Service is for application-level discovery, in place of that by interface.
	Service bool
	// Application is the provider's or the consumer's.
	Application string
	// Client tells registries apart that are one: references with different names
	// have connections of their own to it.
	Client string
	// Group is the path of the registry, "" for dubbo's own.
	Group string
}

func (r *Registry) options() []registry.Option {
	kind := registry.WithRegisterInterface()
	if r.Service {
		kind = registry.WithRegisterService()
	}
	// dubbo-go keeps its registries by address and namespace, which means something
	// else to Nacos alone.
	return []registry.Option{
		registry.WithRegistry(r.Protocol), registry.WithAddress(r.Address), registry.WithNamespace(r.Client), kind,
		registry.WithGroup(r.Group),
	}
}

func (r *Registry) application() *global.ApplicationConfig {
	app := global.DefaultApplicationConfig()
	app.Name = r.Application
	// Or dubbo-go would export a metadata service, see noMetadataService.
	app.MetadataType = constant.RemoteMetadataStorageType
	return app
}

// ServerOptions are the options of a server that registers its services there.
func (r *Registry) ServerOptions() []server.ServerOption {
	return []server.ServerOption{server.WithServerRegistry(r.options()...), server.SetServerApplication(r.application())}
}

// ClientOptions are the options of a client that finds its providers there.
func (r *Registry) ClientOptions() []client.ClientOption {
	return []client.ClientOption{client.WithClientRegistry(r.options()...), client.SetClientApplication(r.application())}
}

// ChildProvider is a provider in a process of its own.
type ChildProvider struct {
	Endpoint
	*Process
}

type providerCommand struct {
	Open    string // gate to open
	Running string // argument of the calls to count
	Stats   *string
	Leave   bool // the registry
	Filter  string
}

type providerAnswer struct {
	Endpoint Endpoint
	Stats    Stats
	Running  int
	Filter   string
	Err      string
}

// SpawnProvider starts a provider in a process of its own and waits until it
// accepts connections. Under the race detector one of the dubbo protocol lives
// as long as this process, so that no session ends here: see
// [SkipUnderRaceDetector].
func SpawnProvider(t testing.TB, spec ProviderSpec) *ChildProvider {
	t.Helper()
	if spec.Group == "" {
		spec.Group = NewGroup()
	}
	if spec.Port == 0 {
		spec.Port = FreePort() // one that no consumer here has known
	}
	p := &ChildProvider{Process: start(t, providerRole, spec, raceDetector && spec.Protocol == Dubbo, spec.Env)}
	p.Endpoint = p.answer().Endpoint
	return p
}

// Open opens a gate of the provider's handler.
func (p *ChildProvider) Open(gate string) {
	p.t.Helper()
	p.Send(providerCommand{Open: gate})
	p.answer()
}

// Stats returns the counts of the provider's handler.
func (p *ChildProvider) Stats(method string) Stats {
	p.t.Helper()
	p.Send(providerCommand{Stats: &method})
	return p.answer().Stats
}

// Running returns how many calls with this argument run in the provider.
func (p *ChildProvider) Running(arg string) int {
	p.t.Helper()
	p.Send(providerCommand{Running: arg})
	return p.answer().Running
}

// Filter returns the Go type of the filter that the child has under a name.
func (p *ChildProvider) Filter(name string) string {
	p.t.Helper()
	p.Send(providerCommand{Filter: name})
	return p.answer().Filter
}

// Leave takes the provider out of its registry; it serves on.
func (p *ChildProvider) Leave() {
	p.t.Helper()
	p.Send(providerCommand{Leave: true})
	p.answer()
}

func (p *ChildProvider) answer() (a providerAnswer) {
	p.t.Helper()
	p.Recv(&a)
	if a.Err != "" {
		p.t.Fatalf("provider: %s", a.Err)
	}
	return a
}

// runProvider is the inside of a ChildProvider.
func runProvider(c *Child) error {
	var spec ProviderSpec
	if err := c.Recv(&spec); err != nil {
		return err
	}
	cfg := ProviderConfig{
		Protocol: spec.Protocol, Group: spec.Group, Version: spec.Version, Port: spec.Port, Params: spec.Params,
	}
	if spec.WarmUp != 0 {
		cfg.Service = append(cfg.Service, server.WithWarmUp(spec.WarmUp))
	}
	if spec.Registry != nil {
		cfg.Server = spec.Registry.ServerOptions()
	}
	start := func() (*Provider, error) {
		p, failed, err := serve(cfg)
		if err == nil {
			err = p.awaitListener(failed)
		}
		return p, err
	}
	if spec.Document != "" {
		start = func() (*Provider, error) { return load(cfg, spec.Document) }
	}
	p, err := start()
	if err != nil {
		return c.Send(providerAnswer{Err: err.Error()})
	}
	if err := c.Send(providerAnswer{Endpoint: p.Endpoint}); err != nil {
		return err
	}
	for {
		var cmd providerCommand
		if err := c.Recv(&cmd); err != nil {
			return fmt.Errorf("command: %w", err)
		}
		var a providerAnswer
		switch {
		case cmd.Open != "":
			p.Handler.Open(cmd.Open)
		case cmd.Stats != nil:
			a.Stats = p.Handler.Stats(*cmd.Stats)
		case cmd.Leave:
			// As dubbo-go does first when it shuts down.
			extension.GetProtocol(constant.RegistryProtocol).(interface{ UnregisterRegistries() }).UnregisterRegistries()
		case cmd.Filter != "":
			f, _ := extension.GetFilter(cmd.Filter)
			a.Filter = fmt.Sprintf("%T", f)
		default:
			a.Running = p.Handler.Running(cmd.Running)
		}
		if err := c.Send(a); err != nil {
			return err
		}
	}
}
