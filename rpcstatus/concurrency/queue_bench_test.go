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
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

func BenchmarkQueue(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	acquire := func(q *Queue) {
		if _, err := q.Acquire(ctx, time.Hour); err == nil {
			q.Release()
		}
	}
	b.Run("try", func(b *testing.B) {
		q := NewQueue(1 << 20)
		b.ReportAllocs()
		for b.Loop() {
			if q.TryAcquire() {
				q.Release()
			}
		}
	})
	b.Run("acquire", func(b *testing.B) {
		q := NewQueue(1 << 20)
		b.ReportAllocs()
		for b.Loop() {
			acquire(q)
		}
	})
	b.Run("refused", func(b *testing.B) {
		q := NewQueue(1)
		q.TryAcquire()
		b.ReportAllocs()
		for b.Loop() {
			q.TryAcquire()
		}
	})
	b.Run("refused-no-wait", func(b *testing.B) {
		q := NewQueue(1)
		q.TryAcquire()
		b.ReportAllocs()
		for b.Loop() {
			_, _ = q.Acquire(ctx, 0)
		}
	})
	b.Run("observed", func(b *testing.B) {
		q := NewQueue(1 << 20)
		b.ReportAllocs()
		for b.Loop() {
			q.EndObserved(q.Observe(time.Hour))
		}
	})
	b.Run("parallel", func(b *testing.B) {
		q := NewQueue(1 << 20)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				acquire(q)
			}
		})
	})
}

// BenchmarkQueueStanding is what the queue itself costs while so many stand in
// it, without goroutines and timers: all three are the same for 1 and 10,000.
func BenchmarkQueueStanding(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		q := NewQueue(1)
		q.TryAcquire()
		standing := make([]*waiter, n)
		for i := range standing {
			standing[i] = &waiter{granted: make(chan struct{}, 1)}
			q.enqueue(standing[i])
		}
		b.Run(fmt.Sprintf("cancel-and-enqueue-%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w := standing[i*7919%n] // from anywhere
				_, _ = q.leave(w, context.Canceled)
				q.enqueue(w)
			}
		})
		b.Run(fmt.Sprintf("wake-and-enqueue-%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := q.list.Head()
				q.Release()
				<-w.granted
				q.enqueue(w)
			}
		})
	}
}

// BenchmarkQueueHandOff is one turn of the only slot among so many goroutines
// that wait for it: enqueued, with a timer, asleep, woken. What grows with their
// number is not the queue (see above) but the heap of timers and the way to memory.
func BenchmarkQueueHandOff(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			q := NewQueue(1)
			q.TryAcquire()
			var (
				wg    sync.WaitGroup
				turns int // guarded by the slot
				done  = make(chan struct{})
			)
			for range n {
				wg.Go(func() {
					for last := false; !last; {
						if _, err := q.Acquire(ctx, time.Hour); err != nil {
							b.Error(err)
						}
						turns++
						if turns == b.N {
							close(done)
						}
						last = turns >= b.N
						q.Release()
					}
				})
			}
			for q.Waiting() < int64(n) {
				runtime.Gosched()
			}
			b.ReportAllocs()
			b.ResetTimer()
			q.Release()
			<-done
			b.StopTimer()
			wg.Wait()
		})
	}
}

// BenchmarkQueueGiveUp is a wait that ends with its context, from coming to
// leaving, while so many others wait.
func BenchmarkQueueGiveUp(b *testing.B) {
	for _, n := range []int{0, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			q := NewQueue(1)
			q.TryAcquire()
			for range n {
				q.enqueue(&waiter{granted: make(chan struct{}, 1)})
			}
			b.ReportAllocs()
			for b.Loop() {
				ctx := &closing{Context: context.Background(), done: make(chan struct{})}
				close(ctx.done)
				_, _ = q.Acquire(ctx, time.Hour)
			}
		})
	}
}

// closing is a context that is done once it is waited for.
type closing struct {
	context.Context
	done   chan struct{}
	waited bool
}

func (c *closing) Done() <-chan struct{} { c.waited = true; return c.done }

func (c *closing) Err() error {
	if c.waited {
		return context.Canceled
	}
	return nil
}
