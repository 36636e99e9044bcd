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
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	hessian "github.com/apache/dubbo-go-hessian2"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

// standIn is a fallback of SayHello, of the shape that a protocol's callers have.
type standIn struct {
	name   string
	runs   atomic.Int64
	causes chan error
	err    error
	panics any
}

var names atomic.Int64

// freshName is one that no function has: names are registered for good.
func freshName(kind string) string { return fmt.Sprint(kind, "-", names.Add(1)) }

// newStandIn registers one under a name of its own.
func newStandIn(t *testing.T, protocol string, change func(*standIn)) *standIn {
	t.Helper()
	s := &standIn{name: freshName("stand-in"), causes: make(chan error, 1000)}
	if change != nil {
		change(s)
	}
	run := func(name string, cause error) (string, error) {
		s.runs.Add(1)
		s.causes <- cause
		if s.panics != nil {
			panic(s.panics)
		}
		return s.name + " for " + name, s.err
	}
	var fn any = func(_ context.Context, name string, cause error) (string, error) { return run(name, cause) }
	if protocol == harness.Triple {
		fn = func(_ context.Context, r *greet.HelloRequest, cause error) (*greet.HelloReply, error) {
			text, err := run(r.GetName(), cause)
			return &greet.HelloReply{Greeting: text}, err
		}
	}
	require.NoError(t, weir.RegisterFallback(s.name, fn))
	return s
}

// answered requires that the fallback answered a call in place of an error.
func (s *standIn) answered(t *testing.T, c *harness.Consumer, name string) error {
	t.Helper()
	before := s.runs.Load()
	ctx := weir.TrackFallback(background)
	text, err := c.SayHello(ctx, name)
	require.NoError(t, err)
	require.Equal(t, s.name+" for "+name, text)
	by, ok := weir.AnsweredByFallback(ctx)
	require.True(t, ok)
	require.Equal(t, s.name, by)
	require.Equal(t, before+1, s.runs.Load(), "it runs once per call")
	return <-s.causes
}

// silent requires that a call ends with an error and the fallback does not run.
func (s *standIn) silent(t *testing.T, call func(ctx context.Context) error) error {
	t.Helper()
	before := s.runs.Load()
	ctx := weir.TrackFallback(background)
	err := call(ctx)
	require.Error(t, err)
	_, ok := weir.AnsweredByFallback(ctx)
	require.False(t, ok)
	require.Equal(t, before, s.runs.Load())
	return err
}

func weirFallbacks(t *testing.T, group, fallback, outcome string) int {
	return int(metric(t, "weir_fallbacks_total", map[string]string{
		"side": "consumer", "service": group, "method": "SayHello", "fallback": fallback, "outcome": outcome,
	}))
}

// full is a provider whose only slot is taken.
func full(t *testing.T, protocol, group string) *harness.Provider {
	t.Helper()
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Group: group, Params: map[string]string{"methods.SayHello.executes": "1"}})
	held := hold(t, p, p.Dial(t), 1, "full")
	t.Cleanup(func() {
		p.Handler.Open("full")
		require.Zero(t, harness.Failed(held.Wait(t)))
	})
	return p
}

// fullElsewhere is one in a process of its own: one process has one provider of a group.
func fullElsewhere(t *testing.T, protocol, group string) harness.Endpoint {
	t.Helper()
	p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group, Params: map[string]string{"methods.SayHello.executes": "1"}})
	alone := p.Dial(t)
	held := harness.Go(1, func(int) error {
		_, err := alone.SayHello(background, harness.Hold("full"))
		return err
	})
	harness.Eventually(t, "the slot is taken", func() bool { return p.Stats("").Running == 1 })
	t.Cleanup(func() {
		p.Open("full")
		require.Zero(t, harness.Failed(held.Wait(t)))
	})
	return p.Endpoint
}

func refer(t *testing.T, fallback string, more map[string]string, providers ...harness.Endpoint) *harness.Consumer {
	t.Helper()
	params := map[string]string{"fallback": fallback}
	for k, v := range more {
		params[k] = v
	}
	cfg := harness.ConsumerConfig{Providers: providers, Params: params}
	if len(providers) == 1 {
		cfg.Reference = append(cfg.Reference, client.WithRetries(0)) // a second try on the dubbo protocol waits for 3 s
	}
	return harness.Dial(t, cfg)
}

func TestAFallbackAnswersARefusedCall(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := full(t, protocol, "")
		s := newStandIn(t, protocol, nil)
		c := refer(t, s.name, map[string]string{"weir.stats": "true"}, p.Endpoint)
		require.Zero(t, metric(t, "weir_fallbacks_total", map[string]string{"service": p.Group, "fallback": s.name}))
		refused(t, s.answered(t, c, "a"), p.Group, "SayHello", 1)
		refused(t, s.answered(t, c, "b"), p.Group, "SayHello", 1)
		require.Equal(t, 2, weirFallbacks(t, p.Group, s.name, "answered"))
		require.Zero(t, weirFallbacks(t, p.Group, s.name, "failed"))
		require.Equal(t, 2, weirCalls(t, "consumer", p.Group, "SayHello", "rejected"), "the calls themselves were refused")

		// A call that succeeds is as it was, with the same tracked context too.
		ctx := weir.TrackFallback(background)
		text, err := c.Echo(ctx, "x")
		require.NoError(t, err)
		require.Equal(t, "x", text)
		_, ok := weir.AnsweredByFallback(ctx)
		require.False(t, ok)
	})
}

func TestAFallbackAnswersWhatTheConsumersOwnGuardRefuses(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		s := newStandIn(t, protocol, nil)
		c := refer(t, s.name, tpsOf("1"), p.Endpoint)
		text, err := c.SayHello(background, "a")
		require.NoError(t, err)
		require.Equal(t, "hello a", text)
		overRate(t, s.answered(t, c, "b"), p.Group, "*", 1)
		require.Equal(t, 1, p.Handler.Stats("").Total)

		// What its caller has given up needs no answer.
		_ = s.silent(t, func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := c.SayHello(ctx, "c")
			return err
		})
	})
}

func TestAFallbackAnswersForAProviderThatIsDown(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		harness.SkipUnderRaceDetector(t, protocol)
		p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol})
		s := newStandIn(t, protocol, nil)
		refusals := newStandIn(t, protocol, nil)
		c := refer(t, s.name, nil, p.Endpoint)
		only := refer(t, refusals.name, map[string]string{"fallback.on": "refused"}, p.Endpoint)
		p.Kill()
		cause := s.answered(t, c, "a")
		require.Error(t, cause)
		require.False(t, weir.IsRejected(cause))
		_ = refusals.silent(t, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, harnessTimeout)
			defer cancel()
			_, err := only.SayHello(ctx, "b")
			return err
		})
	})
}

// With on: breaker it leaves failures alone, and answers once the breaker is open.
func TestAFallbackAnswersWhatABreakerRefuses(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		harness.SkipUnderRaceDetector(t, protocol)
		s := newStandIn(t, protocol, nil)
		p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol})
		c := refer(t, s.name, map[string]string{"fallback.on": "breaker", "breaker.consecutive-errors": "2", "breaker.open-for": "1h"}, p.Endpoint)
		_, err := c.SayHello(background, "a")
		require.NoError(t, err)
		p.Kill()
		for range 2 {
			err := s.silent(t, func(ctx context.Context) error { _, err := c.SayHello(ctx, "b"); return err })
			require.False(t, weir.IsRejected(err), err)
		}
		refusal, ok := weir.AsRejected(s.answered(t, c, "c"))
		require.True(t, ok)
		require.Equal(t, "breaker", refusal.Guard)
		require.Equal(t, call.ReasonConsecutiveErrors, refusal.Reason)
	})
}

func TestAFallbackAnswersATimeout(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		for on, answers := range map[string]bool{"timeout": true, "failure": true, "refused": false, "breaker": false} {
			p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
			s := newStandIn(t, protocol, nil)
			c := refer(t, s.name, map[string]string{"fallback.on": on}, p.Endpoint)
			ask := func(ctx context.Context) (string, error) {
				ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				return c.SayHello(ctx, harness.Hold("slow"))
			}
			if answers {
				text, err := ask(background)
				require.NoError(t, err)
				require.Equal(t, s.name+" for "+harness.Hold("slow"), text)
				require.EqualValues(t, 1, s.runs.Load())
			} else {
				_ = s.silent(t, func(ctx context.Context) error {
					_, err := ask(ctx)
					return err
				})
			}
			p.Handler.Open("slow")
		}
	})
}

func TestAnAnswerThatIsAnErrorStays(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		s := newStandIn(t, protocol, nil)
		// Counting it as a failure does not make it one that wants another answer.
		c := refer(t, s.name, map[string]string{"weir.business-errors": "failure"}, p.Endpoint)
		err := s.silent(t, func(ctx context.Context) error {
			_, err := c.SayHello(ctx, harness.Fail("no such user"))
			return err
		})
		require.ErrorContains(t, err, "no such user")
	})
}

func TestNobodyAnswersACallThatItsCallerCancelled(t *testing.T) {
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Triple})
	s := newStandIn(t, harness.Triple, nil)
	c := refer(t, s.name, nil, p.Endpoint)
	err := s.silent(t, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		calls := harness.Go(1, func(int) error {
			_, err := c.SayHello(ctx, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "it runs", func() bool { return p.Handler.Stats("").Running == 1 })
		cancel()
		return calls.Wait(t)[0]
	})
	require.False(t, weir.IsRejected(err))
	p.Handler.Open("g")
}

func TestStreamsAndOneWayCallsAreLeftAlone(t *testing.T) {
	t.Run("stream", func(t *testing.T) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Triple})
		name := freshName("stream")
		require.NoError(t, weir.RegisterFallback(name, func(context.Context, weir.FallbackCall) (any, error) {
			t.Error("it ran")
			return nil, nil
		}))
		c := refer(t, name, tpsOf("1"), p.Endpoint)
		for range 2 {
			stream, err := c.Stub().Repeat(background, &greet.RepeatRequest{Name: "x", Times: 1})
			if err == nil {
				require.True(t, stream.Recv())
				continue
			}
			require.True(t, weir.IsRejected(err))
			return
		}
		t.Fatal("nothing was refused")
	})
	t.Run("one-way", func(t *testing.T) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Dubbo})
		s := newStandIn(t, harness.Dubbo, nil)
		params := tpsOf("1")
		params["fallback"] = s.name
		c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{p.Endpoint}, Params: params, Reference: []client.ReferenceOption{client.WithAsync()}})
		_, _ = c.SayHello(background, "a")
		require.True(t, weir.IsRejected(s.silent(t, func(ctx context.Context) error {
			_, err := c.SayHello(ctx, "b")
			return err
		})))
	})
}

// proxied is a service as programs of the dubbo protocol declare it.
type proxied struct {
	SayHello func(ctx context.Context, name string) (string, error)
	Echo     func(ctx context.Context, text string) (*string, error)
}

func TestFallbacksOfProxies(t *testing.T) {
	p := full(t, harness.Dubbo, "")
	s := newStandIn(t, harness.Dubbo, nil)
	pointers := freshName("pointers")
	require.NoError(t, weir.RegisterFallback(pointers, func(_ context.Context, text string, _ error) (*string, error) {
		if text == "" {
			return nil, nil
		}
		return &text, nil
	}))
	cli, err := client.NewClient()
	require.NoError(t, err)
	var svc proxied
	conn, err := cli.DialWithService(greet.GreetServiceName, &svc, client.WithURL(p.URL()), client.WithProtocolDubbo(), client.WithGroup(p.Group),
		client.WithSerialization(constant.Hessian2Serialization), client.WithParam("fallback", s.name),
		client.WithParam("methods.Echo.fallback", pointers), client.WithParam("methods.Echo.tps", "1"), client.WithParam("methods.Echo.tps.interval", "1h"))
	require.NoError(t, err)
	require.NotNil(t, conn)
	text, err := svc.SayHello(background, "a")
	require.NoError(t, err)
	require.Equal(t, s.name+" for a", text)
	_, err = svc.Echo(background, "b")
	require.NoError(t, err)
	got, err := svc.Echo(background, "c")
	require.NoError(t, err)
	require.Equal(t, "c", *got)
	got, err = svc.Echo(background, "")
	require.NoError(t, err)
	require.Empty(t, *got)
}

func TestFallbacksOfGenericCalls(t *testing.T) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) {
			p := full(t, protocol, "")
			name := freshName("generic")
			seen := make(chan weir.FallbackCall, 10)
			require.NoError(t, weir.RegisterFallback(name, func(_ context.Context, c weir.FallbackCall) (any, error) {
				seen <- c
				return map[any]any{"greeting": "nobody"}, nil
			}))
			opts := []client.ReferenceOption{client.WithURL(p.URL()), client.WithGroup(p.Group), client.WithGenericType("true"), client.WithParam("fallback", name)}
			if protocol == harness.Dubbo {
				opts = append(opts, client.WithProtocolDubbo())
			}
			cli, err := client.NewClient()
			require.NoError(t, err)
			generic, err := cli.NewGenericService(greet.GreetServiceName, opts...)
			require.NoError(t, err)
			ctx := weir.TrackFallback(background)
			answer, err := generic.Invoke(ctx, "SayHello", []string{"java.lang.String"}, []hessian.Object{"x"})
			require.NoError(t, err)
			require.Equal(t, map[any]any{"greeting": "nobody"}, answer)
			c := <-seen
			require.Equal(t, serviceOf(p.Group), c.Service)
			require.Equal(t, "SayHello", c.Method)
			require.Equal(t, []any{"x"}, c.Arguments)
			require.Error(t, c.Cause)
			by, ok := weir.AnsweredByFallback(ctx)
			require.True(t, ok)
			require.Equal(t, name, by)
			require.Equal(t, 1, weirFallbacks(t, p.Group, name, "answered"))
		})
	}
}

func TestAFallbackRunsOnceAfterAllTries(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		group := harness.NewGroup()
		var providers []harness.Endpoint
		var children []*harness.ChildProvider
		for range 2 {
			p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group, Params: map[string]string{"executes": "1"}})
			children, providers = append(children, p), append(providers, p.Endpoint)
		}
		var held []*harness.Calls
		take := func(p *harness.ChildProvider) {
			alone := p.Dial(t)
			held = append(held, harness.Go(1, func(int) error {
				_, err := alone.SayHello(background, harness.Hold("g"))
				return err
			}))
			harness.Eventually(t, "the slot is taken", func() bool { return p.Stats("").Running == 1 })
		}
		s := newStandIn(t, protocol, nil)
		c := refer(t, s.name, map[string]string{"weir.stats": "true"}, providers...)
		take(children[0])
		for range 20 { // one of two serves
			text, err := c.SayHello(background, "x")
			require.NoError(t, err)
			require.Equal(t, "hello x", text)
		}
		require.Zero(t, s.runs.Load())
		take(children[1])
		rejected := weirCalls(t, "consumer", group, "SayHello", "rejected")
		_ = s.answered(t, c, "a")
		require.Equal(t, rejected+2, weirCalls(t, "consumer", group, "SayHello", "rejected"), "both were asked")
		for i, p := range children {
			p.Open("g")
			require.Zero(t, harness.Failed(held[i].Wait(t)))
		}
	})
}

func TestFallbacksUnderForkingAndBroadcast(t *testing.T) {
	for _, cluster := range []string{constant.ClusterKeyForking, constant.ClusterKeyBroadcast} {
		t.Run(cluster, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol string) {
				group := harness.NewGroup()
				a, b := full(t, protocol, group).Endpoint, fullElsewhere(t, protocol, group)
				s := newStandIn(t, protocol, nil)
				c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{a, b}, Params: map[string]string{"fallback": s.name},
					Reference: []client.ReferenceOption{client.WithCluster(cluster)}})
				for range 20 {
					require.True(t, weir.IsRejected(s.answered(t, c, "x")))
				}
				text, err := c.Echo(background, "y")
				require.NoError(t, err)
				require.Equal(t, "y", text, "a call that succeeds has its answer where it belongs")
			})
		})
	}
}

// A fork that comes home late must not overwrite the answer.
func TestALateForkLeavesTheAnswerAlone(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		group := harness.NewGroup()
		busy, slow := fullElsewhere(t, protocol, group), harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Group: group})
		s := newStandIn(t, protocol, nil)
		c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{busy, slow.Endpoint}, Params: map[string]string{"fallback": s.name, "weir.stats": "true"},
			Reference: []client.ReferenceOption{client.WithClusterForking()}})
		for n := range 10 {
			arg := harness.Hold(fmt.Sprint("late", n))
			var (
				text string
				read func() string
				err  error
			)
			if protocol == harness.Triple {
				var reply *greet.HelloReply
				reply, err = c.Stub().SayHello(background, &greet.HelloRequest{Name: arg})
				text, read = reply.GetGreeting(), reply.GetGreeting
			} else {
				var reply string
				err = c.Conn().CallUnary(background, []any{arg}, &reply, "SayHello", client.WithCallRequestTimeout(time.Minute))
				text, read = reply, func() string { return reply }
			}
			require.NoError(t, err)
			require.Equal(t, s.name+" for "+arg, text)
			harness.Eventually(t, "the other fork runs", func() bool { return slow.Handler.Running(arg) == 1 })
			slow.Handler.Open(fmt.Sprint("late", n))
			harness.Eventually(t, "the other fork has come home", func() bool { return weirCalls(t, "consumer", group, "SayHello", "success") == n+1 })
			require.Equal(t, text, read())
		}
	})
}

func TestWhatIsWrongWithAFallback(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := full(t, protocol, "")
		faults := func() int { return int(weir.Snapshot().ConfigErrors) }
		nobody, wrong, misfit := freshName("nobody"), freshName("wrong"), freshName("misfit")
		require.NoError(t, weir.RegisterFallback(wrong, func(context.Context, int, error) (string, error) { panic("it ran") }))
		require.NoError(t, weir.RegisterFallback(misfit, func(context.Context, weir.FallbackCall) (any, error) { return 17, nil }))
		for _, name := range []string{nobody, wrong, misfit} {
			c := refer(t, name, nil, p.Endpoint)
			before := faults()
			for range 3 {
				ctx := weir.TrackFallback(background)
				_, err := c.SayHello(ctx, "x")
				refused(t, err, p.Group, "SayHello", 1)
				_, ok := weir.AnsweredByFallback(ctx)
				require.False(t, ok)
			}
			require.Equal(t, before+1, faults(), "%s: told once", name)
			require.Equal(t, 3, weirFallbacks(t, p.Group, name, "failed"))
		}
		panicky := newStandIn(t, protocol, func(s *standIn) { s.panics = "a fault" })
		c := refer(t, panicky.name, nil, p.Endpoint)
		for range 3 {
			_, err := c.SayHello(background, "x")
			refused(t, err, p.Group, "SayHello", 1)
		}
		require.Equal(t, 3, weirFallbacks(t, p.Group, panicky.name, "panicked"))
		own := errors.New("the cache is empty")
		failing := newStandIn(t, protocol, func(s *standIn) { s.err = own })
		c = refer(t, failing.name, nil, p.Endpoint)
		ctx := weir.TrackFallback(background)
		_, err := c.SayHello(ctx, "x")
		require.ErrorIs(t, err, own)
		require.ErrorIs(t, err, call.ErrRejected)
		require.True(t, weir.IsRejected(err))
		e, ok := weir.AsRejected(err)
		require.True(t, ok)
		require.Equal(t, "executes", e.Guard)
		require.True(t, strings.Contains(err.Error(), own.Error()) && strings.Contains(err.Error(), e.Error()), err.Error())
		_, ok = weir.AnsweredByFallback(ctx)
		require.False(t, ok)
		require.Equal(t, 1, weirFallbacks(t, p.Group, failing.name, "failed"))
	})
}

func TestFallbacksChangeWhileCallsRun(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
		p := full(t, protocol, "")
		one, other := newStandIn(t, protocol, nil), newStandIn(t, protocol, nil)
		c := p.Dial(t)
		rule := func(name string, on ...string) conf.Config {
			return conf.Config{Consumer: conf.Section{Services: map[string]conf.Service{
				serviceOf(p.Group): {Policies: conf.Policies{Fallback: &conf.Fallback{Name: name, On: on}}},
			}}}
		}
		off := func() {
			_ = one.silent(t, func(ctx context.Context) error {
				_, err := c.SayHello(ctx, "x")
				refused(t, err, p.Group, "SayHello", 1)
				return err
			})
		}
		off()
		require.NoError(t, weir.Configure(rule(one.name)))
		_ = one.answered(t, c, "a")
		require.NoError(t, weir.Configure(rule(other.name)))
		_ = other.answered(t, c, "b")
		require.NoError(t, weir.Configure(rule(one.name, "failure")))
		off()
		require.NoError(t, weir.Configure(rule(conf.FallbackOff)))
		off()
		require.NoError(t, weir.Configure(rule(one.name)))
		_ = one.answered(t, c, "c")
		require.Equal(t, 2, weirFallbacks(t, p.Group, one.name, "answered"), "counts outlive changes")
		require.NoError(t, weir.Configure(conf.Config{}))
		off()
	})
}

func TestManyCallsWithOneTrackedContext(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := full(t, protocol, "")
		s := newStandIn(t, protocol, nil)
		c := refer(t, s.name, nil, p.Endpoint)
		outer := weir.TrackFallback(background)
		ctx := weir.TrackFallback(outer)
		calls := harness.Go(100, func(i int) error {
			text, err := c.SayHello(ctx, fmt.Sprint(i))
			if err == nil && text != s.name+" for "+fmt.Sprint(i) {
				err = fmt.Errorf("%d got %q", i, text)
			}
			return err
		})
		require.Zero(t, harness.Failed(calls.Wait(t)))
		for _, ctx := range []context.Context{ctx, outer} {
			by, ok := weir.AnsweredByFallback(ctx)
			require.True(t, ok)
			require.Equal(t, s.name, by)
		}
		require.EqualValues(t, 100, s.runs.Load())
	})
}
