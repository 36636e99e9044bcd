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
	"fmt"
	"runtime"
	"strings"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"dubbo.apache.org/dubbo-go/v3/server"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

var background = context.Background()

// hold makes n calls that stay in the provider's handler until the gate opens.
func hold(t *testing.T, p *harness.Provider, c *harness.Consumer, n int, gate string) *harness.Calls {
	t.Helper()
	before := p.Handler.Stats("").Running
	calls := harness.Go(n, func(int) error {
		_, err := c.SayHello(background, harness.Hold(gate))
		return err
	})
	harness.Eventually(t, "calls are held", func() bool { return p.Handler.Stats("").Running == before+n })
	return calls
}

// refused requires that an error is the very refusal that the provider made.
func refused(t *testing.T, err error, group, method string, limit int64) {
	t.Helper()
	require.Error(t, err)
	require.True(t, weir.IsRejected(err), "%T %v", err, err)
	e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
	require.True(t, ok, "%T %v", err, err)
	require.ErrorIs(t, err, call.ErrRejected)
	require.Equal(t, "executes", e.Guard)
	require.Equal(t, group+"/"+greet.GreetServiceName+"#"+method, e.Resource)
	require.Equal(t, "concurrency", e.Reason)
	require.Equal(t, limit, e.Limit)
	require.Equal(t, limit, e.Observed)
	require.Zero(t, e.RetryAfter)
	require.False(t, e.Forwarded)
	require.NotContains(t, err.Error(), "127.0.0.1")
}

func TestExecutesHoldsExactly(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{
			"executes": "7", "methods.SayHello.executes": "3",
		}})
		c := p.Dial(t)
		for round := range 3 {
			gate := fmt.Sprint("g", round)
			held := hold(t, p, c, 3, gate)
			over := harness.Go(20, func(int) error {
				_, err := c.SayHello(background, "x")
				return err
			})
			for _, err := range over.Wait(t) {
				refused(t, err, p.Group, "SayHello", 3)
			}
			text, err := c.Echo(background, "another method")
			require.NoError(t, err)
			require.Equal(t, "another method", text)
			p.Handler.Open(gate)
			require.Zero(t, harness.Failed(held.Wait(t)))
		}
		stats := p.Handler.Stats("SayHello")
		require.Equal(t, 3, stats.MaxRunning)
		require.Equal(t, 9, stats.Total, "a refused call never reaches the handler")
	})
}

func TestABurstIsAdmittedUpToTheLimit(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{"executes": "5"}})
		c := p.Dial(t)
		calls := harness.Go(200, func(int) error {
			_, err := c.SayHello(background, harness.Hold("burst"))
			return err
		})
		harness.Eventually(t, "all are decided", func() bool {
			return weirCalls(t, "provider", p.Group, "SayHello", "rejected") == 195
		})
		p.Handler.Open("burst")
		require.Equal(t, 195, harness.Failed(calls.Wait(t)))
		require.Equal(t, 5, p.Handler.Stats("SayHello").MaxRunning)
	})
}

func TestOneFullProviderOfTwoCostsNobodyACall(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		group := harness.NewGroup()
		full := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group, Params: map[string]string{"executes": "1"}})
		free := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group})
		alone := full.Dial(t)
		held := harness.Go(1, func(int) error {
			_, err := alone.SayHello(background, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "the slot is taken", func() bool { return full.Stats("").Running == 1 })
		c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{full.Endpoint, free.Endpoint}})
		calls := harness.Go(100, func(int) error {
			_, err := c.SayHello(background, "x")
			return err
		})
		require.Zero(t, harness.Failed(calls.Wait(t)))
		require.Equal(t, 100, free.Stats("SayHello").Total)
		require.Equal(t, 1, full.Stats("SayHello").Total)
		full.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
	})
}

func TestBothFullAreHitOnceEach(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		group := harness.NewGroup()
		var providers []*harness.ChildProvider
		var endpoints []harness.Endpoint
		var held []*harness.Calls
		for range 2 {
			p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group, Params: map[string]string{"executes": "1"}})
			alone := p.Dial(t)
			held = append(held, harness.Go(1, func(int) error {
				_, err := alone.SayHello(background, harness.Hold("g"))
				return err
			}))
			harness.Eventually(t, "the slot is taken", func() bool { return p.Stats("").Running == 1 })
			providers, endpoints = append(providers, p), append(endpoints, p.Endpoint)
		}
		c := harness.Dial(t, harness.ConsumerConfig{Providers: endpoints})
		for range 200 {
			_, err := c.SayHello(background, "x")
			refused(t, err, group, "SayHello", 1)
		}
		for i, p := range providers {
			p.Open("g")
			require.Zero(t, harness.Failed(held[i].Wait(t)))
			require.Equal(t, 1, p.Stats("SayHello").Total)
		}
	})
}

func TestAHandlerThatPanicsGivesItsSlotBack(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{"executes": "1"}})
		c := p.Dial(t, client.WithRetries(0))
		for range 5 {
			_, err := c.SayHello(background, harness.Panic("boom"))
			require.Error(t, err)
			require.False(t, weir.IsRejected(err), "%v", err)
		}
		for range 5 {
			_, err := c.SayHello(background, harness.Fail("no such user"))
			require.ErrorContains(t, err, "no such user")
			require.False(t, weir.IsRejected(err))
		}
		greeting, err := c.SayHello(background, "x")
		require.NoError(t, err)
		require.Equal(t, "hello x", greeting)
		harness.Eventually(t, "nothing runs", func() bool { return weirInflight(t, "provider", p.Group, "SayHello") == 0 })
	})
}

func TestLimitsAndModeChangeWhileServing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{"executes": "1"}})
		c := p.Dial(t)
		held := hold(t, p, c, 1, "g")
		ask := func() error {
			_, err := c.SayHello(background, "x")
			return err
		}
		refused(t, ask(), p.Group, "SayHello", 1)
		rule := func(limit int, mode conf.Mode) conf.Config {
			return conf.Config{Provider: conf.Section{Services: map[string]conf.Service{
				p.Group + "/" + greet.GreetServiceName: {Policies: conf.Policies{Executes: &conf.Executes{Limit: &limit, Mode: mode}}},
			}}}
		}
		require.NoError(t, weir.Configure(rule(2, "")))
		require.NoError(t, ask())
		require.NoError(t, weir.Configure(rule(1, conf.Observe)))
		require.NoError(t, ask())
		require.NoError(t, weir.Configure(conf.Config{Mode: conf.Off}))
		require.NoError(t, ask())
		require.Error(t, weir.Configure(conf.Config{Mode: "of"}))
		require.NoError(t, weir.Configure(conf.Config{}))
		refused(t, ask(), p.Group, "SayHello", 1)
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
	})
}

func TestAStreamHoldsItsSlotUntilItEnds(t *testing.T) {
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Triple, Params: map[string]string{"methods.Chat.executes": "1"}})
	c := p.Dial(t)
	first, err := c.Stub().Chat(background)
	require.NoError(t, err)
	require.NoError(t, first.Send(&greet.HelloRequest{Name: "a"}))
	reply, err := first.Recv()
	require.NoError(t, err)
	require.Equal(t, "hello a", reply.GetGreeting())

	second, err := c.Stub().Chat(background)
	if err == nil {
		_ = second.Send(&greet.HelloRequest{Name: "b"})
		_, err = second.Recv()
	}
	e, ok := weir.AsRejected(err)
	require.True(t, ok, "%T %v", err, err)
	require.Equal(t, "Chat", e.Method())
	require.False(t, e.Forwarded)

	require.NoError(t, first.CloseRequest())
	_, err = first.Recv()
	require.Error(t, err)
	harness.Eventually(t, "the stream's slot is free", func() bool { return weirInflight(t, "provider", p.Group, "Chat") == 0 })
	third, err := c.Stub().Chat(background)
	require.NoError(t, err)
	require.NoError(t, third.Send(&greet.HelloRequest{Name: "c"}))
	reply, err = third.Recv()
	require.NoError(t, err)
	require.Equal(t, "hello c", reply.GetGreeting())
	require.NoError(t, third.CloseRequest())
}

func TestARefusalWithoutWeirOnTheConsumer(t *testing.T) {
	for protocol, check := range map[string]func(*testing.T, error){
		harness.Triple: func(t *testing.T, err error) {
			var te *triple_protocol.Error
			require.ErrorAs(t, err, &te)
			require.Equal(t, triple_protocol.CodeResourceExhausted, te.Code())
			require.Equal(t, "executes", te.Meta().Get("weir-guard"))
		},
		harness.Dubbo: func(t *testing.T, err error) {
			require.ErrorContains(t, err, "org.apache.dubbo.rpc.RpcException")
			require.ErrorContains(t, err, "weir: call refused: guard=executes")
		},
	} {
		t.Run(protocol, func(t *testing.T) {
			p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{"executes": "1"}})
			held := hold(t, p, p.Dial(t), 1, "g")
			require.NoError(t, weir.Configure(conf.Config{AutoChain: conf.Of(false)}))
			t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
			c := p.Dial(t, client.WithRetries(0))
			_, err := c.SayHello(background, "x")
			check(t, err)
			_, ok := weir.AsRejected(err)
			require.True(t, ok, "AsRejected reads what came over the wire")
			p.Handler.Open("g")
			require.Zero(t, harness.Failed(held.Wait(t)))
		})
	}
}

func TestWhatIsWrongIsSaidBeforeTheServiceServes(t *testing.T) {
	for name, tt := range map[string]struct {
		params map[string]string
		server []server.ServiceOption
		says   []string
	}{
		"a limit that is no number": {
			params: map[string]string{"methods.SayHello.executes": "ten"},
			says:   []string{"method=SayHello", "key=executes", `value="ten"`, "allowed: a whole number"},
		},
		"an unknown filter": {
			server: []server.ServiceOption{server.WithFilter("echo,typo")},
			says:   []string{"service.filter", `value="typo"`, "no filter of that name"},
		},
	} {
		eachProtocol(t, func(t *testing.T, protocol string) {
			_, err := harness.TryStartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: tt.params, Service: tt.server})
			require.Error(t, err, name)
			var e *conf.Error
			require.ErrorAs(t, err, &e, name)
			for _, text := range tt.says {
				require.ErrorContains(t, err, text)
			}
		})
	}
}

func TestAReferenceMadeWhileServingTakesNothingDown(t *testing.T) {
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Triple})
	_, err := p.Dial(t).SayHello(background, "x")
	require.NoError(t, err)
	before := metric(t, "weir_config_errors_total", nil)
	late := p.Dial(t, client.WithParam("weir.retry-refused", "2"))
	require.InDelta(t, before+1, metric(t, "weir_config_errors_total", nil), 0)
	_, err = late.SayHello(background, "x")
	require.NoError(t, err)
}

func TestAUsersListOfFiltersKeepsWeirInTheChain(t *testing.T) { // H11
	eachProtocol(t, func(t *testing.T, protocol string) {
		for _, list := range []string{"echo", "echo,weir", "executelimit,echo"} {
			p := harness.StartProvider(t, harness.ProviderConfig{
				Protocol: protocol, Params: map[string]string{"executes": "1"}, Service: []server.ServiceOption{server.WithFilter(list)},
			})
			c := p.Dial(t)
			held := hold(t, p, c, 1, "g")
			_, err := c.SayHello(background, "x")
			refused(t, err, p.Group, "SayHello", 1)
			p.Handler.Open("g")
			require.Zero(t, harness.Failed(held.Wait(t)), list)
		}
	})
}

// metric sums up the samples of a metric whose labels contain all of want.
func metric(t *testing.T, name string, want map[string]string) float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	require.NoError(t, err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	samples:
		for _, m := range f.GetMetric() {
			have := map[string]string{}
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			for k, v := range want {
				if have[k] != v && !(k == "service" && strings.HasPrefix(have[k], v+"/")) {
					continue samples
				}
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

func weirCalls(t *testing.T, side, group, method, outcome string) int {
	return int(metric(t, "weir_calls_total", map[string]string{"side": side, "service": group, "method": method, "outcome": outcome}))
}

func weirInflight(t *testing.T, side, group, method string) int {
	return int(metric(t, "weir_inflight", map[string]string{"side": side, "service": group, "method": method}))
}

func TestMetrics(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{"executes": "2"}})
		c := p.Dial(t, client.WithParam("weir.stats", "true"))
		held := hold(t, p, c, 2, "g")
		for range 3 {
			_, err := c.SayHello(background, "x")
			require.Error(t, err)
		}
		require.Equal(t, 2, weirInflight(t, "provider", p.Group, "SayHello"))
		at := map[string]string{"side": "provider", "service": p.Group, "method": "SayHello", "guard": "executes"}
		require.EqualValues(t, 3, metric(t, "weir_rejected_total", at))
		require.EqualValues(t, 2, metric(t, "weir_limit", at))
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		harness.Eventually(t, "nothing runs", func() bool {
			return weirInflight(t, "provider", p.Group, "SayHello") == 0 && weirInflight(t, "consumer", p.Group, "SayHello") == 0
		})
		require.Equal(t, 2, weirCalls(t, "provider", p.Group, "SayHello", "success"))
		require.Equal(t, 3, weirCalls(t, "provider", p.Group, "SayHello", "rejected"))
		require.Equal(t, 2, weirCalls(t, "consumer", p.Group, "SayHello", "success"))
		require.Equal(t, 3, weirCalls(t, "consumer", p.Group, "SayHello", "rejected"))
		runtime.KeepAlive(c) // the counts of a reference go with it
		found := false
		for _, m := range weir.Snapshot().Methods {
			if m.Side == "provider" && m.Method == "SayHello" && strings.HasPrefix(m.Service, p.Group+"/") {
				found = true
				require.Contains(t, m.Settings, conf.Setting{Key: "executes", Value: "2", Source: "params", Level: "service"})
				require.EqualValues(t, 3, m.Figures.Outcomes["rejected"])
			}
		}
		require.True(t, found)
	})
}
