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

// Package concurrency has the limits that count calls running at the same time.
package concurrency

import (
	"errors"
	"math"
	"sync/atomic"
)

// ErrLimitReached is the sentinel of a refusal by a limit of running calls.
var ErrLimitReached = errors.New("weir: limit of running calls reached")

// Limiter lets at most a fixed number of calls run at the same time and turns
// the others away at once. It is safe for concurrent use and allocates nothing.
//
// Whoever was admitted calls [Limiter.Release] exactly once. A new Limiter is
// unlimited only after [Limiter.SetLimit] or [New]; the zero value admits nobody.
type Limiter struct {
	limit    atomic.Int64
	inflight atomic.Int64
	// over are calls that run although there was no slot for them: they were only
	// observed, and count once the limit is enforced.
	over atomic.Int64
	_    [104]byte // nobody else's counter in the same cache lines
}

// New returns a limiter. A limit of 0 and less is unlimited; calls are counted
// all the same, so that a limit set later knows what runs.
func New(limit int) *Limiter {
	l := &Limiter{}
	l.SetLimit(limit)
	return l
}

// TryAcquire takes a slot and reports whether there was one. It never waits.
//
// It is exact both ways: it never takes a slot over the limit, and a refusal
// means that at some moment of the call as many calls ran as are allowed, not
// counting any that are about to be refused.
func (l *Limiter) TryAcquire() bool {
	for {
		// Look before writing: under overload most callers only read.
		n := l.inflight.Load()
		if n+l.over.Load() >= l.limit.Load() {
			return false
		}
		// Adding first and stepping back when it was too much would do without
		// a loop, but for a moment it takes a slot that nobody holds.
		if l.inflight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a slot back.
func (l *Limiter) Release() { l.inflight.Add(-1) }

// Observe takes a slot if there is one, and counts the call as over the limit
// if there is none. It reports what an enforcing limit would have said: calls
// over the limit would not run then, so they hold no slot. The call runs in
// either case and ends with [Limiter.Release] or [Limiter.ReleaseOver].
func (l *Limiter) Observe() bool {
	for {
		n := l.inflight.Load()
		if n >= l.limit.Load() {
			l.over.Add(1)
			return false
		}
		if l.inflight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// ReleaseOver ends a call for which Observe reported false.
func (l *Limiter) ReleaseOver() { l.over.Add(-1) }

// SetLimit changes the limit while calls run. Nothing is taken from calls that
// run: a lower limit admits none until enough of them have ended.
func (l *Limiter) SetLimit(limit int) {
	n := int64(limit)
	if n <= 0 {
		n = math.MaxInt64
	}
	l.limit.Store(n)
}

// Limit is the limit, 0 when unlimited.
func (l *Limiter) Limit() int64 {
	if n := l.limit.Load(); n != math.MaxInt64 {
		return n
	}
	return 0
}

// Full reports whether a call that comes now would find no slot. It takes none.
func (l *Limiter) Full() bool { return l.Inflight() >= l.limit.Load() }

// Inflight is the number of slots taken now, calls over the limit included.
func (l *Limiter) Inflight() int64 { return l.inflight.Load() + l.over.Load() }
