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
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A slot that is given back at the very deadline is not lost: the waiter has it,
// or it is free.
func TestQueueReleaseAtTheDeadline(t *testing.T) {
	got := 0
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(1)
			require.True(t, q.TryAcquire())
			go func() {
				sleep(5 * ms)
				q.Release()
			}()
			start := time.Now()
			_, err := q.Acquire(t.Context(), 5*ms)
			assert.Equal(t, 5*ms, time.Since(start))
			synctest.Wait()
			if err == nil {
				got++
				assert.EqualValues(t, 1, q.Inflight())
				q.Release()
			} else {
				assert.ErrorIs(t, err, ErrWaitTimeout)
			}
			assert.Zero(t, q.Inflight())
			assert.True(t, q.TryAcquire())
		})
	}
	t.Logf("%d of 200 got the slot", got)
}

// Two wait, and the slot is given back when the wait of the first is over: one
// of them gets it.
func TestQueueReleaseAtTheDeadlineOfTheFirst(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(1)
			require.True(t, s.q.TryAcquire())
			s.acquire("a", 5*ms)
			synctest.Wait()
			s.acquire("b", time.Hour)
			synctest.Wait()
			time.AfterFunc(5*ms, s.q.Release)
			sleep(5 * ms)
			switch got := s.happened(); got {
			case "a runs 5ms":
				assert.EqualValues(t, 1, s.q.Waiting())
				s.q.Release()
				assert.Equal(t, "b runs 5ms", s.happened())
			case "a too long 5ms 1/1, b runs 5ms":
			default:
				t.Errorf("happened: %s", got)
			}
			assert.EqualValues(t, 1, s.q.Inflight())
			assert.Zero(t, s.q.Waiting())
		})
	}
}

// The same with the worst timing: a slot has been given back, and whoever did it
// was held up before handing it on. Whoever's wait ends meanwhile hands it on.
func TestQueueReleaseHeldUp(t *testing.T) {
	for name, c := range map[string]struct {
		a, b time.Duration // longest waits
		want string        // at the deadline
	}{
		"the first takes it":                   {5 * ms, 9 * ms, "a runs 5ms"},
		"the second hands it to the first":     {9 * ms, 5 * ms, "a runs 5ms, b too long 5ms 1/1"},
		"who comes then hands it on and waits": {9 * ms, 9 * ms, "a runs 5ms"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(1)
				require.True(t, s.q.TryAcquire())
				s.acquire("a", c.a)
				synctest.Wait()
				s.acquire("b", c.b)
				synctest.Wait()
				assert.Negative(t, s.q.state.Add(-1)) // the first half of Release
				assert.False(t, s.q.TryAcquire(), "overtakes")
				assert.Equal(t, WouldWait, s.q.Observe(ms))
				s.q.state.Add(-1)
				sleep(5 * ms)
				if c.a == c.b {
					s.acquire("c", 9*ms)
				}
				assert.Equal(t, c.want, s.happened())
				assert.EqualValues(t, 1, s.q.Inflight())
				s.q.dispatch() // the second half comes too late to change anything
				assert.Empty(t, s.happened())
				assert.EqualValues(t, 1, s.q.Inflight())
				s.q.SetLimit(0)
			})
		})
	}
}

// A call whose context is done before there is a slot for it never gets one, also
// when it learns of both at the same time; the slot goes to the next.
func TestQueueCancelledThenGranted(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(1)
			require.True(t, s.q.TryAcquire())
			s.acquire("a", 9*ms)
			synctest.Wait()
			s.acquire("b", 9*ms)
			synctest.Wait()
			s.cancels["a"](nil)
			s.q.Release()
			got := s.happened()
			assert.Contains(t, []string{"a cancelled 1/1, b runs", "a cancelled 0/1, b runs"}, got)
			assert.EqualValues(t, 1, s.q.Inflight())
			assert.Zero(t, s.q.Waiting())
			s.q.Release()
			assert.Zero(t, s.q.Inflight())
		})
	}
}

// The other way round it may get the slot or not, and the slot is with one.
func TestQueueGrantedThenCancelled(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(1)
			require.True(t, s.q.TryAcquire())
			s.acquire("a", 9*ms)
			synctest.Wait()
			s.acquire("b", 9*ms)
			synctest.Wait()
			s.q.Release()
			s.cancels["a"](nil)
			if got := s.happened(); got == "a runs" {
				s.q.Release()
				assert.Equal(t, "b runs", s.happened())
			} else {
				assert.Contains(t, []string{"a cancelled 1/1, b runs", "a cancelled 0/1, b runs"}, got)
			}
			assert.EqualValues(t, 1, s.q.Inflight())
			assert.Zero(t, s.q.Waiting())
		})
	}
}

// A context of somebody's own that panics keeps neither a slot nor a place.
func TestQueueContextThatPanics(t *testing.T) {
	for _, what := range []string{"done", "first err", "err with a slot", "err without"} {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(1)
			require.True(t, q.TryAcquire())
			ctx := &panicking{Context: t.Context(), what: what, after: map[string]int{"first err": 0}[what]}
			if what == "err with a slot" || what == "err without" {
				ctx.after = 1
			}
			ended := make(chan any)
			go func() {
				defer func() { ended <- recover() }()
				_, _ = q.Acquire(ctx, 5*ms)
			}()
			synctest.Wait()
			if what == "err with a slot" {
				q.Release()
			} else {
				defer q.Release()
			}
			assert.Equal(t, "boom", <-ended, what)
			assert.Zero(t, q.Waiting(), what)
			want := int64(1)
			if what == "err with a slot" {
				want = 0
			}
			assert.Equal(t, want, q.Inflight(), what)
			if what == "err with a slot" {
				assert.True(t, q.TryAcquire())
				q.Release()
			}
		})
	}
}

type panicking struct {
	context.Context
	what  string
	after int // looks at Err that are answered
}

func (c *panicking) Done() <-chan struct{} {
	if c.what == "done" {
		panic("boom")
	}
	return c.Context.Done()
}

func (c *panicking) Err() error {
	if c.what != "done" {
		if c.after--; c.after < 0 {
			panic("boom")
		}
	}
	return nil
}

// A slot that was granted to a call is handed on by it, whichever of its three
// ends it noticed first.
func TestQueueLeaveAfterGrant(t *testing.T) {
	for _, err := range []error{nil, context.Canceled} {
		q := NewQueue(1)
		require.True(t, q.TryAcquire())
		w := &waiter{granted: make(chan struct{}, 1)}
		next := &waiter{granted: make(chan struct{}, 1)}
		require.Equal(t, hasPlace, q.enqueue(w))
		require.Equal(t, hasPlace, q.enqueue(next))
		q.Release() // to w, which has just noticed its deadline, or err
		met, got := q.leave(w, err)
		assert.Equal(t, err, got)
		assert.True(t, met.Queued)
		assert.Empty(t, w.granted, "a waiter that is used again would take it for its slot")
		assert.EqualValues(t, 1, q.Inflight())
		if err == nil {
			assert.EqualValues(t, 1, q.Waiting())
		} else {
			assert.Zero(t, q.Waiting())
			assert.Len(t, next.granted, 1)
		}
	}
}

// A slot that becomes free between looking and queueing is found.
func TestQueueSlotBeforeQueueing(t *testing.T) {
	q := NewQueue(1)
	require.True(t, q.TryAcquire())
	require.False(t, q.TryAcquire())
	q.Release() // nobody waits yet
	w, err := q.wait(t.Context(), time.Hour)
	require.NoError(t, err)
	assert.False(t, w.Queued)
	assert.EqualValues(t, 1, q.Inflight())
	q.Release()
	assert.True(t, q.TryAcquire(), "nobody is said to wait")
}
