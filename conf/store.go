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

package conf

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Slot is the place of a source in the order of precedence: the first that
// sets a key at a level wins. Below all of them stand the params of the URL,
// which are an argument of [View.Resolve].
type Slot int

const (
	// FromCode is what the program set while it runs.
	FromCode Slot = iota
	// FromFile is the polled file.
	FromFile
	// FromSection is dubbo's config-map.
	FromSection
	slotCount
)

// Store holds the newest complete set of every source. It is safe for
// concurrent use; readers never wait. The zero value is ready.
type Store struct {
	version atomic.Uint64
	view    atomic.Pointer[View]
	changed atomic.Pointer[func()]

	mu      sync.Mutex // guarded by mu: writing layers and env
	layers  [slotCount]layer
	envMode Mode
}

type layer struct {
	origin string
	cfg    *Config
}

// View is one state of a [Store]. It is immutable.
type View struct {
	// Version grows with every change.
	Version uint64
	layers  [slotCount]layer
	envMode Mode
}

// Version is that of the newest view. It is one atomic load, for call paths
// that ask whether what they compiled is still true.
func (s *Store) Version() uint64 { return s.version.Load() }

// View is the newest state.
func (s *Store) View() *View {
	if v := s.view.Load(); v != nil {
		return v
	}
	return &View{}
}

// Set replaces all that a source says. origin names it in snapshots. cfg must
// not be changed afterwards; nil takes the source out.
func (s *Store) Set(slot Slot, origin string, cfg *Config) {
	s.change(func() { s.layers[slot] = layer{origin: origin, cfg: cfg} })
}

// SetEnvMode sets the mode that the environment asks for: over files, under code.
func (s *Store) SetEnvMode(m Mode) {
	s.change(func() { s.envMode = m })
}

// Touch makes a new version without another change, for what depends on more
// than the sources.
func (s *Store) Touch() {
	s.change(func() {})
}

// OnChange sets the function that is called after every change, by whoever made
// it and without a lock. A second one replaces the first.
func (s *Store) OnChange(f func()) { s.changed.Store(&f) }

func (s *Store) change(what func()) {
	s.mu.Lock()
	what()
	s.publishLocked()
	s.mu.Unlock()
	if f := s.changed.Load(); f != nil {
		(*f)()
	}
}

func (s *Store) publishLocked() {
	v := &View{Version: s.version.Load() + 1, layers: s.layers, envMode: s.envMode}
	s.view.Store(v)
	s.version.Store(v.Version)
}

// Mode is the mode that holds for all guards, and where it comes from.
func (v *View) Mode() (Mode, string) {
	for slot, l := range v.layers {
		if l.cfg != nil && l.cfg.Mode != "" {
			return l.cfg.Mode, l.origin
		}
		if Slot(slot) == FromCode && v.envMode != "" {
			return v.envMode, "WEIR_MODE"
		}
	}
	return Enforce, originDefault
}

// AutoChain tells whether the filters are put into every chain.
func (v *View) AutoChain() bool {
	for _, l := range v.layers {
		if l.cfg != nil && l.cfg.AutoChain != nil {
			return *l.cfg.AutoChain
		}
	}
	return true
}

// OnError tells what a fault found at export or refer does.
func (v *View) OnError() OnError {
	for _, l := range v.layers {
		if l.cfg != nil && l.cfg.OnError != "" {
			return l.cfg.OnError
		}
	}
	return Fail
}

// ServicesOf lists the services that some source names, each once and sorted.
func (v *View) ServicesOf(side Side) []string {
	var names []string
	for _, l := range v.layers {
		if l.cfg != nil {
			names = slices.AppendSeq(names, maps.Keys(l.cfg.section(side).Services))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// MethodsOf lists the methods that some source names for a service, each once
// and sorted, as keys made by [MethodKey].
func (v *View) MethodsOf(side Side, service ServiceKey) []string {
	var names []string
	for _, l := range v.layers {
		if l.cfg == nil {
			continue
		}
		for _, s := range l.cfg.section(side).matching(service) {
			for m := range s.Methods {
				names = append(names, m)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *Config) section(side Side) *Section {
	if side == Consumer {
		return &c.Consumer
	}
	return &c.Provider
}

// matching are the entries for a service, the most exact first.
func (s *Section) matching(service ServiceKey) []*Service {
	var out []*Service
	exact := service.String()
	if e, ok := s.Services[exact]; ok {
		out = append(out, &e)
	}
	if exact != service.Interface {
		if e, ok := s.Services[service.Interface]; ok {
			out = append(out, &e)
		}
	}
	return out
}
