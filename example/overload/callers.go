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

// callTimeout is longer than anything here hangs.
const callTimeout = 60 * time.Second

// outcome is what a caller saw.
type outcome string

const (
	waiting  outcome = ""         // nothing yet
	answered outcome = "answered" // the greeting that it should get
	refused  outcome = "refused"  // an error that is a refusal by its type
	failed   outcome = "failed"   // anything else
)

// seen is one call as its caller sees it.
type seen struct {
	step    int // during which it began
	method  string
	began   time.Time
	took    time.Duration
	outcome outcome
	refusal *call.RejectError
	text    string // of what failed
}

func (s seen) ended() bool    { return s.outcome != waiting }
func (s seen) end() time.Time { return s.began.Add(s.took) }

// callers make calls.
type callers struct {
	do map[string]func(ctx context.Context, name string) (string, error) // by method

	mu    sync.Mutex
	calls []seen // guarded by mu
	step  int    // guarded by mu
}

// enter says what calls belong to from here on.
func (c *callers) enter(step int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step = step
}

// start begins n calls at once.
func (c *callers) start(ctx context.Context, method string, n int) {
	for range n {
		go c.call(context.WithoutCancel(ctx), method, c.begin(method))
	}
}

// keep begins a call every so often, whether those before have ended or not, until the
// function that it returns is called.
func (c *callers) keep(ctx context.Context, method string, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				c.start(ctx, method, 1)
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (c *callers) begin(method string) (id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, seen{step: c.step, method: method, began: time.Now()})
	return len(c.calls) - 1
}

func (c *callers) call(ctx context.Context, method string, id int) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name := strconv.Itoa(id)
	got, err := c.do[method](ctx, name)
	end := time.Now()

	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.calls[id]
	s.took = end.Sub(s.began)
	switch r, ok := weir.AsRejected(err); {
	case ok:
		s.outcome, s.refusal = refused, r
	case err != nil:
		s.outcome, s.text = failed, err.Error()
	case got != greeting(method, name):
		s.outcome, s.text = failed, "the answer "+strconv.Quote(got)
	default:
		s.outcome = answered
	}
}

// count counts the calls that are so.
func (c *callers) count(so func(seen) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return count(c.calls, so)
}

func (c *callers) all() []seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]seen(nil), c.calls...)
}

func count(calls []seen, so func(seen) bool) (n int) {
	for _, s := range calls {
		if so(s) {
			n++
		}
	}
	return n
}
