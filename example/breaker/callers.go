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
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
)

const (
	// callEvery is the time between two calls. They come whether those before them
	// have ended or not, as calls of many users do.
	callEvery = 10 * time.Millisecond
	// callTimeout is longer than anything here hangs.
	callTimeout = 30 * time.Second
)

// outcome is what a caller saw.
type outcome string

const (
	waiting  outcome = ""         // nothing yet
	answered outcome = "answered" // a greeting
	no       outcome = "declined" // an error of the business, which is an answer as well
	failed   outcome = "failed"   // any other error
	refused  outcome = "refused"  // an error that is a refusal by its type
	empty    outcome = "empty"    // neither an error nor a greeting
)

// seen is one call as its caller sees it.
type seen struct {
	id      int
	phase   int // during which it began
	began   time.Time
	took    time.Duration
	outcome outcome
	refusal *call.RejectError
	text    string // of an error
}

func (s seen) ended() bool    { return s.outcome != waiting }
func (s seen) end() time.Time { return s.began.Add(s.took) }

// callers make calls all the time.
type callers struct {
	do func(ctx context.Context, name string) (string, error)

	mu     sync.Mutex
	calls  []seen // guarded by mu; the call with id n is at n-1
	phase  int    // guarded by mu
	paused bool   // guarded by mu
}

// run makes calls until ctx ends.
func (c *callers) run(ctx context.Context) {
	tick := time.NewTicker(callEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if id, ok := c.begin(); ok {
			go c.call(context.WithoutCancel(ctx), id) // it ends as it does, also when no more begin
		}
	}
}

func (c *callers) begin() (id int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return 0, false
	}
	id = len(c.calls) + 1
	c.calls = append(c.calls, seen{id: id, phase: c.phase, began: time.Now()})
	return id, true
}

func (c *callers) call(ctx context.Context, id int) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	greeting, err := c.do(ctx, strconv.Itoa(id))
	end := time.Now()

	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.calls[id-1]
	s.took = end.Sub(s.began)
	s.outcome, s.refusal, s.text = judge(id, greeting, err)
}

// judge tells what a caller got.
func judge(id int, greeting string, err error) (o outcome, refusal *call.RejectError, text string) {
	if err == nil {
		if greeting == "Hello, "+strconv.Itoa(id) {
			return answered, nil, ""
		}
		return empty, nil, greeting
	}
	if r, ok := weir.AsRejected(err); ok {
		return refused, r, err.Error()
	}
	if strings.Contains(err.Error(), declined) {
		return no, nil, err.Error()
	}
	return failed, nil, err.Error()
}

// enter says what calls belong to from here on, and makes callers go on.
func (c *callers) enter(phase int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase, c.paused = phase, false
}

// pause has no call begin until the next phase. It returns the last one's id.
func (c *callers) pause() (last int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = true
	return len(c.calls)
}

// last is the id of the newest call.
func (c *callers) last() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// count counts the calls that are so.
func (c *callers) count(so func(seen) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, s := range c.calls {
		if so(s) {
			n++
		}
	}
	return n
}

func (c *callers) all() []seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]seen(nil), c.calls...)
}
