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
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
	"github.com/weir-go/weir/tps"
)

// tpsOf are the params of a budget that lasts for the whole test.
func tpsOf(n string) map[string]string { return map[string]string{"tps": n, "tps.interval": "1h"} }

// overRate requires that an error is the very refusal of a budget.
func overRate(t *testing.T, err error, group, method string, limit int64) call.RejectError {
	t.Helper()
	require.Error(t, err)
	e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
	require.True(t, ok, "%T %v", err, err)
	require.ErrorIs(t, err, call.ErrRejected)
	require.Equal(t, "tps", e.Guard)
	require.Equal(t, serviceOf(group), e.Service())
	require.True(t, conf.SameMethod(method, e.Method()), e.Method())
	require.Equal(t, call.ReasonRate, e.Reason)
	require.Equal(t, limit, e.Limit)
	require.Equal(t, limit, e.Observed)
	require.Positive(t, e.RetryAfter)
	require.LessOrEqual(t, e.RetryAfter, time.Hour+time.Millisecond, "it is not rounded up to more than the interval")
	require.Zero(t, e.Waited)
	require.Zero(t, e.MaxWait)
	require.False(t, e.Forwarded)
	require.NotContains(t, err.Error(), "127.0.0.1")
	return *e
}

// spend makes calls of SayHello one after the other and parts their errors.
func spend(c *harness.Consumer, n int) (served int, refusals []error) {
	for range n {
		if _, err := c.SayHello(background, "x"); err == nil {
			served++
		} else {
			refusals = append(refusals, err)
		}
	}
	return served, refusals
}

// shape is what of a refusal must be the same over either protocol.
func shape(e call.RejectError) call.RejectError {
	return call.RejectError{Guard: e.Guard, Reason: e.Reason, Limit: e.Limit, Observed: e.Observed, RetryAfter: e.RetryAfter}
}

func TestAProvidersTPSHoldsExactly(t *testing.T) {
	const n = 4
	shapes := map[call.RejectError]bool{}
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: tpsOf("4")})
		c := p.Dial(t) // with dubbo's default of two retries
		served, refusals := spend(c, 3*n)
		require.Equal(t, n, served)
		require.Len(t, refusals, 2*n)
		for _, err := range refusals {
			shapes[shape(overRate(t, err, p.Group, "*", n))] = true
		}
		require.Equal(t, n, p.Handler.Stats("").Total, "a refused call never reaches the handler")
		require.Equal(t, n, weirCalls(t, "provider", p.Group, "SayHello", "success"))
		require.Equal(t, 2*n, weirCalls(t, "provider", p.Group, "SayHello", "rejected"), "it reaches the provider once")
	})
	// N15. An hour less what the test takes is one step of retry-after.
	require.Len(t, shapes, 1)
}

func TestABurstIsAdmittedUpToTPS(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: tpsOf("50")})
		c := p.Dial(t)
		calls := harness.Go(200, func(int) error {
			_, err := c.SayHello(background, "x")
			return err
		})
		require.Equal(t, 150, harness.Failed(calls.Wait(t)))
		require.Equal(t, 50, p.Handler.Stats("").Total)
	})
}

func TestAConsumersTPSNeverReachesTheProvider(t *testing.T) {
	const n = 4
	shapes := map[call.RejectError]bool{}
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{"weir.stats": "true"}})
		c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{p.Endpoint}, Params: tpsOf("4")})
		served, refusals := spend(c, 3*n)
		require.Equal(t, n, served)
		require.Len(t, refusals, 2*n)
		for _, err := range refusals {
			shapes[shape(overRate(t, err, p.Group, "*", n))] = true
			require.ErrorIs(t, err, tps.ErrLimitReached, "it was made here")
		}
		require.Equal(t, n, p.Handler.Stats("").Total)
		require.Equal(t, n, weirCalls(t, "provider", p.Group, "SayHello", "success"))
		require.Zero(t, weirCalls(t, "provider", p.Group, "SayHello", "rejected"))
		at := map[string]string{"side": "consumer", "service": p.Group, "method": "SayHello", "guard": "tps"}
		require.EqualValues(t, 2*n, metric(t, "weir_rejected_total", at), "no call is tried again")
		runtime.KeepAlive(c) // the counts of a reference go with it

		// The budget is the reference's.
		served, _ = spend(p.Dial(t), n)
		require.Equal(t, n, served)
	})
	require.Len(t, shapes, 1)
}

func TestAConsumersTPSIsNotTriedElsewhere(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		group := harness.NewGroup()
		var endpoints []harness.Endpoint
		var providers []*harness.ChildProvider
		for range 2 {
			p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group})
			providers, endpoints = append(providers, p), append(endpoints, p.Endpoint)
		}
		c := harness.Dial(t, harness.ConsumerConfig{Providers: endpoints, Params: tpsOf("6")})
		served, refusals := spend(c, 18)
		require.Equal(t, 6, served)
		for _, err := range refusals {
			overRate(t, err, group, "*", 6)
		}
		require.Equal(t, 6, providers[0].Stats("").Total+providers[1].Stats("").Total)
		at := map[string]string{"side": "consumer", "service": group, "guard": "tps"}
		require.EqualValues(t, 12, metric(t, "weir_rejected_total", at), "the reference has one budget for both")
		runtime.KeepAlive(c)
	})
}

func TestABudgetIsOfAMethodOrShared(t *testing.T) { // L6, N9
	for name, tt := range map[string]struct {
		params               map[string]string
		sayHello, echo       int
		ofSayHello, ofEcho   string
		limitHello, limitEco int64
	}{
		"of methods": {
			map[string]string{"methods.SayHello.tps": "2", "methods.SayHello.tps.interval": "1h", "methods.Echo.tps": "3", "methods.Echo.tps.interval": "1h"},
			2, 3, "SayHello", "Echo", 2, 3,
		},
		"shared": {tpsOf("4"), 2, 2, "*", "*", 4, 4},
		"of one method besides the service's": {
			map[string]string{"tps": "4", "tps.interval": "1h", "methods.Echo.tps": "1"}, 4, 1, "*", "Echo", 4, 1,
		},
	} {
		for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
			t.Run(name+"/"+side.String(), func(t *testing.T) {
				eachProtocol(t, func(t *testing.T, protocol string) {
					var atProvider, atConsumer map[string]string
					if side == conf.Provider {
						atProvider = tt.params
					} else {
						atConsumer = tt.params
					}
					p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: atProvider})
					c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{p.Endpoint}, Params: atConsumer})
					var lastHello, lastEcho error
					for range 8 { // called alternately
						_, lastHello = c.SayHello(background, "x")
						_, lastEcho = c.Echo(background, "x")
					}
					overRate(t, lastHello, p.Group, tt.ofSayHello, tt.limitHello)
					overRate(t, lastEcho, p.Group, tt.ofEcho, tt.limitEco)
					require.Equal(t, tt.sayHello, p.Handler.Stats("SayHello").Total)
					require.Equal(t, tt.echo, p.Handler.Stats("Echo").Total)
				})
			})
		}
	}
}

func TestAMethodIsReportedByTheNameThatIsConfiguredAndCalled(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{p.Endpoint}, Params: map[string]string{
			"methods.SayHello.tps": "1", "methods.SayHello.tps.interval": "1h",
		}})
		_, refusals := spend(c, 2)
		e, ok := weir.AsRejected(refusals[0])
		require.True(t, ok)
		require.Equal(t, "SayHello", e.Method())
		require.Equal(t, 1, weirCalls(t, "consumer", p.Group, "SayHello", "rejected"))
		runtime.KeepAlive(c)
	})
}

func TestAServiceOnTwoProtocolsHasOneBudget(t *testing.T) {
	const n = 5
	group := harness.NewGroup()
	handler := &harness.Handler{}
	var consumers []*harness.Consumer
	for _, protocol := range harness.Protocols {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Group: group, Handler: handler, Params: tpsOf("5")})
		consumers = append(consumers, p.Dial(t))
	}
	refused := 0
	for range n { // 2n calls
		for _, c := range consumers {
			if _, err := c.SayHello(background, "x"); err != nil {
				overRate(t, err, group, "*", n)
				refused++
			}
		}
	}
	require.Equal(t, n, refused)
	require.Equal(t, n, handler.Stats("").Total)
	for _, c := range consumers {
		_, err := c.SayHello(background, "x")
		overRate(t, err, group, "*", n)
	}
}

func TestTPSObservesAndIsOffWhileServing(t *testing.T) {
	const n = 3
	eachProtocol(t, func(t *testing.T, protocol string) {
		t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
		require.NoError(t, weir.Configure(conf.Config{Mode: conf.Observe}))
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: tpsOf("3")})
		c := p.Dial(t)
		served, refusals := spend(c, 3*n)
		require.Equal(t, 3*n, served, "%v", refusals)
		at := map[string]string{"side": "provider", "service": p.Group, "method": "SayHello", "guard": "tps"}
		require.EqualValues(t, 2*n, metric(t, "weir_would_reject_total", at))
		require.Zero(t, metric(t, "weir_rejected_total", at))

		// What was observed was counted as if it were enforced.
		require.NoError(t, weir.Configure(conf.Config{}))
		served, refusals = spend(c, n)
		require.Zero(t, served)
		for _, err := range refusals {
			overRate(t, err, p.Group, "*", n)
		}
		require.NoError(t, weir.Configure(conf.Config{Mode: conf.Off}))
		served, refusals = spend(c, 3*n)
		require.Equal(t, 3*n, served, "%v", refusals)

		// Nothing was counted meanwhile; the count may have begun anew.
		require.NoError(t, weir.Configure(conf.Config{}))
		served, refusals = spend(c, 2*n)
		require.LessOrEqual(t, served, n)
		for _, err := range refusals {
			overRate(t, err, p.Group, "*", n)
		}
	})
}

func TestTPSMayChangeWhileServing(t *testing.T) { // L4
	eachProtocol(t, func(t *testing.T, protocol string) {
		t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: tpsOf("2")})
		c := p.Dial(t)
		served, _ := spend(c, 6)
		require.Equal(t, 2, served)
		limit, interval := 20, time.Hour
		require.NoError(t, weir.Configure(conf.Config{Provider: conf.Section{Services: map[string]conf.Service{
			serviceOf(p.Group): {Policies: conf.Policies{TPS: &conf.TPS{Limit: &limit, Interval: &interval}}},
		}}}))
		served, refusals := spend(c, 30)
		require.Equal(t, 18, served, "those that were admitted before count")
		overRate(t, refusals[0], p.Group, "*", 20)
	})
}

func TestARefusalInsideAHandlerIsForwarded(t *testing.T) {
	// The middle service is refused by the service that it calls, or by a guard of its
	// own reference, which for the caller is the same.
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		for _, downProtocol := range harness.Protocols {
			t.Run(side.String()+"/"+downProtocol, func(t *testing.T) {
				eachProtocol(t, func(t *testing.T, protocol string) {
					params := map[conf.Side]map[string]string{side: tpsOf("1")}
					down := harness.StartProvider(t, harness.ProviderConfig{Protocol: downProtocol, Params: params[conf.Provider]})
					fromMiddle := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{down.Endpoint}, Params: params[conf.Consumer]})
					handler := &harness.Handler{Func: func(_ context.Context, _, arg string) (string, error) {
						return fromMiddle.SayHello(background, arg)
					}}
					middle := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Handler: handler, Params: tpsOf("100")})
					top := middle.Dial(t, client.WithParam("weir.stats", "true"))
					_, err := top.SayHello(background, "x")
					require.NoError(t, err)
					for n := 2; n <= 5; n++ {
						_, err := top.SayHello(background, "x")
						e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
						require.True(t, ok, "%T %v", err, err)
						require.True(t, e.Forwarded)
						require.Equal(t, "tps", e.Guard)
						require.Equal(t, call.Resource(serviceOf(down.Group), "*"), e.Resource)
						require.EqualValues(t, 1, e.Limit)
						require.Positive(t, e.RetryAfter)
						require.Equal(t, n, middle.Handler.Stats("SayHello").Total, "the middle service runs once per call")
					}
					require.Equal(t, 4, weirCalls(t, "provider", middle.Group, "SayHello", "forwarded"))
					require.Equal(t, 4, weirCalls(t, "consumer", middle.Group, "SayHello", "forwarded"))
					runtime.KeepAlive(top)
					require.Equal(t, 1, down.Handler.Stats("").Total)
				})
			})
		}
	}
}

func TestTPSCountsTheOpeningOfAStream(t *testing.T) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		t.Run(side.String(), func(t *testing.T) {
			params := map[conf.Side]map[string]string{side: tpsOf("2")}
			p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Triple, Params: params[conf.Provider]})
			c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{p.Endpoint}, Params: params[conf.Consumer]})
			chat := func() (err error) {
				stream, err := c.Stub().Chat(background)
				for i := 0; err == nil && i < 5; i++ { // messages are not counted
					if err = stream.Send(&greet.HelloRequest{Name: "x"}); err == nil || errors.Is(err, io.EOF) {
						_, err = stream.Recv()
					}
				}
				if stream != nil {
					_ = stream.CloseRequest()
				}
				return err
			}
			require.NoError(t, chat())
			require.NoError(t, chat())
			e, ok := weir.AsRejected(chat())
			require.True(t, ok)
			require.Equal(t, "tps", e.Guard)
			require.EqualValues(t, 2, e.Limit)
			require.Positive(t, e.RetryAfter)
			require.Equal(t, 2, p.Handler.Stats("Chat").Total)
		})
	}
}
