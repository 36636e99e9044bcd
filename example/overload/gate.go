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

package main

import (
	"context"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir"
)

// gatherTimeout is for how long a burst is gathered. Then it goes as it is.
const gatherTimeout = 10 * time.Second

// gate is a filter before Weir's that gathers calls of A and lets them go at once. So a
// burst is one, however slowly calls arrive.
type gate struct {
	mu   sync.Mutex
	wave *wave // guarded by mu: nil when nothing is gathered
}

// wave is one burst, guarded by the gate's mu.
type wave struct {
	want, gathered int
	open           chan struct{}
	opened         time.Time
	// decided is how many have been refused or have come to the handler, and last when
	// the last one has.
	decided int
	last    time.Time
}

// burst is what has become of the newest wave.
type burst struct {
	Decided int
	// Spread is from letting them go to the last decision.
	Spread time.Duration
}

// gather has the next n calls of A wait for each other.
func (g *gate) gather(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wave = &wave{want: n, open: make(chan struct{})}
}

// Invoke implements filter.Filter.
func (g *gate) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	if inv.MethodName() != methodA {
		return next.Invoke(ctx, inv)
	}
	g.pass()
	res := next.Invoke(ctx, inv)
	if _, refused := weir.AsRejected(res.Error()); refused {
		g.decide()
	}
	return res
}

// OnResponse implements filter.Filter.
func (g *gate) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}

// pass waits for the others of a wave.
func (g *gate) pass() {
	g.mu.Lock()
	w := g.wave
	if w == nil || w.gathered == w.want {
		g.mu.Unlock()
		return
	}
	if w.gathered++; w.gathered == w.want {
		w.opened = time.Now()
		close(w.open)
	}
	g.mu.Unlock()
	select {
	case <-w.open:
	case <-time.After(gatherTimeout):
	}
}

// decide notes that a call of A was refused or has come to the handler.
func (g *gate) decide() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.wave; w != nil && w.decided < w.want {
		w.decided++
		w.last = time.Now()
	}
}

func (g *gate) burst() burst {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.wave
	if w == nil || w.opened.IsZero() || w.last.Before(w.opened) {
		return burst{}
	}
	return burst{w.decided, w.last.Sub(w.opened)}
}
