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
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/fifo"
)

// H23 with calls that wait: check, then increase lets more than the limit pass.
func TestRegression_QueueNeverMoreThanTheLimit(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const limit = 5
	q := NewQueue(limit)
	var running, most atomic.Int64
	for range 1000 {
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 50 {
			wg.Go(func() {
				<-start
				_, err := q.Acquire(context.Background(), time.Hour)
				assert.NoError(t, err)
				note(&most, running.Add(1))
				runtime.Gosched()
				running.Add(-1)
				q.Release()
			})
		}
		close(start)
		wg.Wait()
		require.Zero(t, q.Inflight())
		require.Zero(t, q.Waiting())
	}
	assert.EqualValues(t, limit, most.Load())
}

// A call comes at the moment at which the slot that it needs is given back and
// somebody else tries for it: it is always woken, and never do two run.
func TestQueueNoWakeUpIsLost(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const rounds = 5000
	var (
		q             = NewQueue(1)
		running, most atomic.Int64
		round, served atomic.Int64 // the call comes when round is greater
		wg            sync.WaitGroup
	)
	run := func() {
		note(&most, running.Add(1))
		running.Add(-1)
		q.Release()
	}
	wg.Go(func() {
		for i := range int64(rounds) {
			for round.Load() <= i {
				runtime.Gosched()
			}
			_, err := q.Acquire(context.Background(), time.Hour) // hangs if it is not woken
			assert.NoError(t, err)
			run()
			served.Add(1)
		}
	})
	wg.Go(func() {
		for served.Load() < rounds {
			if q.TryAcquire() {
				run()
			} else {
				runtime.Gosched()
			}
		}
	})
	for i := range int64(rounds) {
		for !q.TryAcquire() {
			runtime.Gosched()
		}
		round.Add(1)
		for range i % 64 { // come a little earlier, or later
			round.Load()
		}
		run()
		for served.Load() <= i {
			runtime.Gosched()
		}
	}
	wg.Wait()
	assert.EqualValues(t, 1, most.Load())
	atRest(t, q)
}

// atRest checks that all slots are there and that nobody is said to wait.
func atRest(t *testing.T, q *Queue) {
	t.Helper()
	assert.Zero(t, q.state.Load())
	assert.Equal(t, fifo.List[waiter, *waiter]{}, q.list)
	assert.Zero(t, q.shown)
	for range q.Limit() {
		assert.True(t, q.TryAcquire())
	}
	assert.False(t, q.TryAcquire())
	assert.Equal(t, q.Limit(), q.Inflight())
}

// A limit that is changed while calls run and wait holds for every call that
// comes after the change.
func TestQueueSetLimitUnderLoad(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const goroutines = 24
	var (
		q       = NewQueue(8)
		running atomic.Int64
		rounds  [goroutines]atomic.Int64
		wg      sync.WaitGroup
		stop    atomic.Bool
	)
	for g := range goroutines {
		wg.Go(func() {
			for !stop.Load() {
				_, err := q.Acquire(context.Background(), time.Hour)
				assert.NoError(t, err)
				running.Add(1)
				runtime.Gosched()
				running.Add(-1)
				q.Release()
				rounds[g].Add(1)
			}
		})
	}
	// allCome waits until everybody has come again, and looks on meanwhile.
	allCome := func(look func()) {
		var before [goroutines]int64
		for g := range rounds {
			before[g] = rounds[g].Load()
		}
		for g := range rounds {
			for rounds[g].Load() < before[g]+2 { // the first round to end may have begun before
				look()
				runtime.Gosched()
			}
		}
	}
	for i := range 44 {
		limit := int64([]int{2, 1, 5, 8, 3, 0, 4, 1, -1, 16, 1}[i%11])
		q.SetLimit(int(limit))
		allCome(func() {})
		// Those over a lower limit have ended, and from now on there are never more.
		allCome(func() {
			if n := running.Load(); limit > 0 && n > limit {
				t.Errorf("%d run, allowed are %d", n, limit)
			}
			if n := q.Inflight(); limit > 0 && n > limit {
				t.Errorf("%d slots of %d are taken", n, limit)
			}
		})
	}
	stop.Store(true)
	wg.Wait()
	assert.Zero(t, running.Load())
	atRest(t, q)
}

// Observed and enforced calls of one queue, as while the mode is switched: no
// slot is lost, and all who wait are served.
func TestQueueObserveUnderLoad(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const limit, goroutines, tries = 5, 32, 1000
	q := NewQueue(limit)
	var (
		wg             sync.WaitGroup
		enforced, most atomic.Int64
	)
	for g := range goroutines {
		wg.Go(func() {
			for i := range tries {
				switch (g + i) % 3 {
				case 0:
					v := q.Observe(time.Duration(i % 2))
					runtime.Gosched()
					q.EndObserved(v)
				case 1:
					_, err := q.Acquire(context.Background(), time.Hour)
					assert.NoError(t, err)
					note(&most, enforced.Add(1))
					runtime.Gosched()
					enforced.Add(-1)
					q.Release()
				case 2:
					if q.TryAcquire() {
						note(&most, enforced.Add(1))
						runtime.Gosched()
						enforced.Add(-1)
						q.Release()
					}
				}
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, most.Load(), int64(limit))
	atRest(t, q)
}
