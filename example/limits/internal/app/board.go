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

package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/example/limits/internal/control"
)

// maxHold ends a handler that nobody released.
const maxHold = 25 * time.Second

// board holds the handlers of each method until the driver releases them, and
// keeps count meanwhile. Holding them makes the result independent of the
// speed of the machine: nobody leaves before every call has been decided.
type board struct {
	methods map[string]*gate // read only

	mu   sync.Mutex
	hits map[string]int // by call id; guarded by mu
}

type gate struct {
	leave chan struct{} // each value lets one handler return, and all may when it is closed
	once  sync.Once

	mu            sync.Mutex
	entered       []string // ids of calls; guarded by mu
	running, peak int      // guarded by mu
}

func newBoard(methods ...string) *board {
	b := &board{methods: make(map[string]*gate), hits: make(map[string]int)}
	for _, m := range methods {
		b.methods[m] = &gate{leave: make(chan struct{})}
	}
	return b
}

// hold is what a handler does in this demo: it waits for the release.
func (b *board) hold(method, callID string) error {
	g := b.methods[method]
	g.enter(callID)
	defer g.exit()

	timeout := time.NewTimer(maxHold)
	defer timeout.Stop()
	select {
	case <-g.leave:
		return nil
	case <-timeout.C:
		return errors.New("nobody released the handler within " + maxHold.String())
	}
}

func (g *gate) enter(callID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entered = append(g.entered, callID)
	g.running++
	g.peak = max(g.peak, g.running)
}

func (g *gate) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
}

// release lets n handlers of a method return, which must be in it; without n all
// of them, and those that come later at once.
func (b *board) release(method string, n ...int) error {
	g, ok := b.methods[method]
	if !ok {
		return fmt.Errorf("unknown method %q", method)
	}
	if len(n) == 0 {
		g.once.Do(func() { close(g.leave) })
		return nil
	}
	for range n[0] {
		select {
		case g.leave <- struct{}{}:
		case <-time.After(maxHold):
			return errors.New("no handler is there to be released")
		}
	}
	return nil
}

func (b *board) hit(callID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hits[callID]++
}

func (b *board) status(method string) (control.ProviderStatus, error) {
	g, ok := b.methods[method]
	if !ok {
		return control.ProviderStatus{}, fmt.Errorf("unknown method %q", method)
	}
	b.mu.Lock()
	hits := maps.Clone(b.hits)
	b.mu.Unlock()

	g.mu.Lock()
	defer g.mu.Unlock()
	return control.ProviderStatus{Entered: slices.Clone(g.entered), Running: g.running, Peak: g.peak, Hits: hits}, nil
}
