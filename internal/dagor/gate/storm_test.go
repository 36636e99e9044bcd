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
