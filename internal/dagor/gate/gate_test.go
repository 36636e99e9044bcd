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

package gate

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

	"github.com/weir-go/weir/internal/dagor"
)

const ms = time.Millisecond

func newGate(opts dagor.Options) *Gate {
	start := time.Now()
	return New(dagor.NewController(opts, 0), func() time.Duration { return time.Since(start) })
}

func level(b int) dagor.Priority { return dagor.NewPriority(dagor.NewLevel(uint8(b), 0), 0) }

// idle requires that nothing of a gate is taken.
func idle(t *testing.T, g *Gate) {
	t.Helper()
	s := g.State()
	assert.Zero(t, s.Running)
	assert.Zero(t, s.Waiting)
}

// entering has a call enter in a goroutine.
type entering struct {
	pass    Pass
	verdict dagor.Verdict
	after   time.Duration
	done    bool
}

func enter(ctx context.Context, g *Gate, p dagor.Priority) *entering {
	e := &entering{}
	start := time.Now()
	go func() {
		e.pass, e.verdict = g.Enter(ctx, p)
		e.after = time.Since(start)
		e.done = true
	}()
	synctest.Wait()
	return e
}

func TestMoreImportantCallsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(dagor.Options{Limit: 1, Fixed: true})
		running := enter(t.Context(), g, level(9))
		require.Equal(t, dagor.Admitted, running.verdict)
		var waiting []*entering
		for _, b := range []int{5, 3, 7, 3} {
			waiting = append(waiting, enter(t.Context(), g, level(b)))
		}
		for _, i := range []int{1, 3, 0, 2} { // 3, the other 3, 5, 7
			require.False(t, waiting[i].done)
			running.pass.Leave()
			synctest.Wait()
			require.True(t, waiting[i].done, "%d", i)
			require.Equal(t, dagor.Admitted, waiting[i].verdict)
			running = waiting[i]
		}
		running.pass.Leave()
		idle(t, g)
	})
}

func TestAFullQueueLosesItsLeastImportant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(dagor.Options{Limit: 1, Fixed: true, MaxQueue: 2})
		first := enter(t.Context(), g, level(9))
		room := g.State().Room
		var waiting []*entering
		for range room {
			waiting = append(waiting, enter(t.Context(), g, level(5)))
		}
		equal := enter(t.Context(), g, level(5))
		assert.Equal(t, dagor.Full, equal.verdict, "who came first stays")
		better := enter(t.Context(), g, level(4))
		assert.False(t, better.done)
		last := waiting[room-1]
		assert.True(t, last.done)
		assert.Equal(t, dagor.Displaced, last.verdict)
		first.pass.Leave()
		synctest.Wait()
		assert.Equal(t, dagor.Admitted, better.verdict)
		better.pass.Leave()
		synctest.Wait()
		for _, w := range waiting[:room-1] {
			synctest.Wait()
			require.Equal(t, dagor.Admitted, w.verdict)
			w.pass.Leave()
		}
		idle(t, g)
	})
}

func TestWaitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(dagor.Options{Limit: 1, Fixed: true, MaxWait: 100 * ms})
		first := enter(t.Context(), g, level(0))
		byTime := enter(t.Context(), g, level(1))
		ctx, cancel := context.WithTimeout(t.Context(), 30*ms)
		defer cancel()
		byDeadline := enter(ctx, g, level(1))
		ctx, hangUp := context.WithCancel(t.Context())
		cancelled := enter(ctx, g, level(1))
		time.Sleep(10 * ms) //nolint:forbidigo // synctest
		hangUp()
		synctest.Wait()
		assert.Equal(t, dagor.Expired, cancelled.verdict)
		assert.Equal(t, 10*ms, cancelled.after)
		time.Sleep(100 * ms) //nolint:forbidigo // synctest
		synctest.Wait()
		assert.Equal(t, dagor.Expired, byDeadline.verdict)
		assert.Equal(t, 30*ms, byDeadline.after)
		assert.Equal(t, dagor.Expired, byTime.verdict)
		assert.Equal(t, 100*ms, byTime.after)
		over := enter(ctx, g, level(0))
		assert.Equal(t, dagor.Expired, over.verdict, "its context is over")
		assert.Zero(t, over.after)
		first.pass.Leave()
		idle(t, g)
	})
}

func TestWaitingIsToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(dagor.Options{Limit: 1, Fixed: true})
		first := enter(t.Context(), g, level(0))
		second := enter(t.Context(), g, level(0))
		time.Sleep(7 * ms) //nolint:forbidigo // synctest
		first.pass.Leave()
		synctest.Wait()
		assert.Equal(t, 7*ms, second.pass.Waited)
		assert.Equal(t, 7*ms, second.pass.Began-first.pass.Began)
		second.pass.Leave()
		idle(t, g)
	})
}

// A place is taken from when it was given: the time until a goroutine gets to run is its too. It was
// not counted, and where the CPU was short the limit was tuned to what needed none.
func TestRegression_APassBeginsWhenItsPlaceIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Int64
		g := New(dagor.NewController(dagor.Options{Limit: 1, Fixed: true}, 0), func() time.Duration { return time.Duration(now.Load()) })
		first := enter(t.Context(), g, level(0))
		second := enter(t.Context(), g, level(0))
		now.Store(int64(10 * ms))
		first.pass.Leave()
		now.Store(int64(50 * ms)) // until when the second does not run
		synctest.Wait()
		assert.Equal(t, 10*ms, second.pass.Began)
		assert.Equal(t, 10*ms, second.pass.Waited)
		second.pass.Leave()
		idle(t, g)
	})
}

// Whoever leaves with the Pass of a call that was refused gave the place of another back.
func TestRegression_APassOfARefusedCallHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(dagor.Options{Limit: 1, Fixed: true, MaxQueue: 1})
		enter(t.Context(), g, level(0))
		var waiting []*entering
		for range g.State().Room {
			waiting = append(waiting, enter(t.Context(), g, level(1)))
		}
		full := enter(t.Context(), g, level(2))
		assert.Equal(t, dagor.Full, full.verdict)
		full.pass.Leave()
		assert.Equal(t, 1, g.State().Running)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		gone := enter(ctx, g, level(0))
		assert.Equal(t, dagor.Expired, gone.verdict)
		gone.pass.Leave()
		time.Sleep(time.Second) //nolint:forbidigo // synctest
		synctest.Wait()
		for _, e := range waiting {
			assert.Equal(t, dagor.Expired, e.verdict)
			e.pass.Leave()
		}
		assert.Equal(t, 1, g.State().Running)
	})
}

// A crowd of goroutines, each of which may have its context end at any time: the limit holds at
// every moment, and in the end nothing is taken.
func TestACrowd(t *testing.T) {
	for _, limit := range []int{1, 3, 16} {
		g := newGate(dagor.Options{Limit: limit, Fixed: true, MaxWait: ms, MaxQueue: 8})
		var (
			wg       sync.WaitGroup
			inside   atomic.Int64
			admitted atomic.Int64
		)
		for i := range 64 {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			wg.Go(func() {
				for range 60 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(2000))*time.Microsecond)
					pass, v := g.Enter(ctx, level(r.IntN(5)))
					if v == dagor.Admitted {
						admitted.Add(1)
						assert.LessOrEqual(t, inside.Add(1), int64(limit))
						if r.IntN(4) == 0 {
							<-ctx.Done()
						}
						inside.Add(-1)
						pass.Leave()
					}
					cancel()
				}
			})
		}
		wg.Wait()
		idle(t, g)
		assert.NotZero(t, admitted.Load())
	}
}

func BenchmarkEnter(b *testing.B) {
	ctx := context.Background()
	b.Run("admit", func(b *testing.B) {
		g := newGate(dagor.Options{Limit: 1000})
		b.ReportAllocs()
		for b.Loop() {
			pass, _ := g.Enter(ctx, level(1))
			pass.Leave()
		}
	})
	b.Run("admit-parallel", func(b *testing.B) {
		g := newGate(dagor.Options{Limit: 1000})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				pass, _ := g.Enter(ctx, level(1))
				pass.Leave()
			}
		})
	})
	b.Run("refuse", func(b *testing.B) {
		g := newGate(dagor.Options{Limit: 1, Fixed: true, MaxWait: time.Hour})
		_, _ = g.Enter(ctx, level(0))
		for range g.State().Room {
			go func() { _, _ = g.Enter(ctx, level(0)) }()
		}
		for g.State().Waiting < g.State().Room {
			runtime.Gosched()
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, v := g.Enter(ctx, level(1)); v != dagor.Full {
				b.Fatal(v)
			}
		}
	})
}
