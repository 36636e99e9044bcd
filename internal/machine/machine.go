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

// Package machine tells whether the machine is tight, by the signals of package health
// and what the configuration says of them.
package machine

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/health"
)

// sampleEvery is how often the signals are read, if somebody asks so often.
const sampleEvery = 450 * time.Millisecond

// Machine is what the guards of a runtime know of the machine.
type Machine struct {
	runtime *guard.Runtime
	monitor *health.Monitor
	sampled atomic.Int64

	mu      sync.Mutex
	version uint64                 // guarded by mu: of the configuration that holds
	applied bool                   // guarded by mu
	own     map[string]health.Rule // guarded by mu: what the program says of its signals
}

type ownerKey struct{}

// Of is the machine of a runtime.
func Of(rt *guard.Runtime) *Machine {
	return rt.Owned(ownerKey{}, func() any {
		m := &Machine{runtime: rt, monitor: health.New(), own: map[string]health.Rule{}}
		for _, s := range health.BuiltIn() {
			_ = m.monitor.Add(s, health.Rule{}) // their names differ
		}
		return m
	}).(*Machine)
}

// Sample reads the signals, unless that was done a moment ago. It is called by those who
// look at the machine, and never by a call.
func (m *Machine) Sample(now time.Duration) {
	last := m.sampled.Load()
	if last != 0 && int64(now)-last < int64(sampleEvery) || !m.sampled.CompareAndSwap(last, int64(now)) {
		return
	}
	m.configure()
	m.monitor.Sample(now)
}

// Tight tells whether a signal is, by the last sample. It is one atomic load.
func (m *Machine) Tight() (signal string, tight bool) { return m.monitor.Tight() }

// States are those of all signals that are read.
func (m *Machine) States() []health.State { return m.monitor.States() }

// Add adds a signal of the program's own. What the configuration says of its name holds
// over the rule.
func (m *Machine) Add(s health.Signal, r health.Rule) error {
	if err := m.monitor.Add(s, r); err != nil {
		return err
	}
	m.mu.Lock()
	m.own[s.Name()] = r
	m.applied = false
	m.mu.Unlock()
	return nil
}

// Remove takes one back.
func (m *Machine) Remove(name string) bool {
	m.mu.Lock()
	_, own := m.own[name]
	delete(m.own, name)
	m.mu.Unlock()
	return own && m.monitor.Remove(name)
}

// configure has the signals go by what the configuration says.
func (m *Machine) configure() {
	view := m.runtime.Store.View()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.applied && m.version == view.Version {
		return
	}
	m.applied, m.version = true, view.Version
	rules := map[string]health.Rule{}
	for _, s := range health.BuiltIn() {
		rules[s.Name()] = health.Rule{} // off
	}
	for name, r := range m.own {
		rules[name] = r
	}
	policy := view.Health()
	for _, name := range policy.Off {
		if _, there := rules[name]; there {
			rules[name] = health.Rule{}
		}
	}
	for _, s := range policy.Signals {
		if _, there := rules[s.Name]; !there {
			m.runtime.Warn(fmt.Sprintf("health.own.%s is configured, and the program has no signal of that name", s.Name))
			continue
		}
		rules[s.Name] = health.Rule{Limit: s.Limit, Recover: s.Recover, Smoothing: s.Smoothing}
	}
	for name, r := range rules {
		if err := m.monitor.Update(name, r); err != nil {
			m.runtime.ConfigError(fmt.Errorf("health.%s: %w", name, err))
		}
	}
}

// Ready is an error while the machine is tight and the configuration says that the
// process is then not to be called ready.
func (m *Machine) Ready() error {
	if !m.runtime.Store.View().Health().Ready {
		return nil
	}
	m.Sample(guard.Now())
	if signal, tight := m.Tight(); tight {
		i := slices.IndexFunc(m.States(), func(s health.State) bool { return s.Name == signal })
		if i >= 0 {
			s := m.States()[i]
			return fmt.Errorf("weir: the machine is tight: %s is %.3g, its limit is %.3g", signal, s.Value, s.Limit)
		}
		return fmt.Errorf("weir: the machine is tight: %s", signal)
	}
	return nil
}
