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

package limits

import (
	"context"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/server"
	hessian "github.com/apache/dubbo-go-hessian2"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/integration_test/harness"
)

// chained is a middle service that calls a full one and passes on what it gets.
func chained(t *testing.T, protocol, downProtocol string, wrap func(error) error) (middle *harness.Provider, top *harness.Consumer, release func()) {
	t.Helper()
	down := harness.StartProvider(t, harness.ProviderConfig{Protocol: downProtocol, Params: map[string]string{"executes": "1"}})
	fromMiddle := down.Dial(t)
	held := hold(t, down, fromMiddle, 1, "g")
	handler := &harness.Handler{}
	handler.Func = func(ctx context.Context, _, arg string) (string, error) {
		// A context of its own: what came in must not decide how the call goes out.
		text, err := fromMiddle.SayHello(context.WithoutCancel(background), arg)
		if err != nil {
			err = wrap(err)
		}
		return text, err
	}
	middle = harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Handler: handler})
	return middle, middle.Dial(t), func() {
		down.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
	}
}

func TestARefusalFromFurtherDownRunsTheMiddleOnce(t *testing.T) {
	plain := func(err error) error { return err }
	for _, downProtocol := range harness.Protocols {
		eachProtocol(t, func(t *testing.T, protocol string) {
			middle, top, release := chained(t, protocol, downProtocol, plain)
			defer release()
			for n := 1; n <= 5; n++ {
				_, err := top.SayHello(background, "x")
				e, ok := weir.AsRejected(err)
				require.True(t, ok, "%T %v", err, err)
				require.True(t, e.Forwarded)
				require.Equal(t, "executes", e.Guard)
				require.EqualValues(t, 1, e.Limit)
				require.False(t, strings.HasPrefix(e.Resource, middle.Group+"/"), "the resource is the one further down")
				require.Equal(t, n, middle.Handler.Stats("SayHello").Total, "the middle service runs once per call")
			}
		})
	}
}

func TestAProviderKilledInTheMiddle(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		harness.SkipUnderRaceDetector(t, protocol)
		group := harness.NewGroup()
		params := map[string]string{"executes": "5"}
		doomed := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group, Params: params})
		healthy := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group, Params: params})
		c := harness.Dial(t, harness.ConsumerConfig{
			Providers: []harness.Endpoint{doomed.Endpoint, healthy.Endpoint},
			Params:    map[string]string{"weir.stats": "true"},
		})
		alone := doomed.Dial(t, client.WithRetries(0), client.WithParam("weir.stats", "true"))
		held := harness.Go(3, func(int) error {
			ctx, cancel := context.WithTimeout(background, harnessTimeout)
			defer cancel()
			_, err := alone.SayHello(ctx, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "calls are held", func() bool { return doomed.Stats("").Running == 3 })
		doomed.Kill()
		for _, err := range held.Wait(t) {
			require.Error(t, err)
			require.False(t, weir.IsRejected(err), "a dead provider is no refusal: %v", err)
		}
		for range 20 {
			ctx, cancel := context.WithTimeout(background, harnessTimeout)
			_, err := c.SayHello(ctx, "x")
			cancel()
			require.NoError(t, err, "the other provider serves")
		}
		harness.Eventually(t, "nothing is left in flight", func() bool { return weirInflight(t, "consumer", group, "SayHello") == 0 })
	})
}

func TestOneWayAndGenericCallsAreCountedAndReleased(t *testing.T) { // N23
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Dubbo, Params: map[string]string{"methods.SayHello.executes": "1"}})
	c := p.Dial(t)
	oneWay := p.Dial(t, client.WithAsync(), client.WithRetries(0))
	for n := 1; n <= 3; n++ {
		_, _ = oneWay.SayHello(background, "x")
		harness.Eventually(t, "the call ran and gave its slot back", func() bool {
			return p.Handler.Stats("SayHello").Total == n && weirInflight(t, "provider", p.Group, "SayHello") == 0
		})
	}
	require.Equal(t, 3, weirCalls(t, "provider", p.Group, "SayHello", "success"))

	cli, err := client.NewClient()
	require.NoError(t, err)
	generic, err := cli.NewGenericService("greet.GreetService",
		client.WithURL(p.URL()), client.WithProtocolDubbo(), client.WithGroup(p.Group), client.WithGenericType("true"),
		client.WithSerialization(constant.Hessian2Serialization))
	require.NoError(t, err)
	held := hold(t, p, c, 1, "g")
	for _, spelling := range []string{"SayHello", "sayHello"} {
		_, err = generic.Invoke(background, spelling, []string{"java.lang.String"}, []hessian.Object{"x"})
		e, ok := weir.AsRejected(err)
		require.True(t, ok, "%T %v", err, err)
		require.Equal(t, "SayHello", e.Method(), "a generic call counts under the real method")
		require.False(t, e.Forwarded)
	}
	p.Handler.Open("g")
	require.Zero(t, harness.Failed(held.Wait(t)))
	_, err = generic.Invoke(background, "SayHello", []string{"java.lang.String"}, []hessian.Object{"x"})
	require.NoError(t, err)
}

func TestForkingAndBroadcastGiveEverythingBack(t *testing.T) {
	for _, cluster := range []string{constant.ClusterKeyForking, constant.ClusterKeyBroadcast, constant.ClusterKeyFailsafe} {
		t.Run(cluster, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol string) {
				group := harness.NewGroup()
				var endpoints []harness.Endpoint
				for range 2 {
					endpoints = append(endpoints, harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group, Params: map[string]string{"executes": "1"}}).Endpoint)
				}
				c := harness.Dial(t, harness.ConsumerConfig{Providers: endpoints, Reference: []client.ReferenceOption{
					client.WithParam("weir.stats", "true"), client.WithCluster(cluster),
				}})
				calls := harness.Go(50, func(int) error {
					_, err := c.SayHello(background, "x")
					if err != nil && !weir.IsRejected(err) {
						return err
					}
					return nil
				})
				require.Empty(t, errorsOf(calls.Wait(t)))
				harness.Eventually(t, "nothing is left in flight", func() bool { return weirInflight(t, "consumer", group, "SayHello") == 0 })
			})
		})
	}
}

func errorsOf(errs []error) []string {
	var out []string
	for _, err := range errs {
		if err != nil {
			out = append(out, err.Error())
		}
	}
	return out
}

func TestCallsLeaveNoGoroutinesBehind(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{"executes": "2"}})
		c := p.Dial(t)
		for range 10 {
			harness.Go(200, func(int) error { _, err := c.SayHello(background, "x"); return err }).Wait(t)
		}
		// dubbo-go opens its sessions one after the other meanwhile, so a count of
		// all goroutines says little: look for those with a frame of Weir's.
		harness.Eventually(t, "no goroutine is in Weir any more", func() bool { return weirGoroutines(t) == "" })
	})
}

// weirGoroutines are the stacks in which a call is in one of Weir's filters.
func weirGoroutines(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&all, 2))
	var out []string
	for _, stack := range strings.Split(all.String(), "\n\n") {
		if strings.Contains(stack, "weir/filter/guard.") || strings.Contains(stack, "weir/internal/retry.") {
			out = append(out, stack)
		}
	}
	return strings.Join(out, "\n\n")
}

func TestAFilterOfTheProvidersListRunsOncePerCall(t *testing.T) { // H11
	var calls atomic.Int64
	extension.SetFilter("counting", func() filter.Filter { return countingFilter{&calls} })
	eachProtocol(t, func(t *testing.T, protocol string) {
		calls.Store(0)
		p := harness.StartProvider(t, harness.ProviderConfig{
			Protocol: protocol, Params: map[string]string{"executes": "1"},
			Server: []server.ServerOption{server.WithServerFilter("echo,counting")},
		})
		c := p.Dial(t)
		_, err := c.SayHello(background, "x")
		require.NoError(t, err)
		require.EqualValues(t, 1, calls.Load(), "the service inherits the provider's list")
		held := hold(t, p, c, 1, "g")
		_, err = c.SayHello(background, "x")
		refused(t, err, p.Group, "SayHello", 1)
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
	})
}

type countingFilter struct{ calls *atomic.Int64 }

func (f countingFilter) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	f.calls.Add(1)
	return next.Invoke(ctx, inv)
}

func (countingFilter) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}
