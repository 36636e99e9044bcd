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

package health

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// What [Monitor.Add] and [Monitor.Update] return besides [ErrRule].
var (
	// ErrSignal is that of no signal, or one without a name.
	ErrSignal = errors.New("weir: a signal needs a name")
	// ErrDuplicate is wrapped with the name that is there already.
	ErrDuplicate = errors.New("weir: signal is there already")
	// ErrNotFound is wrapped with the name that is not there.
	ErrNotFound = errors.New("weir: no such signal")
)

// Monitor samples signals, and knows whether one of them is tight. It is safe for
// concurrent use. It starts no goroutine by itself: whoever has it calls
// [Monitor.Sample] again and again, and [Monitor.Tight] is what the last one found,
// however long ago that was.
type Monitor struct {
	tight atomic.Pointer[string]
	_     [56]byte // it is read by all calls, what follows is written

	sampling atomic.Bool
	// round and timer belong to the one that samples.
	round []turn
	timer *time.Timer

	mu      sync.Mutex
	watches []*watch      // guarded by mu, in the order in which they were added
	now     time.Duration // guarded by mu: of the last sample
}

// New returns a monitor without signals: nothing is tight.
func New() *Monitor { return &Monitor{} }

// Add has a signal watched, from the next sample on. A signal that keeps readings
// must not be watched twice. The error wraps [ErrSignal], [ErrDuplicate] or [ErrRule].
func (m *Monitor) Add(s Signal, r Rule) error {
	if s == nil {
		return ErrSignal
	}
	name := s.Name()
	if name == "" {
		return ErrSignal
	}
	if err := r.Validate(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w := &watch{name: name, signal: s, rule: r}
	if _, w.inline = s.(ours); !w.inline {
		w.answers = make(chan answer, 1)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.findLocked(name) != nil {
		return fmt.Errorf("%w: %s", ErrDuplicate, name)
	}
	m.watches = append(m.watches, w)
	return nil
}

// Remove forgets a signal, and reports whether it was there. One that is being read
// may come back later; nobody waits for it.
func (m *Monitor) Remove(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.findLocked(name)
	if w == nil {
		return false
	}
	m.watches = slices.DeleteFunc(m.watches, func(o *watch) bool { return o == w })
	m.judgeLocked()
	return true
}

// Update changes the rule of a signal. It holds at once, for the mean that is there;
// the mean goes on, unless the signal is off in between: then it begins anew. The
// error wraps [ErrNotFound] or [ErrRule], and nothing changes then.
func (m *Monitor) Update(name string, r Rule) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.findLocked(name)
	if w == nil {
		return fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	w.updateLocked(r, m.now)
	m.judgeLocked()
	return nil
}

// Tight returns the name of the signal that has been tight for longest, and whether
// there is one.
func (m *Monitor) Tight() (signal string, tight bool) {
	if p := m.tight.Load(); p != nil {
		return *p, true
	}
	return "", false
}

func (m *Monitor) findLocked(name string) *watch {
	for _, w := range m.watches {
		if w.name == name {
			return w
		}
	}
	return nil
}

// judgeLocked publishes who is tight.
func (m *Monitor) judgeLocked() {
	var first *watch
	for _, w := range m.watches {
		if w.tight && (first == nil || w.since < first.since) {
			first = w
		}
	}
	var name *string
	if first != nil {
		name = &first.name
	}
	if m.tight.Load() != name {
		m.tight.Store(name)
	}
}

// State is what is known of a signal.
type State struct {
	Name string
	// Value is the mean, Raw the last value, both in the unit of the signal. They
	// are those of the last reading that was known.
	Value, Raw float64
	// Known tells whether the last reading was. Err is why not, where the signal did
	// not say so itself: it wraps [ErrPanic], [ErrLate] or [ErrValue].
	Known bool
	Err   error
	// Limit is the mean from which on it is tight, 0 if it is off, and Recover the one
	// below which it is calm again.
	Limit, Recover float64
	Smoothing      time.Duration
	// Tight is whether it is, and Since the time of the sample since when; 0 before
	// the first.
	Tight bool
	Since time.Duration
}

// States returns those of all signals, in the order in which they were added.
func (m *Monitor) States() []State {
	m.mu.Lock()
	defer m.mu.Unlock()
	states := make([]State, len(m.watches))
	for i, w := range m.watches {
		states[i] = State{
			Name: w.name, Value: w.mean, Raw: w.raw, Known: w.known, Err: w.err,
			Tight: w.tight, Since: w.since,
		}
		if !w.rule.off() {
			states[i].Limit, states[i].Recover = w.rule.Limit, w.rule.Calm()
			states[i].Smoothing = w.rule.Smoothing
		}
	}
	return states
}
