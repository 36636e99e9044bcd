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

package circuitbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/circuitbreaker"
	_ "github.com/weir-go/weir/filter/executelimit"
	_ "github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/filter/guard"
	_ "github.com/weir-go/weir/filter/tpslimit"
	"github.com/weir-go/weir/internal/breaker"
	"github.com/weir-go/weir/internal/retry"
)

// sleep lets the time of a bubble pass.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest

const ms = time.Millisecond

type inner func(context.Context, base.Invocation) result.Result

type end struct {
	base.BaseInvoker
	f inner
}

func (e *end) Invoke(ctx context.Context, inv base.Invocation) result.Result { return e.f(ctx, inv) }

func answer(context.Context, base.Invocation) result.Result { return &result.RPCResult{Rest: "result"} }

func fails(err error) inner {
	return func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: err} }
}

func takes(d time.Duration) inner {
	return func(ctx context.Context, inv base.Invocation) result.Result {
		sleep(d)
		return answer(ctx, inv)
	}
}

var (
	errBroken = errors.New("connection refused")
	// A handler's error without a code is an answer, so broken has one.
	broken = fails(triple_protocol.NewError(triple_protocol.CodeUnavailable, errBroken))
)

var services atomic.Int64

// chain is a chain of one guard, for a service of its own.
type chain struct {
	side  conf.Side
	rt    *guard.Runtime
	guard *guard.Guard
	url   *common.URL
}

func newChain(t testing.TB, side conf.Side, own map[string]string) *chain {
	t.Helper()
	rt := guard.NewRuntime()
	service := fmt.Sprintf("breaker.Service%d", services.Add(1))
	u := newURL(service, "20000", own)
	if side == conf.Consumer {
		parsed := conf.ParseParams(conf.Consumer, service, own)
		require.Empty(t, parsed.Faults)
		u.SetAttribute(retry.AttributeKey, retry.NewReference(&parsed.Service))
	}
	return &chain{side, rt, guard.New(rt, side), u}
}

func newURL(service, port string, own map[string]string) *common.URL {
	opts := []common.Option{
		common.WithProtocol("tri"), common.WithPath(service), common.WithIp("127.0.0.1"), common.WithPort(port),
		common.WithInterface(service), common.WithMethods([]string{"Echo", "Other"}),
	}
	for k, v := range own {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	return common.NewURLWithOptions(opts...)
}

// at is the chain of the same reference to another provider.
func (c *chain) at(port string) *chain {
	u := newURL(strings.TrimPrefix(c.url.Path, "/"), port, nil)
	ref, _ := c.url.GetAttribute(retry.AttributeKey)
	u.SetAttribute(retry.AttributeKey, ref)
	return &chain{c.side, c.rt, guard.New(c.rt, c.side), u}
}

func (c *chain) callCtx(ctx context.Context, method string, f inner) error {
	return c.guard.Invoke(ctx, &end{*base.NewBaseInvoker(c.url), f}, invocation.NewRPCInvocation(method, nil, map[string]any{})).Error()
}

func (c *chain) call(f inner) error { return c.callCtx(context.Background(), "Echo", f) }

func (c *chain) calls(t *testing.T, n int, f inner) {
	t.Helper()
	for range n {
		_, refused := call.As(c.call(f))
		require.False(t, refused)
	}
}

func (c *chain) mustRefuse(t *testing.T) {
	t.Helper()
	require.NotNil(t, c.refused(t))
}

func (c *chain) refused(t *testing.T) *call.RejectError {
	t.Helper()
	e, ok := call.As(c.call(answer))
	require.True(t, ok, "admitted")
	require.Equal(t, "breaker", e.Guard)
	return e
}

func (c *chain) states(method string) map[string]breaker.Stats {
	out := map[string]breaker.Stats{}
	circuitbreaker.Breakers(c.rt, func(k circuitbreaker.Key, s breaker.Stats) {
		if k.Method == method {
			out[k.Address] = s
		}
	})
	return out
}

func (c *chain) stats(t *testing.T) breaker.Stats {
	t.Helper()
	all := c.states("Echo")
	require.Len(t, all, 1)
	for _, s := range all {
		return s
	}
	return breaker.Stats{}
}

// configure sets what the section says, for all services of a side.
func (c *chain) configure(t *testing.T, yaml string) {
	t.Helper()
	cfg, _, faults := conf.ParseYAML("test", []byte("weir:\n  "+c.side.String()+":\n    "+yaml+"\n"))
	require.Empty(t, faults)
	c.rt.Store.Set(conf.FromFile, "test", cfg)
}

// onBothSides runs a test in a bubble for each side.
func onBothSides(t *testing.T, f func(t *testing.T, side conf.Side)) {
	t.Helper()
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		t.Run(side.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, side) })
		})
	}
}

// exact are params of a breaker without jitter.
func exact(params ...string) map[string]string {
	out := map[string]string{"breaker.open-jitter": "0"}
	for _, p := range params {
		k, v, _ := strings.Cut(p, "=")
		out["breaker."+k] = v
	}
	return out
}

func TestOpensProbesAndCloses(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, exact("error-ratio=50%", "min-calls=10"))
		c.calls(t, 5, answer)
		c.calls(t, 4, fails(triple_protocol.NewError(triple_protocol.CodeUnavailable, errBroken)))
		require.Equal(t, breaker.Closed, c.stats(t).State)
		c.calls(t, 1, fails(triple_protocol.NewError(triple_protocol.CodeInternal, errBroken)))
		ran := 0
		run := func(ctx context.Context, inv base.Invocation) result.Result { ran++; return answer(ctx, inv) }
		err := c.call(run)
		require.ErrorIs(t, err, call.ErrRejected)
		require.ErrorIs(t, err, circuitbreaker.ErrOpen)
		e := c.refused(t)
		assert.Equal(t, call.RejectError{
			Guard: "breaker", Resource: guard.ServiceOf(c.url).String() + "#Echo", Reason: call.ReasonErrorRatio, Limit: 50, Observed: 50,
			RetryAfter: e.RetryAfter,
		}, *call.NewRejectError(*e, nil))
		assert.GreaterOrEqual(t, e.RetryAfter, 5*time.Second)
		assert.LessOrEqual(t, e.RetryAfter, 6250*ms)
		sleep(5*time.Second - 1)
		require.LessOrEqual(t, c.refused(t).RetryAfter, ms)
		require.Zero(t, ran)
		sleep(1)
		c.calls(t, 1, fails(triple_protocol.NewError(triple_protocol.CodeUnknown, errBroken)))
		assert.Equal(t, call.ReasonProbesFailed, c.refused(t).Reason)
		sleep(5 * time.Second)
		done := make(chan error)
		go func() { done <- c.call(takes(time.Second)) }()
		synctest.Wait()
		assert.Equal(t, call.ReasonProbing, c.refused(t).Reason)
		require.NoError(t, <-done)
		c.calls(t, 1, run)
		require.Equal(t, 1, ran)
		assert.EqualValues(t, 1, c.stats(t).Calls)
		runtime.KeepAlive(c.guard)
	})
}

// What is a failure, and what is not.
func TestWhatCounts(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	code := func(c triple_protocol.Code) error { return triple_protocol.NewError(c, errBroken) }
	exception := func(class string) error {
		return &hessian2.GenericException{ExceptionClass: class, ExceptionMessage: "x"}
	}
	refusal := func(c *chain, forwarded bool) error {
		e := call.NewRejectError(call.RejectError{
			Guard: "executes", Resource: guard.ServiceOf(c.url).String() + "#Echo", Reason: call.ReasonConcurrency, Forwarded: forwarded,
		}, nil)
		wire := triple_protocol.CodeResourceExhausted
		if forwarded {
			wire = triple_protocol.CodeBizError
		}
		te := triple_protocol.NewWireError(wire, errors.New(e.Error())) // what comes over the wire is not typed
		for _, f := range e.Fields() {
			te.Meta().Set("weir-"+f.Key, f.Value)
		}
		return te
	}
	const (
		no      = "no call"
		success = "success"
		failure = "failure"
	)
	for _, tt := range []struct {
		name      string
		err       func(c *chain) error
		ctx       context.Context
		want      string
		also      string // besides, in params
		otherwise string // what it is then
	}{
		{name: "transport", err: func(*chain) error { return errBroken }, want: failure},
		{name: "timeout of the dubbo protocol", err: func(*chain) error { return errors.New("maybe the client read timeout or fail to decode") }, want: failure, also: "ignore=timeout", otherwise: no},
		{name: "deadline", err: func(*chain) error { return context.DeadlineExceeded }, want: failure, also: "ignore=timeout", otherwise: no},
		{name: "deadline by code", err: func(*chain) error { return code(triple_protocol.CodeDeadlineExceeded) }, want: failure, also: "ignore=deadline_exceeded", otherwise: no},
		{name: "unavailable", err: func(*chain) error { return code(triple_protocol.CodeUnavailable) }, want: failure, also: "ignore=unavailable", otherwise: no},
		{name: "internal", err: func(*chain) error { return code(triple_protocol.CodeInternal) }, want: failure, also: "ignore=failure", otherwise: no},
		{name: "unknown", err: func(*chain) error { return code(triple_protocol.CodeUnknown) }, want: failure},
		{name: "data loss", err: func(*chain) error { return code(triple_protocol.CodeDataLoss) }, want: failure},
		{name: "unimplemented", err: func(*chain) error { return code(triple_protocol.CodeUnimplemented) }, want: failure, also: "ignore=unimplemented,failure", otherwise: no},
		{name: "not found", err: func(*chain) error { return code(triple_protocol.CodeNotFound) }, want: success, also: "failures=not_found", otherwise: failure},
		{name: "business", err: func(*chain) error { return code(triple_protocol.CodeBizError) }, want: success, also: "failures=business", otherwise: failure},
		{name: "business by code", err: func(*chain) error { return code(triple_protocol.CodeBizError) }, want: success, also: "failures=biz_error;ignore=business", otherwise: failure},
		{name: "a handler's deadline", err: func(*chain) error {
			return triple_protocol.NewWireError(triple_protocol.CodeBizError, fmt.Errorf("stock: %w", context.DeadlineExceeded))
		}, want: failure, also: "ignore=timeout", otherwise: no},
		{name: "a handler's deadline, dubbo", err: func(*chain) error {
			return &hessian2.GenericException{ExceptionClass: "java.lang.Throwable", ExceptionMessage: "stock: context deadline exceeded"}
		}, want: failure},
		{name: "business to ignore", err: func(*chain) error { return code(triple_protocol.CodeBizError) }, want: success, also: "ignore=business", otherwise: no},
		{name: "exception", err: func(*chain) error { return exception("org.demo.NoStockException") }, want: success, also: "failures=org.demo.NoStockException", otherwise: failure},
		{name: "package", err: func(*chain) error { return exception("org.demo.stock.NoStockException") }, want: success, also: "failures=org.demo.*", otherwise: failure},
		{name: "inner package", err: func(*chain) error { return exception("org.demo.stock.NoStockException") }, want: success, also: "failures=org.demo.stock.*;ignore=org.demo.*", otherwise: failure},
		{name: "class before package", err: func(*chain) error { return exception("org.demo.NoStockException") }, want: success, also: "failures=org.demo.*;ignore=org.demo.NoStockException", otherwise: no},
		{name: "other package", err: func(*chain) error { return exception("org.demos.NoStockException") }, want: success, also: "failures=org.demo.*", otherwise: success},
		{name: "rpc exception", err: func(*chain) error { return exception("org.apache.dubbo.rpc.RpcException") }, want: failure},
		{name: "timeout exception", err: func(*chain) error { return exception("org.apache.dubbo.remoting.TimeoutException") }, want: failure},
		{name: "cancelled by the caller", err: func(*chain) error { return context.Canceled }, ctx: cancelled, want: no, also: "failures=cancelled", otherwise: failure},
		{name: "cancelled by code", err: func(*chain) error { return code(triple_protocol.CodeCanceled) }, ctx: cancelled, want: no},
		{name: "cancelled by others", err: func(*chain) error { return code(triple_protocol.CodeCanceled) }, want: failure},
		{name: "refused", err: func(c *chain) error { return refusal(c, false) }, want: no, also: "failures=rejected", otherwise: failure},
		{name: "refused without Weir", err: func(*chain) error { return code(triple_protocol.CodeResourceExhausted) }, want: no, also: "failures=resource_exhausted", otherwise: failure},
		{name: "forwarded", err: func(c *chain) error { return refusal(c, true) }, want: no, also: "failures=forwarded", otherwise: failure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params := []string{"error-count=1000"}
			for range 2 {
				c := newChain(t, conf.Consumer, exact(params...))
				ctx := tt.ctx
				if ctx == nil {
					ctx = context.Background()
				}
				require.Error(t, c.callCtx(ctx, "Echo", fails(tt.err(c))))
				s := c.stats(t)
				want := map[string][2]int64{no: {}, success: {1, 0}, failure: {1, 1}}[tt.want]
				assert.Equal(t, want, [2]int64{s.Calls, s.Failures}, params)
				runtime.KeepAlive(c.guard)
				if tt.also == "" {
					return
				}
				params, tt.want = append(params, strings.Split(tt.also, ";")...), tt.otherwise
			}
		})
	}
	t.Run("panic", func(t *testing.T) {
		c := newChain(t, conf.Provider, exact("consecutive-errors=1"))
		require.PanicsWithValue(t, "boom", func() { _ = c.call(func(context.Context, base.Invocation) result.Result { panic("boom") }) })
		assert.Equal(t, call.ReasonConsecutiveErrors, c.refused(t).Reason)
	})
}

// What a local guard refuses is not the other side's fault, and has not probed it.
func TestRefusalsOfLaterGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		params := exact("consecutive-errors=1")
		params["tps"], params["tps.interval"] = "3", "1h"
		c := newChain(t, conf.Consumer, params)
		c.calls(t, 2, answer)
		c.calls(t, 1, broken)
		sleep(5 * time.Second)
		for range 3 {
			e, ok := call.As(c.call(answer))
			require.True(t, ok)
			require.Equal(t, "tps", e.Guard)
			s := c.stats(t)
			require.Equal(t, breaker.Open, s.State)
			require.Zero(t, s.Probes)
		}
		sleep(2 * time.Hour)
		c.calls(t, 2, answer)
		require.Equal(t, breaker.Closed, c.stats(t).State)
		runtime.KeepAlive(c.guard)
	})
}

// A wait for a slot is no response time, and a call that waits does not hang.
func TestWaitsAreNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		params := exact("slow-ratio=1", "slow-call=1s", "min-calls=2")
		params["actives"], params["actives.wait"], params["timeout"] = "1", "60s", "60s"
		c := newChain(t, conf.Consumer, params)
		done := make(chan error)
		for range 10 {
			go func() { done <- c.call(takes(900 * ms)) }()
		}
		for range 10 {
			require.NoError(t, <-done)
		}
		s := c.stats(t)
		assert.EqualValues(t, 10, s.Calls)
		assert.Zero(t, s.Slow)
		assert.Zero(t, s.Hung)
		runtime.KeepAlive(c.guard)
	})
}

// Calls that hang open the breaker while none has come back. N13
func TestCallsThatHang(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, exact("slow-ratio=0.5", "slow-call=700ms"))
		gate := make(chan struct{})
		done := make(chan error)
		for range 2000 {
			go func() {
				done <- c.call(func(ctx context.Context, inv base.Invocation) result.Result { <-gate; return answer(ctx, inv) })
			}()
		}
		synctest.Wait()
		require.Zero(t, c.stats(t).Hung)
		sleep(800 * ms)
		e := c.refused(t)
		assert.Equal(t, call.ReasonSlowRatio, e.Reason)
		assert.EqualValues(t, 100, e.Observed)
		close(gate)
		for range 2000 {
			require.NoError(t, <-done)
		}
		require.Equal(t, breaker.Open, c.stats(t).State)
		runtime.KeepAlive(c.guard)
	})
}

// Each address has a breaker of its own, or all share one.
func TestScope(t *testing.T) {
	for _, scope := range []string{"instance", "service"} {
		c := newChain(t, conf.Consumer, exact("consecutive-errors=1", "scope="+scope))
		other := c.at("20001")
		other.calls(t, 1, answer)
		c.calls(t, 1, broken)
		c.mustRefuse(t)
		if scope == "instance" {
			other.calls(t, 1, answer)
			assert.Len(t, c.states("Echo"), 2)
		} else {
			other.mustRefuse(t)
			assert.Len(t, c.states("Echo"), 1)
		}
		require.NoError(t, c.callCtx(context.Background(), "Other", answer), "methods have breakers of their own")
		runtime.KeepAlive(c.guard)
		runtime.KeepAlive(other.guard)
	}
}

// A configured name breaks by itself, whoever shares its settings. B12
func TestMethodsShareSettingsAndNoBreaker(t *testing.T) {
	c := newChain(t, conf.Consumer, nil)
	c.configure(t, "breaker: {error-ratio: 0.5, min-calls: 1}")
	c.calls(t, 1, broken)
	c.mustRefuse(t)
	require.NoError(t, c.callCtx(context.Background(), "Other", answer))
	require.NoError(t, c.callCtx(context.Background(), "other", answer))
	e, ok := call.As(c.callCtx(context.Background(), "echo", answer))
	require.True(t, ok, "the case of the first letter is folded")
	assert.Equal(t, "Echo", e.Method())
}

func TestConfigurationChanges(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, nil)
		section := func(text string) { c.configure(t, "breaker: {open-jitter: 0, "+text+"}") }
		section("error-count: 3")
		c.calls(t, 2, broken)
		section("error-count: 3") // the same once more
		require.EqualValues(t, 2, c.stats(t).Failures)
		section("error-count: 5")
		c.calls(t, 2, broken)
		require.EqualValues(t, 4, c.stats(t).Failures)
		section("error-count: 3")
		c.calls(t, 1, answer) // 4 are over it
		require.Equal(t, breaker.Open, c.stats(t).State)
		section("error-count: 3, mode: observe")
		c.calls(t, 3, broken)
		require.Equal(t, breaker.Open, c.stats(t).State)
		section("error-count: 3")
		c.mustRefuse(t)
		section("error-count: 3, force: closed")
		c.calls(t, 9, broken)
		section("error-count: 3, force: open")
		require.Equal(t, call.ReasonForced, c.refused(t).Reason)
		sleep(time.Hour)
		c.mustRefuse(t)
		section("error-count: 3")
		c.calls(t, 1, answer)
		require.Equal(t, breaker.Closed, c.stats(t).State)
		c.calls(t, 2, broken)
		section("mode: off, error-count: 3")
		c.calls(t, 9, broken)
		require.Empty(t, c.states("Echo"))
		section("error-count: 3")
		c.calls(t, 2, broken)
		require.EqualValues(t, 2, c.stats(t).Failures, "what was counted before is forgotten")
		section("force: open")
		require.Equal(t, call.ReasonForced, c.refused(t).Reason)
		section("mode: off")
		c.calls(t, 9, broken)
		section("error-count: 3")
		c.calls(t, 2, broken)
		require.EqualValues(t, 2, c.stats(t).Failures, "nobody holds it open any more")
		c.rt.Store.SetEnvMode(conf.Off)
		c.calls(t, 9, broken)
		runtime.KeepAlive(c.guard)
	})
}

// A reference over the dubbo protocol learns the names of methods from calls. Their
// breakers were told of a change only by the next call, and showed an old state until then.
func TestRegressionAChangeReachesBreakersThatNobodyCalls(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, exact("consecutive-errors=2"))
		c.url.Methods = nil
		c.calls(t, 1, answer)
		require.Equal(t, breaker.Closed, c.stats(t).State)
		c.configure(t, "breaker: {force: open}")
		require.Equal(t, breaker.Open, c.stats(t).State)
		c.configure(t, "breaker: {error-count: 7}")
		assert.Equal(t, breaker.Free, c.stats(t).Force)
		c.configure(t, "breaker: {mode: off}")
		assert.Empty(t, c.states("Echo"))
		runtime.KeepAlive(c.guard)
	})
}

// While it only observes it changes state, and lets all pass.
func TestObserve(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, exact("consecutive-errors=2", "mode=observe"))
		c.calls(t, 2, broken)
		c.calls(t, 5, answer)
		s := c.stats(t)
		require.Equal(t, breaker.Open, s.State)
		would := int64(0)
		c.rt.Rejections(func(k guard.RejectionKey, r *guard.Rejections) {
			require.Zero(t, r.Rejected())
			would += r.WouldReject()
		})
		require.EqualValues(t, 5, would)
		sleep(5 * time.Second)
		c.calls(t, 1, answer)
		require.Equal(t, breaker.Closed, c.stats(t).State)
		runtime.KeepAlive(c.guard)
	})
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Consumer, exact("error-ratio=0.5", "min-calls=2"))
		var got, again []circuitbreaker.Event
		stop := circuitbreaker.Subscribe(c.rt, func(e circuitbreaker.Event) { got = append(got, e) })
		stopAgain := circuitbreaker.Subscribe(c.rt, func(e circuitbreaker.Event) {
			again = append(again, e)
			switch len(again) {
			case 1:
				panic("a subscriber")
			case 2:
				runtime.Goexit()
			}
			assert.Len(t, c.states("Echo"), 1) // it may use everything
		})
		stopOther := circuitbreaker.Subscribe(guard.NewRuntime(), func(circuitbreaker.Event) { panic("another runtime") })
		c.calls(t, 1, answer)
		c.calls(t, 1, broken)
		sleep(5 * time.Second)
		at := time.Now()
		c.calls(t, 1, answer)
		synctest.Wait()
		service := guard.ServiceOf(c.url).String()
		ref, _ := c.url.GetAttribute(retry.AttributeKey)
		of := circuitbreaker.Event{Side: "consumer", Service: service, Method: "Echo", Reference: ref.(*retry.Reference).ID, Address: "127.0.0.1:20000"}
		opened, probes, closed := of, of, of
		opened.From, opened.To, opened.Reason, opened.Limit, opened.Observed = "closed", "open", "error-ratio", 50, 50
		opened.Calls, opened.Failures, opened.OpenFor, opened.At = 2, 1, 5*time.Second, at.Add(-5*time.Second)
		probes.From, probes.To, probes.Reason, probes.Limit, probes.Observed, probes.At = "open", "half-open", "error-ratio", 50, 50, at
		closed.From, closed.To, closed.At = "half-open", "closed", at
		assert.Equal(t, []circuitbreaker.Event{opened, probes, closed}, got)
		assert.Equal(t, got, again)
		told := 0
		for _, e := range lines.Load().All() {
			if strings.Contains(e.Message, "a subscriber to changes of state panicked: a subscriber") {
				told++
			}
		}
		assert.Positive(t, told, "a panic is logged")
		changes := map[string]int64{}
		circuitbreaker.AllChanges(c.rt, func(k circuitbreaker.ChangesKey, ch *circuitbreaker.Changes) {
			if k.Method == "Echo" {
				changes["open"], changes["closed"], changes["half-open"] = ch.To(breaker.Open), ch.To(breaker.Closed), ch.To(breaker.HalfOpen)
			}
		})
		assert.Equal(t, map[string]int64{"open": 1, "closed": 1, "half-open": 1}, changes)
		for _, s := range []func(){stop, stop, stopAgain, stopOther} {
			s()
		}
		c.calls(t, 2, broken)
		synctest.Wait()
		assert.Len(t, got, 3)
		runtime.KeepAlive(c.guard)
	})
}

// The filter stands alone by its own name, and then the umbrella leaves it alone.
func TestAlone(t *testing.T) {
	for side, filter := range map[conf.Side]string{conf.Consumer: circuitbreaker.ConsumerFilter, conf.Provider: circuitbreaker.ProviderFilter} {
		params := exact("consecutive-errors=1")
		key := map[conf.Side]string{conf.Consumer: constant.ReferenceFilterKey, conf.Provider: constant.ServiceFilterKey}[side]
		c := newChain(t, side, params)
		c.url.SetParam(key, map[conf.Side]string{conf.Consumer: guard.ConsumerFilter, conf.Provider: guard.ProviderFilter}[side]+","+filter)
		alone := &chain{side, c.rt, guard.NewAlone(c.rt, side, filter, circuitbreaker.Policy), c.url}
		through := func(f inner) error {
			return c.call(func(ctx context.Context, inv base.Invocation) result.Result {
				return &result.RPCResult{Err: alone.call(f)}
			})
		}
		require.NoError(t, through(answer))
		require.ErrorIs(t, through(broken), errBroken)
		e, ok := call.As(through(answer))
		require.True(t, ok)
		assert.Equal(t, "breaker", e.Guard)
		calls := int64(0)
		for _, s := range c.states("Echo") {
			calls += s.Entered[breaker.Open]
		}
		assert.EqualValues(t, 1, calls)
		runtime.KeepAlive(alone.guard)
	}
}

// The sample in the package's documentation is what it says.
func TestTheDocumentedYAML(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var yamls []string
	for _, m := range regexp.MustCompile(`(?m)(?:^//\t(?:dubbo|weir):\n)(?:^//\t.*\n)+`).FindAllString(string(doc), -1) {
		yamls = append(yamls, strings.NewReplacer("//\t", "").Replace(m))
	}
	require.Len(t, yamls, 2)
	for _, y := range yamls {
		report := conf.Validate("doc.go", []byte(y))
		require.Empty(t, report.Faults)
		require.Empty(t, report.Warnings)
	}
	cfg, _, _ := conf.ParseYAML("doc.go", []byte(yamls[1]))
	var store conf.Store
	store.Set(conf.FromFile, "doc.go", cfg)
	key, _ := conf.ParseServiceKey("greet.GreetService")
	e := store.View().Resolve(conf.Consumer, key, "SayHello", nil)
	assert.Equal(t, 3, e.Breaker.Probes)
	assert.Equal(t, 20, e.Breaker.ErrorCount)
	assert.Equal(t, 800*ms, e.Breaker.SlowCall)
	assert.False(t, store.View().Resolve(conf.Consumer, key, "Upload", nil).Breaker.Set)
}

// On the dubbo protocol a provider knows that its caller has gone by the time that has
// passed only. Without statistics nobody took it, and late answers were successes.
func TestRegression_LateAnswersAreTimeouts(t *testing.T) {
	for _, stats := range []string{"true", "false"} {
		synctest.Test(t, func(t *testing.T) {
			params := exact("consecutive-errors=2")
			params["weir.stats"] = stats
			c := newChain(t, conf.Provider, params)
			c.url.Protocol = constant.DubboProtocol
			late := func() error {
				inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{constant.TimeoutKey: "100"})
				return c.guard.Invoke(context.Background(), &end{*base.NewBaseInvoker(c.url), takes(101 * ms)}, inv).Error()
			}
			require.NoError(t, late())
			require.NoError(t, late())
			c.mustRefuse(t)
			runtime.KeepAlive(c.guard)
		})
	}
}

// A probe that gives up while it waits for a place has not probed. N10
func TestAProbeThatWaitsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		params := exact("consecutive-errors=1")
		params["actives"], params["actives.wait"], params["timeout"] = "1", "60s", "60s"
		c := newChain(t, conf.Consumer, params)
		gate, done, waited := make(chan struct{}), make(chan error), make(chan error)
		go func() {
			done <- c.call(func(ctx context.Context, inv base.Invocation) result.Result { <-gate; return answer(ctx, inv) })
		}()
		synctest.Wait()
		go func() { waited <- c.call(broken) }() // admitted
		synctest.Wait()
		c.configure(t, "breaker: {force: open}")
		require.Equal(t, call.ReasonForced, c.refused(t).Reason)
		c.configure(t, "breaker: {force: none}")
		for range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			e, ok := call.As(c.callCtx(ctx, "Echo", answer))
			cancel()
			require.True(t, ok)
			require.Equal(t, "actives", e.Guard)
			s := c.stats(t)
			require.Equal(t, breaker.Open, s.State)
			require.Zero(t, s.Probes)
		}
		close(gate)
		require.NoError(t, <-done)
		require.ErrorIs(t, <-waited, errBroken)
		require.Equal(t, call.ReasonProbesFailed, c.refused(t).Reason, "what has waited since is its probe")
		sleep(5 * time.Second)
		c.calls(t, 1, answer)
		require.Equal(t, breaker.Closed, c.stats(t).State)
		runtime.KeepAlive(c.guard)
	})
}

// Calls that wait when the breaker opens are refused as soon as they are through with
// waiting, and none is sent.
func TestCallsThatWaitAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, waits := range []map[string]string{
			{"actives": "1", "actives.wait": "60s"}, {"flow": "1/1s", "flow.behavior": "queue", "flow.max-queue": "60s"},
		} {
			params := exact("consecutive-errors=1", "open-for=1h")
			params["timeout"] = "60s"
			for k, v := range waits {
				params[k] = v
			}
			c := newChain(t, conf.Consumer, params)
			sent := 0
			done := make(chan error)
			for range 20 {
				go func() {
					done <- c.call(func(ctx context.Context, inv base.Invocation) result.Result {
						sent++
						sleep(100 * ms)
						return broken(ctx, inv)
					})
				}()
				synctest.Wait()
			}
			refused := 0
			for range 20 {
				if e, ok := call.As(<-done); ok {
					require.Equal(t, "breaker", e.Guard)
					refused++
				}
			}
			require.Equal(t, 19, refused)
			require.Equal(t, 1, sent)
			require.Zero(t, c.stats(t).Calls)
			runtime.KeepAlive(c.guard)
		}
	})
}

// Who does not keep up misses the oldest events, and nobody waits for it.
func TestASlowSubscriberMissesTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Consumer, exact("consecutive-errors=1", "open-for=1ms"))
		gate := make(chan struct{})
		var got []circuitbreaker.Event
		stop := circuitbreaker.Subscribe(c.rt, func(e circuitbreaker.Event) { <-gate; got = append(got, e) })
		defer stop()
		c.calls(t, 1, broken)
		synctest.Wait() // the first is being told
		for range 1000 {
			sleep(ms)
			c.calls(t, 1, broken)
		}
		close(gate)
		synctest.Wait()
		require.Len(t, got, 1025)
		require.Equal(t, "closed", got[0].From)
		for i, e := range got[2:] {
			require.Equal(t, got[i+1].To, e.From, "in their order")
		}
		require.Equal(t, time.Now(), got[1024].At)
		runtime.KeepAlive(c.guard)
	})
}

// With another scope other breakers hold, which have counted nothing yet.
func TestScopeChanges(t *testing.T) {
	c := newChain(t, conf.Consumer, nil)
	other := c.at("20001")
	scope := func(s string) { c.configure(t, "breaker: {consecutive-errors: 1, scope: "+s+"}") }
	for range 2 {
		scope("instance")
		c.calls(t, 1, broken)
		c.mustRefuse(t)
		other.calls(t, 1, answer)
		require.Len(t, c.states("Echo"), 2)
		scope("service")
		other.calls(t, 1, answer)
		c.calls(t, 1, broken)
		other.mustRefuse(t)
		require.Len(t, c.states("Echo"), 1)
	}
	runtime.KeepAlive(c.guard)
	runtime.KeepAlive(other.guard)
}
