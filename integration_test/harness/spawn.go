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
)

const providerRole = "harness.provider"

// ProviderSpec is a ProviderConfig for a process of its own.
type ProviderSpec struct {
	Protocol string
	Group    string // default: one that this process has not used yet
	Version  string
	Port     int // default: a free one
	Params   map[string]string
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
}

type providerAnswer struct {
	Endpoint Endpoint
	Stats    Stats
	Running  int
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
	p := &ChildProvider{Process: start(t, providerRole, spec, raceDetector && spec.Protocol == Dubbo)}
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
	p, failed, err := serve(ProviderConfig{
		Protocol: spec.Protocol, Group: spec.Group, Version: spec.Version, Port: spec.Port, Params: spec.Params,
	})
	if err == nil {
		err = p.awaitListener(failed)
	}
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
		default:
			a.Running = p.Handler.Running(cmd.Running)
		}
		if err := c.Send(a); err != nil {
			return err
		}
	}
}
