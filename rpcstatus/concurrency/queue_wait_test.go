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
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// N7: 100 who wait for one slot are served in the order in which they came.
func TestQueueServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		q := NewQueue(1)
		require.True(t, q.TryAcquire())
		var order []int // guarded by the slot
		for i := range n {
			go func() {
				w, err := q.Acquire(t.Context(), time.Hour)
				assert.NoError(t, err)
				assert.True(t, w.Queued)
				order = append(order, i)
				sleep(ms)
				q.Release()
			}()
			synctest.Wait()
		}
		assert.EqualValues(t, n, q.Waiting())
		q.Release()
		sleep(n * ms)
		synctest.Wait()
		require.Len(t, order, n)
		for i := range n {
			assert.Equal(t, i, order[i])
		}
		assert.Zero(t, q.Inflight())
		assert.Zero(t, q.Waiting())
	})
}

// A3 to A5 of ActiveLimitFilterTest.
func TestQueueAsActiveLimitFilter(t *testing.T) {
	for name, c := range map[string]struct {
		limit, calls     int // calls of each of 100 threads
		maxWait, inner   time.Duration
		leak             bool
		admitted, failed int64
	}{
		"A3, greater actives": {1, 100, 1 * ms, 100 * ms, true, 1, 9999},
		"A4, timeout":         {10, 1, 1 * ms, 100 * ms, false, 10, 90},
		"A5, no timeout":      {10, 1, 100_000 * ms, 0, false, 100, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var (
					q                = NewQueue(c.limit)
					wg               sync.WaitGroup
					admitted, failed atomic.Int64
				)
				for range 100 {
					wg.Go(func() {
						for range c.calls {
							if _, err := q.Acquire(t.Context(), c.maxWait); err != nil {
								assert.ErrorIs(t, err, ErrWaitTimeout)
								failed.Add(1)
								continue
							}
							admitted.Add(1)
							sleep(c.inner)
							if !c.leak {
								q.Release()
							}
						}
					})
				}
				wg.Wait()
				assert.Equal(t, c.admitted, admitted.Load())
				assert.Equal(t, c.failed, failed.Load())
				assert.Zero(t, q.Waiting())
				if !c.leak {
					assert.Zero(t, q.Inflight())
				}
			})
		})
	}
}

// N4 and N6: with no deadline anywhere the wait has its bound, and a context
// that ends before ends it.
func TestQueueWaitIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		deadline, maxWait, took time.Duration
		err                     error
	}{
		"no deadline":                 {0, 7 * ms, 7 * ms, ErrWaitTimeout},
		"deadline before":             {3 * ms, 7 * ms, 3 * ms, context.DeadlineExceeded},
		"deadline after":              {9 * ms, 7 * ms, 7 * ms, ErrWaitTimeout},
		"deadline passed":             {-ms, 7 * ms, 0, context.DeadlineExceeded},
		"deadline and no wait":        {9 * ms, 0, 0, ErrLimitReached},
		"deadline passed and no wait": {-ms, -ms, 0, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.deadline != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				q := NewQueue(1)
				require.True(t, q.TryAcquire())
				for range 3 { // timers are used again
					start := time.Now()
					_, err := q.Acquire(ctx, c.maxWait)
					require.ErrorIs(t, err, c.err)
					assert.Equal(t, c.took, time.Since(start))
					if c.deadline != 0 {
						break
					}
				}
			})
		})
	}
}
