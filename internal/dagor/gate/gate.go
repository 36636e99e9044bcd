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

// Package gate has the goroutines of calls wait at a [dagor.Controller].
package gate

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/dagor"
)

// Gate is a Controller for calls that have a goroutine each. Its methods may be used from
// several goroutines.
type Gate struct {
	*dagor.Controller
	clock  func() time.Duration
	places sync.Pool
}

// New makes one that reads its times from clock, which never goes back.
func New(c *dagor.Controller, clock func() time.Duration) *Gate {
	g := &Gate{Controller: c, clock: clock}
	g.places.New = func() any {
		p := &place{told: make(chan struct{}, 1)}
		p.waiter.Owner = p
		return p
	}
	return g
}

// place is where a goroutine waits.
type place struct {
	waiter dagor.Waiter
	told   chan struct{}
	timer  *time.Timer
}

// Pass is an admitted call. Leave ends it, once; it is for one goroutine. The zero Pass, which
// refused calls have, holds nothing.
type Pass struct {
	g *Gate
	// Began is when it was admitted, Waited how long it waited for that. Its goroutine may get to run
	// later than that, but its place is taken.
	Began, Waited time.Duration
}

// Enter admits a call or refuses it, after a wait where one is needed. It waits no longer than
// the context lives; a call whose context ends has Expired. The Pass is to be left if and only if the
// Verdict is Admitted.
func (g *Gate) Enter(ctx context.Context, p dagor.Priority) (Pass, dagor.Verdict) {
	now := g.clock()
	v, told := g.Controller.Enter(p, now)
	tell(told)
	switch v {
	case dagor.Admitted:
		return Pass{g: g, Began: now}, v
	case dagor.Waits:
		return g.wait(ctx, p, now)
	}
	return Pass{}, v
}

func (g *Gate) wait(ctx context.Context, p dagor.Priority, now time.Duration) (Pass, dagor.Verdict) {
	if ctx.Err() != nil {
		return Pass{}, dagor.Expired
	}
	at := g.places.Get().(*place)
	at.waiter.Until = 0
	if deadline, ok := ctx.Deadline(); ok {
		// A context whose end is not on the gate's clock is near enough for a wait.
		// There is no number for the end of one that is as good as never.
		at.waiter.Until = max(now+min(time.Until(deadline), math.MaxInt64-now), 1) //nolint:forbidigo // a context has its end on the wall clock
	}
	v, told := g.Queue(p, now, &at.waiter)
	tell(told)
	if v == dagor.Waits {
		v = g.sleep(ctx, at, at.waiter.Until-now)
	}
	waited := at.waiter.Waited(at.waiter.Since)
	g.places.Put(at)
	if v != dagor.Admitted {
		return Pass{}, v
	}
	return Pass{g: g, Began: now + waited, Waited: waited}, v
}

// sleep waits for the decision about a place.
func (g *Gate) sleep(ctx context.Context, at *place, longest time.Duration) dagor.Verdict {
	if at.timer == nil {
		at.timer = time.NewTimer(longest)
	} else {
		at.timer.Reset(longest)
	}
	defer at.timer.Stop()
	select {
	case <-at.told:
		return at.waiter.Verdict
	case <-at.timer.C:
	case <-ctx.Done():
	}
	if g.Expire(&at.waiter) {
		return dagor.Expired
	}
	// It was decided about in the same moment, and who did that tells.
	<-at.told
	return at.waiter.Verdict
}

// Leave ends the call.
func (p Pass) Leave() {
	if p.g == nil {
		return
	}
	now := p.g.clock()
	tell(p.g.Controller.Leave(now, now-p.Began))
}

func tell(told dagor.Decided) {
	for w := told.Next(); w != nil; w = told.Next() {
		w.Owner.(*place).told <- struct{}{}
	}
}
