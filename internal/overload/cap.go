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

	"github.com/weir-go/weir/rpcstatus/concurrency"
)

const (
	// examineEvery is how often calls that meet the cap have the entries looked at, when
	// the last look came to nothing, and examinePlace how much longer for each place that
	// there is to look at, so that it never takes more than a small part of a core.
	examineEvery = 10 * time.Millisecond
	examinePlace = 200 * time.Nanosecond
)

// Health tells whether the machine is tight, and the signal that says so. It is asked by
// calls that meet the cap, with a lock held.
type Health func() (signal string, tight bool)

// Permit is that of a running call.
type Permit uint32

// Verdict is why a call was refused.
type Verdict struct {
	// Reason is Highest, SlowCalls or Tight.
	Reason Reason
	// Signal is the one that is tight.
	Signal string
	// Cap is what was met.
	Cap int64
}

// Cap is a cap on running calls. See the package.
type Cap struct {
	running concurrency.Limiter
	entries entries
	health  Health
	listen  func(Event)

	// examined is until when a look at the entries would come to nothing again, and
	// verdict what it came to.
	examined atomic.Int64
	verdict  atomic.Pointer[Verdict]
	aside    atomic.Int64

	overdue, returned, slow, refused atomic.Int64

	mu        sync.Mutex
	rules     Rules         // guarded by mu
	cap       int64         // guarded by mu
	calm      time.Duration // guarded by mu: since when there is little to do
	toldLimit int64         // guarded by mu: what Adjust has told
	held      uint32        // guarded by mu: why the cap was not expanded, as far as it was told, a bit for each reason
	// events are told in their order by whoever holds telling.
	events  []Event         // guarded by mu
	untold  [Slow + 1]int64 // guarded by mu: calls that stand with the next event of a kind
	telling bool            // guarded by mu
}

// New makes a cap. listen is told of all that it decides, one event after another, by
// callers of the cap and without a lock; it must not take long. It may be nil.
func New(r Rules, health Health, listen func(Event), now time.Duration) (*Cap, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	c := &Cap{rules: r, cap: r.Limit, toldLimit: r.Limit, health: health, listen: listen, calm: now}
	c.running.SetLimit(int(r.Limit))
	c.verdict.Store(&Verdict{})
	return c, nil
}

// Enter admits a call that begins now, or refuses it. caller may be nil. Exactly one
// [Cap.Leave] follows if it was admitted.
func (c *Cap) Enter(now time.Duration, caller *string) (Permit, *Verdict) {
	if !c.running.TryAcquire() {
		if v := c.full(now); v != nil {
			return 0, v
		}
	}
	return Permit(c.entries.put(now, caller)), nil
}

// Leave ends a call.
func (c *Cap) Leave(p Permit) {
	if c.entries.remove(place(p)) {
		// Its slot came back when it was set aside.
		c.aside.Add(-1)
		c.returned.Add(1)
		return
	}
	c.running.Release()
}

// full is what becomes of a call that meets the cap: nil when it has a slot after all.
func (c *Cap) full(now time.Duration) *Verdict {
	if int64(now) < c.examined.Load() {
		c.refused.Add(1)
		return c.verdict.Load()
	}
	v := c.examine(now)
	c.tell()
	if v != nil {
		c.refused.Add(1)
	}
	return v
}

func (c *Cap) examine(now time.Duration) *Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.running.TryAcquire() {
		if int64(now) < c.examined.Load() {
			return c.verdict.Load() // somebody else has looked meanwhile
		}
		if c.setAsideLocked(now) {
			continue
		}
		if v := c.expandLocked(now); v != nil {
			c.verdict.Store(v)
			c.examined.Store(int64(now + examineEvery + time.Duration(c.entries.places())*examinePlace))
			return v
		}
	}
	return nil
}

// setAsideLocked sets aside what runs for too long. It reports whether a slot came back.
func (c *Cap) setAsideLocked(now time.Duration) (back bool) {
	if c.rules.EntryTimeout == 0 {
		return false
	}
	c.entries.each(func(word int64, w *atomic.Int64, caller *atomic.Pointer[string]) bool {
		if word < 0 || now-began(word) < c.rules.EntryTimeout {
			return true
		}
		if c.aside.Add(1) > c.rules.MaxOverdue {
			c.aside.Add(-1)
			return false
		}
		by := caller.Load()
		if !w.CompareAndSwap(word, -word) { // it has ended, or was told of as slow
			c.aside.Add(-1)
			return true
		}
		c.running.Release()
		c.overdue.Add(1)
		back = true
		c.noteLocked(Event{Kind: Overdue, At: now, Age: now - began(word), Caller: deref(by)})
		return true
	})
	return back
}

// expandLocked doubles the cap, or tells why not.
func (c *Cap) expandLocked(now time.Duration) *Verdict {
	v := &Verdict{Cap: c.cap}
	switch {
	case c.cap >= c.rules.highest():
		v.Reason = Highest
	case c.tooSlowLocked(c.slowLocked(now)):
		v.Reason = SlowCalls
	default:
		if c.health != nil {
			if signal, tight := c.health(); tight {
				v.Reason, v.Signal = Tight, signal
			}
		}
	}
	if v.Reason == None {
		c.setLocked(min(2*c.cap, c.rules.highest()), Healthy, "", now)
		return nil
	}
	if c.held&(1<<v.Reason) == 0 {
		c.held |= 1 << v.Reason
		c.noteLocked(Event{Kind: Held, At: now, From: c.cap, To: c.cap, Reason: v.Reason, Signal: v.Signal})
	}
	return v
}

// setLocked changes the cap.
func (c *Cap) setLocked(to int64, why Reason, signal string, now time.Duration) {
	if to == c.cap {
		return
	}
	c.noteLocked(Event{Kind: Changed, At: now, From: c.cap, To: to, Reason: why, Signal: signal})
	c.cap, c.calm, c.held = to, now, 0
	c.running.SetLimit(int(to))
	c.examined.Store(0)
}

// slowness is how many of the calls are slow: of those with a slot, and of those that
// were set aside and may be as slow as others are now.
type slowness struct{ running, aside int64 }

// add takes a slow call into account, and tells whether it is one that was not set aside.
func (s *slowness) add(word int64, age time.Duration, r *Rules) (runs bool) {
	switch {
	case word > 0:
		s.running++
		return true
	case age-r.EntryTimeout < r.EntryTimeout: // else it is a leak
		s.aside++
	}
	return false
}

func (c *Cap) slowLocked(now time.Duration) (s slowness) {
	if c.rules.SlowCall == 0 {
		return s
	}
	c.entries.each(func(word int64, _ *atomic.Int64, _ *atomic.Pointer[string]) bool {
		if age := now - began(word); age >= c.rules.SlowCall {
			s.add(word, age, &c.rules)
		}
		return true
	})
	return s
}

func (c *Cap) tooSlowLocked(s slowness) bool {
	slow, of := s.running+s.aside, c.running.Inflight()+s.aside
	return slow > 0 && slow*Million >= c.rules.SlowShare*max(of, 1)
}

// Update has the cap go by other rules. What runs goes on.
func (c *Cap) Update(r Rules, now time.Duration) error {
	if err := r.Check(); err != nil {
		return err
	}
	c.mu.Lock()
	if r != c.rules {
		former := c.rules
		c.rules = r
		if r.Limit != former.Limit {
			c.toldLimit = r.Limit
		}
		if r.Limit != former.Limit || c.cap > r.highest() {
			c.setLocked(r.Limit, Configured, "", now)
		}
		c.examined.Store(0)
	}
	c.mu.Unlock()
	c.tell()
	return nil
}

// Adjust sets the limit alone, as [Auto] finds it out, if holds says that it is to be found
// out still; nil is that it is. What an Update says that comes after that has changed
// is not undone. It is told only when it has changed by a quarter since it was told last.
func (c *Cap) Adjust(limit int64, now time.Duration, holds func() bool) {
	limit = min(max(limit, 1), MaxLimit)
	c.mu.Lock()
	if limit != c.rules.Limit && (holds == nil || holds()) {
		c.rules.Limit = limit
		if 4*limit > 5*c.toldLimit || 4*limit < 3*c.toldLimit {
			c.noteLocked(Event{Kind: Changed, At: now, From: c.toldLimit, To: limit, Reason: Adapted})
			c.toldLimit = limit
		}
		c.cap = limit
		c.running.SetLimit(int(limit))
		c.examined.Store(0)
	}
	c.mu.Unlock()
	c.tell()
}

// Full reports whether a call would meet the cap now, and could not expect that it
// expands. It changes nothing.
func (c *Cap) Full(now time.Duration) (*Verdict, bool) {
	if !c.running.Full() || int64(now) >= c.examined.Load() {
		return nil, false
	}
	return c.verdict.Load(), true
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
