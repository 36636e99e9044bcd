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

// Fixed admits exactly Rate calls per window. The first call begins a window,
// and so does the first one that comes more than Interval after the beginning of
// the last: at exactly Interval the old window still holds. These are the
// results of Java Dubbo's StatItem, but exact however many calls arrive at once.
//
// Up to twice the rate can pass within one interval around an edge: Rate calls
// at the end of a window and Rate at the beginning of the next. Where that is
// too much, use [Sliding].
//
// Neither an admission nor a refusal takes a lock; the call that begins a window
// takes one. An old reading of the clock counts in the window that is current.
// The zero value is not usable.
//
// Source: org.apache.dubbo.rpc.filter.tps.StatItem.
type Fixed struct {
	clock Clock
	win   atomic.Pointer[window]
	mu    sync.Mutex // held to begin a window and to change the quota
}

// window is the current window of one quota.
type window struct {
	quota Quota
	// start is when the window began. It is written after word: who sees the new
	// start sees the new word.
	start atomic.Int64
	// word is the number of the window, counted over all quotas, and below it the
	// calls admitted in it. So nobody takes a share of a window that is over.
	word atomic.Uint64
	_    [88]byte // nobody else's counter in the same cache lines
}

const (
	usedBits = 40 // MaxRate fits
	usedMask = 1<<usedBits - 1
)

// NewFixed returns a limiter without a window: the first call begins it. The
// error is that of [Quota.Validate]. The clock may be nil if only methods that
// take the time are called.
func NewFixed(q Quota, clock Clock) (*Fixed, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	f := &Fixed{clock: clock}
	f.win.Store(newWindow(q, 0))
	return f, nil
}

// newWindow has ended before the clock's origin, so the next call begins one.
func newWindow(q Quota, number uint64) *window {
	q.Burst = 0
	w := &window{quota: q}
	w.start.Store(int64(-q.Interval - 1))
	w.word.Store(number << usedBits)
	return w
}

// over tells whether a window that began at start is over.
func (w *window) over(start, now time.Duration) bool { return now-start > w.quota.Interval }

// Allow is [Limiter.Allow].
func (f *Fixed) Allow() Decision { return f.AllowAt(f.clock()) }

// AllowAt is [Limiter.AllowAt]. A window is never longer than the interval by
// more than the time to the next call, and never shorter.
func (f *Fixed) AllowAt(now time.Duration) Decision {
	now = max(now, 0)
	for {
		w := f.win.Load()
		start := time.Duration(w.start.Load())
		if w.over(start, now) {
			if d := f.begin(w, now); d.Admitted {
				return d
			}
			continue
		}
		word := w.word.Load()
		if int64(word&usedMask) >= w.quota.Rate {
			return refused(now, start+w.quota.Interval+1-now)
		}
		if w.word.CompareAndSwap(word, word+1) {
			return Decision{Admitted: true, At: now, value: int64(word >> usedBits)}
		}
	}
}

// begin makes a window that begins now with its first call, and refuses if
// somebody else was faster.
func (f *Fixed) begin(w *window, now time.Duration) Decision {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.win.Load() != w || !w.over(time.Duration(w.start.Load()), now) {
		return Decision{}
	}
	number := w.word.Load()>>usedBits + 1
	// A call with an old reading may still take a share of the old window up to
	// here; it is admitted there.
	w.word.Store(number<<usedBits | 1)
	w.start.Store(int64(now))
	return Decision{Admitted: true, At: now, value: int64(number << usedBits >> usedBits)}
}

// GiveBack is [Limiter.GiveBack]: exact while the window of the call lasts. After
// it there is nothing to give back, as the next one has begun with all its calls.
func (f *Fixed) GiveBack(d Decision) {
	if !d.Admitted {
		return
	}
	w := f.win.Load()
	for {
		word := w.word.Load()
		if int64(word>>usedBits) != d.value || word&usedMask == 0 {
			return
		}
		if w.word.CompareAndSwap(word, word-1) {
			return
		}
	}
}

// RetryAfter is [Limiter.RetryAfter].
func (f *Fixed) RetryAfter(now time.Duration) time.Duration { return f.Stats(now).RetryAfter }

// Update is [Limiter.Update]. As in Java a new rate or interval begins anew with
// the next call: nothing of what was admitted before is counted, so after 2 calls
// of a rate of 2 a rate of 20 admits 20 more. A new Burst changes nothing.
func (f *Fixed) Update(q Quota) error { return f.UpdateAt(0, q) }

// UpdateAt is [Limiter.UpdateAt]; the time makes no difference.
func (f *Fixed) UpdateAt(_ time.Duration, q Quota) error {
	if err := q.Validate(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.win.Load()
	if old.quota.Rate == q.Rate && old.quota.Interval == q.Interval {
		return nil
	}
	f.win.Store(newWindow(q, old.word.Load()>>usedBits+1))
	return nil
}

// Stats is [Limiter.Stats].
func (f *Fixed) Stats(now time.Duration) Stats {
	now = max(now, 0)
	w := f.win.Load()
	start := time.Duration(w.start.Load())
	s := Stats{Quota: w.quota, Left: w.quota.Rate}
	if !w.over(start, now) {
		s.Left = max(w.quota.Rate-int64(w.word.Load()&usedMask), 0)
	}
	if s.Left == 0 {
		s.RetryAfter = start + w.quota.Interval + 1 - now
	}
	return s
}
