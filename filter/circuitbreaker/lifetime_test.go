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
	"runtime"
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
	"github.com/weir-go/weir/filter/circuitbreaker"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/breaker"
)

// A reference that does not say which methods it has makes the plan of a method at
// its first call. After a change of the configuration nobody held the breakers of
// those that had not been called again.
func TestRegression_BreakersOfOpenChainsSurviveAChange(t *testing.T) {
	c := newChain(t, conf.Consumer, nil)
	c.url.Methods = nil
	c.url.SetParam(constant.MethodsKey, "")
	c.configure(t, "breaker: {consecutive-errors: 2}")
	c.calls(t, 2, broken)
	c.mustRefuse(t)
	c.configure(t, "breaker: {consecutive-errors: 3}")
	require.NoError(t, c.callCtx(context.Background(), "Other", answer))
	for range 3 {
		runtime.GC()
	}
	c.mustRefuse(t)
	runtime.KeepAlive(c.guard)
}

// What the first plan of a method does to its breaker is told as any other change.
func TestRegression_TheFirstChangeIsCountedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Consumer, exact("force=open"))
		var got []circuitbreaker.Event
		stop := circuitbreaker.Subscribe(c.rt, func(e circuitbreaker.Event) { got = append(got, e) })
		defer stop()
		c.mustRefuse(t)
		synctest.Wait()
		var methods []string
		for _, e := range got {
			methods = append(methods, e.Method)
		}
		assert.ElementsMatch(t, []string{"Echo", "Other", "*"}, methods)
		opened := int64(0)
		circuitbreaker.AllChanges(c.rt, func(k circuitbreaker.ChangesKey, ch *circuitbreaker.Changes) {
			if k.Method == "Echo" {
				opened = ch.To(breaker.Open)
			}
		})
		assert.EqualValues(t, 1, opened)
		runtime.KeepAlive(c.guard)
	})
}

// A provider that comes again begins with a closed breaker: whether it did was up to
// the garbage collector, and to calls to the one before that still ran.
func TestRegression_AProviderThatComesAgain(t *testing.T) {
	c := newChain(t, conf.Consumer, exact("consecutive-errors=1"))
	through := func(c *chain, next *end) error {
		return c.guard.Invoke(context.Background(), next, invocation.NewRPCInvocation("Echo", nil, map[string]any{})).Error()
	}
	first, twin := c.at("20001"), c.at("20001")
	gone := &end{*base.NewBaseInvoker(first.url), broken}
	left := &end{*base.NewBaseInvoker(twin.url), answer}
	require.ErrorIs(t, through(first, gone), errBroken)
	require.ErrorIs(t, through(twin, left), call.ErrRejected, "two chains of one provider share a breaker")
	gone.Destroy()
	third := c.at("20001")
	next := &end{*base.NewBaseInvoker(third.url), answer}
	require.ErrorIs(t, through(third, next), call.ErrRejected, "one of those before is still there")
	left.Destroy()
	next.Destroy()
	c.at("20001").calls(t, 1, answer)
	runtime.KeepAlive([]*guard.Guard{first.guard, twin.guard, third.guard})
}

// The breaker of a whole service is the reference's: it stays when providers go.
func TestTheBreakerOfAServiceOutlivesItsProviders(t *testing.T) {
	c := newChain(t, conf.Consumer, exact("consecutive-errors=1", "scope=service"))
	first := c.at("20001")
	gone := &end{*base.NewBaseInvoker(first.url), broken}
	require.ErrorIs(t, first.guard.Invoke(context.Background(), gone, invocation.NewRPCInvocation("Echo", nil, map[string]any{})).Error(), errBroken)
	gone.Destroy()
	first = nil
	for range 3 {
		runtime.GC()
	}
	c.at("20001").mustRefuse(t)
}

// On a provider a call of a stream lasts until the stream ends. Twenty that stayed
// open were slow calls, and one that probed had failed after 30 s, so that the
// breaker never closed.
func TestRegression_StreamsOfProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Provider, exact("consecutive-errors=1", "slow-ratio=50%", "slow-call=1s", "min-calls=4"))
		c.url.SetAttribute(constant.ServiceInfoKey, &common.ServiceInfo{Methods: []common.MethodInfo{
			{Name: "Echo", Type: constant.CallServerStream}, {Name: "Other", Type: constant.CallUnary},
		}})
		gate, done := make(chan struct{}), make(chan error)
		stay := func(ctx context.Context, inv base.Invocation) result.Result { <-gate; return answer(ctx, inv) }
		open := func(method string) {
			go func() { done <- c.callCtx(context.Background(), method, stay) }()
			synctest.Wait()
		}
		for range 20 {
			open("Echo")
			open("Other")
		}
		sleep(time.Minute)
		c.calls(t, 1, answer)
		require.Zero(t, c.stats(t).Hung)
		e, refused := call.As(c.callCtx(context.Background(), "Other", answer))
		require.True(t, refused, "calls that are none still hang")
		require.Equal(t, call.ReasonSlowRatio, e.Reason)

		c.calls(t, 1, broken)
		c.mustRefuse(t)
		sleep(5 * time.Second)
		open("Echo")
		c.mustRefuse(t)
		sleep(30 * time.Second)
		c.calls(t, 1, answer)
		require.Equal(t, breaker.Closed, c.stats(t).State, "the stream that probed is well")
		close(gate)
		for range 41 {
			require.NoError(t, <-done)
		}
		require.Zero(t, c.stats(t).Slow)
		runtime.KeepAlive(c.guard)
	})
}
