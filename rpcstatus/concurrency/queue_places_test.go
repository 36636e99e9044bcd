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
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// N5: of all that come at the same moment exactly as many run as may, exactly as
// many wait as may, and all others are turned away.
func TestQueuePlacesAreExactAtABarrier(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const limit, places, callers = 3, 5, 64
	q := NewQueue(limit)
	q.SetPlaces(places)
	for range 300 {
		var (
			wg      sync.WaitGroup
			refused atomic.Int64
			start   = make(chan struct{})
			end     = make(chan struct{})
		)
		for range callers {
			wg.Go(func() {
				<-start
				_, err := q.Acquire(context.Background(), time.Hour)
				if err != nil {
					assert.ErrorIs(t, err, ErrQueueFull)
					refused.Add(1)
					return
				}
				<-end
				q.Release()
			})
		}
		close(start)
		for refused.Load() < callers-limit-places {
			runtime.Gosched()
		}
		require.EqualValues(t, limit, q.Inflight())
		require.EqualValues(t, places, q.Waiting())
		require.True(t, q.Full())
		close(end)
		wg.Wait()
		require.EqualValues(t, callers-limit-places, refused.Load())
	}
	atRest(t, q)
}

// While slots and places change hands as fast as they can nobody is turned away
// who could have run or waited: with as many callers as there are slots and places
// all of them come through.
func TestQueueTurnsNobodyAwayTooEarly(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const limit, places = 2, 3
	q := NewQueue(limit)
	q.SetPlaces(places)
	var wg sync.WaitGroup
	for range limit + places {
		wg.Go(func() {
			for range 20_000 {
				if _, err := q.Acquire(context.Background(), time.Hour); err != nil {
					t.Error(err)
					return
				}
				q.Release()
			}
		})
	}
	wg.Wait()
	atRest(t, q)
}

// Limits and places change while calls run, wait, are cancelled and run out of
// time: never more than the most of each, and nothing is lost.
func TestQueuePlacesStorm(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const mostRun, mostWait = 4, 6
	var (
		q             = NewQueue(2)
		running, most atomic.Int64
		refused       atomic.Int64
		wg, changes   sync.WaitGroup
		stop          atomic.Bool
	)
	q.SetPlaces(mostWait)
	changes.Go(func() {
		for i := 0; !stop.Load(); i++ {
			q.SetLimit([]int{1, mostRun, 2}[i%3])
			q.SetPlaces([]int{3, 0, mostWait, 1}[i%4])
			if n := q.Waiting(); n > mostWait {
				t.Errorf("%d wait", n)
			}
			runtime.Gosched()
		}
	})
	for i := range 64 {
		rnd := rand.New(rand.NewPCG(uint64(i), 64))
		wg.Go(func() {
			for range 500 {
				ctx, cancel := context.WithCancel(context.Background())
				maxWait := time.Hour
				switch rnd.IntN(6) {
				case 0:
					maxWait = time.Duration(rnd.IntN(300)) * time.Microsecond
				case 1:
					time.AfterFunc(time.Duration(rnd.IntN(300))*time.Microsecond, cancel)
				case 2:
					go cancel()
				case 3:
					v := q.Observe(maxWait)
					runtime.Gosched()
					q.EndObserved(v)
				}
				switch _, err := q.Acquire(ctx, maxWait); {
				case err == nil:
					note(&most, running.Add(1))
					if rnd.IntN(4) == 0 {
						runtime.Gosched()
					}
					running.Add(-1)
					q.Release()
				case errors.Is(err, ErrQueueFull):
					refused.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	changes.Wait()
	assert.LessOrEqual(t, most.Load(), int64(mostRun))
	assert.Positive(t, refused.Load(), "the storm is none")
	q.SetLimit(mostRun)
	atRest(t, q)
}

// Places, the limit and whether anybody has to wait change at once: nobody is left
// behind, and no slot or place is.
func TestQueuePlacesWhileOpened(t *testing.T) {
	var (
		q           = NewQueue(2)
		wg, changes sync.WaitGroup
		stop        atomic.Bool
	)
	changes.Go(func() {
		for i := 0; !stop.Load(); i++ {
			q.SetPlaces([]int{3, 0, -1, 1, 0, 64}[i%6])
			q.SetLimit([]int{1, 4, 0, 2}[i%4])
			q.SetOpen(i%7 < 3)
			runtime.Gosched()
		}
		q.SetPlaces(2)
		q.SetLimit(1)
		q.SetOpen(false)
	})
	for i := range 32 {
		rnd := rand.New(rand.NewPCG(uint64(i), 32))
		wg.Go(func() {
			for range 500 {
				if rnd.IntN(4) == 0 {
					v := q.Observe(time.Hour)
					runtime.Gosched()
					q.EndObserved(v)
				}
				// Nobody gives up: whoever is left behind is stuck.
				if _, err := q.Acquire(context.Background(), time.Hour); err == nil {
					if rnd.IntN(4) == 0 {
						runtime.Gosched()
					}
					q.Release()
				}
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	changes.Wait()
	atRest(t, q)
	require.False(t, q.Full(), "there are places again")
}

func BenchmarkQueueFull(b *testing.B) {
	q := NewQueue(1)
	q.SetPlaces(0)
	q.TryAcquire()
	ctx := context.Background()
	refuse := func(b *testing.B) {
		if _, err := q.Acquire(ctx, time.Hour); err == nil {
			b.Error("there is no place")
		}
	}
	require.Zero(b, testing.AllocsPerRun(100, func() { refuse(b) }))
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			refuse(b)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				refuse(b)
			}
		})
	})
}

func TestQueuePlacesAreTold(t *testing.T) {
	q := NewQueue(1)
	require.Equal(t, int64(-1), q.Places())
	for n, want := range map[int]int64{0: 0, 7: 7, -3: -1} {
		q.SetPlaces(n)
		require.Equal(t, want, q.Places())
	}
}
