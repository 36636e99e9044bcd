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
	_        [112]byte // nobody else's counter in the same cache lines
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
// A refusal means that the limit was seen reached: a call that is only about to
// be refused itself takes no slot from one that could run.
func (l *Limiter) TryAcquire() bool {
	for {
		// Look before adding: under overload most callers only read, and a
		// refused one is never counted, not even for a moment.
		if l.inflight.Load() >= l.limit.Load() {
			return false
		}
		if l.inflight.Add(1) <= l.limit.Load() {
			return true
		}
		// Several saw the last slot free. Step back and look again: one of them
		// may have stepped back for this one.
		l.inflight.Add(-1)
	}
}

// Release gives a slot back.
func (l *Limiter) Release() { l.inflight.Add(-1) }

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

// Inflight is the number of slots taken now. A call that is about to step back
// may be counted for a moment.
func (l *Limiter) Inflight() int64 { return l.inflight.Load() }
