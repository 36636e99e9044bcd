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

import "time"

// Stats are the figures of a breaker at one moment.
type Stats struct {
	State State
	// Force is what somebody demands.
	Force Force
	// Cause is why the breaker is not closed.
	Cause Cause
	// Until is when it will let a probe through, 0 when it may now or when that
	// cannot be told.
	Until time.Duration
	// Calls, Failures, Slow, Timeouts and Refused are those that ended in the
	// window of a closed breaker. Timeouts are among the failures. Those that the
	// other side refused are not among the calls.
	Calls, Failures, Slow, Timeouts, Refused int64
	// Hung are calls of a closed breaker that run for longer than is allowed.
	Hung int64
	// Streak is the number of calls that failed since one did not, where that counts.
	Streak int64
	// Probes are those that run, and Healthy and Unhealthy those of the round that have
	// ended.
	Probes, Healthy, Unhealthy int
	// Entered is how often each state was entered.
	Entered [HalfOpen + 1]int64
}

// Stats reads the figures. It changes no state: a breaker that is open and may probe
// is still open.
func (b *Breaker) Stats(now time.Duration) Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.era.Load()
	s := Stats{State: e.state, Force: b.force, Cause: e.verdict.Cause, Entered: b.counts}
	switch e.state {
	case Closed:
		if e.running != nil {
			if int64(now) >= e.running.next.Load() {
				e.running.advance(now)
			}
			s.Hung = e.running.hung()
		}
		var t totals
		t, s.Timeouts, s.Refused = e.window.seen(now)
		s.Calls, s.Failures, s.Slow = t.calls, t.failures, t.slow
		s.Streak = e.window.streak.Load()
	case Open:
		if e.verdict.Until > now && !e.forced {
			s.Until = e.verdict.Until
		}
	case HalfOpen:
		p := e.probing
		s.Cause = p.opened.Cause
		s.Probes, s.Healthy, s.Unhealthy = len(p.leases), p.healthy, p.unhealthy
	}
	return s
}

// Rules are those that it goes by.
func (b *Breaker) Rules() Rules {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.rules
}

// Update changes the rules. The state stays, and the time at which an open breaker
// probes; so do the counts of the window, unless its buckets or what is slow have
// changed: then a closed breaker begins to count anew. The error wraps [ErrRules],
// and nothing changes then.
func (b *Breaker) Update(r Rules, force Force, now time.Duration) error {
	if err := r.check(); err != nil {
		return err
	}
	defer b.events.deliver(b.listener)
	b.mu.Lock()
	defer b.mu.Unlock()
	if r == *b.rules && force == b.force {
		return nil
	}
	old := *b.rules
	b.rules = &r
	was := b.force
	b.force = force
	e := b.era.Load()
	switch {
	case force == ForceOpen && was != ForceOpen:
		b.enterLocked(&era{state: Open, forced: true, verdict: Verdict{State: Open, Cause: Cause{Reason: Forced}}},
			Event{Cause: Cause{Reason: Forced}, At: now})
		return nil
	case force == ForceClosed && e.state != Closed:
		b.closeLocked(Cause{Reason: Forced}, now)
		return nil
	}
	next := *e
	next.rules = b.rules
	switch {
	case e.state == Closed && !r.sameWindow(&old):
		b.era.Store(b.closedLocked(now))
		return nil
	case e.state == Closed:
		next.forced = force == ForceClosed
	case e.state == Open && was == ForceOpen && force == Free:
		next.forced, next.verdict.Until = false, now // it is due, and the next call probes
	case e.state == HalfOpen:
		next.verdict = probingVerdict(b.rules)
	}
	b.era.Store(&next)
	if next.state == HalfOpen {
		b.decideLocked(&next, now) // fewer may be enough now
	}
	return nil
}

// Reset closes the breaker and forgets what was counted.
func (b *Breaker) Reset(now time.Duration) {
	defer b.events.deliver(b.listener)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.force == ForceOpen {
		return
	}
	if b.era.Load().state != Closed {
		b.closeLocked(Cause{Reason: Forced}, now)
		return
	}
	b.era.Store(b.closedLocked(now))
}

// Probe has an open breaker probe now, and a half-open one begin its round again.
// For a closed one it returns [ErrTransition].
func (b *Breaker) Probe(now time.Duration) error {
	defer b.events.deliver(b.listener)
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.era.Load()
	switch {
	case e.state == Closed:
		return ErrTransition
	case e.forced:
		return nil
	case e.state == HalfOpen:
		again := *e
		again.verdict = e.probing.opened
		e = &again
	}
	b.halfOpenLocked(e, now)
	return nil
}
