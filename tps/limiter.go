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
	"errors"
	"time"
)

// ErrLimitReached is the sentinel of a refusal by a limit of calls over time.
var ErrLimitReached = errors.New("weir: limit of calls over time reached")

// Clock reads a monotonic clock: the time since a fixed origin. It must not
// block, panic or call the limiter: [Sliding] calls it under its lock.
type Clock func() time.Duration

// Limiter is a limit of calls over time. All methods are safe for concurrent use
// and those on the path of a call allocate nothing.
type Limiter interface {
	// Allow decides about a call that happens now, by the limiter's clock.
	Allow() Decision
	// AllowAt decides about a call that happens at the given reading of the clock.
	AllowAt(now time.Duration) Decision
	// GiveBack takes an admission back, as the call did not take place after all.
	// It is called at most once for a Decision of this limiter; one that refused
	// has nothing to give back. How far it goes is a matter of the algorithm; it
	// never lets more calls pass than the limit.
	GiveBack(d Decision)
	// RetryAfter is how long after the given reading a call could be admitted if
	// no other came first: 0 when one would be admitted then. It takes nothing.
	RetryAfter(now time.Duration) time.Duration
	// Update changes the limit while calls arrive, and changes nothing if the
	// quota is the one in force. An error is that of [Quota.Validate]; then the
	// limit stays as it was.
	Update(q Quota) error
	// UpdateAt is Update at the given reading of the clock.
	UpdateAt(now time.Duration, q Quota) error
	// Stats tells what is left at the given reading of the clock. It takes nothing.
	Stats(now time.Duration) Stats
}

// Decision is a limiter's answer about one call. The zero value refuses.
//
// It has no more than four fields, which is what the compiler keeps in registers.
type Decision struct {
	// Admitted tells whether the call may pass.
	Admitted bool
	epoch    uint32 // of the Update that was in force
	// At is when the limiter decided. For an admitted call it is the time that
	// the call is counted at, which is later than the reading given if the clock
	// has been further.
	At time.Duration
	// value is what GiveBack needs to know of an admitted call, and RetryAfter of
	// one that was refused.
	value int64
}

// RetryAfter is how long after At a call could be admitted if no other came
// first: 0 for an admitted call and at least 1 ns for a refused one.
func (d Decision) RetryAfter() time.Duration {
	if d.Admitted {
		return 0
	}
	return time.Duration(d.value)
}

func refused(at, retryAfter time.Duration) Decision {
	return Decision{At: at, value: int64(retryAfter)}
}

// Ticket is what is needed besides At to take an admission back later, for
// those who cannot keep the Decision itself.
func (d Decision) Ticket() (mark int64, epoch uint32) { return d.value, d.epoch }

// Admission is the Decision of a limiter that admitted a call at the given time
// with the given ticket.
func Admission(at time.Duration, mark int64, epoch uint32) Decision {
	return Decision{Admitted: true, epoch: epoch, At: at, value: mark}
}

// Stats is the state of a limiter at some moment.
type Stats struct {
	Quota
	// Left is the number of calls that would be admitted at that moment.
	Left int64
	// RetryAfter is how long it takes until one could be, 0 if Left is positive.
	RetryAfter time.Duration
}

var (
	_ Limiter = (*Sliding)(nil)
	_ Limiter = (*Fixed)(nil)
	_ Limiter = (*Bucket)(nil)
)
