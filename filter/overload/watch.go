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

package overload

import (
	"sync"
	"time"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/machine"
	"github.com/weir-go/weir/internal/overload"
)

const (
	// tickEvery is how often limits that are found out are judged; the other work of a
	// tick is done after wholeEvery, or half a tick less.
	tickEvery  = 250 * time.Millisecond
	wholeEvery = time.Second
)

// watch has the caps of a runtime do what they do by themselves, as long as there are any.
type watch struct {
	runtime *guard.Runtime
	machine *machine.Machine
	// tight is how caps ask for the machine.
	tight overload.Health

	mu    sync.Mutex
	armed bool // guarded by mu
	// wanted is set when there is a cap that a tick under way may not have found.
	wanted bool          // guarded by mu
	whole  time.Duration // guarded by mu: the last tick that did all
}

type watchKey struct{}

func watchOf(rt *guard.Runtime) *watch {
	return rt.Owned(watchKey{}, func() any {
		m := machine.Of(rt)
		return &watch{runtime: rt, machine: m, tight: m.Tight}
	}).(*watch)
}

// start begins to tick, if it does not already.
func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = true
	if !w.armed {
		w.armed = true
		time.AfterFunc(tickEvery, w.tick)
	}
}

func (w *watch) tick() {
	now := guard.Now()
	go w.machine.Sample(now) // the program's own signals may take their time
	w.rest(w.look(now))
}

// look has all caps do what is due, and tells whether there are any.
func (w *watch) look(now time.Duration) (found bool) {
	w.mu.Lock()
	w.wanted = false
	whole := now-w.whole >= wholeEvery-tickEvery/2
	if whole {
		w.whole = now
	}
	w.mu.Unlock()
	entries.Range(func(k Key, e *entry) bool {
		if k.runtime == w.runtime && e.ready() {
			found = true
			e.tick(now, whole)
		}
		return true
	})
	return found
}

// rest ends a tick: another follows while there is something to do.
func (w *watch) rest(found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed = found || w.wanted; w.armed {
		time.AfterFunc(tickEvery, w.tick)
	}
}

// ready reports whether the cap is made.
func (e *entry) ready() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Cap != nil
}
