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
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// window counts the calls of the last buckets. It is safe for concurrent use.
type window struct {
	width   time.Duration
	buckets int64
	cur     atomic.Pointer[bucket]

	_ [56]byte // what is read by all stays apart from what is written
	// streak is the number of calls that failed since one did not.
	streak atomic.Int64
	_      [56]byte

	mu   sync.Mutex
	past []*bucket // guarded by mu: those before cur that are in the window, the oldest first
}

// bucket counts the calls that ended in a part of the window. Buckets are not used
// again: a call that comes too late for one is missing from the sum until the next one begins.
type bucket struct {
	// A call is counted before it is counted as slow or timed out. Read the other way
	// round, no more are slow than there are. A bucket holds less than 1 << 32 calls.
	counts   atomic.Uint64 // calls << 32 | failures
	slow     atomic.Int64
	timeouts atomic.Int64
	refused  atomic.Int64

	// What follows does not change.

	index int64 // start / width, rounded down
	end   time.Duration
	base  totals // of the buckets before
}

// totals are sums over buckets.
type totals struct {
	calls, failures, slow int64
}

const (
	oneCall    = 1 << 32
	oneFailure = oneCall | 1
)

func newWindow(r *Rules, now time.Duration) *window {
	w := &window{width: r.Width, buckets: int64(r.Buckets)}
	w.cur.Store(w.bucketOf(now, totals{}))
	return w
}

func (w *window) bucketOf(now time.Duration, base totals) *bucket {
	i := int64(now / w.width)
	if now%w.width < 0 {
		i--
	}
	return &bucket{index: i, end: time.Duration(i+1) * w.width, base: base}
}

// at is the bucket for now, or for what is newest where now is a little behind.
func (w *window) at(now time.Duration) *bucket {
	if b := w.cur.Load(); now < b.end {
		return b
	}
	return w.roll(now)
}

// roll begins a new bucket.
func (w *window) roll(now time.Duration) *bucket {
	w.mu.Lock()
	defer w.mu.Unlock()
	cur := w.cur.Load()
	if now < cur.end {
		return cur
	}
	next := w.bucketOf(now, totals{})
	w.past = slices.DeleteFunc(append(w.past, cur), func(b *bucket) bool { return b.index <= next.index-w.buckets })
	for _, b := range w.past {
		next.base.add(b.sum(b.counts.Load()))
	}
	w.cur.Store(next)
	return next
}

// sum is what the bucket itself has counted, when its counts were v or later.
func (b *bucket) sum(v uint64) totals {
	slow := b.slow.Load()
	if slow != 0 {
		v = b.counts.Load() // v may be without calls that are slow
	}
	return totals{calls: int64(v >> 32), failures: int64(v & (oneCall - 1)), slow: slow}
}

func (t *totals) add(o totals) {
	t.calls += o.calls
	t.failures += o.failures
	t.slow += o.slow
}

// total is the window's sum when the bucket's own counts are v or later.
func (b *bucket) total(v uint64) totals {
	t := b.sum(v)
	t.add(b.base)
	return t
}

// seen is everything that the window has counted, also what trips nothing.
func (w *window) seen(now time.Duration) (t totals, timeouts, refused int64) {
	w.at(now)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range append(w.past[:len(w.past):len(w.past)], w.cur.Load()) {
		timeouts += b.timeouts.Load()
		refused += b.refused.Load()
		t.add(b.sum(b.counts.Load()))
	}
	return t, timeouts, refused
}
