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
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// sleep lets the time of a bubble pass.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest

// stage runs calls of one queue in a synctest bubble, each in its goroutine, and
// keeps what became of them: name, what happened, and when it was not at once,
// after how long.
type stage struct {
	q       *Queue
	mu      sync.Mutex
	events  []string
	cancels map[string]context.CancelCauseFunc
}

func newStage(limit int) *stage {
	return &stage{q: NewQueue(limit), cancels: map[string]context.CancelCauseFunc{}}
}

// acquire begins a call; the slot that it gets is for others to give back.
func (s *stage) acquire(name string, maxWait time.Duration) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.cancels[name] = cancel
	go func() {
		start := time.Now()
		w, err := s.q.Acquire(ctx, maxWait)
		event := name
		switch {
		case err == nil:
			event += " runs"
		case errors.Is(err, ErrWaitTimeout):
			event += " too long"
		case errors.Is(err, ErrQueueFull):
			event += " finds no place"
		case errors.Is(err, ErrLimitReached):
			event += " refused"
		case errors.Is(err, context.Canceled):
			event += " cancelled"
		}
		if d := time.Since(start); d > 0 {
			event += " " + d.String()
		}
		if err != nil {
			event += fmt.Sprintf(" %d/%d", w.Running, w.Limit)
		} else if w.Running != 0 || w.Limit != 0 {
			event += " and is told of a refusal"
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, event)
	}()
}

// happened is what has become of calls since it was last asked. Of what happens
// at one moment the order is not kept.
func (s *stage) happened() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.events)
	all := strings.Join(s.events, ", ")
	s.events = nil
	return all
}

func TestQueueSteps(t *testing.T) {
	type step struct {
		do       string // acquire, try, release, set, pass (time), cancel, observe, end (one observed), or admit
		name     string
		n        int    // to set, or how many
		d        int    // milliseconds to wait or to pass
		want     string // what happened
		inflight int64  // afterwards
		waiting  int64
	}
	for name, steps := range map[string][]step{
		"first come, first served": {
			{"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 9, "", 1, 1}, {"acquire", "c", 0, 9, "", 1, 2},
			{"pass", "", 0, 2, "", 1, 2},
			{"release", "", 0, 0, "b runs 2ms", 1, 1}, {"pass", "", 0, 1, "", 1, 1}, {"release", "", 0, 0, "c runs 3ms", 1, 0},
			{"release", "", 0, 0, "", 0, 0}, {"acquire", "d", 0, 9, "d runs", 1, 0},
		},
		"not to wait": {
			{"acquire", "a", 0, 0, "a runs", 1, 0}, {"acquire", "b", 0, 0, "b refused 1/1", 1, 0}, {"acquire", "c", 0, -1, "c refused 1/1", 1, 0},
		},
		"exactly the longest wait": {
			{"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 5, "", 1, 1}, {"acquire", "c", 0, 3, "", 1, 2},
			{"pass", "", 0, 3, "c too long 3ms 1/1", 1, 1}, {"pass", "", 0, 1, "", 1, 1}, {"pass", "", 0, 1, "b too long 5ms 1/1", 1, 0},
			{"release", "", 0, 0, "", 0, 0}, {"try", "d", 0, 0, "d runs", 1, 0},
		},
		"nobody overtakes": {
			{"set", "", 2, 0, "", 0, 0}, {"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 9, "b runs", 2, 0},
			{"set", "", 1, 0, "", 2, 0}, {"acquire", "c", 0, 9, "", 2, 1}, {"release", "", 0, 0, "", 1, 1},
			{"try", "d", 0, 0, "d refused", 1, 1}, {"release", "", 0, 0, "c runs", 1, 0}, {"release", "", 0, 0, "", 0, 0},
			{"try", "e", 0, 0, "e runs", 1, 0},
		},
		"a cancelled one leaves at once, from anywhere": {
			{"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 9, "", 1, 1}, {"acquire", "c", 0, 9, "", 1, 2},
			{"acquire", "d", 0, 9, "", 1, 3}, {"acquire", "e", 0, 9, "", 1, 4}, {"pass", "", 0, 1, "", 1, 4},
			{"cancel", "c", 0, 0, "c cancelled 1ms 1/1", 1, 3}, {"cancel", "e", 0, 0, "e cancelled 1ms 1/1", 1, 2},
			{"cancel", "b", 0, 0, "b cancelled 1ms 1/1", 1, 1}, {"release", "", 0, 0, "d runs 1ms", 1, 0},
			{"acquire", "f", 0, 9, "", 1, 1}, {"cancel", "f", 0, 0, "f cancelled 1/1", 1, 0}, {"release", "", 0, 0, "", 0, 0},
			{"try", "g", 0, 0, "g runs", 1, 0},
		},
		"a higher limit lets in as many as fit": {
			{"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 9, "", 1, 1}, {"acquire", "c", 0, 9, "", 1, 2}, {"acquire", "d", 0, 9, "", 1, 3},
			{"set", "", 3, 0, "b runs, c runs", 3, 1}, {"try", "e", 0, 0, "e refused", 3, 1}, {"release", "", 0, 0, "d runs", 3, 0},
			{"release", "", 0, 0, "", 2, 0}, {"try", "e", 0, 0, "e runs", 3, 0},
		},
		"a lower limit takes nothing away": {
			{"set", "", 3, 0, "", 0, 0}, {"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 9, "b runs", 2, 0}, {"acquire", "c", 0, 9, "c runs", 3, 0},
			{"acquire", "d", 0, 9, "", 3, 1}, {"acquire", "e", 0, 2, "", 3, 2}, {"set", "", 1, 0, "", 3, 2},
			{"release", "", 0, 0, "", 2, 2}, {"pass", "", 0, 2, "e too long 2ms 2/1", 2, 1}, {"release", "", 0, 0, "", 1, 1}, {"release", "", 0, 0, "d runs 2ms", 1, 0},
		},
		"unlimited lets all go and counts": {
			{"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 9, "", 1, 1}, {"acquire", "c", 0, 9, "", 1, 2},
			{"set", "", 0, 0, "b runs, c runs", 3, 0}, {"acquire", "d", 0, 0, "d runs", 4, 0}, {"set", "", 3, 0, "", 4, 0},
			{"acquire", "e", 0, 9, "", 4, 1}, {"release", "", 0, 0, "", 3, 1}, {"release", "", 0, 0, "e runs", 3, 0},
			{"acquire", "f", 0, 9, "", 3, 1}, {"set", "", math.MinInt, 0, "f runs", 4, 0},
		},
		"all who wait are let go, later ones wait": {
			{"acquire", "a", 0, 9, "a runs", 1, 0}, {"admit", "", 0, 0, "", 1, 0}, {"acquire", "b", 0, 9, "", 1, 1}, {"acquire", "c", 0, 9, "", 1, 2},
			{"admit", "", 2, 0, "b runs, c runs", 3, 0}, {"try", "d", 0, 0, "d refused", 3, 0}, {"acquire", "e", 0, 9, "", 3, 1},
			{"release", "", 0, 0, "", 2, 1}, {"release", "", 0, 0, "", 1, 1}, {"release", "", 0, 0, "e runs", 1, 0},
		},
		"while it is open nobody waits, and calls count": {
			{"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 9, "", 1, 1}, {"open", "", 1, 0, "b runs", 2, 0},
			{"acquire", "c", 0, 9, "c runs", 3, 0}, {"acquire", "d", 0, 0, "d refused 3/1", 3, 0}, {"try", "e", 0, 0, "e refused", 3, 0},
			{"close", "", 0, 0, "", 3, 0}, {"acquire", "f", 0, 9, "", 3, 1}, {"release", "", 0, 0, "", 2, 1}, {"release", "", 0, 0, "", 1, 1},
			{"release", "", 0, 0, "f runs", 1, 0}, {"open", "", 0, 0, "", 1, 0}, {"release", "", 0, 0, "", 0, 0},
		},
		"observed: those that would wait run in the end": {
			{"observe", "a", 0, 9, "a runs", 1, 0}, {"observe", "b", 0, 9, "b waits", 2, 0}, {"end", "a", 0, 0, "", 1, 0},
			{"observe", "c", 0, 9, "c waits", 2, 0}, // behind b
			{"end", "b", 0, 0, "", 1, 0}, {"end", "c", 0, 0, "", 0, 0}, {"observe", "d", 0, 9, "d runs", 1, 0},
		},
		"observed: those that would be refused hold no slot": {
			{"observe", "a", 0, 0, "a runs", 1, 0}, {"observe", "b", 0, 0, "b refused", 2, 0}, {"observe", "c", 0, 0, "c refused", 3, 0},
			{"end", "a", 0, 0, "", 2, 0}, {"observe", "d", 0, 0, "d runs", 3, 0}, {"observe", "e", 0, 1, "e waits", 4, 0},
		},
		"enforced: all that run count, however they end": {
			{"observe", "a", 0, 9, "a runs", 1, 0}, {"observe", "b", 0, 9, "b waits", 2, 0}, {"observe", "c", 0, 0, "c refused", 3, 0},
			{"try", "d", 0, 0, "d refused", 3, 0}, {"acquire", "e", 0, 9, "", 3, 1}, {"acquire", "f", 0, 0, "f refused 3/1", 3, 1},
			{"observe", "g", 0, 0, "g refused", 4, 1}, {"observe", "h", 0, 9, "h waits", 5, 1}, {"end", "g", 0, 0, "", 4, 1}, {"end", "h", 0, 0, "", 3, 1},
			{"end", "a", 0, 0, "", 2, 1}, {"end", "b", 0, 0, "", 1, 1}, {"end", "c", 0, 0, "e runs", 1, 0},
		},
		"enforced: also when only those that would have been refused are left": {
			{"observe", "a", 0, 0, "a runs", 1, 0}, {"observe", "b", 0, 0, "b refused", 2, 0}, {"end", "a", 0, 0, "", 1, 0},
			{"try", "c", 0, 0, "c refused", 1, 0}, {"acquire", "d", 0, 0, "d refused 1/1", 1, 0}, {"acquire", "e", 0, 9, "", 1, 1},
			{"end", "b", 0, 0, "e runs", 1, 0},
		},
		"no place": {
			{"places", "", 1, 0, "", 0, 0}, {"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 9, "", 1, 1}, {"acquire", "c", 0, 9, "c finds no place 1/1", 1, 1},
			{"release", "", 0, 0, "b runs", 1, 0}, {"acquire", "d", 0, 2, "", 1, 1}, {"acquire", "e", 0, 9, "e finds no place 1/1", 1, 1},
			{"pass", "", 0, 2, "d too long 2ms 1/1", 1, 0}, {"acquire", "f", 0, 9, "", 1, 1}, {"cancel", "f", 0, 0, "f cancelled 1/1", 1, 0},
			{"acquire", "g", 0, 9, "", 1, 1}, {"acquire", "h", 0, 0, "h refused 1/1", 1, 1},
		},
		"nobody may wait": {
			{"places", "", 0, 0, "", 0, 0}, {"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 9, "b finds no place 1/1", 1, 0},
			{"release", "", 0, 0, "", 0, 0}, {"acquire", "c", 0, 9, "c runs", 1, 0},
		},
		"fewer places take none away": {
			{"acquire", "a", 0, 9, "a runs", 1, 0}, {"acquire", "b", 0, 9, "", 1, 1}, {"acquire", "c", 0, 9, "", 1, 2}, {"acquire", "d", 0, 9, "", 1, 3},
			{"places", "", 1, 0, "", 1, 3}, {"acquire", "e", 0, 9, "e finds no place 1/1", 1, 3}, {"release", "", 0, 0, "b runs", 1, 2},
			{"acquire", "e", 0, 9, "e finds no place 1/1", 1, 2}, {"release", "", 0, 0, "c runs", 1, 1}, {"acquire", "e", 0, 9, "e finds no place 1/1", 1, 1},
			{"release", "", 0, 0, "d runs", 1, 0}, {"acquire", "e", 0, 9, "", 1, 1}, {"places", "", 0, 0, "", 1, 1}, {"acquire", "f", 0, 9, "f finds no place 1/1", 1, 1},
			{"places", "", 2, 0, "", 1, 1}, {"acquire", "f", 0, 9, "", 1, 2}, {"places", "", -1, 0, "", 1, 2}, {"acquire", "g", 0, 9, "", 1, 3},
			{"set", "", 3, 0, "e runs, f runs", 3, 1},
		},
		"observed: no more wait than may": {
			{"places", "", 1, 0, "", 0, 0}, {"observe", "a", 0, 9, "a runs", 1, 0}, {"observe", "b", 0, 9, "b waits", 2, 0},
			{"observe", "c", 0, 9, "c refused", 3, 0}, {"end", "a", 0, 0, "", 2, 0}, {"observe", "d", 0, 9, "d waits", 3, 0}, {"observe", "e", 0, 9, "e refused", 4, 0},
		},
		"observed without a limit": {
			{"set", "", -1, 0, "", 0, 0}, {"observe", "a", 0, 0, "a runs", 1, 0}, {"observe", "b", 0, 9, "b runs", 2, 0}, {"set", "", 2, 0, "", 2, 0},
			{"observe", "c", 0, 0, "c refused", 3, 0}, {"set", "", 0, 0, "", 3, 0}, {"try", "d", 0, 0, "d runs", 4, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(1)
				verdicts := map[string]Verdict{}
				for i, step := range steps {
					got, d := "", time.Duration(step.d)*ms
					switch step.do {
					case "acquire":
						s.acquire(step.name, d)
					case "try":
						got = step.name + map[bool]string{true: " runs", false: " refused"}[s.q.TryAcquire()]
					case "release":
						s.q.Release()
					case "set":
						s.q.SetLimit(step.n)
						require.EqualValues(t, max(0, step.n), s.q.Limit(), "step %d", i)
					case "places":
						s.q.SetPlaces(step.n)
					case "pass":
						sleep(d)
					case "cancel":
						s.cancels[step.name](nil)
					case "observe":
						verdicts[step.name] = s.q.Observe(d)
						got = step.name + map[Verdict]string{WouldRun: " runs", WouldWait: " waits", WouldRefuse: " refused"}[verdicts[step.name]]
					case "end":
						s.q.EndObserved(verdicts[step.name])
					case "admit":
						require.EqualValues(t, step.n, s.q.SetOpen(true), "step %d", i)
						s.q.SetOpen(false)
					case "open":
						require.EqualValues(t, step.n, s.q.SetOpen(true), "step %d", i)
					case "close":
						require.Zero(t, s.q.SetOpen(false), "step %d", i)
					}
					require.Equal(t, step.want, got+s.happened(), "step %d", i)
					require.Equal(t, step.inflight, s.q.Inflight(), "step %d", i)
					require.Equal(t, step.waiting, s.q.Waiting(), "step %d", i)
				}
				s.q.SetLimit(0) // nobody stays behind in the bubble
			})
		})
	}
}

// Without waiters a queue is a limiter.
func TestQueueUnlimited(t *testing.T) {
	for _, limit := range []int{0, -1, math.MinInt32} {
		q := NewQueue(limit)
		for range 10000 {
			require.True(t, q.TryAcquire())
		}
		assert.Equal(t, int64(10000), q.Inflight())
		assert.Zero(t, q.Limit())
	}
	assert.EqualValues(t, math.MaxInt32, NewQueue(math.MaxInt32).Limit())
}

func TestQueueZeroValueHasNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		assert.False(t, q.TryAcquire())
		_, err := q.Acquire(t.Context(), ms)
		require.ErrorIs(t, err, ErrQueueFull)
		q.SetPlaces(1)
		_, err = q.Acquire(t.Context(), ms)
		require.ErrorIs(t, err, ErrWaitTimeout)
		q.SetLimit(1)
		assert.True(t, q.TryAcquire())
	})
}

func TestQueueAllocatesNothing(t *testing.T) {
	q := NewQueue(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if _, err := q.Acquire(ctx, time.Hour); err == nil {
			if _, err = q.Acquire(ctx, 0); err == nil { // refused
				panic("two have one slot")
			}
			q.EndObserved(q.Observe(0))
			q.EndObserved(q.Observe(1))
			q.TryAcquire() // refused
			q.Release()
		}
	}))
	var layout Queue
	assert.EqualValues(t, 256, unsafe.Sizeof(layout), "nobody else's fields in the same cache lines")
	assert.EqualValues(t, 128, unsafe.Offsetof(layout.mu), "those who only pass share no cache line with those who wait")
}

func TestQueueErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1)
		require.True(t, q.TryAcquire())

		w, err := q.Acquire(t.Context(), ms)
		require.ErrorIs(t, err, ErrWaitTimeout)
		require.ErrorIs(t, err, ErrLimitReached)
		assert.EqualError(t, err, "weir: waited too long for a running call to end")
		assert.Equal(t, Wait{Queued: true, Running: 1, Limit: 1}, w)

		w, err = q.Acquire(t.Context(), 0)
		require.ErrorIs(t, err, ErrLimitReached)
		require.NotErrorIs(t, err, ErrWaitTimeout)
		assert.Equal(t, Wait{Running: 1, Limit: 1}, w)

		ctx, cancel := context.WithTimeout(t.Context(), ms)
		w, err = q.Acquire(ctx, time.Hour)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, ErrLimitReached)
		assert.EqualError(t, err, "weir: gave up waiting for a running call to end: context deadline exceeded")
		assert.Equal(t, Wait{Queued: true, Running: 1, Limit: 1}, w)

		// The cause and what the context says of itself, and with a context that
		// is done nobody queues.
		why := errors.New("the caller hung up")
		ctx, cancelCause := context.WithCancelCause(t.Context())
		cancelCause(why)
		for _, maxWait := range []time.Duration{time.Hour, 0} {
			w, err = q.Acquire(ctx, maxWait)
			require.ErrorIs(t, err, why)
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, ErrLimitReached)
			assert.EqualError(t, err, "weir: gave up waiting for a running call to end: the caller hung up")
			assert.Equal(t, Wait{Running: 1, Limit: 1}, w)
		}

		// Nobody has to wait: nobody looks at the context.
		q.Release()
		_, err = q.Acquire(ctx, 0)
		require.NoError(t, err)
		assert.EqualValues(t, 1, q.Inflight())
	})
}
