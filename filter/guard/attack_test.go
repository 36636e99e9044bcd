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
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
)

// attackSteps lets a test put steps of its own into the plans of its service.
var attackSteps sync.Map // service -> func(guard.Site) []guard.Step

func init() { //nolint:gochecknoinits // the registry is the process's
	guard.RegisterPolicy("attack", conf.Provider, func(conf.Effective) bool { return true }, func(s guard.Site) []guard.Step {
		if f, ok := attackSteps.Load(s.Service); ok {
			return f.(func(guard.Site) []guard.Step)(s)
		}
		return nil
	})
}

// apart calls f on a goroutine of its own, which may panic or exit.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	<-done
}

// counting is a step that counts what it gave and got back.
type counting struct{ held atomic.Int64 }

func (c *counting) step(rank guard.Rank) guard.Step {
	return guard.Step{
		Policy: "attack", Rank: rank,
		Take:    func(guard.Call) (guard.Permit, *guard.Refusal) { c.held.Add(1); return guard.Permit{Held: true}, nil },
		Release: func(guard.Permit, call.Outcome) { c.held.Add(-1) },
	}
}

// Once: a Release that panics or exits keeps the permits of the steps before it.
func TestAttackAReleaseThatPanicsLeaksNoOtherPermit(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			c := provider(nil)
			var outer counting
			attackSteps.Store(guard.ServiceOf(c.url).String(), func(guard.Site) []guard.Step {
				bad := new(counting).step(guard.RankSlot + 1)
				bad.Release = func(guard.Permit, call.Outcome) { end() }
				return []guard.Step{outer.step(guard.RankRate), bad}
			})
			apart(func() { c.call("SayHello", answer) })
			require.Zero(t, outer.held.Load())
			require.Zero(t, c.figures("SayHello").Inflight)
		})
	}
}

func TestAttackATakeThatPanicsLeaksNoPermit(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		for _, observe := range []bool{false, true} {
			t.Run(fmt.Sprint(name, observe), func(t *testing.T) {
				c := provider(map[string]string{"executes": "2"})
				var outer, inner counting
				attackSteps.Store(guard.ServiceOf(c.url).String(), func(guard.Site) []guard.Step {
					bad := inner.step(guard.RankSlot + 1)
					bad.Observe = observe
					bad.Take = func(guard.Call) (guard.Permit, *guard.Refusal) { end(); return guard.Permit{}, nil }
					return []guard.Step{outer.step(guard.RankRate), bad}
				})
				for range 5 {
					apart(func() { c.call("SayHello", answer) })
				}
				require.Zero(t, outer.held.Load())
				require.Zero(t, c.figures("SayHello").Inflight)
			})
		}
	}
}

// Once: a chain that compiled from an older view sets the shared limiter back,
// and no later call of the other chain puts that right.
func TestAttackAStaleCompileDoesNotUndoANewerLimit(t *testing.T) {
	service := serviceName()
	rt := guard.NewRuntime()
	limit := func(n int) {
		cfg, faults := (&conf.Config{Provider: conf.Section{Policies: conf.Policies{Executes: &conf.Executes{Limit: conf.Of(n)}}}}).Checked("code")
		require.Empty(t, faults)
		rt.Store.Set(conf.FromCode, "code", cfg)
	}
	limit(100)
	compiling, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	attackSteps.Store(service, func(s guard.Site) []guard.Step {
		if s.Protocol == "tri" {
			once.Do(func() { close(compiling); <-goOn })
		}
		return nil
	})
	tri := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, nil)}
	dubbo := &chain{rt, guard.New(rt, conf.Provider), newURL("dubbo", service, nil)}
	done := make(chan struct{})
	go func() { defer close(done); tri.call("SayHello", answer) }()
	<-compiling
	limit(1)
	require.NoError(t, dubbo.call("SayHello", answer).Error())
	require.NoError(t, dubbo.call("Other", answer).Error())
	close(goOn)
	<-done
	for _, method := range []string{"SayHello", "Other"} {
		release := dubbo.hold(t, method, 1)
		require.ErrorIs(t, dubbo.call(method, answer).Error(), call.ErrRejected, method)
		release()
	}
}

// Once: calls that an observing (or switched off) guard let pass are not
// counted once it enforces; package executelimit's doc says that they are.
func TestAttackCallsThatBeganUnderAnotherModeAreCounted(t *testing.T) {
	for _, before := range []conf.Mode{conf.Observe} {
		t.Run(string(before), func(t *testing.T) {
			c := provider(map[string]string{"executes": "1"})
			c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: before})
			var running, most atomic.Int64
			gate, entered := make(chan struct{}), make(chan struct{}, 3)
			var wg sync.WaitGroup
			held := func() {
				wg.Go(func() {
					c.call("SayHello", func(ctx context.Context, inv base.Invocation) result.Result {
						n := running.Add(1)
						for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
						}
						entered <- struct{}{}
						<-gate
						running.Add(-1)
						return answer(ctx, inv)
					})
				})
				<-entered
			}
			held()
			held()
			c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: conf.Enforce})
			err := c.call("SayHello", answer).Error()
			close(gate)
			wg.Wait()
			require.ErrorIs(t, err, call.ErrRejected, "two calls run under a limit of one")
		})
	}
}

// Once: the variant of observe in which the call that holds the slot ends first.
func TestAttackObservedOverloadIsKnownWhenEnforcing(t *testing.T) {
	c := provider(map[string]string{"executes": "1"})
	c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: conf.Observe})
	first := c.hold(t, "SayHello", 1)
	others := c.hold(t, "SayHello", 5)
	c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: conf.Enforce})
	first()
	err := c.call("SayHello", answer).Error()
	others()
	require.ErrorIs(t, err, call.ErrRejected, "five calls run under a limit of one")
}

// Once: a refusal that the handler passes on as it came over the wire (no Weir
// filter on the reference, a Triple stream) leaves as this instance's own.
func TestAttackAWireRefusalThatAHandlerPassesOnIsForwarded(t *testing.T) {
	for _, params := range []map[string]string{nil, {"executes": "10"}} {
		for _, wrap := range []func(error) error{
			func(err error) error { return err },
			func(err error) error { return fmt.Errorf("further down: %w", err) },
			func(err error) error { return errors.Join(errors.New("x"), err) },
		} {
			c := provider(params)
			e := call.RejectError{Guard: "executes", Resource: guard.ServiceOf(c.url).String() + "#SayHello", Reason: "concurrency", Limit: 5, Observed: 5}
			te := triple_protocol.NewWireError(triple_protocol.CodeResourceExhausted, errors.New(e.Error()))
			for _, f := range e.Fields() {
				te.Meta().Set("weir-"+f.Key, f.Value)
			}
			for name, err := range map[string]error{
				"triple": te,
				"dubbo":  &hessian2.GenericException{ExceptionClass: "org.apache.dubbo.rpc.RpcException", ExceptionMessage: e.Error()},
			} {
				res := c.call("SayHello", func(context.Context, base.Invocation) result.Result {
					return &result.RPCResult{Err: wrap(err)}
				})
				got, ok := guard.Decode(res.Error())
				require.True(t, ok, name)
				require.True(t, got.Forwarded, "%s: the handler ran, the instance did not refuse", name)
			}
		}
	}
}

// Once: without a Guard in the chain (auto-chain: false, the kill switch for
// one service) the dubbo codec still makes the handler's refusal look like the
// instance's own.
func TestAttackTheCodecMakesNoOwnRefusalOfAHandlersError(t *testing.T) {
	e := call.NewRejectError(call.RejectError{Guard: "executes", Resource: "a.B#SayHello", Reason: "concurrency", Limit: 5, Observed: 5}, nil)
	class, message, ok := guard.DubboException(e)
	if !ok {
		return // left to dubbo, a Throwable: read as forwarded
	}
	got, ok := guard.Decode(&hessian2.GenericException{ExceptionClass: class, ExceptionMessage: message})
	require.True(t, ok)
	require.True(t, got.Forwarded)
}

// Once: a nil pointer in an error interface panics in the guard and in
// weir.IsRejected.
func TestAttackTypedNilErrors(t *testing.T) {
	for name, err := range map[string]error{
		"reject": (*call.RejectError)(nil), "triple": (*triple_protocol.Error)(nil), "hessian": (*hessian2.GenericException)(nil),
		"wrapped": fmt.Errorf("x: %w", (*triple_protocol.Error)(nil)), "joined": errors.Join((*triple_protocol.Error)(nil), errors.New("y")),
		"wrapped hessian": fmt.Errorf("x: %w", (*hessian2.GenericException)(nil)),
	} {
		t.Run(name, func(t *testing.T) {
			c := provider(map[string]string{"executes": "1"})
			require.NotPanics(t, func() {
				c.call("SayHello", func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: err} })
			})
			require.NotPanics(t, func() { _, _ = guard.Decode(err) })
			require.NotPanics(t, func() { guard.DubboException(err) })
		})
	}
}

// Once: an answer that a service gives on purpose, with a code, a message and
// details of its own, is replaced because a refusal is somewhere in its chain.
func TestAttackAnAnswerWithARefusalAsItsCauseStaysTheAnswer(t *testing.T) {
	for _, params := range []map[string]string{nil, {"executes": "10"}} {
		c := provider(params)
		cause := call.NewRejectError(call.RejectError{Guard: "executes", Resource: "down.Stream#Get", Reason: "concurrency"}, nil)
		own := triple_protocol.NewError(triple_protocol.CodeNotFound, fmt.Errorf("no stock figures, showing none: %w", cause))
		own.Meta().Set("x-cached-until", "12:00")
		res := c.call("SayHello", func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: own} })
		var te *triple_protocol.Error
		require.ErrorAs(t, res.Error(), &te)
		require.Equal(t, triple_protocol.CodeNotFound, te.Code())
		require.Equal(t, "12:00", te.Meta().Get("x-cached-until"))
		require.Contains(t, te.Message(), "no stock figures")
	}
}

// Once: an unrelated change of the configuration brings back the limit of an
// export that a later one of the same service replaced.
func TestAttackTheLaterExportOfAServiceWins(t *testing.T) {
	service := serviceName()
	rt := guard.NewRuntime()
	former := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, map[string]string{"executes": "5"})}
	later := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, map[string]string{"executes": "1"})}
	require.NoError(t, former.call("SayHello", answer).Error())
	require.NoError(t, later.call("SayHello", answer).Error())
	rt.Store.Touch()
	require.NoError(t, later.call("SayHello", answer).Error())
	require.NoError(t, former.call("SayHello", answer).Error(), "a call that was still on its way in the former chain")
	release := later.hold(t, "SayHello", 1)
	err := later.call("SayHello", answer).Error()
	release()
	require.ErrorIs(t, err, call.ErrRejected)
}

// Once: dubbo's second metadata service.
func TestAttackAllInternalServicesAreKnown(t *testing.T) {
	require.True(t, guard.Internal(constant.MetadataServiceName))
	require.True(t, guard.Internal(constant.MetadataServiceV2Name))
}

// Once: a name that no label can hold gets a plan and figures of its own,
// which ends the process at the next scrape (see the root package's test).
func TestAttackNamesThatNoLabelHoldsShareTheEntryOfTheUnknown(t *testing.T) {
	rt := guard.NewRuntime()
	u := common.NewURLWithOptions(common.WithProtocol("dubbo"), common.WithPath("open.Service"), common.WithInterface("open.Service"),
		common.WithParamsValue("executes", "1"))
	c := &chain{rt, guard.New(rt, conf.Provider), u}
	c.call("bad\xffname", answer)
	c.call("two\nlines", answer)
	rt.Methods(func(m guard.MethodInfo) { require.Equal(t, "*", m.Method) })
}

func TestAttackTheLimitSurvivesItsChainsWhileCallsRun(t *testing.T) {
	service := serviceName()
	params := map[string]string{"executes": "3"}
	rt := guard.NewRuntime()
	release := (&chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, params)}).hold(t, "SayHello", 3)
	for range 20 {
		runtime.GC()
		c := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, params)}
		rt.Store.Touch()
		require.ErrorIs(t, c.call("SayHello", answer).Error(), call.ErrRejected)
		require.EqualValues(t, 3, c.figures("SayHello").Inflight)
	}
	release()
	c := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, params)}
	require.NoError(t, c.call("SayHello", answer).Error())
	require.Zero(t, c.figures("SayHello").Inflight)
}

func TestAttackChurnUnderLoadNeitherLeaksNorOverAdmits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	service := serviceName()
	rt := guard.NewRuntime()
	const limit = 4
	params := map[string]string{"executes": fmt.Sprint(limit)}
	var running, most, ended atomic.Int64
	f := func(ctx context.Context, inv base.Invocation) result.Result {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		defer running.Add(-1)
		runtime.Gosched()
		switch n := ended.Add(1); {
		case n%97 == 0:
			panic("boom")
		case n%89 == 0:
			runtime.Goexit()
		case n%83 == 0:
			return nil
		}
		return answer(ctx, inv)
	}
	stop := make(chan struct{})
	var churn sync.WaitGroup
	churn.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if rt.Store.Touch(); i%10 == 0 {
				runtime.GC()
			}
			runtime.Gosched()
		}
	})
	var wg sync.WaitGroup
	for p := range 16 {
		protocol := []string{"tri", "dubbo"}[p%2]
		wg.Go(func() {
			var c *chain
			for i := range 200 {
				if i%20 == 0 {
					c = &chain{rt, guard.New(rt, conf.Provider), newURL(protocol, service, params)}
				}
				method := []string{"SayHello", "sayHello"}[i%2]
				apart(func() { c.call(method, f) })
			}
		})
	}
	wg.Wait()
	close(stop)
	churn.Wait()
	require.LessOrEqual(t, most.Load(), int64(limit))
	c := &chain{rt, guard.New(rt, conf.Provider), newURL("tri", service, params)}
	release := c.hold(t, "SayHello", limit)
	require.ErrorIs(t, c.call("SayHello", answer).Error(), call.ErrRejected)
	release()
	require.Zero(t, c.figures("SayHello").Inflight)
}

func TestAttackSeveralStepsAndObserveAllocateNothing(t *testing.T) {
	for name, params := range map[string]map[string]string{
		"two steps":         {"executes": "100", "executes.scope": "service", "methods.SayHello.executes": "50"},
		"observe":           {"executes": "100", "executes.mode": "observe"},
		"stats alone":       {"weir.stats": "true"},
		"observed and over": {"executes": "1", "executes.mode": "observe"},
	} {
		t.Run(name, func(t *testing.T) {
			c := provider(params)
			inv := invocation.NewRPCInvocation("SayHello", nil, nil)
			res := &result.RPCResult{}
			end := &handler{*base.NewBaseInvoker(c.url), func(context.Context, base.Invocation) result.Result { return res }}
			if name == "observed and over" {
				defer c.hold(t, "SayHello", 1)()
				for range 100 { // past the first lines of the log
					c.guard.Invoke(context.Background(), end, inv)
				}
			}
			n := testing.AllocsPerRun(50, func() { c.guard.Invoke(context.Background(), end, inv) })
			require.Zero(t, n)
		})
	}
}

func TestAttackOddInvocationsDoNotPanic(t *testing.T) {
	for _, u := range []*common.URL{
		newURL("tri", serviceName(), map[string]string{"executes": "1"}),
		common.NewURLWithOptions(common.WithProtocol("dubbo"), common.WithPath("odd.Open"), common.WithParamsValue("executes", "1")),
		common.NewURLWithOptions(),
	} {
		rt := guard.NewRuntime()
		c := &chain{rt, guard.New(rt, conf.Provider), u}
		for _, inv := range []base.Invocation{
			invocation.NewRPCInvocation("", nil, nil),
			invocation.NewRPCInvocation(string(make([]byte, 1<<20)), nil, nil),
			invocation.NewRPCInvocation("$invoke", nil, nil),
			invocation.NewRPCInvocation("$invoke", []any{nil, nil, nil}, nil),
			invocation.NewRPCInvocation("$invoke", []any{1, 2, 3}, nil),
			invocation.NewRPCInvocation("$invokeAsync", []any{"SayHello", nil, nil}, map[string]any{"timeout": []string{}}),
			invocation.NewRPCInvocation("SayHello", nil, map[string]any{"timeout": map[any]any{}, "retries": 7}),
			&invocation.RPCInvocation{},
		} {
			require.NotPanics(t, func() { c.guard.Invoke(context.Background(), &handler{*base.NewBaseInvoker(u), answer}, inv) })
		}
	}
	c := provider(map[string]string{"executes": "1"})
	require.NotPanics(t, func() {
		c.guard.Invoke(context.Background(), &handler{base.BaseInvoker{}, answer}, invocation.NewRPCInvocation("SayHello", nil, nil))
	})
}

func TestAttackAHandlerThatReturnsTheConsumersWrapperIsNotRetriedUpstream(t *testing.T) {
	for _, params := range []map[string]string{nil, {"executes": "10"}} {
		c := provider(params)
		e := call.NewRejectError(call.RejectError{Guard: "executes", Resource: guard.ServiceOf(c.url).String() + "#SayHello", Reason: "concurrency"}, nil)
		for _, err := range []error{&retry.Last{Err: e}, fmt.Errorf("x: %w", &retry.Last{Err: e}), errors.Join(errors.New("x"), e)} {
			res := c.call("SayHello", func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: err} })
			var te *triple_protocol.Error
			require.ErrorAs(t, res.Error(), &te)
			require.Equal(t, triple_protocol.CodeBizError, te.Code())
			require.Equal(t, "true", te.Meta().Get("weir-forwarded"))
			_, text, ok := guard.DubboException(res.Error())
			require.True(t, ok)
			got, ok := call.Parse(text)
			require.True(t, ok)
			require.True(t, got.Forwarded)
		}
	}
}
