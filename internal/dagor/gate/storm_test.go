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

// A context may have an end for which there is no number on the gate's clock.
func TestRegression_AnEndThatIsAsGoodAsNever(t *testing.T) {
	for _, end := range []time.Time{
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		time.Unix(1<<40, 0),
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(dagor.Options{Limit: 1, Fixed: true})
			time.Sleep(time.Hour) //nolint:forbidigo // synctest
			first := enter(t.Context(), g, level(0))
			ctx, cancel := context.WithDeadline(t.Context(), end)
			defer cancel()
			second := enter(ctx, g, level(0))
			require.False(t, second.done)
			first.pass.Leave()
			synctest.Wait()
			require.Equal(t, dagor.Admitted, second.verdict)
			second.pass.Leave()
			idle(t, g)
		})
	}
}

// A place is used again as it was left: nobody gets the verdict of who had it before.
func TestPlacesAreLeftClean(t *testing.T) {
	g := newGate(dagor.Options{Limit: 2, Fixed: true, MaxWait: time.Hour, MaxQueue: 6})
	fresh := g.places.New
	var (
		mu  sync.Mutex
		all []*place
	)
	g.places.New = func() any {
		p := fresh()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, p.(*place))
		return p
	}
	storm(t, g, 32, 150)
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, all)
	for _, p := range all {
		require.Empty(t, p.told)
	}
}

// Contexts end, waits end, the limit is tuned in each of many windows, and nobody is
// forgotten: who was not let go of by its context is told.
func TestAStorm(t *testing.T) {
	for _, opts := range []dagor.Options{
		{Limit: 1, Fixed: true, MaxWait: time.Hour},
		{Limit: 3, MaxLimit: 8, Window: 1, MaxWait: time.Hour},
		{Limit: 2, MaxLimit: 4, Window: 200 * time.Microsecond, MaxWait: 300 * time.Microsecond},
	} {
		storm(t, newGate(opts), 32, 150)
	}
}

func storm(t *testing.T, g *Gate, members, calls int) {
	t.Helper()
	var (
		all   sync.WaitGroup
		count [dagor.Expired + 1]atomic.Int64
	)
	for i := range members {
		r := rand.New(rand.NewPCG(8, uint64(i)))
		all.Go(func() {
			for range calls {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				switch r.IntN(4) {
				case 0:
					ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(200))*time.Microsecond)
				case 1:
					ctx, cancel = context.WithCancel(ctx)
					soon := r.IntN(50)
					all.Go(func() {
						for range soon {
							runtime.Gosched()
						}
						cancel()
					})
				}
				began := g.clock()
				pass, v := g.Enter(ctx, level(r.IntN(5)))
				count[v].Add(1)
				if v == dagor.Admitted {
					assert.GreaterOrEqual(t, pass.Waited, time.Duration(0))
					assert.GreaterOrEqual(t, pass.Began, began+pass.Waited)
					for range r.IntN(10) {
						runtime.Gosched()
					}
					pass.Leave()
				}
				cancel()
			}
		})
	}
	all.Wait()
	idle(t, g)
	var sum int64
	for v := range count {
		sum += count[v].Load()
	}
	assert.EqualValues(t, members*calls, sum)
	assert.Zero(t, count[dagor.Waits].Load())
	assert.NotZero(t, count[dagor.Admitted].Load())
}

// Waits end, contexts end, are cancelled, a place comes free and a better call displaces, all in one
// instant and in any order. Each call has one verdict, none of those who are of one level overtakes
// another, and nothing is left.
func TestAllInOneInstant(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(9, seed))
			limit := 1 + rnd.IntN(3)
			g := newGate(dagor.Options{Limit: limit, Fixed: true, MaxWait: 50 * ms, MaxQueue: 4 + rnd.IntN(12)})
			var (
				mu      sync.Mutex
				began   = map[int]time.Duration{}
				count   [dagor.Expired + 1]int
				calls   int
				waiting sync.WaitGroup
			)
			call := func(ctx context.Context, b int, stay time.Duration) {
				n := calls
				calls++
				waiting.Go(func() {
					pass, v := g.Enter(ctx, level(b))
					mu.Lock()
					count[v]++
					if v == dagor.Admitted && b == 3 {
						began[n] = pass.Began
					}
					mu.Unlock()
					if v == dagor.Admitted {
						time.Sleep(stay) //nolint:forbidigo // synctest
					}
					pass.Leave()
				})
				synctest.Wait()
			}
			for range limit {
				call(t.Context(), 0, 50*ms)
			}
			at := time.Now().Add(50 * ms)
			var cancels []context.CancelFunc
			for range 30 {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				switch rnd.IntN(3) {
				case 0:
					ctx, cancel = context.WithDeadline(ctx, at)
				case 1:
					ctx, cancel = context.WithCancel(ctx)
				}
				cancels = append(cancels, cancel)
				call(ctx, 3, time.Duration(rnd.IntN(2))*ms)
			}
			for range rnd.IntN(8) { // which come in that instant
				b := rnd.IntN(3)
				waiting.Go(func() {
					time.Sleep(time.Until(at)) //nolint:forbidigo // synctest
					pass, v := g.Enter(t.Context(), level(b))
					mu.Lock()
					count[v]++
					calls++
					mu.Unlock()
					pass.Leave()
				})
			}
			time.Sleep(time.Until(at)) //nolint:forbidigo // synctest
			for _, cancel := range cancels {
				cancel()
			}
			waiting.Wait()
			idle(t, g)
			sum := 0
			for _, n := range count {
				sum += n
			}
			assert.Equal(t, calls, sum)
			assert.Zero(t, count[dagor.Waits])
			var last time.Duration
			for n := range calls {
				if at, ok := began[n]; ok {
					assert.GreaterOrEqual(t, at, last)
					last = at
				}
			}
		})
	}
}
