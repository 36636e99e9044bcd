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

package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
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
	"github.com/apache/dubbo-go-hessian2"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/logtest"
	"github.com/weir-go/weir/rpcstatus"
)

// handler is the inner end of a chain.
type handler struct {
	base.BaseInvoker
	f func(context.Context, base.Invocation) result.Result
}

func (h *handler) Invoke(ctx context.Context, inv base.Invocation) result.Result {
	return h.f(ctx, inv)
}

func answer(context.Context, base.Invocation) result.Result {
	return &result.RPCResult{Rest: "result"}
}

// chain is a provider's chain of one guard, for a service of its own.
type chain struct {
	rt    *guard.Runtime
	guard *guard.Guard
	url   *common.URL
}

var services atomic.Int64

func serviceName() string { return fmt.Sprintf("test.Service%d", services.Add(1)) }

func newURL(protocol, service string, params map[string]string) *common.URL {
	opts := []common.Option{
		common.WithProtocol(protocol), common.WithPath(service), common.WithIp("127.0.0.1"), common.WithPort("20000"),
		common.WithInterface(service), common.WithMethods([]string{"SayHello", "Other"}),
	}
	for k, v := range params {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	return common.NewURLWithOptions(opts...)
}

func provider(params map[string]string) *chain {
	rt := guard.NewRuntime()
	return &chain{rt: rt, guard: guard.New(rt, conf.Provider), url: newURL("tri", serviceName(), params)}
}

func (c *chain) call(method string, f func(context.Context, base.Invocation) result.Result) result.Result {
	return c.callCtx(context.Background(), method, f)
}

func (c *chain) callCtx(ctx context.Context, method string, f func(context.Context, base.Invocation) result.Result) result.Result {
	inv := invocation.NewRPCInvocation(method, nil, map[string]any{})
	return c.guard.Invoke(ctx, &handler{*base.NewBaseInvoker(c.url), f}, inv)
}

func (c *chain) figures(method string) rpcstatus.Figures {
	return c.rt.Status.Status(rpcstatus.Key{Side: "provider", Service: guard.ServiceOf(c.url).String(), Method: method}).Figures()
}

// hold runs n calls that stay in the handler until release is called.
func (c *chain) hold(t *testing.T, method string, n int) (release func()) {
	t.Helper()
	gate := make(chan struct{})
	var wg sync.WaitGroup
	entered := make(chan struct{}, n)
	for range n {
		wg.Go(func() {
			res := c.call(method, func(ctx context.Context, inv base.Invocation) result.Result {
				entered <- struct{}{}
				<-gate
				return answer(ctx, inv)
			})
			if res.Error() != nil {
				entered <- struct{}{}
			}
		})
	}
	for range n {
		<-entered
	}
	return func() { close(gate); wg.Wait() }
}

func TestExecutesWithoutALimitAnswers(t *testing.T) { // E1
	c := provider(nil)
	res := c.call("SayHello", answer)
	require.NoError(t, res.Error())
	require.Equal(t, "result", res.Result())
}

func TestExecutesBelowTheLimitAnswers(t *testing.T) { // E2
	res := provider(map[string]string{"executes": "10"}).call("SayHello", answer)
	require.NoError(t, res.Error())
	require.Equal(t, "result", res.Result())
}

func TestExecutesPassesAnExceptionOnAndCountsIt(t *testing.T) { // E3
	c := provider(map[string]string{"executes": "10"})
	rpcException := &hessian2.GenericException{ExceptionClass: "org.apache.dubbo.rpc.RpcException", ExceptionMessage: "broken"}
	res := c.call("SayHello", func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: rpcException} })
	require.Same(t, error(rpcException), res.Error())
	f := c.figures("SayHello")
	require.EqualValues(t, 1, f.Failed())
	require.EqualValues(t, 1, f.Outcomes[call.Failure])
}

func TestExecutesRefusesExactlyWhatIsOver(t *testing.T) { // E4, H1
	c := provider(map[string]string{"executes": "10"})
	for round := range 20 {
		gate, start := make(chan struct{}), make(chan struct{})
		var running, most, refused, admitted atomic.Int64
		decided := make(chan struct{}, 20)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				<-start
				res := c.call("SayHello", func(ctx context.Context, inv base.Invocation) result.Result {
					n := running.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					decided <- struct{}{}
					<-gate
					running.Add(-1)
					return answer(ctx, inv)
				})
				if res.Error() == nil {
					admitted.Add(1)
					return
				}
				decided <- struct{}{}
				refused.Add(1)
			})
		}
		close(start)
		for range 20 {
			<-decided
		}
		close(gate)
		wg.Wait()
		require.EqualValues(t, 10, refused.Load(), "round %d", round)
		require.EqualValues(t, 10, admitted.Load())
		require.EqualValues(t, 10, most.Load())
	}
}

func TestNegativeAndZeroAreUnlimited(t *testing.T) { // H1
	for _, limit := range []string{"0", "-1", "-2147483648"} {
		c := provider(map[string]string{"executes": limit})
		release := c.hold(t, "SayHello", 50)
		require.NoError(t, c.call("SayHello", answer).Error(), limit)
		release()
	}
}

func TestTheRefusalSaysWhy(t *testing.T) {
	c := provider(map[string]string{"methods.SayHello.executes": "1"})
	release := c.hold(t, "SayHello", 1)
	defer release()
	err := c.call("SayHello", answer).Error()
	require.ErrorIs(t, err, call.ErrRejected)
	e, ok := call.As(err)
	require.True(t, ok)
	service := guard.ServiceOf(c.url).String()
	require.Equal(t, "executes", e.Guard)
	require.Equal(t, service+"#SayHello", e.Resource)
	require.Equal(t, "concurrency", e.Reason)
	require.EqualValues(t, 1, e.Limit)
	require.EqualValues(t, 1, e.Observed)
	require.False(t, e.Forwarded)
	require.NotContains(t, err.Error(), "127.0.0.1", "an address must not leak")

	var te *triple_protocol.Error
	require.ErrorAs(t, err, &te)
	require.Equal(t, triple_protocol.CodeResourceExhausted, te.Code())
	require.Equal(t, "executes", te.Meta().Get("weir-guard"))
	class, message, ok := guard.DubboException(err)
	require.True(t, ok)
	require.Equal(t, "org.apache.dubbo.rpc.RpcException", class)
	parsed, ok := call.Parse(message)
	require.True(t, ok)
	require.Equal(t, e.Resource, parsed.Resource)

	require.NoError(t, c.call("Other", answer).Error(), "another method has no limit")
}

func TestScopes(t *testing.T) {
	t.Run("a service's value holds for each method by itself", func(t *testing.T) {
		c := provider(map[string]string{"executes": "1"})
		release := c.hold(t, "SayHello", 1)
		defer release()
		require.NoError(t, c.call("Other", answer).Error())
		require.ErrorIs(t, c.call("SayHello", answer).Error(), call.ErrRejected)
	})
	t.Run("service shares one limit, and a method's own holds too", func(t *testing.T) {
		c := provider(map[string]string{"executes": "3", "executes.scope": "service", "methods.Other.executes": "1"})
		release := c.hold(t, "SayHello", 2)
		defer release()
		releaseOther := c.hold(t, "Other", 1)
		err := c.call("SayHello", answer).Error()
		e, ok := call.As(err)
		require.True(t, ok)
		require.Equal(t, "*", e.Method())
		require.EqualValues(t, 3, e.Limit)
		releaseOther()
		hold := c.hold(t, "Other", 1)
		e, ok = call.As(c.call("Other", answer).Error())
		require.True(t, ok)
		require.NoError(t, func() error { hold(); return nil }())
		require.Contains(t, []string{"*", "Other"}, e.Method())
		require.EqualValues(t, 0, e.RetryAfter)
		for _, m := range []string{"SayHello", "Other"} {
			f := c.figures(m)
			require.EqualValues(t, 0, f.Inflight-map[string]int64{"SayHello": 2}[m])
		}
	})
	t.Run("protocols share a limit unless the scope is protocol", func(t *testing.T) {
		for scope, refused := range map[string]bool{"method": true, "protocol": false} {
			service := serviceName()
			params := map[string]string{"executes": "1", "executes.scope": scope}
			rt := guard.NewRuntime()
			tri := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, params)}
			dubbo := &chain{rt, guard.New(rt, conf.Provider), newURL("dubbo", service, params)}
			release := tri.hold(t, "SayHello", 1)
			err := dubbo.call("SayHello", answer).Error()
			require.Equal(t, refused, err != nil, scope)
			release()
			require.NoError(t, dubbo.call("SayHello", answer).Error())
		}
	})
	t.Run("group and version keep apart", func(t *testing.T) { // N13
		service := serviceName()
		rt := guard.NewRuntime()
		one := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, map[string]string{"executes": "1", "group": "a"})}
		two := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, map[string]string{"executes": "1", "version": "2"})}
		release := one.hold(t, "SayHello", 1)
		defer release()
		require.NoError(t, two.call("SayHello", answer).Error())
	})
}

func TestTwoChainsOfOneServiceShareItsState(t *testing.T) { // H12
	service := serviceName()
	rt := guard.NewRuntime()
	params := map[string]string{"executes": "1"}
	one := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, params)}
	two := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, params)}
	other := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", serviceName(), params)}
	release := one.hold(t, "SayHello", 1)
	defer release()
	require.ErrorIs(t, two.call("SayHello", answer).Error(), call.ErrRejected)
	require.NoError(t, other.call("SayHello", answer).Error())
}

// every way out of a handler gives the slot back.
var ways = map[string]func(context.Context, base.Invocation) result.Result{
	"answer":     answer,
	"nil result": func(context.Context, base.Invocation) result.Result { return nil },
	"business error": func(context.Context, base.Invocation) result.Result {
		return &result.RPCResult{Err: errors.New("no such user")}
	},
	"panic":     func(context.Context, base.Invocation) result.Result { panic("boom") },
	"goexit":    func(context.Context, base.Invocation) result.Result { runtime.Goexit(); return nil },
	"cancelled": func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: context.Canceled} },
	"forwarded": func(context.Context, base.Invocation) result.Result {
		return &result.RPCResult{Err: call.NewRejectError(call.RejectError{Guard: "executes", Resource: "down.Stream#Get", Reason: "concurrency"}, nil)}
	},
}

func TestEveryWayOutGivesTheSlotBack(t *testing.T) { // N2, N3, N21, H14
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			c := provider(map[string]string{"executes": "1"})
			for range 100 {
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					c.call("SayHello", way)
				}()
				<-done
			}
			require.NoError(t, c.call("SayHello", answer).Error())
			f := c.figures("SayHello")
			require.Zero(t, f.Inflight)
			require.EqualValues(t, 101, f.Total)
		})
	}
}

func TestOutcomes(t *testing.T) { // N24
	for _, tt := range []struct {
		name    string
		err     error
		ctx     func() context.Context
		outcome call.Outcome
	}{
		{"answer", nil, nil, call.Success},
		{"business error", errors.New("no such user"), nil, call.Success},
		{"Java business exception", &hessian2.GenericException{ExceptionClass: "demo.NoSuchUser"}, nil, call.Success},
		{"Triple business error", triple_protocol.NewError(triple_protocol.CodeBizError, errors.New("x")), nil, call.Success},
		{"Triple not found", triple_protocol.NewError(triple_protocol.CodeNotFound, errors.New("x")), nil, call.Success},
		{"Triple internal", triple_protocol.NewError(triple_protocol.CodeInternal, errors.New("x")), nil, call.Failure},
		{"Triple deadline", triple_protocol.NewError(triple_protocol.CodeDeadlineExceeded, errors.New("x")), nil, call.Timeout},
		{"deadline", fmt.Errorf("slow: %w", context.DeadlineExceeded), nil, call.Timeout},
		{"cancelled by the caller", context.Canceled, func() context.Context {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx
		}, call.Cancelled},
		{"cancelled by itself", context.Canceled, nil, call.Failure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := provider(map[string]string{"executes": "10"})
			ctx := context.Background()
			if tt.ctx != nil {
				ctx = tt.ctx()
			}
			c.callCtx(ctx, "SayHello", func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: tt.err} })
			f := c.figures("SayHello")
			require.EqualValues(t, 1, f.Outcomes[tt.outcome], "%v", f.Outcomes)
			require.EqualValues(t, 1, f.Total)
		})
	}
	t.Run("a business error counts as a failure where that is configured", func(t *testing.T) {
		c := provider(map[string]string{"executes": "10", "weir.business-errors": "failure"})
		c.call("SayHello", func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: errors.New("x")} })
		require.EqualValues(t, 1, c.figures("SayHello").Outcomes[call.Failure])
	})
}

func TestALateAnswerOnTheDubboProtocolIsATimeout(t *testing.T) { // H22
	rt := guard.NewRuntime()
	c := &chain{rt, guard.New(rt, conf.Provider), newURL("dubbo", serviceName(), map[string]string{"executes": "10"})}
	release := make(chan struct{})
	close(release)
	for i, timeout := range []any{"0", "1ns", "60000", "1h", "x"} {
		inv := invocation.NewRPCInvocation("SayHello", nil, map[string]any{constant.TimeoutKey: timeout})
		c.guard.Invoke(context.Background(), &handler{*base.NewBaseInvoker(c.url), answer}, inv)
		want := map[bool]int64{true: 1, false: 0}[i >= 1]
		require.Equal(t, want, c.figures("SayHello").Outcomes[call.Timeout], "timeout %v", timeout)
	}
}

func TestOutcomesAreCountedApart(t *testing.T) { // H22
	c := provider(map[string]string{"executes": "1"})
	for range 5 {
		c.call("SayHello", answer)
	}
	for range 2 {
		c.call("SayHello", func(context.Context, base.Invocation) result.Result {
			return &result.RPCResult{Err: context.DeadlineExceeded}
		})
	}
	release := c.hold(t, "SayHello", 1)
	for range 3 {
		require.Error(t, c.call("SayHello", answer).Error())
	}
	require.EqualValues(t, 1, c.figures("SayHello").Inflight)
	release()
	f := c.figures("SayHello")
	require.EqualValues(t, 3, f.Refused())
	require.EqualValues(t, 2, f.TimedOut())
	require.EqualValues(t, 6, f.Succeeded())
	require.EqualValues(t, 8, f.Total, "refused calls did not run")
	require.Zero(t, f.Inflight)
}

func TestMethodNamesFromTheNetworkAreBounded(t *testing.T) {
	for name, known := range map[string]bool{"known methods": true, "a service that does not say": false} {
		t.Run(name, func(t *testing.T) {
			c := provider(map[string]string{"executes": "1"})
			if !known {
				c.url.Methods = nil
			}
			for i := range 5000 {
				require.NoError(t, c.call("M"+strconv.Itoa(i), answer).Error())
			}
			require.Less(t, c.rt.Status.Len(), 1100)
			inv := invocation.NewRPCInvocation("$invoke", []any{42, nil, nil}, map[string]any{})
			res := c.guard.Invoke(context.Background(), &handler{*base.NewBaseInvoker(c.url), answer}, inv)
			require.NoError(t, res.Error(), "a generic call without a method's name must not panic")
			if known {
				release := c.hold(t, "Unknown1", 1)
				defer release()
				e, ok := call.As(c.call("Unknown2", answer).Error())
				require.True(t, ok, "unknown names share one limit")
				require.Equal(t, "*", e.Method())
			}
		})
	}
}

func TestMethodNamesMatchWithTheFirstLetterFolded(t *testing.T) {
	c := provider(map[string]string{"methods.sayHello.executes": "1"})
	release := c.hold(t, "SayHello", 1)
	defer release()
	require.ErrorIs(t, c.call("sayHello", answer).Error(), call.ErrRejected)
	inv := invocation.NewRPCInvocation("$invoke", []any{"sayHello", []string{}, []hessian.Object{}}, map[string]any{})
	res := c.guard.Invoke(context.Background(), &handler{*base.NewBaseInvoker(c.url), answer}, inv)
	require.ErrorIs(t, res.Error(), call.ErrRejected, "a generic call counts under the real method")
}

func TestInternalServicesAreNeverLimited(t *testing.T) {
	rt := guard.NewRuntime()
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Policies: conf.Policies{Executes: &conf.Executes{Limit: conf.Of(1)}}}})
	for _, service := range []string{"grpc.health.v1.Health", "org.apache.dubbo.metadata.MetadataService", "grpc.reflection.v1alpha.ServerReflection"} {
		c := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, nil)}
		release := c.hold(t, "SayHello", 5)
		require.NoError(t, c.call("SayHello", answer).Error(), service)
		release()
	}
}

func TestLimitsChangeWhileCallsRun(t *testing.T) {
	c := provider(map[string]string{"executes": "2"})
	service := guard.ServiceOf(c.url).String()
	set := func(limit int, mode conf.Mode) {
		c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: mode, Provider: conf.Section{Services: map[string]conf.Service{
			service: {Policies: conf.Policies{Executes: &conf.Executes{Limit: conf.Of(limit)}}},
		}}})
	}
	release := c.hold(t, "SayHello", 2)
	require.Error(t, c.call("SayHello", answer).Error())
	set(3, "")
	require.NoError(t, c.call("SayHello", answer).Error())
	set(1, "")
	require.Error(t, c.call("SayHello", answer).Error())
	set(1, conf.Observe)
	require.NoError(t, c.call("SayHello", answer).Error())
	require.EqualValues(t, 1, c.figures("SayHello").WouldReject)
	set(1, conf.Off)
	require.NoError(t, c.call("SayHello", answer).Error())
	set(0, "")
	require.NoError(t, c.call("SayHello", answer).Error())
	set(3, "")
	release3 := c.hold(t, "SayHello", 1)
	require.Error(t, c.call("SayHello", answer).Error(), "calls begun under other limits count")
	release3()
	release()
	c.rt.Store.Set(conf.FromCode, "code", nil)
	release = c.hold(t, "SayHello", 2)
	require.Error(t, c.call("SayHello", answer).Error(), "params hold again")
	release()
	require.Zero(t, c.figures("SayHello").Inflight)
}

func TestObserveDecidesAsEnforceWould(t *testing.T) {
	c := provider(map[string]string{"executes": "2", "executes.mode": "observe"})
	release := c.hold(t, "SayHello", 5)
	require.EqualValues(t, 3, c.figures("SayHello").WouldReject)
	release()
	require.NoError(t, c.call("SayHello", answer).Error())
	require.EqualValues(t, 3, c.figures("SayHello").WouldReject)
	require.Zero(t, c.figures("SayHello").Refused())
}

func TestABadLimitMetWhileRunningLeavesTheLastGoodOne(t *testing.T) {
	c := provider(map[string]string{"executes": "1"})
	good := conf.ParseParams(conf.Provider, "", map[string]string{"executes": "1"})
	c.rt.Declare(conf.Provider, guard.ServiceOf(c.url), "tri", nil, &good.Service)
	c.url = newURL("tri", guard.ServiceOf(c.url).Interface, map[string]string{"executes": "abc"})
	release := c.hold(t, "SayHello", 1)
	require.ErrorIs(t, c.call("SayHello", answer).Error(), call.ErrRejected)
	release()
	require.EqualValues(t, 1, c.rt.ConfigErrors())
}

func TestAFilterOutsideThatPanicsKeepsNoSlot(t *testing.T) { // N2
	c := provider(map[string]string{"executes": "1"})
	for range 5 {
		func() {
			defer func() { _ = recover() }()
			require.NoError(t, c.call("SayHello", answer).Error())
			panic("a filter outside of Weir's, after the inner call succeeded")
		}()
	}
	require.NoError(t, c.call("SayHello", answer).Error())
	require.Zero(t, c.figures("SayHello").Inflight)
}

func TestALimitHoldsOnAChainThatDoesNotKnowItsMethods(t *testing.T) {
	c := provider(map[string]string{"methods.SayHello.executes": "1"})
	c.url.Methods = nil
	for i := range 1100 {
		require.NoError(t, c.call("Other"+strconv.Itoa(i), answer).Error())
	}
	release := c.hold(t, "SayHello", 1)
	defer release()
	require.ErrorIs(t, c.call("SayHello", answer).Error(), call.ErrRejected, "names that nobody configured do not push it out")
	require.NoError(t, c.call("OneMore", answer).Error())
}

func TestAnInvokerDestroyedInTheMiddle(t *testing.T) { // H8
	c := provider(map[string]string{"executes": "1"})
	h := &handler{BaseInvoker: *base.NewBaseInvoker(c.url)}
	h.f = func(ctx context.Context, inv base.Invocation) result.Result {
		h.Destroy()
		return answer(ctx, inv)
	}
	inv := invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
	require.NoError(t, c.guard.Invoke(context.Background(), h, inv).Error())
	res := c.guard.Invoke(context.Background(), h, inv)
	require.NoError(t, c.guard.OnResponse(context.Background(), res, h, inv).Error())
	require.Zero(t, c.figures("SayHello").Inflight)
	require.EqualValues(t, 2, c.figures("SayHello").Total)

	fresh := guard.New(guard.NewRuntime(), conf.Provider)
	require.NoError(t, fresh.Invoke(context.Background(), h, inv).Error(), "nothing is known of the chain")
}

func TestFirstCallsOfManyKeysAtOnce(t *testing.T) { // H4
	rt := guard.NewRuntime()
	var wg sync.WaitGroup
	chains := make([]*chain, 100)
	for i := range chains {
		chains[i] = &chain{rt, guard.New(rt, conf.Provider), newURL("tri", serviceName(), map[string]string{"executes": "5"})}
		for range 4 {
			wg.Go(func() { chains[i].call("SayHello", answer) })
		}
	}
	wg.Wait()
	for _, c := range chains {
		require.EqualValues(t, 4, c.figures("SayHello").Total)
		require.Zero(t, c.figures("SayHello").Inflight)
	}
}

func TestABrokenAttachmentChangesNothing(t *testing.T) { // H7
	c := provider(map[string]string{"executes": "1"})
	inv := invocation.NewRPCInvocation("SayHello", nil, map[string]any{
		"filter-start-time": "not a number", constant.TimeoutKey: []int{1}, "retries": struct{}{},
	})
	for range 3 {
		res := c.guard.Invoke(context.Background(), &handler{*base.NewBaseInvoker(c.url), answer}, inv)
		require.NoError(t, res.Error())
	}
	require.Zero(t, c.figures("SayHello").Inflight)
}

func TestForwardedRefusals(t *testing.T) {
	down := func(resource string) error {
		return call.NewRejectError(call.RejectError{Guard: "executes", Resource: resource, Reason: "concurrency", Limit: 3}, nil)
	}
	for _, params := range []map[string]string{nil, {"executes": "5"}, {"weir.stats": "true"}} {
		c := provider(params)
		self := guard.ServiceOf(c.url).String() + "#SayHello"
		for name, err := range map[string]error{
			"from another service":                 down("down.Stream#Get"),
			"from the same method of another node": down(self), // proxies and call cycles
			"wrapped by the handler":               fmt.Errorf("greeting: %w", down("down.Stream#Get")),
			"as dubbo's Triple invoker rewraps it": triple_protocol.NewError(triple_protocol.CodeBizError, down("down.Stream#Get")),
			"as exhausted, without its metadata":   triple_protocol.NewError(triple_protocol.CodeResourceExhausted, down("down.Stream#Get")),
		} {
			res := c.call("SayHello", func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: err} })
			e, ok := call.As(res.Error())
			require.True(t, ok, name)
			require.True(t, e.Forwarded, name)
			require.EqualValues(t, 3, e.Limit)
			var te *triple_protocol.Error
			require.ErrorAs(t, res.Error(), &te)
			require.Equal(t, triple_protocol.CodeBizError, te.Code(), "nobody must try it again")
			require.Equal(t, "true", te.Meta().Get("weir-forwarded"))
		}
		if params != nil {
			require.EqualValues(t, 5, c.figures("SayHello").Outcomes[call.Forwarded])
		}
	}
}

func TestAGuardThatStandsAloneIsSkippedInTheUmbrella(t *testing.T) {
	c := provider(map[string]string{"executes": "1", constant.ServiceFilterKey: "weir,executelimit"})
	release := c.hold(t, "SayHello", 3)
	release()
	alone := guard.NewAlone(c.rt, conf.Provider, "executelimit", "executes")
	inner := &handler{*base.NewBaseInvoker(c.url), nil}
	inner.f = func(ctx context.Context, inv base.Invocation) result.Result {
		return alone.Invoke(ctx, &handler{*base.NewBaseInvoker(c.url), answer}, inv)
	}
	gate, entered := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	inv := invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
	wg.Go(func() {
		alone.Invoke(context.Background(), &handler{*base.NewBaseInvoker(c.url), func(ctx context.Context, inv base.Invocation) result.Result {
			close(entered)
			<-gate
			return answer(ctx, inv)
		}}, inv)
	})
	<-entered
	res := c.guard.Invoke(context.Background(), inner, inv)
	e, ok := call.As(res.Error())
	require.True(t, ok)
	require.False(t, e.Forwarded, "the chain's own refusal is not one from further down")
	close(gate)
	wg.Wait()
	f := c.figures("SayHello")
	require.EqualValues(t, 1, f.Refused())
	require.Zero(t, f.Inflight)
}

// TestProperties runs random calls of random ends under a limit that changes,
// and checks what must always hold.
func TestProperties(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	names := make([]string, 0, len(ways))
	for name := range ways {
		names = append(names, name)
	}
	const limit, workers, rounds = 5, 50, 200
	c := provider(map[string]string{"executes": strconv.Itoa(limit)})
	var running, over, refused, ran atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		rng := rand.New(rand.NewPCG(uint64(w), 1))
		wg.Go(func() {
			for range rounds {
				way := ways[names[rng.IntN(len(names))]]
				spin := rng.IntN(3)
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					res := c.call("SayHello", func(ctx context.Context, inv base.Invocation) result.Result {
						ran.Add(1)
						if running.Add(1) > limit {
							over.Add(1)
						}
						defer running.Add(-1)
						for range spin {
							runtime.Gosched()
						}
						return way(ctx, inv)
					})
					if res != nil {
						if e, ok := call.As(res.Error()); ok && !e.Forwarded {
							refused.Add(1)
						}
					}
				}()
				<-done
			}
		})
	}
	wg.Wait()
	require.Zero(t, over.Load(), "never more than the limit")
	f := c.figures("SayHello")
	require.Zero(t, f.Inflight)
	require.Equal(t, ran.Load(), f.Total, "one outcome per permit")
	require.Equal(t, refused.Load(), f.Refused())
	require.EqualValues(t, workers*rounds, f.Total+f.Refused())
	release := c.hold(t, "SayHello", limit)
	require.Error(t, c.call("SayHello", answer).Error(), "no slot was lost, none was made")
	release()
}

func TestARefusalAllocatesItsResult(t *testing.T) {
	c := provider(map[string]string{"executes": "1"})
	release := c.hold(t, "SayHello", 1)
	defer release()
	inv := invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
	next := &handler{*base.NewBaseInvoker(c.url), answer}
	ctx := context.Background()
	c.guard.Invoke(ctx, next, inv)
	allocs := testing.AllocsPerRun(1000, func() { c.guard.Invoke(ctx, next, inv) })
	require.LessOrEqual(t, allocs, 1.1)
}

// TestRefusalsAreLoggedNowAndThen watches the log of one resource: a limit that
// all methods and two protocols share, under changes of the configuration.
func TestRefusalsAreLoggedNowAndThen(t *testing.T) {
	all := logtest.All(t)
	synctest.Test(t, func(t *testing.T) {
		service := serviceName()
		// Timers of other tests may still write.
		lines := func() []observer.LoggedEntry { return all.FilterMessageSnippet(service).All() }
		params := map[string]string{"executes": "1", "executes.scope": "service"}
		rt := guard.NewRuntime()
		tri := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, params)}
		dubbo := &chain{rt, guard.New(rt, conf.Provider), newURL("dubbo", service, params)}
		release := tri.hold(t, "SayHello", 1)
		storm := func() {
			for range 50 {
				require.Error(t, tri.call("Other", answer).Error())
				require.Error(t, dubbo.call("SayHello", answer).Error())
			}
			rt.Store.Touch()
		}
		storm()
		storm()
		require.Len(t, lines(), 1, "one line for all of them")
		time.Sleep(1100 * time.Millisecond) //nolint:forbidigo // synctest
		synctest.Wait()
		require.Len(t, lines(), 2, "what was left out is told though nothing more is refused")
		require.Contains(t, lines()[1].Message, `resource="`+service+`#*"`)
		require.Contains(t, lines()[1].Message, "refused 199 more calls in the last second")
		storm()
		require.Len(t, lines(), 2)
		time.Sleep(10 * time.Second) //nolint:forbidigo // synctest
		synctest.Wait()
		require.Len(t, lines(), 3)
		require.Contains(t, lines()[2].Message, "refused 100 more calls in the last second")
		require.Error(t, tri.call("Other", answer).Error())
		require.Len(t, lines(), 4)
		release()
	})
}

func TestAnAdmittedCallAllocatesNothing(t *testing.T) {
	for _, params := range []map[string]string{nil, {"executes": "5"}, {"executes": "5", "weir.stats": "false"}, {"executes": "5", "executes.scope": "service", "methods.SayHello.executes": "3"}} {
		c := provider(params)
		inv := invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
		res := &result.RPCResult{}
		next := &handler{*base.NewBaseInvoker(c.url), func(context.Context, base.Invocation) result.Result { return res }}
		ctx := context.Background()
		c.guard.Invoke(ctx, next, inv)
		require.Zero(t, testing.AllocsPerRun(1000, func() { c.guard.Invoke(ctx, next, inv) }), "%v", params)
	}
}
