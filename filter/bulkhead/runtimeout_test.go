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

package bulkhead_test

import (
	"context"
	"errors"
	"net/http"
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
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

// runsFor is a provider's chain with one slot, a place and a run-timeout of 50 ms.
func runsFor(t testing.TB, more ...string) *chain {
	t.Helper()
	return newChain(t, conf.Provider, "tri", with(params{"bulkhead": "1", "bulkhead.queue": "1", "bulkhead.max-wait": "1h", "bulkhead.run-timeout": "50ms"}, more...))
}

func overtime(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, call.ErrRejected, "it did run")
	require.ErrorContains(t, err, "guard=bulkhead")
	require.ErrorContains(t, err, "run-timeout=50ms")
	var te *triple_protocol.Error
	require.ErrorAs(t, err, &te)
	require.Equal(t, triple_protocol.CodeBizError, te.Code(), "all others would be run again")
}

// The caller is answered when the time is up, the handler is told, and its slot is free
// when it has really ended, in whatever way.
func TestTheCallerOfACallThatRunsTooLongIsAnswered(t *testing.T) {
	for name, finish := range map[string]func() result.Result{
		"answers": func() result.Result { return &result.RPCResult{Rest: "late"} },
		"fails":   func() result.Result { return &result.RPCResult{Err: errors.New("late")} },
		"panics":  func() result.Result { panic("late") },
		"exits":   func() result.Result { runtime.Goexit(); return nil },
		"nil":     func() result.Result { return nil },
	} {
		for _, more := range [][]string{nil, {"executes", "1"}, {"executes", "1", "tps", "99", "breaker", "standard"}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := runsFor(t, more...)
					var told error
					start := time.Now()
					err := c.call(context.Background(), "Echo", func(ctx context.Context, _ base.Invocation) result.Result {
						<-ctx.Done()
						told = context.Cause(ctx)
						sleep(100 * ms) // it takes its time
						return finish()
					})
					assert.Equal(t, 50*ms, time.Since(start))
					overtime(t, err)
					f := c.rt.Status.Status(c.statusKey("Echo")).Figures()
					assert.EqualValues(t, 1, f.Outcomes[call.Timeout])
					q := c.queue(t, "Echo", "")
					assert.EqualValues(t, 1, q.Inflight(), "it still runs")
					if len(more) > 0 {
						require.ErrorIs(t, c.echo(), call.ErrRejected, "its slot of executes is taken, too")
					} else {
						waiting := c.later("Echo", answer)
						assert.EqualValues(t, 1, q.Waiting())
						sleep(100 * ms)
						synctest.Wait()
						require.NoError(t, *waiting)
					}
					sleep(100 * ms)
					synctest.Wait()
					require.ErrorIs(t, told, context.DeadlineExceeded)
					c.atRest(t)
					require.NoError(t, c.echo())
				})
			})
		}
	}
}

// One that ends in time does so as without a run-timeout.
func TestACallThatEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := runsFor(t)
		want := &result.RPCResult{Rest: "in time"}
		inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{"a": "1"})
		inv.SetAttribute("x", 1)
		got := c.invoke(context.Background(), inv, func(_ context.Context, own base.Invocation) result.Result {
			own.SetAttachment("b", "2")
			own.SetAttribute("y", 2)
			v, _ := own.GetAttribute("x")
			assert.Equal(t, 1, v)
			return want
		})
		assert.Same(t, want, got)
		b, _ := inv.GetAttachment("b")
		assert.Equal(t, "2", b, "what it left for others is there")
		y, _ := inv.GetAttribute("y")
		assert.Equal(t, 2, y)

		boom := errors.New("boom")
		assert.Equal(t, boom, c.call(context.Background(), "Echo", func(context.Context, base.Invocation) result.Result {
			return &result.RPCResult{Err: boom}
		}))
		assert.PanicsWithValue(t, http.ErrAbortHandler, func() {
			_ = c.call(context.Background(), "Echo", func(context.Context, base.Invocation) result.Result { panic(http.ErrAbortHandler) })
		})
		exited := true
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.call(context.Background(), "Echo", func(context.Context, base.Invocation) result.Result { runtime.Goexit(); return nil })
			exited = false
		}()
		<-done
		assert.True(t, exited)
		c.atRest(t)
	})
}

// After the answer the handler shares no map with the call: neither the invocation's
// nor its context's.
func TestALateHandlerSharesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := runsFor(t)
		attachments := map[string]any{"a": "1", "list": []string{"x"}}
		inv := invocation.NewRPCInvocation("Echo", nil, attachments)
		inv.SetAttribute("k", "v")
		ctx := context.WithValue(context.Background(), constant.AttachmentKey, attachments)
		ctx = triple_protocol.NewOutgoingContext(ctx, http.Header{"Before": {"1"}})
		stop := make(chan struct{})
		err := c.invoke(ctx, inv, func(ctx context.Context, own base.Invocation) result.Result {
			for {
				select {
				case <-stop:
					return answer(ctx, own)
				default:
				}
				own.SetAttachment("late", "1")
				own.Attachments()["late"] = "2"
				own.SetAttribute("late", 1)
				ctx.Value(constant.AttachmentKey).(map[string]any)["late"] = "3"
				own.Attachments()["list"].([]string)[0] = "late"
				triple_protocol.AppendToOutgoingContext(ctx, "late", "1")
				sleep(ms)
			}
		}).Error()
		overtime(t, err)
		for range 100 {
			inv.SetAttachment("b", "1")
			assert.Equal(t, "x", inv.Attachments()["list"].([]string)[0])
			assert.NotContains(t, attachments, "late")
			assert.NotContains(t, inv.Attributes(), "late")
			assert.NotContains(t, triple_protocol.ExtractFromOutgoingContext(ctx), "Late")
			triple_protocol.AppendToOutgoingContext(ctx, "early", "1")
			sleep(ms)
		}
		close(stop)
		sleep(10 * ms)
		synctest.Wait()
		c.atRest(t)
	})
}

// Headers that a handler sets in time are there.
func TestHeadersOfAHandlerThatEndsInTime(t *testing.T) {
	c := runsFor(t, "bulkhead.run-timeout", "1m")
	ctx := triple_protocol.NewOutgoingContext(context.Background(), http.Header{"Before": {"1"}})
	require.NoError(t, c.call(ctx, "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
		triple_protocol.AppendToOutgoingContext(ctx, "before", "2", "new", "3")
		return answer(ctx, inv)
	}))
	assert.Equal(t, http.Header{"Before": {"1", "2"}, "New": {"3"}}, triple_protocol.ExtractFromOutgoingContext(ctx))
}

// Off by default, and where it cannot or may not be done.
func TestWhereThereIsNoRunTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := &common.ServiceInfo{Methods: []common.MethodInfo{{Name: "Echo", Type: constant.CallServerStream}, {Name: "Other", Type: constant.CallUnary}}}
		for name, c := range map[string]*chain{
			"default":  newChain(t, conf.Provider, "tri", params{"bulkhead": "1"}),
			"zero":     runsFor(t, "bulkhead.run-timeout", "0"),
			"observe":  runsFor(t, "bulkhead.mode", "observe"),
			"a stream": runsFor(t),
		} {
			if name == "a stream" {
				c.url.SetAttribute(constant.ServiceInfoKey, stream)
			}
			require.NoError(t, c.call(context.Background(), "Echo", takes(time.Second)), name)
			c.atRest(t)
		}
		c := newChain(t, conf.Provider, "tri", params{"bulkhead.run-timeout": "50ms"})
		overtime(t, c.call(context.Background(), "Echo", takes(time.Second))) // without any limit
		sleep(time.Second)
	})
}

// A call that ends as its time is up ends either way, and once.
func TestEndAndTimeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := runsFor(t)
		for range 500 {
			if err := c.call(context.Background(), "Echo", takes(50*ms)); err != nil {
				overtime(t, err)
			}
			synctest.Wait()
			c.atRest(t)
		}
	})
}

func TestRunTimeoutStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Provider, "dubbo", params{
			"bulkhead": "5", "bulkhead.queue": "50", "bulkhead.max-wait": "30ms", "bulkhead.run-timeout": "20ms", "executes": "5",
		})
		var running, most, late, refusals atomic.Int64
		var wg sync.WaitGroup
		for i := range 2000 {
			wg.Go(func() {
				sleep(time.Duration(i%97) * ms)
				err := c.call(context.Background(), "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
					now := running.Add(1)
					defer running.Add(-1)
					for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
					}
					sleep(time.Duration(i%41) * ms)
					return answer(ctx, inv)
				})
				switch _, ok := call.As(err); {
				case ok:
					refusals.Add(1)
				case err != nil:
					late.Add(1)
				}
			})
		}
		wg.Wait()
		sleep(time.Second)
		assert.EqualValues(t, 5, most.Load(), "late ones count")
		assert.Positive(t, late.Load())
		assert.Positive(t, refusals.Load())
		f := c.rt.Status.Status(c.statusKey("Echo")).Figures()
		assert.Equal(t, late.Load(), f.Outcomes[call.Timeout])
		assert.Zero(t, f.Inflight)
		c.atRest(t)
	})
}

// On the dubbo protocol it is an exception of a class that both sides take for a timeout.
func TestTheExceptionOfARunTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Provider, "dubbo", params{"bulkhead.run-timeout": "50ms"})
		err := c.call(context.Background(), "Echo", takes(time.Second))
		class, text, ok := guard.DubboException(err)
		assert.True(t, ok)
		assert.Equal(t, "org.apache.dubbo.remoting.TimeoutException", class)
		assert.Equal(t, err.Error(), text)
		sleep(time.Second)
	})
}

// The context of a call that ended in time is not kept by a context that lives on.
func TestACallsContextEndsWithIt(t *testing.T) {
	c := runsFor(t, "bulkhead.run-timeout", "1h")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, f := range map[string]func(){"answers": func() {}, "panics": func() { panic("p") }} {
		var own context.Context
		func() {
			defer func() { _ = recover() }()
			_ = c.call(ctx, "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
				own = ctx
				f()
				return answer(ctx, inv)
			})
		}()
		assert.ErrorIs(t, own.Err(), context.Canceled, name)
	}
	// dubbo's own protocol gives calls a context that never ends.
	var own context.Context
	require.NoError(t, c.call(context.Background(), "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
		own = ctx
		return answer(ctx, inv)
	}))
	assert.NoError(t, own.Err(), "what a handler leaves running goes on")
}

// Not all invokers look at the context.
func TestARunTimeoutWithoutAContext(t *testing.T) {
	c := runsFor(t, "bulkhead.run-timeout", "1h")
	var none context.Context
	assert.NoError(t, c.call(none, "Echo", answer))
	c.atRest(t)
}
