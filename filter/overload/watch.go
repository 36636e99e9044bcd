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
	// tick is done every wholeEvery ticks.
	tickEvery  = 250 * time.Millisecond
	wholeEvery = 4
)

// watch has the caps of a runtime do what they do by themselves, as long as there are any.
type watch struct {
	runtime *guard.Runtime
	machine *machine.Machine
	// tight is how caps ask for the machine.
	tight overload.Health

	mu    sync.Mutex
	armed bool // guarded by mu
	ticks int  // guarded by mu
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
	if !w.armed {
		w.armed = true
		time.AfterFunc(tickEvery, w.tick)
	}
}

func (w *watch) tick() {
	now := guard.Now()
	w.machine.Sample(now)
	w.mu.Lock()
	w.ticks++
	whole := w.ticks%wholeEvery == 0
	w.mu.Unlock()
	var found bool
	entries.Range(func(k Key, e *entry) bool {
		if k.runtime == w.runtime && e.ready() {
			found = true
			e.tick(now, whole)
		}
		return true
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed = found; found {
		time.AfterFunc(tickEvery, w.tick)
	}
}

// ready reports whether the cap is made.
func (e *entry) ready() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Cap != nil
}
