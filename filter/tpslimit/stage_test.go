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
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/tps"
)

// sleep lets the time of a bubble pass.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest

type inner func(context.Context, base.Invocation) result.Result

type end struct {
	base.BaseInvoker
	f inner
}

func (e *end) Invoke(ctx context.Context, inv base.Invocation) result.Result { return e.f(ctx, inv) }

func answer(context.Context, base.Invocation) result.Result {
	return &result.RPCResult{Rest: "result"}
}

var services atomic.Int64

type chain struct {
	side  conf.Side
	rt    *guard.Runtime
	guard *guard.Guard
	url   *common.URL
}

func newURL(t testing.TB, side conf.Side, service string, own map[string]string) *common.URL {
	t.Helper()
	opts := []common.Option{
		common.WithProtocol("tri"), common.WithPath(service), common.WithIp("127.0.0.1"), common.WithPort("20000"),
		common.WithInterface(service), common.WithMethods([]string{"Echo", "Other", "Third"}),
	}
	for k, v := range own {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	u := common.NewURLWithOptions(opts...)
	if side == conf.Consumer {
		parsed := conf.ParseParams(conf.Consumer, service, own)
		require.Empty(t, parsed.Faults)
		u.SetAttribute(retry.AttributeKey, retry.NewReference(&parsed.Service))
	}
	return u
}

func newChain(t testing.TB, side conf.Side, own map[string]string) *chain {
	t.Helper()
	rt := guard.NewRuntime()
	return &chain{side, rt, guard.New(rt, side), newURL(t, side, fmt.Sprintf("tps.Service%d", services.Add(1)), own)}
}

func (c *chain) callWith(method string, f inner) error {
	return c.guard.Invoke(context.Background(), &end{*base.NewBaseInvoker(c.url), f}, invocation.NewRPCInvocation(method, nil, map[string]any{})).Error()
}

func (c *chain) call(method string) error { return c.callWith(method, answer) }

// admits makes n calls one after another and counts those that are let in.
func (c *chain) admits(t testing.TB, method string, n int) int {
	t.Helper()
	admitted := 0
	for range n {
		if err := c.call(method); err == nil {
			admitted++
		} else {
			require.ErrorIs(t, err, call.ErrRejected)
		}
	}
	return admitted
}

// onBothSides runs a test in a bubble for each side and algorithm.
func onBothSides(t *testing.T, f func(t *testing.T, side conf.Side, algorithm string)) {
	t.Helper()
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		for _, algorithm := range []string{"sliding", "fixed", "bucket"} {
			t.Run(side.String()+" "+algorithm, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					sleep(time.Hour) // not at the origin of the clock
					f(t, side, algorithm)
				})
			})
		}
	}
}

func TestTPSOfJava(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, algorithm string) {
		chainOf := func(params map[string]string) *chain {
			params["tps.algorithm"] = algorithm
			return newChain(t, side, params)
		}
		assert.Equal(t, 2, chainOf(map[string]string{"tps": "2", "tps.interval": "1000"}).admits(t, "Echo", 2), "L1")
		assert.Equal(t, 2, chainOf(map[string]string{"tps": "2", "tps.interval": "1000"}).admits(t, "Echo", 3), "L2")
		c := chainOf(map[string]string{"tps": "2", "tps.interval": "1000", "methods.echo.tps": "3"})
		assert.Equal(t, 3, c.admits(t, "Echo", 4), "L3")
		assert.Equal(t, 2, c.admits(t, "Other", 1)+c.admits(t, "Third", 3), "the others share the service's budget")
		c = chainOf(map[string]string{"tps": "100", "tps.interval": "100s"})
		var wg sync.WaitGroup
		var admitted atomic.Int64
		for range 50 {
			wg.Go(func() { admitted.Add(int64(c.admits(t, "Echo", 100))) })
		}
		wg.Wait()
		assert.EqualValues(t, 100, admitted.Load(), "L5")
		c = chainOf(map[string]string{"tps": "9", "methods.Echo.tps": "2", "methods.Other.tps": "3", "tps.interval": "1s"})
		assert.Equal(t, 2, c.admits(t, "Echo", 5), "L6")
		assert.Equal(t, 3, c.admits(t, "Other", 5), "L6")
		c = chainOf(map[string]string{"tps": "5"})
		assert.NoError(t, c.call("Echo"), "F1")
		assert.Equal(t, 4, c.admits(t, "Echo", 9), "F2")
	})
}

// L4: the params of a service change.
func TestTheLimitChanges(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, algorithm string) {
		params := func(rate string) map[string]string {
			return map[string]string{"tps": rate, "tps.interval": "60s", "tps.algorithm": algorithm}
		}
		c := newChain(t, side, params("2"))
		require.Equal(t, 2, c.admits(t, "Echo", 3))
		ref, _ := c.url.GetAttribute(retry.AttributeKey)
		c.url = newURL(t, side, guard.ServiceOf(c.url).String(), params("20"))
		if side == conf.Consumer {
			changed, _ := c.url.GetAttribute(retry.AttributeKey)
			changed.(*retry.Reference).ID = ref.(*retry.Reference).ID
		}
		// Java counts anew; a sliding window still knows of the two, and an empty
		// bucket stays empty.
		want := map[string]int{"fixed": 20, "sliding": 18, "bucket": 0}[algorithm]
		assert.Equal(t, want, c.admits(t, "Echo", 30))
		sleep(time.Minute + 1)
		assert.Equal(t, 20, c.admits(t, "Echo", 30))

		limit := func(l *conf.TPS) *conf.Config {
			section := conf.Section{Policies: conf.Policies{TPS: l}}
			return &conf.Config{Provider: section, Consumer: section}
		}
		c.rt.Store.Set(conf.FromCode, "code", limit(&conf.TPS{Mode: conf.Off}))
		assert.Equal(t, 30, c.admits(t, "Echo", 30))
		c.rt.Store.Set(conf.FromCode, "code", limit(&conf.TPS{Limit: conf.Of(0)}))
		assert.Equal(t, 0, c.admits(t, "Echo", 30), "the service's value is more exact than the side's")
		c.rt.Store.Set(conf.FromCode, "code", limit(&conf.TPS{Mode: conf.Observe}))
		assert.Equal(t, 30, c.admits(t, "Echo", 30))
	})
}

// N9: each its own budget, and a method without tps resets nothing.
func TestMethodsDoNotShareABudget(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, algorithm string) {
		c := newChain(t, side, map[string]string{
			"methods.Echo.tps": "2", "methods.Other.tps": "3", "tps.interval": "1s", "tps.algorithm": algorithm,
		})
		admitted := map[string]int{}
		for range 10 {
			for _, method := range []string{"Echo", "Third", "Other", "echo"} {
				if c.call(method) == nil {
					admitted[method]++
				}
			}
		}
		assert.Equal(t, 2, admitted["Echo"]+admitted["echo"])
		assert.Equal(t, 3, admitted["Other"])
		assert.Equal(t, 10, admitted["Third"])
	})
}

// N10, H24: never more than the rate in any interval.
func TestAtTheEdgeOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
			c := newChain(t, side, map[string]string{"tps.rate": "10/1s"})
			var passed []time.Time
			for range 5000 {
				if c.call("Echo") == nil {
					passed = append(passed, time.Now())
				}
				sleep(7 * time.Millisecond)
			}
			for i := 10; i < len(passed); i++ {
				require.GreaterOrEqual(t, passed[i].Sub(passed[i-10]), time.Second)
			}
			assert.GreaterOrEqual(t, len(passed), 345, "35 s at 10/s, in steps of 7 ms")

			c = newChain(t, side, map[string]string{"tps": "3", "tps.interval": "1s", "tps.algorithm": "fixed"})
			assert.Equal(t, 3, c.admits(t, "Echo", 10))
			sleep(time.Second + 1)
			assert.Equal(t, 3, c.admits(t, "Echo", 10))
		}
	})
}

func TestTheRefusalTellsAll(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, algorithm string) {
		c := newChain(t, side, map[string]string{"tps": "1", "tps.interval": "10s", "methods.Echo.tps": "2", "tps.algorithm": algorithm})
		require.Equal(t, 2, c.admits(t, "Echo", 2))
		err := c.call("Echo")
		assert.ErrorIs(t, err, tps.ErrLimitReached)
		e, ok := call.As(err)
		require.True(t, ok)
		assert.Equal(t, "tps", e.Guard)
		assert.Equal(t, "rate", e.Reason)
		assert.Equal(t, guard.ServiceOf(c.url).String()+"#Echo", e.Resource)
		assert.EqualValues(t, 2, e.Limit)
		assert.EqualValues(t, 2, e.Observed)
		least := map[string]time.Duration{"sliding": 10 * time.Second, "fixed": 10 * time.Second, "bucket": 5 * time.Second}[algorithm]
		assert.GreaterOrEqual(t, e.RetryAfter, least)
		assert.LessOrEqual(t, e.RetryAfter, min(least*5/4, 10*time.Second+time.Millisecond), "and not longer than the interval")
		sleep(e.RetryAfter)
		assert.NoError(t, c.call("Echo"), "as it said")

		require.NoError(t, c.call("Third"))
		e, ok = call.As(c.call("Other"))
		require.True(t, ok)
		assert.Equal(t, "*", e.Method(), "the budget of the service")
	})
}

// A call that a later guard refuses has not used its share.
func TestWhatALaterGuardRefusesIsGivenBack(t *testing.T) {
	for _, algorithm := range []string{"sliding", "fixed", "bucket"} {
		synctest.Test(t, func(t *testing.T) {
			sleep(time.Hour)
			c := newChain(t, conf.Provider, map[string]string{"tps": "3", "executes": "1", "tps.algorithm": algorithm})
			gate, entered, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				assert.NoError(t, c.callWith("Echo", func(ctx context.Context, inv base.Invocation) result.Result {
					close(entered)
					<-gate
					return answer(ctx, inv)
				}))
			}()
			<-entered
			for range 100 {
				e, ok := call.As(c.call("Echo"))
				require.True(t, ok)
				require.Equal(t, "executes", e.Guard, algorithm)
			}
			close(gate)
			<-done
			assert.Equal(t, 2, c.admits(t, "Echo", 5))
		})
	}
}

// Whether enforced or observed, the verdicts are the same.
func TestObservingDecidesAsEnforcing(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, algorithm string) {
		params := func(mode string) map[string]string {
			return map[string]string{"tps": "5", "tps.interval": "1s", "tps.algorithm": algorithm, "tps.mode": mode}
		}
		enforced, observed := newChain(t, side, params("enforce")), newChain(t, side, params("observe"))
		counts := func(c *chain) (rejected, would int64) {
			c.rt.Rejections(func(_ guard.RejectionKey, r *guard.Rejections) {
				rejected, would = rejected+r.Rejected(), would+r.WouldReject()
			})
			return rejected, would
		}
		for i := range 1000 {
			before, _ := counts(enforced)
			_, wouldBefore := counts(observed)
			_ = enforced.call("Echo")
			require.NoError(t, observed.call("Echo"))
			after, _ := counts(enforced)
			_, wouldAfter := counts(observed)
			require.Equal(t, after-before, wouldAfter-wouldBefore, "call %d", i)
			sleep(time.Duration(i%7) * 20 * time.Millisecond)
		}
		rejected, _ := counts(observed)
		assert.Zero(t, rejected)
	})
}

// Each side goes by its own configuration.
func TestEachSideReadsItsOwn(t *testing.T) {
	section := conf.Section{Policies: conf.Policies{TPS: &conf.TPS{Limit: conf.Of(1)}}}
	for _, tt := range []struct {
		cfg                conf.Config
		provider, consumer int
	}{{conf.Config{Provider: section}, 1, 5}, {conf.Config{Consumer: section}, 5, 1}} {
		for side, want := range map[conf.Side]int{conf.Provider: tt.provider, conf.Consumer: tt.consumer} {
			c := newChain(t, side, nil)
			c.rt.Store.Set(conf.FromCode, "code", &tt.cfg)
			assert.Equal(t, want, c.admits(t, "Echo", 5), side)
		}
	}
	// What a provider says of itself reaches the consumer's URL, and is not its own.
	c := newChain(t, conf.Consumer, nil)
	c.url.SetParam("tps", "1")
	assert.Equal(t, 5, c.admits(t, "Echo", 5))
}

// A stream counts when it is opened, on either side.
func TestStreamsCountWhenTheyAreOpened(t *testing.T) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		c := newChain(t, side, map[string]string{"tps": "2"})
		open := func() error {
			inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{})
			inv.SetAttribute(constant.CallTypeKey, constant.CallServerStream)
			return c.guard.Invoke(context.Background(), &end{*base.NewBaseInvoker(c.url), answer}, inv).Error()
		}
		require.NoError(t, open())
		require.NoError(t, open())
		require.ErrorIs(t, open(), call.ErrRejected)
	}
}

func TestEveryWayOutCountsOnce(t *testing.T) {
	ways := []inner{
		answer,
		func(context.Context, base.Invocation) result.Result { return nil },
		func(context.Context, base.Invocation) result.Result {
			return &result.RPCResult{Err: errors.New("no such user")}
		},
		func(context.Context, base.Invocation) result.Result { panic("boom") },
		func(context.Context, base.Invocation) result.Result { runtime.Goexit(); return nil },
	}
	onBothSides(t, func(t *testing.T, side conf.Side, algorithm string) {
		c := newChain(t, side, map[string]string{"tps": fmt.Sprint(len(ways) + 1), "tps.algorithm": algorithm})
		for _, way := range ways {
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_ = c.callWith("Echo", way)
			}()
			<-done
		}
		assert.Equal(t, 1, c.admits(t, "Echo", 5), "a call that failed was a call")
	})
}

// H2: 64 goroutines at the edge of windows.
func TestManyAtTheEdgeOfAWindow(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	onBothSides(t, func(t *testing.T, side conf.Side, algorithm string) {
		c := newChain(t, side, map[string]string{"tps": "5", "tps.interval": "1s", "tps.algorithm": algorithm})
		for range 20 {
			var wg sync.WaitGroup
			var admitted atomic.Int64
			for range 64 {
				wg.Go(func() {
					if c.call("Echo") == nil {
						admitted.Add(1)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 5, admitted.Load())
			sleep(time.Second + 1)
		}
	})
}

// One refusal is made for all calls that are told the same.
func TestRefusalsArePrepared(t *testing.T) {
	c := newChain(t, conf.Provider, map[string]string{"tps": "1", "tps.interval": "24h"})
	require.NoError(t, c.call("Echo"))
	first, ok := call.As(c.call("Echo"))
	require.True(t, ok)
	second, ok := call.As(c.call("Echo"))
	require.True(t, ok)
	require.Same(t, first, second)
}
