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
	"time"

	"github.com/weir-go/weir/internal/fifo"
)

// ErrWaitTimeout is the sentinel of a refusal after the longest wait. It is an
// [ErrLimitReached] too.
var ErrWaitTimeout error = waitTimeout{}

type waitTimeout struct{}

func (waitTimeout) Error() string { return "weir: waited too long for a running call to end" }
func (waitTimeout) Unwrap() error { return ErrLimitReached }

// ErrQueueFull is the sentinel of a refusal of a call for which there was neither a
// slot nor a place to wait. It is an [ErrLimitReached] too.
var ErrQueueFull error = queueFull{}

type queueFull struct{}

func (queueFull) Error() string { return "weir: as many calls wait as may" }
func (queueFull) Unwrap() error { return ErrLimitReached }

// waitEnded is the error of a wait that ended with its context.
type waitEnded struct{ err, cause error }

func (e *waitEnded) Error() string {
	return "weir: gave up waiting for a running call to end: " + e.cause.Error()
}
func (e *waitEnded) Unwrap() []error { return []error{e.err, e.cause} }

// ended is the error for a context that is done, nil while it is not.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &waitEnded{err, context.Cause(ctx)}
	}
	return nil
}

// Wait tells what [Queue.Acquire] met.
type Wait struct {
	// Queued is whether the call stood in the queue.
	Queued bool
	// Running and Limit are, for a call that got no slot, the number of calls
	// that ran and the limit, 0 when unlimited. After ErrWaitTimeout they are of
	// one moment, so Running is not less than Limit; otherwise they were read
	// one after the other.
	Running, Limit int64
}

// waiter is a call that waits.
type waiter struct {
	fifo.Links[waiter] // guarded by Queue.mu
	// granted gets one value when the waiter is taken off the list because it
	// was given a slot. It has room for it, so nobody waits for a waiter.
	granted chan struct{}
	timer   *time.Timer
}

// wait is Acquire for a call that found no slot.
func (q *Queue) wait(ctx context.Context, maxWait time.Duration) (Wait, error) {
	if err := ended(ctx); err != nil {
		return q.met(false), err
	}
	if maxWait <= 0 {
		return q.met(false), ErrLimitReached
	}
	if s := q.state.Load(); q.full(s) {
		// Without a lock: under overload this is how most calls end.
		return Wait{Running: running(s), Limit: q.Limit()}, ErrQueueFull
	}
	done := ctx.Done() // while nothing is held: a context of somebody's own may panic
	w, _ := q.idle.Get().(*waiter)
	if w == nil {
		w = &waiter{granted: make(chan struct{}, 1)}
	}
	defer q.idle.Put(w)
	switch q.enqueue(w) {
	case hasSlot:
		return Wait{}, nil
	case hasNothing:
		return q.met(false), ErrQueueFull
	}
	if w.timer == nil {
		w.timer = time.NewTimer(maxWait)
	} else {
		w.timer.Reset(maxWait)
	}
	defer w.timer.Stop()

	granted := false
	select {
	case <-w.granted:
		granted = true
	case <-w.timer.C:
	case <-done:
	}
	err := q.look(ctx, w, granted)
	switch {
	case !granted:
		return q.leave(w, err)
	case err == nil:
		return Wait{Queued: true}, nil
	}
	met := q.met(true)
	q.Release()
	return met, err
}

// look asks whether ctx is done. One that panics keeps neither a slot nor a place.
func (q *Queue) look(ctx context.Context, w *waiter, granted bool) error {
	answered := false
	defer func() {
		switch {
		case answered:
		case granted:
			q.Release()
		default:
			_, _ = q.leave(w, ErrLimitReached)
		}
	}()
	err := ended(ctx)
	answered = true
	return err
}

// place is what a call that found no slot at first has got.
type place int

const (
	hasPlace place = iota
	hasSlot
	hasNothing
)

// enqueue puts w at the end of the queue, unless there is a slot for it by now, or
// no place.
func (q *Queue) enqueue(w *waiter) place {
	q.mu.Lock()
	if q.open {
		q.state.Add(1)
		q.mu.Unlock()
		return hasSlot
	}
	if q.list.Len() >= q.places.Load() {
		// A slot may just have been given back and not have been handed on yet.
		q.dispatchLocked(q.limit.Load())
		if q.list.Len() >= q.places.Load() {
			// Where nobody waits, as nobody may, slots are taken without mu.
			got := hasNothing
			if q.TryAcquire() {
				got = hasSlot
			}
			q.mu.Unlock()
			return got
		}
	}
	q.list.Push(w)
	q.showLocked(0) // and only then look for a slot, see state
	q.dispatchLocked(q.limit.Load())
	queued := w.Queued()
	q.mu.Unlock()
	if !queued {
		<-w.granted
		return hasSlot
	}
	return hasPlace
}

// leave ends a wait without having been given a slot so far: with err, or after
// maxWait if that is nil.
func (q *Queue) leave(w *waiter, err error) (Wait, error) {
	q.mu.Lock()
	met := q.met(true)
	if err == nil {
		// A slot may just have been given back and not have been handed on yet.
		met.Running = q.dispatchLocked(q.limit.Load())
	}
	queued := w.Queued()
	if queued {
		q.removeLocked(w, 0)
	}
	q.mu.Unlock()

	if !queued {
		<-w.granted
	}
	switch {
	case err == nil && queued:
		return met, ErrWaitTimeout
	case err == nil:
		return Wait{Queued: true}, nil
	case !queued:
		q.Release()
	}
	return met, err
}

func (q *Queue) removeLocked(w *waiter, taken int64) {
	q.list.Remove(w)
	q.showLocked(taken)
}

// showLocked takes slots and makes the signs of state those of the list, in one step.
func (q *Queue) showLocked(taken int64) {
	signs := int64(0)
	if q.list.Len() > 0 {
		signs = somebody
		if q.list.Len() >= q.places.Load() {
			signs |= crowded
		}
	}
	if change := taken + signs - q.shown; change != 0 { // nobody else changes the signs
		q.state.Add(change)
		q.shown = signs
	}
}

// dispatch hands free slots to those who wait.
func (q *Queue) dispatch() {
	q.mu.Lock()
	q.dispatchLocked(q.limit.Load())
	q.mu.Unlock()
}

// dispatchLocked gives a slot to the first of those who wait while fewer than
// limit run, and returns how many run then. As long as the sign of state is set
// nobody else takes a slot (an observed call is over the limit then, whoever
// comes first), so that looking and taking may be two steps. The sign goes with the
// last slot.
func (q *Queue) dispatchLocked(limit int64) int64 {
	for {
		n, w := running(q.state.Load()), q.list.Head()
		if w == nil || n >= limit {
			return n
		}
		q.removeLocked(w, 1)
		w.granted <- struct{}{}
	}
}

// met tells what runs now.
func (q *Queue) met(queued bool) Wait {
	return Wait{queued, q.Inflight(), q.Limit()}
}
