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

package circuitbreaker

import (
	"sync/atomic"
	"time"

	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/breaker"
	"github.com/weir-go/weir/internal/notify"
)

// Event is a change of a breaker's state. It encodes as JSON.
type Event struct {
	// Side, Service, Method, Reference and Address say whose breaker it is. Method is
	// "*" for names that the service does not have, and Address is "" where all
	// addresses share a breaker.
	Side      string `json:"side"`
	Service   string `json:"service"`
	Method    string `json:"method"`
	Reference uint64 `json:"reference,omitempty"`
	Address   string `json:"address,omitempty"`
	// From and To are closed, open or half-open.
	From string `json:"from"`
	To   string `json:"to"`
	// Reason is why the breaker opened, as in its refusals; Limit and Observed are
	// the bound that was met and what met it, in whole percents for the ratios. A
	// breaker that begins to probe still tells why it was open. not-probed is that a
	// later guard refused the probe.
	Reason   string `json:"reason,omitempty"`
	Limit    int64  `json:"limit,omitempty"`
	Observed int64  `json:"observed,omitempty"`
	// Calls, Failures and Slow are what the window had counted when the breaker
	// opened, or the probes.
	Calls    int64 `json:"calls,omitempty"`
	Failures int64 `json:"failures,omitempty"`
	Slow     int64 `json:"slow,omitempty"`
	// OpenFor is how long it refuses calls before it probes, in nanoseconds when encoded.
	OpenFor time.Duration `json:"openForNanos,omitempty"`
	// At is when the state changed.
	At time.Time `json:"at"`
}

// told is an event of a runtime's breaker.
type told struct {
	runtime *guard.Runtime
	Event
}

var hub = notify.Hub[told]{Panicked: func(fault any) {
	logger.Errorf("[Weir][%s] a subscriber to changes of state panicked: %v", Policy, fault)
}}

// Subscribe has f told of every change of state of a runtime's breakers: those of
// one breaker in their order, one after another on a goroutine of the
// subscription's own, so that f may take its time, use everything and panic. stop
// ends it; an event that f is being told of is not waited for.
func Subscribe(rt *guard.Runtime, f func(Event)) (stop func()) {
	return hub.Subscribe(func(e told) bool { return e.runtime == rt }, func(e told) { f(e.Event) })
}

// teller makes events of what a breaker tells. The core has one told at a time.
type teller struct {
	key     Key
	method  atomic.Pointer[string]
	changes atomic.Pointer[Changes]
	balance balance

	// Of the lines in the log.

	second time.Duration
	lines  int
	quiet  int
}

func (t *teller) name(method string) { t.method.Store(&method) }

func (t *teller) count(c *Changes) { t.changes.Store(c) }

func (t *teller) tell(ev breaker.Event) {
	e := Event{
		Side: t.key.Side.String(), Service: t.key.Service, Method: t.key.Method, Reference: t.key.Reference, Address: t.key.Address,
		From: ev.From.String(), To: ev.To.String(), Limit: ev.Cause.Limit, Observed: ev.Cause.Observed,
		Calls: ev.Calls, Failures: ev.Failures, Slow: ev.Slow, OpenFor: ev.OpenFor, At: time.Now().Add(ev.At - guard.Now()),
	}
	if ev.Cause.Reason != breaker.None {
		e.Reason = ev.Cause.Reason.String()
	}
	if m := t.method.Load(); m != nil {
		e.Method = *m
	}
	if c := t.changes.Load(); c != nil {
		c.entered[ev.To].Add(1)
	}
	hub.Publish(told{t.key.runtime, e})
	if ev.Cause.Reason != breaker.NotProbed { // it is too early for another probe
		t.balance.follow(guard.Now(), false)
	}
	t.log(ev, e)
}

// linesPerSecond bounds the log of one breaker: where a later guard refuses its
// probes it changes state at every call.
const linesPerSecond = 4

func (t *teller) log(ev breaker.Event, e Event) {
	if ev.To == breaker.HalfOpen || ev.Cause.Reason == breaker.NotProbed {
		return // that it probes is told by what comes of it
	}
	if ev.At-t.second >= time.Second {
		t.second, t.lines = ev.At, 0
	}
	t.lines++
	if t.lines > linesPerSecond {
		t.quiet++
		return
	}
	quiet := t.quiet
	t.quiet = 0
	if ev.To == breaker.Closed {
		logger.Infof("[Weir][%s] closed, service=%q method=%s side=%s address=%s not-told=%d", Policy, e.Service, e.Method, e.Side, e.Address, quiet)
		return
	}
	logger.Warnf("[Weir][%s] opened, service=%q method=%s side=%s address=%s reason=%s limit=%d observed=%d calls=%d failures=%d slow=%d open-for=%v not-told=%d",
		Policy, e.Service, e.Method, e.Side, e.Address, e.Reason, e.Limit, e.Observed, e.Calls, e.Failures, e.Slow, e.OpenFor, quiet)
}
