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

package tps

import (
	"sync"
	"sync/atomic"
	"time"
)

// WarmUp admits calls like [Sliding], at a rate that begins low and grows while
// calls come, from Rate/Factor to Rate within about the warming's time, and that
// sinks again while few come. It is what Sentinel calls warm-up, with its curve:
// of 100 calls a second, a time of 10 s and a factor of 3 the first seconds of a
// burst admit 33, 34, 36, 38, 41, 44, 47, 52, 58, 68, 83 and then 100 calls.
//
// In any interval it admits no more than Rate, and as long as it is colder no more
// than the rate of that second. It never stands still: where the rate is below
// one call an interval, one passes in the time that it takes.
type WarmUp struct {
	sliding *Sliding
	// next is when the step ends, and passed the calls that were admitted in it.
	next   atomic.Int64
	passed atomic.Int64

	mu sync.Mutex
	// Guarded by mu.
	quota   Quota
	warming Warming
	heat    heat
}

// NewWarmUp returns a cold limiter. The error is that of [Quota.Validate] or
// [Warming.Validate]. The clock may be nil if only methods that take the time are
// called.
func NewWarmUp(q Quota, w Warming, clock Clock) (*WarmUp, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if err := w.Validate(); err != nil {
		return nil, err
	}
	q.Burst = 0
	l := &WarmUp{quota: q, warming: w, heat: newHeat(q, w)}
	sliding, err := NewSliding(l.heat.quota(q), clock)
	if err != nil {
		return nil, err
	}
	sliding.room(q) // for when it is warm
	l.sliding = sliding
	return l, nil
}

// Allow is [Limiter.Allow].
func (l *WarmUp) Allow() Decision {
	d, decided := l.sliding.allowBefore(&l.next)
	if !decided {
		l.advance(d.At)
		d = l.sliding.AllowAt(d.At)
	}
	if d.Admitted {
		l.passed.Add(1)
	}
	return d
}

// AllowAt is [Limiter.AllowAt].
func (l *WarmUp) AllowAt(now time.Duration) Decision {
	if int64(now) >= l.next.Load() {
		l.advance(now)
	}
	d := l.sliding.AllowAt(now)
	if d.Admitted {
		l.passed.Add(1)
	}
	return d
}

// advance begins the step of now.
func (l *WarmUp) advance(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := time.Duration(l.next.Load())
	if now < next {
		return // somebody else was first
	}
	step := l.heat.step
	passed := max(l.passed.Swap(0), 0) // calls of the step before may have been given back
	if next == 0 {
		next = now // the first call
	} else {
		l.heat.pass(int64((now-next)/step)+1, float64(passed))
	}
	l.sliding.setQuota(l.heat.quota(l.quota))
	// Last: whoever sees it goes by the step's rate.
	l.next.Store(int64(next + ((now-next)/step+1)*step))
}

// GiveBack is [Limiter.GiveBack].
func (l *WarmUp) GiveBack(d Decision) {
	if d.Admitted {
		l.passed.Add(-1)
		l.sliding.GiveBack(d)
	}
}

// RetryAfter is [Limiter.RetryAfter]. By then the limit may be warmer.
func (l *WarmUp) RetryAfter(now time.Duration) time.Duration { return l.sliding.RetryAfter(now) }

// Update is [Limiter.Update]. It stays as warm as it is, and what is counted stays
// counted.
func (l *WarmUp) Update(q Quota) error {
	l.mu.Lock()
	w := l.warming
	l.mu.Unlock()
	return l.UpdateWarming(q, w)
}

// UpdateAt is [Limiter.UpdateAt]; the time makes no difference.
func (l *WarmUp) UpdateAt(_ time.Duration, q Quota) error { return l.Update(q) }

// UpdateWarming is Update with another warming.
func (l *WarmUp) UpdateWarming(q Quota, w Warming) error {
	if err := q.Validate(); err != nil {
		return err
	}
	if err := w.Validate(); err != nil {
		return err
	}
	q.Burst = 0
	l.mu.Lock()
	defer l.mu.Unlock()
	if q == l.quota && w == l.warming {
		return nil
	}
	l.quota, l.warming = q, w
	old := l.heat
	l.heat = newHeat(q, w).like(old)
	l.passed.Store(l.heat.counted(l.passed.Load(), old))
	l.sliding.room(q)
	l.sliding.setQuota(l.heat.quota(q))
	return nil
}

// Stats is [Limiter.Stats]. Its quota is what holds at the moment.
func (l *WarmUp) Stats(now time.Duration) Stats { return l.sliding.Stats(now) }

var _ Limiter = (*WarmUp)(nil)
