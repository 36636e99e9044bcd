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
	"sync/atomic"
	"time"

	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/notify"
	"github.com/weir-go/weir/internal/overload"
	"github.com/weir-go/weir/internal/profile"
)

// Event is a decision of a cap. It encodes as JSON.
type Event struct {
	// Side, Service, Method and Reference say whose cap it is. Method is "*" for names
	// that the service does not have.
	Side      string `json:"side"`
	Service   string `json:"service"`
	Method    string `json:"method"`
	Reference uint64 `json:"reference,omitempty"`
	// Kind is "changed" for another cap, "held" when calls are refused and the cap is not
	// expanded, "overdue" for a call that was set aside, and "slow" for one that runs for
	// longer than overload.slow-call.
	Kind string `json:"kind"`
	// From and To are the caps before and after.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Reason is why: healthy, calm, slow-calls, tight, configured or adapted for a cap that
	// has changed, and concurrency, slow-calls or tight for one that is held.
	Reason string `json:"reason,omitempty"`
	// Signal is the one of the machine that is tight.
	Signal string `json:"signal,omitempty"`
	// Age is for how long the call has run, in nanoseconds when encoded, and Caller the
	// application that called, as far as it tells.
	Age    time.Duration `json:"ageNanos,omitempty"`
	Caller string        `json:"caller,omitempty"`
	// More is how many other calls became slow, or were set aside, at the same time.
	More int64 `json:"more,omitempty"`
	// At is when.
	At time.Time `json:"at"`
}

var kinds = map[overload.Kind]string{
	overload.Changed: "changed", overload.Held: "held", overload.Overdue: "overdue", overload.Slow: "slow",
}

type told struct {
	runtime *guard.Runtime
	Event
}

var hub = notify.Hub[told]{Panicked: func(fault any) {
	logger.Errorf("[Weir][%s] a subscriber to its decisions panicked: %v", Policy, fault)
}}

// Subscribe has f told of every decision of a runtime's caps: those of one cap in their
// order, on a goroutine of its own. stop ends it.
func Subscribe(rt *guard.Runtime, f func(Event)) (stop func()) {
	return hub.Subscribe(func(e told) bool { return e.runtime == rt }, func(e told) { f(e.Event) })
}

// teller makes events of what a cap tells. The core has one told at a time.
type teller struct {
	key       Key
	method    atomic.Pointer[string]
	totals    atomic.Pointer[Totals]
	profiles  *profile.Writer
	dumpEvery atomic.Int64 // a duration, 0 for never

	mu      sync.Mutex
	counted map[string]int64 // guarded by mu: changes by reason

	lines lines

	latest time.Time // that an event was told to be at
}

// at is the time of day of an event. Two clocks are read for it, one a moment after the
// other, so of events that follow each other a later one could have an earlier time.
func (t *teller) at(now time.Duration) time.Time {
	if at := time.Now().Add(now - guard.Now()); at.After(t.latest) {
		t.latest = at
	}
	return t.latest
}

// changes are how often the cap has changed, by reason.
func (t *teller) changes() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]int64, len(t.counted))
	for reason, n := range t.counted {
		out[reason] = n
	}
	return out
}

func (t *teller) tell(ev overload.Event) {
	e := Event{
		Side: t.key.Side.String(), Service: t.key.Service, Method: t.key.Method, Reference: t.key.Reference,
		Kind: kinds[ev.Kind], From: ev.From, To: ev.To, Signal: ev.Signal, Age: ev.Age, Caller: ev.Caller, More: ev.More,
		At: t.at(ev.At),
	}
	if ev.Reason != overload.None {
		e.Reason = ev.Reason.String()
	}
	if m := t.method.Load(); m != nil {
		e.Method = *m
	}
	if ev.Kind == overload.Changed {
		t.mu.Lock()
		if t.counted == nil {
			t.counted = map[string]int64{}
		}
		t.counted[e.Reason]++
		t.mu.Unlock()
	}
	if all := t.totals.Load(); all != nil {
		all.note(ev)
	}
	hub.Publish(told{t.key.runtime, e})
	if ev.Kind == overload.Slow || ev.Kind == overload.Overdue {
		t.profiles.Request(call.Resource(e.Service, e.Method), time.Duration(t.dumpEvery.Load()), ev.At)
	}
	t.log(ev, e)
}

// linesPerSecond bounds the log of one cap.
const linesPerSecond = 8

// lines counts what is logged of one cap, and what is not.
type lines struct {
	mu     sync.Mutex
	second time.Duration // guarded by mu: when it began
	n      int           // guarded by mu: of lines in it
	quiet  int64         // guarded by mu: what had no line
}

// room reports whether there is one more line, for so many calls or other things, and what
// had none before.
func (l *lines) room(now time.Duration, of int64) (quiet int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now-l.second >= time.Second {
		l.second, l.n = now, 0
	}
	if l.n++; l.n > linesPerSecond {
		l.quiet += of
		return 0, false
	}
	quiet, l.quiet = l.quiet, 0
	return quiet, true
}

// rest is what had no line in a second that is over, once.
func (l *lines) rest(now time.Duration) (quiet int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now-l.second >= time.Second {
		quiet, l.quiet = l.quiet, 0
	}
	return quiet
}

// tick logs how much was not, when no other line follows that would.
func (t *teller) tick(now time.Duration) {
	quiet := t.lines.rest(now)
	if quiet == 0 {
		return
	}
	method := t.key.Method
	if m := t.method.Load(); m != nil {
		method = *m
	}
	logger.Warnf("[Weir][%s] more was decided than there are lines for, service=%q method=%s side=%s not-told=%d",
		Policy, t.key.Service, method, t.key.Side, quiet)
}

func (t *teller) log(ev overload.Event, e Event) {
	quiet, ok := t.lines.room(ev.At, 1+e.More)
	if !ok {
		return
	}
	caller := e.Caller
	if caller == "" {
		caller = "unknown"
	}
	switch ev.Kind {
	case overload.Changed:
		logger.Infof("[Weir][%s] the cap is %d now, it was %d, service=%q method=%s side=%s reason=%s signal=%s not-told=%d",
			Policy, e.To, e.From, e.Service, e.Method, e.Side, e.Reason, e.Signal, quiet)
	case overload.Held:
		logger.Warnf("[Weir][%s] calls are refused at the cap of %d, which does not expand, service=%q method=%s side=%s reason=%s signal=%s not-told=%d",
			Policy, e.To, e.Service, e.Method, e.Side, e.Reason, e.Signal, quiet)
	case overload.Overdue:
		logger.Warnf("[Weir][%s] a call was set aside, its slot is free again, service=%q method=%s side=%s age=%s caller=%s more=%d not-told=%d",
			Policy, e.Service, e.Method, e.Side, e.Age, caller, e.More, quiet)
	case overload.Slow:
		logger.Warnf("[Weir][%s] a call is slow, service=%q method=%s side=%s age=%s caller=%s more=%d not-told=%d",
			Policy, e.Service, e.Method, e.Side, e.Age, caller, e.More, quiet)
	}
}
