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

package concurrency

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/fifo"
)

// Queue lets at most a fixed number of calls run at the same time. Calls over
// the limit wait, first come first served, until a slot is free for them, their
// longest wait passes or their context ends. How many may wait is bounded by
// [Queue.SetPlaces]. It is safe for concurrent use.
//
// Whoever got a slot, from [Queue.TryAcquire] or [Queue.Acquire], calls
// [Queue.Release] exactly once. The limit is exact: slots are never taken over
// it, nobody overtakes those who wait, and a free slot goes to the first of
// them. While nobody waits there is no lock and nothing is allocated.
//
// Use [NewQueue]; the zero value has neither slots nor places.
type Queue struct {
	// state has all that decides whether a call may run in one word: the slots
	// taken in the lower half, the calls over the limit in the upper, and the
	// signs for "somebody waits" and "no place is left to wait".
	//
	// No wake-up is lost, because the changes of one word have one order. The
	// sign is set before a waiter looks for a slot, and a slot is given back by
	// one addition that also reads the sign. Either the sign came first: then
	// whoever gave the slot back sees it and calls dispatch. Or the slot came
	// first: then the waiter finds it when it looks. Nobody overtakes for the
	// same reason: the sign makes the compare-and-swap of TryAcquire fail.
	//
	// A call is turned away by one look at it, too: all slots and all places were
	// taken at that moment. One that goes from a place to a slot does both in one
	// step, so that it never counts twice.
	state  atomic.Int64
	limit  atomic.Int64
	places atomic.Int64
	_      [104]byte // those who only pass share no cache line with those who wait

	mu sync.Mutex
	// Guarded by mu. The signs of state are what signs says of the list, seen by
	// whoever has mu; limit and places are written under mu.
	list  fifo.List[waiter, *waiter]
	shown int64 // the signs that state has
	open  bool

	// idle has waiters to use again. It belongs to the queue because channels
	// and timers of one synctest bubble must not get into another.
	idle sync.Pool
	_    [40]byte
}

// Parts of Queue.state. There is room for 2^32 slots and 2^30 calls over the limit.
const (
	oneOver  = 1 << 32
	slots    = oneOver - 1
	crowded  = 1 << 62       // no place is left; only together with somebody
	somebody = math.MinInt64 // waits
)

// running is the number of calls that a state counts.
func running(state int64) int64 { return state&slots + state&(crowded-1)>>32 }

// NewQueue returns a queue in which any number of calls may wait. A limit of 0 and
// less is unlimited; calls are counted all the same, so that a limit set later
// knows what runs.
func NewQueue(limit int) *Queue {
	q := &Queue{}
	q.limit.Store(bound(limit))
	q.places.Store(math.MaxInt64)
	return q
}

func bound(limit int) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return int64(limit)
}

// TryAcquire takes a slot and reports whether there was one. It never waits, and
// as long as others wait there is none for it.
func (q *Queue) TryAcquire() bool {
	for {
		s := q.state.Load()
		if s < 0 || s&slots+s>>32 >= q.limit.Load() {
			return false
		}
		if q.state.CompareAndSwap(s, s+1) {
			return true
		}
	}
}

// Acquire takes a slot, and waits for one if it must, but no longer than maxWait
// and no longer than ctx lives. With a maxWait of 0 or less it does not wait. It
// must be given, so no wait is without bound. A slot is taken if and only if the
// error is nil.
//
// The error is [ErrWaitTimeout] after maxWait, [ErrLimitReached] if it was not
// to wait, [ErrQueueFull] if there was no place to wait, and otherwise wraps the error and the cause of ctx. When maxWait
// passes at the moment at which a slot is free, the slot is taken by this call
// or, if others came before it, by the first of them. A call that had to wait
// and whose context is done gets no slot: it goes to the next. Without a need to
// wait ctx is not looked at.
//
// How long it took is for the caller to measure. One that does not want to read
// a clock for calls that need not wait calls [Queue.TryAcquire] first.
func (q *Queue) Acquire(ctx context.Context, maxWait time.Duration) (Wait, error) {
	if q.TryAcquire() {
		return Wait{}, nil
	}
	return q.wait(ctx, maxWait)
}

// Release gives a slot back, to the first of those who wait if anybody does.
func (q *Queue) Release() {
	if q.state.Add(-1) < 0 {
		q.dispatch()
	}
}

// Verdict is what an enforcing queue would do with a call.
type Verdict uint8

const (
	// WouldRun is the verdict on a call for which there is a slot.
	WouldRun Verdict = iota
	// WouldWait is the verdict on a call that would stand in the queue.
	WouldWait
	// WouldRefuse is the verdict on a call that would have to wait and may not.
	WouldRefuse
)

// Observe reports what [Queue.Acquire] would do at this moment, and counts the
// call, which runs at once in any case and ends with [Queue.EndObserved].
//
// Verdicts on later calls are what they would be after this one was enforced. A
// call that would be refused holds no slot for them, as with a [Limiter]. A call
// that would wait would run in the end, so it counts as one that runs: whoever
// comes while as many as the limit are there would stand behind them. Those that
// would wait in vain are not told from the others, and nobody is held up by a
// wait that does not happen; with waits that are short beside the calls the
// verdict is right, and otherwise near it.
//
// An enforced limit counts all calls that run, observed ones too. Those who wait
// when a guard turns to observing go on waiting: see [Queue.SetOpen].
func (q *Queue) Observe(maxWait time.Duration) Verdict {
	for {
		s := q.state.Load()
		v, n := WouldRun, int64(1)
		if over := s&slots - q.limit.Load(); s < 0 || over >= 0 {
			v = WouldWait
			if maxWait <= 0 || s&crowded != 0 || over >= q.places.Load() {
				v, n = WouldRefuse, oneOver
			}
		}
		if q.state.CompareAndSwap(s, s+n) {
			return v
		}
	}
}

// EndObserved ends a call on which Observe said v.
func (q *Queue) EndObserved(v Verdict) {
	n := int64(1)
	if v == WouldRefuse {
		n = oneOver
	}
	if q.state.Add(-n) < 0 {
		q.dispatch()
	}
}

// SetLimit changes the limit while calls run and wait. A higher one gives a slot
// to as many of those who wait as now fit, in their order; one of 0 or less is
// unlimited and gives one to all. A lower one takes nothing from calls that run:
// it gives no slot until enough of them have ended.
func (q *Queue) SetLimit(limit int) {
	q.mu.Lock()
	q.limit.Store(bound(limit))
	q.dispatchLocked(q.limit.Load())
	q.mu.Unlock()
}

// SetPlaces bounds the calls that may wait; with 0 nobody may, with less than that
// any number. It may be changed while calls wait: nobody loses a place, but there is
// none for others until fewer wait than may.
func (q *Queue) SetPlaces(n int) {
	places := int64(n)
	if n < 0 {
		places = math.MaxInt64
	}
	q.mu.Lock()
	q.places.Store(places)
	q.showLocked(0)
	q.mu.Unlock()
}

// Full reports whether a call that comes now would find neither a slot nor a place
// to wait. It takes nothing.
func (q *Queue) Full() bool { return q.full(q.state.Load()) }

func (q *Queue) full(state int64) bool {
	return running(state) >= q.limit.Load() && (state&crowded != 0 || q.places.Load() == 0)
}

// SetOpen gives a slot to all who wait now, also over the limit, and returns how
// many they were; whoever would have to wait afterwards gets one at once, until
// SetOpen(false). A call that may not wait, or where nobody may, is refused as
// before. It is for a guard that stops enforcing the limit while calls that began
// before are still on their way to the queue.
func (q *Queue) SetOpen(open bool) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = open
	if !open {
		return 0
	}
	n := q.list.Len()
	q.dispatchLocked(math.MaxInt64)
	return n
}

// Limit is the limit, 0 when unlimited.
func (q *Queue) Limit() int64 { return told(q.limit.Load()) }

func told(limit int64) int64 {
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}

// Places is how many calls may wait, -1 for any number.
func (q *Queue) Places() int64 {
	n := q.places.Load()
	if n == math.MaxInt64 {
		return -1
	}
	return n
}

// Inflight is the number of calls that run now, observed ones included. While a
// slot is handed from one call to the next it is with neither.
func (q *Queue) Inflight() int64 { return running(q.state.Load()) }

// Waiting is the number of calls that wait now.
func (q *Queue) Waiting() int64 {
	if q.state.Load() >= 0 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.list.Len()
}
