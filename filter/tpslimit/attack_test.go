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

package tpslimit_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/tps"
)

// Once: A reference's only provider restarts: its chain goes and a new one comes
// for the same reference. The budget is the reference's, but only chains own it,
// so after a garbage collection it is full again: 2*tps calls in one interval.
func TestAttackTheBudgetOfAReferenceSurvivesItsChains(t *testing.T) {
	for _, algorithm := range []string{"sliding", "fixed", "bucket"} {
		c := newChain(t, conf.Consumer, map[string]string{"tps": "5", "tps.interval": "24h", "tps.algorithm": algorithm})
		require.Equal(t, 5, c.admits(t, "Echo", 10))
		ref := retry.Of(c.url)
		u := newURL(t, conf.Consumer, guard.ServiceOf(c.url).String(), nil)
		u.SetAttribute(retry.AttributeKey, ref)
		c = &chain{c.side, c.rt, guard.New(c.rt, conf.Consumer), u}
		for range 3 {
			runtime.GC()
		}
		assert.Equal(t, 0, c.admits(t, "Echo", 10), algorithm)
	}
}

// Two protocols share one budget.
func TestAttackTwoProtocolsOneBudget(t *testing.T) {
	for _, algorithm := range []string{"sliding", "fixed", "bucket"} {
		params := map[string]string{"tps": "5", "tps.interval": "1h", "tps.algorithm": algorithm}
		c := newChain(t, conf.Provider, params)
		u := newURL(t, conf.Provider, guard.ServiceOf(c.url).String(), params)
		u.Protocol = "dubbo"
		d := &chain{c.side, c.rt, guard.New(c.rt, conf.Provider), u}
		n := 0
		for range 10 {
			n += c.admits(t, "Echo", 1) + d.admits(t, "echo", 1) + d.admits(t, "Other", 1)
		}
		assert.Equal(t, 5, n, algorithm)
	}
}

// Under changes of all kinds no race, no panic, and afterwards the limit is exact.
func TestAttackChangesUnderLoad(t *testing.T) {
	rt := guard.NewRuntime()
	var chains []*chain
	service := fmt.Sprintf("tps.Storm%d", services.Add(1))
	for _, protocol := range []string{"tri", "dubbo"} {
		u := newURL(t, conf.Provider, service, nil)
		u.Protocol = protocol
		chains = append(chains, &chain{conf.Provider, rt, guard.New(rt, conf.Provider), u})
	}
	set := func(i int) {
		a := []conf.Algorithm{conf.AlgorithmSliding, conf.AlgorithmFixed, conf.AlgorithmBucket}[i%3]
		l := &conf.TPS{Limit: conf.Of(5 + i%4*1000), Interval: conf.Of(time.Hour), Algorithm: a, Burst: conf.Of(i % 7 * 3), Mode: []conf.Mode{"", conf.Observe, conf.Off, ""}[i/3%4]}
		p := conf.Policies{TPS: l, Executes: &conf.Executes{Limit: conf.Of(2)}}
		rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Policies: p}})
	}
	set(0)
	var stop atomic.Bool
	var calls atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for !stop.Load() {
				_ = chains[g%2].call([]string{"Echo", "Other", "unknown"}[g%3])
				calls.Add(1)
			}
		})
	}
	for i := range 300 {
		set(i)
		for until := calls.Load() + 50; calls.Load() < until; {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
	set(37) // fixed, and then sliding, which begins anew with 5 an hour
	_ = chains[0].call("Echo")
	set(36)
	admitted := 0
	for i := range 3000 {
		admitted += chains[i%2].admits(t, "Echo", 1)
	}
	assert.Equal(t, 5, admitted)
}

// Retry-after at the ends of what a quota may be: never below the truth, no panic.
func TestAttackExtremeQuotas(t *testing.T) {
	for _, q := range []tps.Quota{
		{Rate: 1, Interval: tps.MinInterval}, {Rate: 1, Interval: tps.MaxInterval}, {Rate: tps.MaxRate, Interval: tps.MinInterval},
		{Rate: tps.MaxRate, Interval: tps.MaxInterval}, {Rate: math.MaxInt32, Interval: 24 * time.Hour, Burst: math.MaxInt32}, {Rate: 1, Interval: 24 * time.Hour, Burst: 26687},
	} {
		for _, now := range []time.Duration{0, 1, time.Hour, 36 * 365 * 24 * time.Hour, 70 * 365 * 24 * time.Hour} {
			s, err := tps.NewSliding(q, nil)
			require.NoError(t, err)
			f, err := tps.NewFixed(q, nil)
			require.NoError(t, err)
			b, err := tps.NewBucket(q, nil)
			require.NoError(t, err)
			for _, l := range []tps.Limiter{s, f, b} {
				var d tps.Decision
				for range 30000 {
					if d = l.AllowAt(now); !d.Admitted {
						break
					}
				}
				if !d.Admitted {
					assert.Positive(t, d.RetryAfter())
					assert.False(t, l.AllowAt(now+d.RetryAfter()-1).Admitted, "%T %v", l, q)
					assert.True(t, l.AllowAt(now+d.RetryAfter()).Admitted, "%T %v", l, q)
				}
			}
		}
	}
}

// Refusals with many different retry-after values from many goroutines: each is
// at least the truth.
func TestAttackThePreparedRefusalsUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep(time.Hour)
		c := newChain(t, conf.Provider, map[string]string{"tps": "1", "tps.interval": "10s", "tps.algorithm": "sliding"})
		require.NoError(t, c.call("Echo"))
		began := time.Now()
		for range 1000 {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					e, ok := call.As(c.call("Echo"))
					left := 10*time.Second - time.Since(began)
					if assert.True(t, ok) {
						assert.GreaterOrEqual(t, e.RetryAfter, left)
						assert.LessOrEqual(t, e.RetryAfter, left*5/4+time.Millisecond)
					}
				})
			}
			wg.Wait()
			sleep(9999 * time.Microsecond)
		}
	})
}

// An admitted call allocates nothing, with whatever limits.
func TestAttackAllocations(t *testing.T) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		for _, params := range []map[string]string{
			{"tps": "1000000000"}, {"tps": "1000000000", "tps.algorithm": "bucket"}, {"tps": "1000000000", "tps.algorithm": "fixed"},
			{"tps": "1000000000", "actives": "5"}, {"tps": "1000000000", "executes": "5"}, {"tps": "1000000000", "weir.stats": "false"}, {"weir.stats": "true"},
		} {
			if side == conf.Consumer && params["executes"] != "" {
				continue
			}
			c := newChain(t, side, params)
			next, inv := &end{f: answer}, invocationOf("Echo")
			next.BaseInvoker = *baseOf(c.url)
			n := testing.AllocsPerRun(200, func() { c.guard.Invoke(ctxB, next, inv) })
			assert.LessOrEqual(t, n, 1.0, "%v %v (1 is the answer's)", side, params)
		}
	}
}
