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

package breaker

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// State is that of a breaker.
type State uint8

// States.
const (
	// Closed lets calls pass.
	Closed State = iota
	// Open refuses them.
	Open
	// HalfOpen lets some pass, to find out.
	HalfOpen
)

func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	}
	return "unknown"
}

// Result is what a call that ran came to.
type Result uint8

// Results.
const (
	// Success is an answer.
	Success Result = iota
	// Failure is a call that failed.
	Failure
	// Timeout is a failure as well.
	Timeout
	// Ignored says nothing of whether the other side is well, but a call that was
	// slow counts as slow: its caller gave up because it was.
	Ignored
	// Refused says nothing either, not even of how long calls take.
	Refused
)

// ErrTransition is returned for a change of state that there is not.
var ErrTransition = errors.New("weir: a closed breaker cannot become half-open")

// Force is a state that somebody demands.
type Force uint8

// Forces.
const (
	// Free is none: the breaker decides.
	Free Force = iota
	// ForceOpen refuses every call, and nothing probes.
	ForceOpen
	// ForceClosed lets every call pass, and goes on counting.
	ForceClosed
)

// Permit is the right of a call to run. It is a value; the zero Permit is none,
// and what is said of it changes nothing.
//
// Exactly one of End and Drop follows each that was given.
type Permit struct {
	// era is that in which the permit was given.
	Era uint32
	// Key is that of a probe, or tells where a call that runs is counted.
	Key uint32
}

// Verdict is why calls are refused. Its address stays the same for as long as
// the reason and the rules do.
type Verdict struct {
	State State
	Cause Cause
	// Until is when the breaker will probe, 0 when that cannot be told.
	Until time.Duration
}

// Breaker is a circuit breaker. It is safe for concurrent use.
type Breaker struct {
	era atomic.Pointer[era]
	_   [56]byte // it is read by all, what follows is written

	listener func(Event)
	random   func(n int64) int64

	mu     sync.Mutex
	number uint32              // guarded by mu: of the newest era
	rules  *Rules              // guarded by mu
	force  Force               // guarded by mu
	counts [HalfOpen + 1]int64 // guarded by mu: how often each state was entered
	events events
}

// era is a time that a breaker spends in one state. All but what it counts is
// immutable. Eras of one number count together: rules have changed between them.
type era struct {
	number uint32
	state  State
	rules  *Rules
	forced bool
	// verdict is that of an open or half-open era.
	verdict Verdict
	// failed is how many rounds of probes have failed one after another.
	failed int

	window  *window  // of a closed one
	running *running // of a closed one in which slow calls count
	probing *probing // of a half-open one
}

// Option is a collaborator of a breaker.
type Option func(*Breaker)

// WithListener has f told of each change of state, one after another in their
// order, outside of any lock, by a goroutine that caused one. f may use the breaker.
func WithListener(f func(Event)) Option { return func(b *Breaker) { b.listener = f } }

// WithRandom sets where the jitter comes from: a number from 0 up to n, without n.
func WithRandom(f func(n int64) int64) Option { return func(b *Breaker) { b.random = f } }

// New returns a closed breaker. The error wraps [ErrRules].
func New(r Rules, now time.Duration, options ...Option) (*Breaker, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	b := &Breaker{rules: &r, random: rand.Int64N}
	for _, o := range options {
		o(b)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.era.Store(b.closedLocked(now))
	return b, nil
}

func (b *Breaker) closedLocked(now time.Duration) *era {
	b.number++
	if b.number == 0 {
		b.number++ // that is no permit's
	}
	e := &era{number: b.number, state: Closed, rules: b.rules, forced: b.force == ForceClosed, window: newWindow(b.rules, now)}
	if b.rules.SlowRatio > 0 {
		e.running = newRunning(b.rules.SlowCall, now)
	}
	return e
}

// TryClosed is [Breaker.Allow] where that needs no time: a closed breaker where
// slow calls do not count. It reports whether it is one.
func (b *Breaker) TryClosed() (Permit, bool) {
	e := b.era.Load()
	return Permit{Era: e.number}, e.state == Closed && e.running == nil
}

// Allow admits a call, or says why not.
func (b *Breaker) Allow(now time.Duration) (Permit, *Verdict) {
	e := b.era.Load()
	switch {
	case e.state == Closed && (e.running == nil || int64(now) < e.running.due.Load()):
		return Permit{Era: e.number}, nil
	case e.state == Open && (e.forced || now < e.verdict.Until):
		return Permit{}, &e.verdict
	case e.state == HalfOpen && now < e.probing.fullUntil():
		return Permit{}, &e.verdict
	}
	return b.allowSlow(now)
}

// allowSlow is for what happens now and then.
func (b *Breaker) allowSlow(now time.Duration) (Permit, *Verdict) {
	defer b.events.deliver(b.listener)
	if e := b.era.Load(); e.state == Closed {
		if e.running != nil {
			e.running.advance(now)
			next := e.running.next.Load()
			b.judge(e, e.window.at(now), now)
			e.running.due.Store(next)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.era.Load()
	if e.state == HalfOpen {
		e = b.expireLocked(e, now)
	}
	if e.state == Open && !e.forced && now >= e.verdict.Until {
		e = b.halfOpenLocked(e, now)
	}
	switch e.state {
	case Closed:
		return Permit{Era: e.number}, nil
	case HalfOpen:
		if key, ok := e.probing.lease(e.rules, now); ok {
			return Permit{Era: e.number, Key: key}, nil
		}
	}
	return Permit{}, &e.verdict
}

// Renew asks again for a call that was admitted and has waited since. As long as the
// era is that of its permit it keeps it.
func (b *Breaker) Renew(p Permit, now time.Duration) (Permit, *Verdict) {
	if p.Era == 0 || b.era.Load().number == p.Era {
		return p, nil
	}
	return b.Allow(now)
}

// Begin is told when a call that was admitted runs, after whatever it has waited
// for. It returns the permit to go on with. It need not be told unless
// [Breaker.CountsSlow].
func (b *Breaker) Begin(p Permit, now time.Duration) Permit {
	e := b.era.Load()
	if e.number == p.Era && e.running != nil && p.Key == 0 {
		p.Key = e.running.enter(now)
	}
	return p
}

// CountsSlow reports whether calls that are slow count.
func (b *Breaker) CountsSlow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rules.SlowRatio > 0
}

// End is told of a call that ran: what it came to, how long it took and what time
// it is now. A permit of an earlier era changes nothing.
func (b *Breaker) End(p Permit, res Result, elapsed, now time.Duration) {
	e := b.era.Load()
	if e.number != p.Era {
		return
	}
	if e.state == HalfOpen {
		b.probed(p, res, elapsed, now)
		return
	}
	if p.Key != 0 {
		e.running.leave(p.Key)
	}
	slow := e.running != nil && elapsed > e.rules.SlowCall
	bk := e.window.at(now)
	add := uint64(oneCall)
	switch res {
	case Success:
		if e.window.streak.Load() != 0 {
			e.window.streak.Store(0)
		}
	case Failure, Timeout:
		add = oneFailure
	case Refused:
		bk.refused.Add(1)
		return
	default:
		if !slow {
			return
		}
	}
	if add == oneFailure && e.rules.ConsecutiveErrors > 0 {
		e.window.streak.Add(1)
	}
	v := bk.counts.Add(add)
	if slow {
		bk.slow.Add(1)
	}
	if res == Timeout {
		bk.timeouts.Add(1)
	}
	t := bk.total(v)
	if t.failures != 0 || t.slow != 0 || e.running != nil && e.running.hung() != 0 {
		b.judgeTotals(e, t, now)
	}
}

// Drop takes a permit back: the call did not run.
func (b *Breaker) Drop(p Permit, now time.Duration) {
	e := b.era.Load()
	switch {
	case e.number != p.Era:
	case e.state == HalfOpen:
		b.unprobed(p, now)
	case p.Key != 0:
		e.running.leave(p.Key)
	}
}

func (b *Breaker) judge(e *era, bk *bucket, now time.Duration) {
	b.judgeTotals(e, bk.total(bk.counts.Load()), now)
}

func (b *Breaker) judgeTotals(e *era, t totals, now time.Duration) {
	if e.running != nil {
		hung := e.running.hung()
		t.calls += hung
		t.slow += hung
	}
	if e.forced {
		return
	}
	cause := e.rules.trips(t, e.window.streak.Load())
	if cause.Reason == None {
		return
	}
	defer b.events.deliver(b.listener)
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.era.Load(); now.number != e.number || now.forced {
		return // somebody else was first
	}
	b.openLocked(cause, t, 0, now)
}

// trips is why totals trip the breaker, with the reason None when they do not.
func (r *Rules) trips(t totals, streak int64) Cause {
	share := func(n, ratio int64) bool {
		if ratio == 0 || t.calls < r.MinCalls || n == 0 {
			return false
		}
		if r.Above && ratio < Million {
			return n*Million > ratio*t.calls
		}
		return n*Million >= ratio*t.calls
	}
	count := func(n, limit int64) bool {
		if limit == 0 {
			return false
		}
		return n > limit || n == limit && !r.Above
	}
	switch {
	case share(t.failures, r.ErrorRatio):
		return Cause{ErrorRatio, percent(r.ErrorRatio, Million), percent(t.failures, t.calls)}
	case share(t.slow, r.SlowRatio):
		return Cause{SlowRatio, percent(r.SlowRatio, Million), percent(t.slow, t.calls)}
	case t.calls >= r.MinCallsForCount && count(t.failures, r.ErrorCount):
		return Cause{ErrorCount, r.ErrorCount, t.failures}
	case count(streak, r.ConsecutiveErrors):
		return Cause{ConsecutiveErrors, r.ConsecutiveErrors, streak}
	}
	return Cause{}
}

func percent(n, of int64) int64 { return n * 100 / of }

// openLocked opens the breaker at a time, after so many failed rounds of probes.
func (b *Breaker) openLocked(cause Cause, t totals, failed int, at time.Duration) *era {
	d := b.rules.openTime(failed)
	if most := int64(float64(d) * float64(b.rules.OpenJitter) / Million); most > 0 {
		d += time.Duration(b.random(most + 1))
	}
	return b.enterLocked(&era{
		state: Open, failed: failed, verdict: Verdict{State: Open, Cause: cause, Until: at + d},
	}, Event{Cause: cause, At: at, OpenFor: d, Calls: t.calls, Failures: t.failures, Slow: t.slow})
}

func (b *Breaker) halfOpenLocked(from *era, now time.Duration) *era {
	e := &era{state: HalfOpen, verdict: probingVerdict(b.rules), failed: from.failed, probing: newProbing(from.verdict)}
	return b.enterLocked(e, Event{Cause: from.verdict.Cause, At: now})
}

func probingVerdict(r *Rules) Verdict {
	n := int64(r.Probes)
	return Verdict{State: HalfOpen, Cause: Cause{Probing, n, n}}
}

func (b *Breaker) closeLocked(cause Cause, now time.Duration) *era {
	return b.enterLocked(b.closedLocked(now), Event{Cause: cause, At: now})
}

// enterLocked makes e the breaker's era.
func (b *Breaker) enterLocked(e *era, ev Event) *era {
	old := b.era.Load()
	if e.number == 0 {
		b.number++
		if b.number == 0 {
			b.number++
		}
		e.number = b.number
	}
	e.rules = b.rules
	ev.From, ev.To = old.state, e.state
	b.era.Store(e)
	b.counts[e.state]++
	if b.listener != nil {
		b.events.add(ev)
	}
	return e
}
