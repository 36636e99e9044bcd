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
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// 10,000 wait for one slot while deadlines, cancels and releases fall together
// as often as they can. Whoever is granted the slot gets it in the order of
// arrival and at the instant at which the one before gave it back; whoever is
// not leaves at the very instant of its deadline or cancel.
func TestQueueStormInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, tick = 10_000, 10 * time.Microsecond
		var (
			q        = NewQueue(1)
			rnd      = rand.New(rand.NewPCG(7, n))
			start    = time.Now()
			wg       sync.WaitGroup
			ends     [3]atomic.Int64 // granted, deadline, cancelled
			order    []int           // this and the next guarded by the slot
			released time.Time
		)
		require.True(t, q.TryAcquire())
		for i := range n {
			maxWait, cancelled := tick*time.Duration(1+rnd.IntN(10_000)), tick*time.Duration(1+rnd.IntN(20_000))
			hold := tick * time.Duration(rnd.IntN(3))
			wg.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				time.AfterFunc(cancelled, cancel)
				_, err := q.Acquire(ctx, maxWait)
				took := time.Since(start)
				switch {
				case err == nil:
					ends[0].Add(1)
					assert.LessOrEqual(t, took, min(maxWait, cancelled))
					assert.Equal(t, released, time.Now(), "the slot lay idle")
					order = append(order, i)
					sleep(hold)
					released = time.Now()
					q.Release()
				case took == maxWait && ctx.Err() == nil:
					ends[1].Add(1)
					assert.ErrorIs(t, err, ErrWaitTimeout)
				default:
					ends[2].Add(1)
					assert.Equal(t, min(maxWait, cancelled), took)
				}
			})
			synctest.Wait()
			require.EqualValues(t, i+1, q.Waiting())
		}
		sleep(tick)
		released = time.Now()
		q.Release()
		wg.Wait()
		assert.IsIncreasing(t, order)
		assert.EqualValues(t, n, ends[0].Load()+ends[1].Load()+ends[2].Load())
		for i := range ends {
			assert.Greater(t, ends[i].Load(), int64(n/20), "the storm is none: %v", i)
		}
		atRest(t, q)
	})
}

// The same with goroutines that really run at once, and a crowd that tries to
// get past those who wait.
func TestQueueStormInOrderForReal(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const n = 10_000
	var (
		q                  = NewQueue(1)
		rnd                = rand.New(rand.NewPCG(9, n))
		wg, crowd          sync.WaitGroup
		stop               atomic.Bool
		granted, cancelled atomic.Int64
		order              []int // guarded by the slot
		cancels            []context.CancelFunc
	)
	require.True(t, q.TryAcquire())
	for i := range n {
		ctx, cancel := context.WithCancel(context.Background())
		if rnd.IntN(2) == 0 {
			cancels = append(cancels, cancel)
		} else {
			defer cancel()
		}
		wg.Go(func() {
			if _, err := q.Acquire(ctx, time.Hour); err != nil {
				assert.ErrorIs(t, err, context.Canceled)
				cancelled.Add(1)
				return
			}
			order = append(order, i)
			granted.Add(1)
			q.Release()
		})
		for q.Waiting() < int64(i+1) {
			runtime.Gosched()
		}
	}
	for range 4 {
		crowd.Go(func() {
			for !stop.Load() {
				if q.TryAcquire() {
					// Those granted have noted it before they gave the slot back;
					// those cancelled leave the queue before they note it.
					assert.Zero(t, q.Waiting(), "overtook them")
					q.Release()
				}
				runtime.Gosched()
			}
		})
	}
	rnd.Shuffle(len(cancels), func(i, j int) { cancels[i], cancels[j] = cancels[j], cancels[i] })
	crowd.Go(func() {
		for _, cancel := range cancels {
			cancel()
		}
	})
	q.Release()
	wg.Wait()
	stop.Store(true)
	crowd.Wait()
	assert.IsIncreasing(t, order)
	assert.EqualValues(t, n, granted.Load()+cancelled.Load())
	assert.GreaterOrEqual(t, granted.Load(), int64(n-len(cancels)), "those not cancelled all got it")
	atRest(t, q)
}

// 10,000 come, wait, run and go as they like, while the limit changes: never
// more than the largest limit run, nobody is lost and no slot is.
func TestQueueStorm(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const n, largest = 10_000, 8
	var (
		q             = NewQueue(3)
		running, most atomic.Int64
		ends          atomic.Int64
		wg, changes   sync.WaitGroup
		stop          atomic.Bool
	)
	changes.Go(func() {
		for i := 0; !stop.Load(); i++ {
			q.SetLimit([]int{3, 1, largest, 2, 5}[i%5])
			if limit := q.Limit(); q.Inflight() < 0 || limit < 1 || limit > largest {
				t.Error("a count that cannot be")
			}
			runtime.Gosched()
		}
	})
	for i := range n {
		rnd := rand.New(rand.NewPCG(uint64(i), n))
		wg.Go(func() {
			for range 3 {
				ctx, cancel := context.WithCancel(context.Background())
				maxWait := time.Hour
				switch rnd.IntN(6) {
				case 0:
					maxWait = time.Duration(rnd.IntN(300)) * time.Microsecond
				case 1:
					time.AfterFunc(time.Duration(rnd.IntN(300))*time.Microsecond, cancel)
				case 2:
					go cancel()
				}
				if _, err := q.Acquire(ctx, maxWait); err == nil {
					note(&most, running.Add(1))
					if rnd.IntN(8) == 0 {
						runtime.Gosched()
					}
					running.Add(-1)
					q.Release()
				}
				ends.Add(1)
				cancel()
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	changes.Wait()
	assert.EqualValues(t, 3*n, ends.Load())
	assert.LessOrEqual(t, most.Load(), int64(largest))
	q.SetLimit(largest)
	atRest(t, q)
}
