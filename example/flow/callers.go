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
	"strconv"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
)

const (
	// tick is how often callers look how many calls are due.
	tick = 2 * time.Millisecond
	// mostLate is how much of what they could not make in time they make good.
	mostLate = 50 * time.Millisecond
	// mostOpen is how many calls there are at the same time. There are fewer unless the
	// machine is too slow.
	mostOpen    = 1000
	callTimeout = 20 * time.Second // longer than any call takes
)

// outcome is what a caller saw.
type outcome string

const (
	none     outcome = ""         // nothing yet
	answered outcome = "answered" // with its greeting
	refused  outcome = "refused"  // an error that is a refusal by its type
	failed   outcome = "failed"   // anything else
)

// seen is one call as its caller sees it.
type seen struct {
	began   time.Time
	took    time.Duration
	outcome outcome
	refusal *call.RejectError
	text    string // of what is neither an answer nor a refusal
}

// callers make calls at a rate, whether those before have ended or not, as many
// users do.
type callers struct {
	do func(ctx context.Context, name string) (string, error)

	mu    sync.Mutex
	open  sync.WaitGroup
	calls []seen // guarded by mu; the call with number n is at n-1
	now   int    // guarded by mu: those that have not ended
}

// run makes so many calls a second for so long.
func (c *callers) run(ctx context.Context, perSecond int, lasts time.Duration) {
	each := time.Second / time.Duration(perSecond)
	clock := time.NewTicker(tick)
	defer clock.Stop()
	due := time.Now()
	for end := due.Add(lasts); ; {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
		now := time.Now()
		if now.After(end) {
			return
		}
		if now.Sub(due) > mostLate {
			due = now.Add(-mostLate)
		}
		for ; !due.After(now); due = due.Add(each) {
			c.begin(ctx)
		}
	}
}

func (c *callers) begin(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == mostOpen {
		return
	}
	c.now++
	c.calls = append(c.calls, seen{began: time.Now()})
	id := len(c.calls)
	c.open.Go(func() { c.call(ctx, id) })
}

func (c *callers) call(ctx context.Context, id int) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	greeting, err := c.do(ctx, strconv.Itoa(id))
	end := time.Now()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
	s := &c.calls[id-1]
	s.took = end.Sub(s.began)
	if r, ok := weir.AsRejected(err); ok {
		s.outcome, s.refusal = refused, r
		return
	}
	switch {
	case err != nil:
		s.outcome, s.text = failed, err.Error()
	case greeting != "Hello, "+strconv.Itoa(id):
		s.outcome, s.text = failed, "neither an error nor its greeting, but "+strconv.Quote(greeting)
	default:
		s.outcome = answered
	}
}

// end waits until all calls have ended, and returns them.
func (c *callers) end() []seen {
	c.open.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}
