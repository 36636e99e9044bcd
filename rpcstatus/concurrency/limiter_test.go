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
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLimiterSteps(t *testing.T) {
	type step struct {
		do       string // try, release, observe, end (of one over the limit), or set
		limit    int    // to set
		ok       bool   // of try and observe
		inflight int64  // afterwards
		now      int64  // Limit afterwards
	}
	for name, steps := range map[string][]step{
		"limit of one": {
			{"try", 0, true, 1, 1}, {"try", 0, false, 1, 1}, {"try", 0, false, 1, 1},
			{"release", 0, false, 0, 1}, {"try", 0, true, 1, 1}, {"try", 0, false, 1, 1},
		},
		"refused ones leave no trace": {
			{"set", 2, false, 0, 2}, {"try", 0, true, 1, 2}, {"try", 0, true, 2, 2},
			{"try", 0, false, 2, 2}, {"try", 0, false, 2, 2}, {"try", 0, false, 2, 2},
			{"release", 0, false, 1, 2}, {"try", 0, true, 2, 2},
		},
		"lower limit: nothing is taken from those that run": {
			{"set", 3, false, 0, 3}, {"try", 0, true, 1, 3}, {"try", 0, true, 2, 3}, {"try", 0, true, 3, 3},
			{"set", 1, false, 3, 1}, {"try", 0, false, 3, 1},
			{"release", 0, false, 2, 1}, {"try", 0, false, 2, 1},
			{"release", 0, false, 1, 1}, {"try", 0, false, 1, 1},
			{"release", 0, false, 0, 1}, {"try", 0, true, 1, 1}, {"try", 0, false, 1, 1},
		},
		"higher limit: at once": {
			{"try", 0, true, 1, 1}, {"try", 0, false, 1, 1}, {"set", 2, false, 1, 2}, {"try", 0, true, 2, 2}, {"try", 0, false, 2, 2},
		},
		"unlimited counts, so that a limit set later knows what runs": {
			{"set", 0, false, 0, 0}, {"try", 0, true, 1, 0}, {"try", 0, true, 2, 0}, {"try", 0, true, 3, 0},
			{"set", 2, false, 3, 2}, {"try", 0, false, 3, 2}, {"release", 0, false, 2, 2}, {"try", 0, false, 2, 2},
			{"release", 0, false, 1, 2}, {"try", 0, true, 2, 2},
		},
		"from a limit to none": {
			{"try", 0, true, 1, 1}, {"set", -1, false, 1, 0}, {"try", 0, true, 2, 0}, {"set", math.MinInt, false, 2, 0}, {"try", 0, true, 3, 0},
		},
		"observed calls hold slots, those over the limit do not": {
			{"set", 2, false, 0, 2}, {"observe", 0, true, 1, 2}, {"observe", 0, true, 2, 2},
			{"observe", 0, false, 3, 2}, {"observe", 0, false, 4, 2}, // two over it
			{"release", 0, false, 3, 2}, {"observe", 0, true, 4, 2}, // enforced, there would be room
			{"end", 0, false, 3, 2}, {"end", 0, false, 2, 2}, {"observe", 0, false, 3, 2},
		},
		"an enforced limit counts all that runs": {
			{"observe", 0, true, 1, 1}, {"observe", 0, false, 2, 1}, {"observe", 0, false, 3, 1},
			{"try", 0, false, 3, 1}, {"release", 0, false, 2, 1}, {"try", 0, false, 2, 1},
			{"end", 0, false, 1, 1}, {"try", 0, false, 1, 1}, {"end", 0, false, 0, 1}, {"try", 0, true, 1, 1},
		},
		"observed without a limit": {
			{"set", 0, false, 0, 0}, {"observe", 0, true, 1, 0}, {"observe", 0, true, 2, 0}, {"set", 1, false, 2, 1},
			{"observe", 0, false, 3, 1}, {"set", -1, false, 3, 0}, {"try", 0, true, 4, 0},
		},
		"the largest": {
			{"set", math.MaxInt32, false, 0, math.MaxInt32}, {"try", 0, true, 1, math.MaxInt32},
		},
	} {
		l := New(1)
		for i, s := range steps {
			switch s.do {
			case "try":
				require.Equal(t, s.ok, l.TryAcquire(), "%s, step %d", name, i)
			case "release":
				l.Release()
			case "observe":
				require.Equal(t, s.ok, l.Observe(), "%s, step %d", name, i)
			case "end":
				l.ReleaseOver()
			case "set":
				l.SetLimit(s.limit)
			}
			require.Equal(t, s.inflight, l.Inflight(), "%s, step %d", name, i)
			require.Equal(t, s.now, l.Limit(), "%s, step %d", name, i)
		}
	}
}

func TestLimiterUnlimited(t *testing.T) {
	for _, limit := range []int{0, -1, math.MinInt32} {
		l := New(limit)
		for range 10000 {
			require.True(t, l.TryAcquire())
		}
		assert.Equal(t, int64(10000), l.Inflight())
		assert.Zero(t, l.Limit())
	}
}

func TestLimiterZeroValueAdmitsNobody(t *testing.T) {
	var l Limiter
	assert.False(t, l.TryAcquire())
	assert.Zero(t, l.Inflight())
	l.SetLimit(1)
	assert.True(t, l.TryAcquire())
}

func TestLimiterAllocatesNothing(t *testing.T) {
	l := New(1)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if l.TryAcquire() {
			l.TryAcquire() // refused
			if !l.Observe() {
				l.ReleaseOver()
			}
			l.Release()
		}
	}))
	assert.EqualValues(t, 128, unsafe.Sizeof(Limiter{}), "nobody else's counter in the same cache lines")
}

// H1: N+1 parallel calls of a limit of N: N run and one is refused; after they
// have ended N run again.
func TestLimiterParallelCalls(t *testing.T) {
	const n = 7
	l := New(n)
	for range 50 {
		var (
			wg       sync.WaitGroup
			admitted atomic.Int64
			start    = make(chan struct{})
		)
		for range n + 1 {
			wg.Go(func() {
				<-start
				if l.TryAcquire() {
					admitted.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
		require.Equal(t, int64(n), admitted.Load())
		for range n {
			l.Release()
		}
		require.Zero(t, l.Inflight())
	}
}

// H23: check, then increase lets more than the limit pass.
func TestRegression_NeverMoreThanTheLimit(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const limit = 5
	l := New(limit)
	var running, most atomic.Int64
	for range 1000 {
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 50 {
			wg.Go(func() {
				<-start
				if !l.TryAcquire() {
					return
				}
				note(&most, running.Add(1))
				runtime.Gosched()
				running.Add(-1)
				l.Release()
			})
		}
		close(start)
		wg.Wait()
		require.Zero(t, l.Inflight())
	}
	assert.LessOrEqual(t, most.Load(), int64(limit))
	assert.Positive(t, most.Load())
}

// note keeps the largest.
func note(most *atomic.Int64, n int64) {
	for {
		old := most.Load()
		if n <= old || most.CompareAndSwap(old, n) {
			return
		}
	}
}

func TestLimiterUnderLoad(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for _, limit := range []int{1, 2, 5, 63, 64} {
		const goroutines, tries = 64, 2000
		var (
			l             = New(limit)
			running, most atomic.Int64
			admitted      atomic.Int64
			refused       atomic.Int64
			wg            sync.WaitGroup
			stop          = make(chan struct{})
			watched       = make(chan struct{})
		)
		go func() { // nobody may ever see more than the limit
			defer close(watched)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if n := l.Inflight(); n < 0 || n > int64(limit) {
					t.Errorf("%d slots of %d are taken", n, limit)
					return
				}
				runtime.Gosched()
			}
		}()
		for range goroutines {
			wg.Go(func() {
				for range tries {
					if !l.TryAcquire() {
						refused.Add(1)
						continue
					}
					note(&most, running.Add(1))
					admitted.Add(1)
					running.Add(-1)
					l.Release()
				}
			})
		}
		wg.Wait()
		close(stop)
		<-watched
		assert.LessOrEqual(t, most.Load(), int64(limit))
		assert.Equal(t, int64(goroutines*tries), admitted.Load()+refused.Load())
		assert.Zero(t, l.Inflight())
		if limit >= goroutines {
			assert.Zero(t, refused.Load(), "there was always room")
		}
	}
}

// A limiter that adds first and steps back when it was too much counts, for a
// moment, calls that it is about to refuse, and turns others away for them. Here
// each refusal must have a call that really held the only slot at the time.
func TestRegression_RefusalsNeedAHolder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	type span struct{ from, to int64 }
	const goroutines, tries = 8, 20_000
	var (
		l             = New(1)
		clock         atomic.Int64
		held, refused [goroutines][]span
		wg            sync.WaitGroup
	)
	for g := range goroutines {
		wg.Go(func() {
			for range tries {
				from := clock.Add(1)
				if l.TryAcquire() {
					l.Release()
					held[g] = append(held[g], span{from, clock.Add(1)})
				} else {
					refused[g] = append(refused[g], span{from, clock.Add(1)})
				}
			}
		})
	}
	wg.Wait()

	holders := slices.Concat(held[:]...)
	slices.SortFunc(holders, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	// latest[i] is the latest end among the first i+1 holders.
	latest := make([]int64, len(holders))
	for i, h := range holders {
		latest[i] = h.to
		if i > 0 {
			latest[i] = max(latest[i], latest[i-1])
		}
	}
	for _, r := range slices.Concat(refused[:]...) {
		// Some holder began before the refusal ended and ended after it began.
		n, _ := slices.BinarySearchFunc(holders, r.to, func(h span, to int64) int { return cmp.Compare(h.from, to) })
		if n == 0 || latest[n-1] < r.from {
			t.Fatalf("refused at %d to %d, when nobody held the slot", r.from, r.to)
		}
	}
}

// While a crowd is refused, a slot that is given back can be taken at once: the
// crowd leaves nothing behind, and whoever of it gets the slot says so.
func TestFullLimiterLeavesRoomToUse(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const limit, crowd, cycles = 3, 16, 300
	l := New(limit)
	for range limit {
		require.True(t, l.TryAcquire())
	}
	var (
		wg             sync.WaitGroup
		stop           atomic.Bool
		inside, passed atomic.Int64 // of the crowd
	)
	for range crowd {
		wg.Go(func() {
			for !stop.Load() {
				inside.Add(1)
				if l.TryAcquire() {
					passed.Add(1)
					l.Release()
				}
				inside.Add(-1)
				runtime.Gosched()
			}
		})
	}
	for range cycles {
		l.Release()
		for !l.TryAcquire() {
			// Only somebody who has it right now may be in the way.
			if inside.Load() == 0 && passed.Load() == 0 {
				t.Fatal("refused though nobody else ever got a slot")
			}
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
	assert.Equal(t, int64(limit), l.Inflight())
	l.Release()
	assert.True(t, l.TryAcquire())
	assert.False(t, l.TryAcquire())
}

// A limit that is changed while calls run holds for every try that begins after
// the change, and takes nothing from calls that run.
func TestSetLimitUnderLoad(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	var (
		l        = New(8)
		running  atomic.Int64
		admitted atomic.Int64
		wg       sync.WaitGroup
		stop     atomic.Bool

		change sync.RWMutex // no try straddles a change
		bound  int64        = 8
	)
	for range 32 {
		wg.Go(func() {
			for !stop.Load() {
				change.RLock()
				ok := l.TryAcquire()
				if ok {
					admitted.Add(1)
					if n := running.Add(1); n > bound {
						t.Errorf("%d run, allowed are %d", n, bound)
						stop.Store(true)
					}
				}
				change.RUnlock()
				runtime.Gosched()
				if ok {
					running.Add(-1)
					l.Release()
				}
			}
		})
	}
	for i := range 200 {
		limit := []int{2, 1, 5, 8, 3, 0, 4, 1, -1, 16, 1}[i%11]
		change.Lock()
		l.SetLimit(limit)
		bound = int64(limit)
		if limit <= 0 {
			bound = math.MaxInt64
		}
		change.Unlock()
		for before := admitted.Load(); admitted.Load() < before+20 && !stop.Load(); {
			runtime.Gosched() // calls go on under every limit
		}
	}
	stop.Store(true)
	wg.Wait()
	assert.Zero(t, l.Inflight())
	assert.Zero(t, running.Load())
}

// Observed and enforced calls of one limiter, as while the mode is switched: all
// are counted, and at rest none is left.
func TestObserveUnderLoad(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const limit, goroutines, tries = 5, 32, 1000
	l := New(limit)
	var (
		wg             sync.WaitGroup
		enforced, most atomic.Int64
	)
	for g := range goroutines {
		wg.Go(func() {
			for i := range tries {
				if (g+i)%2 == 0 {
					if l.Observe() {
						runtime.Gosched()
						l.Release()
					} else {
						runtime.Gosched()
						l.ReleaseOver()
					}
					continue
				}
				if l.TryAcquire() {
					note(&most, enforced.Add(1))
					runtime.Gosched()
					enforced.Add(-1)
					l.Release()
				}
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, most.Load(), int64(limit))
	assert.Zero(t, l.Inflight())
	for range limit {
		require.True(t, l.TryAcquire())
	}
	require.False(t, l.TryAcquire())
}

// FuzzLimiter compares sequences of operations with counters that anybody can
// read.
func FuzzLimiter(f *testing.F) {
	f.Add(1, []byte{0, 0, 8, 0})
	f.Add(3, []byte{0, 0, 0, 0, 40, 0, 8, 8, 0})
	f.Add(0, []byte{0, 0, 0, 50, 0})
	f.Add(-5, []byte{0, 255, 0, 8, 8})
	f.Add(2, []byte{16, 16, 16, 0, 24, 0, 8, 0, 16})
	f.Fuzz(func(t *testing.T, limit int, ops []byte) {
		l := New(limit)
		held, over := 0, 0
		for i, op := range ops {
			switch {
			case op < 8: // try
				want := limit <= 0 || held+over < limit
				if got := l.TryAcquire(); got != want {
					t.Fatalf("op %d: %v with %d and %d of %d", i, got, held, over, limit)
				}
				if want {
					held++
				}
			case op < 16:
				if held > 0 {
					l.Release()
					held--
				}
			case op < 24: // observe
				want := limit <= 0 || held < limit
				if got := l.Observe(); got != want {
					t.Fatalf("op %d: observed %v with %d and %d of %d", i, got, held, over, limit)
				}
				if want {
					held++
				} else {
					over++
				}
			case op < 32:
				if over > 0 {
					l.ReleaseOver()
					over--
				}
			default:
				limit = int(op) - 40 // some are negative
				l.SetLimit(limit)
			}
			if l.Inflight() != int64(held+over) {
				t.Fatalf("op %d: %d in flight, want %d and %d", i, l.Inflight(), held, over)
			}
			if limit == math.MaxInt {
				continue // as good as unlimited
			}
			if l.Limit() != int64(max(limit, 0)) {
				t.Fatalf("op %d: limit %d, want %d", i, l.Limit(), limit)
			}
		}
	})
}

func BenchmarkLimiter(b *testing.B) {
	b.Run("admitted", func(b *testing.B) {
		l := New(1 << 20)
		b.ReportAllocs()
		for b.Loop() {
			if l.TryAcquire() {
				l.Release()
			}
		}
	})
	b.Run("refused", func(b *testing.B) {
		l := New(1)
		l.TryAcquire()
		b.ReportAllocs()
		for b.Loop() {
			l.TryAcquire()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		l := New(1 << 20)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if l.TryAcquire() {
					l.Release()
				}
			}
		})
	})
}
