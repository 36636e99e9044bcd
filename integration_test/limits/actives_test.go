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
	"sync"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// whole is the timeout of calls whose charges are looked at.
const whole = time.Minute

// slots are what all actives of the references to a group's service say together.
type slots struct {
	running, waiting int64
	waitingAt        []string // addresses
}

func activesOf(group, method string) (s slots) {
	for _, l := range weir.Snapshot().Limits {
		if l.Guard != "actives" || l.Service != serviceOf(group) || l.Method != method {
			continue
		}
		s.running += l.Inflight
		s.waiting += l.Waiting
		if l.Waiting > 0 {
			s.waitingAt = append(s.waitingAt, l.Address)
		}
	}
	return s
}

func eventuallyWait(t *testing.T, group string, n int64) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%d calls wait", n), func() bool { return activesOf(group, "SayHello").waiting == n })
}

// eventuallyIdle waits until no slot is taken. The limits of a reference go with
// it, so it has to be kept.
func eventuallyIdle(t *testing.T, group string, keep ...*harness.Consumer) {
	t.Helper()
	harness.Eventually(t, "no slot is taken and nobody waits", func() bool {
		s := activesOf(group, "SayHello")
		return s.running == 0 && s.waiting == 0
	})
	runtime.KeepAlive(keep)
}

// dialActives refers to a provider with a limit of one, and further params.
func dialActives(t *testing.T, e harness.Endpoint, params ...string) *harness.Consumer {
	t.Helper()
	cfg := harness.ConsumerConfig{Providers: []harness.Endpoint{e}, Params: map[string]string{"actives": "1"}}
	for i := 0; i < len(params); i += 2 {
		cfg.Params[params[i]] = params[i+1]
	}
	return harness.Dial(t, cfg)
}

// refusedWaiting requires that an error is the very refusal of a guard of this
// side after a wait for the only slot.
func refusedWaiting(t *testing.T, err error, group, reason string) call.RejectError {
	t.Helper()
	require.Error(t, err)
	e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
	require.True(t, ok, "%T %v", err, err)
	require.ErrorIs(t, err, call.ErrRejected)
	require.Equal(t, "actives", e.Guard)
	require.Equal(t, call.Resource(serviceOf(group), "SayHello"), e.Resource)
	require.Equal(t, reason, e.Reason)
	require.EqualValues(t, 1, e.Limit)
	require.EqualValues(t, 1, e.Observed)
	require.Positive(t, e.Waited)
	require.Positive(t, e.MaxWait)
	require.False(t, e.Forwarded)
	require.NotContains(t, err.Error(), "127.0.0.1")
	return *e
}

func TestActivesHoldsExactlyAndServesAllInTheEnd(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := dialActives(t, p.Endpoint, "actives", "3")
		calls := harness.Go(200, func(int) error {
			_, err := c.SayHello(background, harness.Hold("g"))
			return err
		})
		eventuallyWait(t, p.Group, 197)
		harness.Eventually(t, "three run", func() bool { return p.Handler.Stats("SayHello").Running == 3 })
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(calls.Wait(t)))
		require.Equal(t, harness.Stats{MaxRunning: 3, Total: 200}, p.Handler.Stats("SayHello"))
		eventuallyIdle(t, p.Group, c)
	})
}

func TestActivesOfAnotherReferenceOrMethodIsAnother(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c, other := dialActives(t, p.Endpoint), dialActives(t, p.Endpoint)
		held := hold(t, p, c, 1, "g")
		_, err := other.SayHello(background, "x")
		require.NoError(t, err, "of another reference")
		_, err = c.Echo(background, "x")
		require.NoError(t, err, "of another method")
		require.Equal(t, 1, p.Handler.Stats("SayHello").Running, "the slot is still taken")
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
	})
}

func TestActivesServesInTheOrderOfArrival(t *testing.T) { // N7
	const n = 30
	eachProtocol(t, func(t *testing.T, protocol string) {
		var (
			mu    sync.Mutex
			order []string
			gate  = make(chan struct{})
		)
		handler := &harness.Handler{Func: func(_ context.Context, _, arg string) (string, error) {
			mu.Lock()
			order = append(order, arg)
			mu.Unlock()
			<-gate
			return arg, nil
		}}
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Handler: handler})
		c := dialActives(t, p.Endpoint)
		var calls []*harness.Calls
		var want []string
		for i := range n {
			name := fmt.Sprint("n", i)
			want = append(want, name)
			calls = append(calls, harness.Go(1, func(int) error {
				_, err := c.SayHello(background, name)
				return err
			}))
			if i == 0 {
				harness.Eventually(t, "the first runs", func() bool { return handler.Running(name) == 1 })
			} else {
				eventuallyWait(t, p.Group, int64(i))
			}
		}
		close(gate)
		for _, one := range calls {
			require.Zero(t, harness.Failed(one.Wait(t)))
		}
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, want, order)
	})
}

func TestAWaitForActivesEndsWithActivesWait(t *testing.T) {
	const wait = 50 * time.Millisecond
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := dialActives(t, p.Endpoint, "actives.wait", "50")
		held := hold(t, p, c, 1, "g")
		for range 3 {
			_, err := c.SayHello(background, "x")
			e := refusedWaiting(t, err, p.Group, call.ReasonWaitTimeout)
			require.Equal(t, wait, e.MaxWait)
			require.GreaterOrEqual(t, e.Waited, wait)
			require.ErrorIs(t, err, concurrency.ErrWaitTimeout)
		}
		require.Equal(t, 1, p.Handler.Stats("").Total, "the provider never saw the refused calls")
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		_, err := c.SayHello(background, "x")
		require.NoError(t, err)
		eventuallyIdle(t, p.Group, c)
	})
}

func TestWithoutAWaitActivesRefusesAtOnce(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := dialActives(t, p.Endpoint, "actives.wait", "0")
		held := hold(t, p, c, 1, "g")
		_, err := c.SayHello(background, "x")
		e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
		require.True(t, ok, "%T %v", err, err)
		require.Equal(t, "actives", e.Guard)
		require.Equal(t, call.ReasonConcurrency, e.Reason)
		require.Zero(t, e.Waited)
		require.Zero(t, e.MaxWait)
		require.Equal(t, 1, p.Handler.Stats("").Total)
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
	})
}

func TestAWaitForActivesEndsWithTheContextsDeadline(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := dialActives(t, p.Endpoint)
		held := hold(t, p, c, 1, "g")
		// A deadline that has passed before the call comes to the queue leaves
		// nothing to wait for: then it was too short for this machine.
		var err error
		timeout := 50 * time.Millisecond
		for ; timeout < harness.Patience; timeout *= 2 {
			ctx, cancel := context.WithTimeout(background, timeout)
			_, err = c.SayHello(ctx, "x")
			cancel()
			if e, ok := weir.AsRejected(err); !ok || e.Waited > 0 {
				break
			}
		}
		e := refusedWaiting(t, err, p.Group, call.ReasonWaitTimeout)
		require.LessOrEqual(t, e.MaxWait, timeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, p.Handler.Stats("").Total, "the provider never saw the refused call")
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		eventuallyIdle(t, p.Group, c)
	})
}

func TestAWaitForActivesEndsAtOnceWhenItsCallerGivesUp(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := dialActives(t, p.Endpoint)
		held := hold(t, p, c, 1, "g")
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		calls := harness.Go(1, func(int) error {
			_, err := c.SayHello(ctx, "x")
			return err
		})
		eventuallyWait(t, p.Group, 1)
		cancel()
		err := calls.Wait(t)[0] // the slot is still held
		refusedWaiting(t, err, p.Group, call.ReasonCancelled)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, slots{running: 1}, activesOf(p.Group, "SayHello"))
		require.Equal(t, 1, p.Handler.Stats("").Total, "the provider never saw the refused call")
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		eventuallyIdle(t, p.Group, c)
	})
}

func TestAWaitForActivesEndsWithoutATimeoutAnywhere(t *testing.T) { // N4
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := harness.Dial(t, harness.ConsumerConfig{
			Providers: []harness.Endpoint{p.Endpoint}, Bare: true, Params: map[string]string{"actives": "1"},
		})
		held := harness.Go(1, func(int) error {
			ctx, cancel := context.WithTimeout(background, harness.Patience)
			defer cancel()
			_, err := c.SayHello(ctx, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "the slot is taken", func() bool { return p.Handler.Stats("").Running == 1 })
		_, err := c.SayHello(background, "x")
		e := refusedWaiting(t, err, p.Group, call.ReasonWaitTimeout)
		require.LessOrEqual(t, e.MaxWait, 3*time.Second, "dubbo's default is the bound")
		require.Equal(t, 1, p.Handler.Stats("").Total, "the provider never saw the refused call")
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		eventuallyIdle(t, p.Group, c)
	})
}

// asked is how long a call that asks for it may still take, as its handler sees it.
func asked(t *testing.T, text string, err error) time.Duration {
	t.Helper()
	require.NoError(t, err)
	left, err := time.ParseDuration(text)
	require.NoError(t, err)
	return left
}

// timed calls SayHello with a timeout that is the call's own. Over Triple the
// reference has it: its value wins there over a call's.
func timed(c *harness.Consumer, arg string) (string, error) {
	return c.SayHello(background, arg, client.WithCallRequestTimeout(whole))
}

func TestAWaitForActivesIsPartOfTheCallsTimeout(t *testing.T) { // N6
	const least = 200 * time.Millisecond
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		// Without a deadline of the context, which would run on by itself.
		c := harness.Dial(t, harness.ConsumerConfig{
			Providers: []harness.Endpoint{p.Endpoint}, Bare: true, Params: map[string]string{"actives": "1"},
			Client: []client.ClientOption{client.WithClientRequestTimeout(whole)},
		})
		text, err := timed(c, harness.Left)
		alone := asked(t, text, err)
		require.LessOrEqual(t, alone, whole)
		if protocol == harness.Dubbo {
			require.Equal(t, whole, alone, "nothing is charged where nobody waits")
		}
		held := harness.Go(1, func(int) error {
			_, err := timed(c, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "the slot is taken", func() bool { return p.Handler.Stats("").Running == 1 })
		waited := harness.Go(1, func(int) error {
			text, err = timed(c, harness.Left)
			return err
		})
		eventuallyWait(t, p.Group, 1)
		began := time.Now()
		harness.Eventually(t, "the wait is long enough to tell", func() bool { return time.Since(began) > least })
		measured := time.Since(began) // at least so long it has waited
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		left := asked(t, text, waited.Wait(t)[0])
		require.Positive(t, left)
		require.LessOrEqual(t, left, whole-measured)

		// The next call begins anew.
		text, err = timed(c, harness.Left)
		if left := asked(t, text, err); protocol == harness.Dubbo {
			require.Equal(t, whole, left)
		}
	})
}

// pair refers to two providers in processes of their own, with a limit of one,
// and has a call take the slot of one of them.
func pair(t *testing.T, protocol, group string, params ...string) (c *harness.Consumer, stuck, free *harness.ChildProvider, held *harness.Calls) {
	t.Helper()
	a := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group})
	b := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group})
	cfg := harness.ConsumerConfig{Providers: []harness.Endpoint{a.Endpoint, b.Endpoint}, Params: map[string]string{"actives": "1"}}
	for i := 0; i < len(params); i += 2 {
		cfg.Params[params[i]] = params[i+1]
	}
	c = harness.Dial(t, cfg)
	held = harness.Go(1, func(int) error {
		_, err := c.SayHello(background, harness.Hold("g"))
		return err
	})
	harness.Eventually(t, "the slot of one is taken", func() bool {
		if stuck, free = a, b; stuck.Stats("").Running == 0 {
			stuck, free = b, a
		}
		return stuck.Stats("").Running == 1
	})
	return c, stuck, free, held
}

func TestCallsGoAroundAStuckProvider(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		group := harness.NewGroup()
		c, stuck, free, held := pair(t, protocol, group, "actives.wait", "20")
		for range 20 {
			_, err := c.SayHello(background, "x")
			require.NoError(t, err)
		}
		require.Equal(t, 20, free.Stats("SayHello").Total)
		require.Equal(t, 1, stuck.Stats("SayHello").Total)
		stuck.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		eventuallyIdle(t, group, c)
	})
}

func TestBothStuckRefuseACallOnceEach(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		group := harness.NewGroup()
		c, first, second, held := pair(t, protocol, group, "actives.wait", "20")
		alsoHeld := harness.Go(1, func(int) error {
			_, err := c.SayHello(background, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "both slots are taken", func() bool { return second.Stats("").Running == 1 })
		rejected := func() float64 {
			return metric(t, "weir_rejected_total", map[string]string{"side": "consumer", "service": group, "method": "SayHello", "guard": "actives"})
		}
		before := rejected()
		for n := 1; n <= 20; n++ {
			_, err := c.SayHello(background, "x")
			refusedWaiting(t, err, group, call.ReasonWaitTimeout)
			require.InDelta(t, float64(2*n), rejected()-before, 0)
		}
		for p, calls := range map[*harness.ChildProvider]*harness.Calls{first: held, second: alsoHeld} {
			require.Equal(t, 1, p.Stats("").Total, "neither provider saw a refused call")
			p.Open("g")
			require.Zero(t, harness.Failed(calls.Wait(t)))
		}
		eventuallyIdle(t, group, c)
	})
}

// dubbo-go's invoker writes the timeout back without its unit, the next attempt
// cannot read that, and 3 s apply. A call that waited must not come to that.
func TestARetryOfACallThatWaitedHasItsWholeTimeout(t *testing.T) {
	group := harness.NewGroup()
	c, stuck, free, held := pair(t, harness.Dubbo, group)
	free.Open("ok")
	ask := func() (*harness.Calls, *string) {
		var text string
		return harness.Go(1, func(int) (err error) {
			text, err = timed(c, harness.LeftIf("ok"))
			return err
		}), &text
	}
	var waits *harness.Calls
	var text *string
	// Sooner or later a call comes to the stuck provider first.
	harness.Eventually(t, "a call waits", func() bool {
		waits, text = ask()
		harness.Eventually(t, "the call waits or is over", func() bool {
			select {
			case <-waits.Done():
				return true
			default:
				return activesOf(group, "SayHello").waiting == 1
			}
		})
		return activesOf(group, "SayHello").waiting == 1
	})
	require.Equal(t, []string{stuck.Addr}, activesOf(group, "SayHello").waitingAt)
	before := free.Stats("SayHello").Total
	stuck.Open("g")
	require.Zero(t, harness.Failed(held.Wait(t)))
	// It runs at the provider that was stuck, which fails it, and then at the other.
	require.Equal(t, whole, asked(t, *text, waits.Wait(t)[0]))
	require.Equal(t, 2, stuck.Stats("SayHello").Total)
	require.Equal(t, before+1, free.Stats("SayHello").Total)
	eventuallyIdle(t, group, c)
}

func TestActivesMayChangeWhileCallsWait(t *testing.T) {
	const waiting = 5
	rule := func(group string, limit int, mode conf.Mode) conf.Config {
		return conf.Config{Consumer: conf.Section{Services: map[string]conf.Service{
			serviceOf(group): {Policies: conf.Policies{Actives: &conf.Actives{Limit: &limit, Mode: mode}}},
		}}}
	}
	for name, tt := range map[string]struct {
		change func(group string) conf.Config
		run    int // of those who wait
	}{
		"raised":       {func(group string) conf.Config { return rule(group, 3, "") }, 2},
		"unlimited":    {func(group string) conf.Config { return rule(group, 0, "") }, waiting},
		"observed":     {func(group string) conf.Config { return rule(group, 1, conf.Observe) }, waiting},
		"off":          {func(group string) conf.Config { return rule(group, 1, conf.Off) }, waiting},
		"all observed": {func(string) conf.Config { return conf.Config{Mode: conf.Observe} }, waiting},
		"all off":      {func(string) conf.Config { return conf.Config{Mode: conf.Off} }, waiting},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol string) {
				t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
				p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
				c := dialActives(t, p.Endpoint)
				held := hold(t, p, c, 1, "g")
				queue := harness.Go(waiting, func(int) error {
					_, err := c.SayHello(background, harness.Hold("g"))
					return err
				})
				eventuallyWait(t, p.Group, waiting)
				require.NoError(t, weir.Configure(tt.change(p.Group)))
				harness.Eventually(t, "they run without another call coming by", func() bool {
					return p.Handler.Stats("").Running == 1+tt.run
				})
				require.EqualValues(t, waiting-tt.run, activesOf(p.Group, "SayHello").waiting)
				p.Handler.Open("g")
				require.Zero(t, harness.Failed(held.Wait(t)))
				require.Zero(t, harness.Failed(queue.Wait(t)))
				eventuallyIdle(t, p.Group, c)
				require.Equal(t, 1+tt.run, p.Handler.Stats("").MaxRunning)
			})
		})
	}
}

func TestAProviderKilledWhileCallsWaitForIt(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		harness.SkipUnderRaceDetector(t, protocol) // its sessions end here
		group := harness.NewGroup()
		p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group})
		c := dialActives(t, p.Endpoint, "actives", "2")
		var calls *harness.Calls
		over := func() bool {
			select {
			case <-calls.Done():
				return true
			default:
				return false
			}
		}
		ready := func() bool { return p.Stats("").Running == 2 && activesOf(group, "SayHello").waiting == 8 }
		// On the dubbo protocol nobody tells the caller, so the test takes as long as
		// the calls may; a machine on which they end before all are there gets longer.
		for timeout := harnessTimeout; calls == nil || over(); timeout *= 2 {
			calls = harness.Go(10, func(int) error {
				ctx, cancel := context.WithTimeout(background, timeout)
				defer cancel()
				_, err := c.SayHello(ctx, harness.Hold("g"))
				return err
			})
			harness.Eventually(t, "two run and the others wait", func() bool { return ready() || over() })
		}
		p.Kill()
		for _, err := range calls.Wait(t) {
			require.Error(t, err)
			if e, ok := weir.AsRejected(err); ok {
				require.Equal(t, call.ReasonWaitTimeout, e.Reason)
			}
		}
		eventuallyIdle(t, group, c)
		require.Zero(t, weirInflight(t, "consumer", group, "SayHello"))
		runtime.KeepAlive(c)
	})
}

func TestAWaitInsideAHandlerIsToldUpstream(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		down := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		fromMiddle := dialActives(t, down.Endpoint, "actives.wait", "20")
		held := hold(t, down, fromMiddle, 1, "g")
		handler := &harness.Handler{Func: func(_ context.Context, _, arg string) (string, error) {
			return fromMiddle.SayHello(background, arg)
		}}
		middle := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Handler: handler})
		_, err := middle.Dial(t).SayHello(background, "x")
		e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
		require.True(t, ok, "%T %v", err, err)
		require.True(t, e.Forwarded)
		require.Equal(t, "actives", e.Guard)
		require.Equal(t, call.ReasonWaitTimeout, e.Reason)
		require.Equal(t, call.Resource(serviceOf(down.Group), "SayHello"), e.Resource)
		require.Equal(t, 20*time.Millisecond, e.MaxWait)
		require.GreaterOrEqual(t, e.Waited, e.MaxWait)
		require.Equal(t, 1, middle.Handler.Stats("").Total, "the middle service runs once")
		down.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
	})
}

func TestActivesLeavesStreamsAlone(t *testing.T) {
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Triple})
	c := dialActives(t, p.Endpoint)
	var streams []greet.GreetService_ChatClient
	for i := range 3 {
		stream, err := c.Stub().Chat(background)
		require.NoError(t, err)
		require.NoError(t, stream.Send(&greet.HelloRequest{Name: fmt.Sprint(i)}))
		reply, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("hello %d", i), reply.GetGreeting())
		streams = append(streams, stream)
	}
	require.Equal(t, 3, p.Handler.Stats("Chat").Running)
	require.Equal(t, slots{}, activesOf(p.Group, "Chat"))
	require.Zero(t, metric(t, "weir_rejected_total", map[string]string{"side": "consumer", "service": p.Group}))
	for _, stream := range streams {
		require.NoError(t, stream.CloseRequest())
	}
	runtime.KeepAlive(c) // what it has counted goes with it
}

func TestObservedActivesLetNobodyWait(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := dialActives(t, p.Endpoint, "actives", "2", "actives.mode", "observe")
		held := hold(t, p, c, 5, "g")
		require.Equal(t, slots{running: 5}, activesOf(p.Group, "SayHello"))
		at := map[string]string{"side": "consumer", "service": p.Group, "method": "SayHello", "guard": "actives"}
		require.EqualValues(t, 3, metric(t, "weir_would_wait_total", at))
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		eventuallyIdle(t, p.Group, c)

		strict := dialActives(t, p.Endpoint, "actives.wait", "0", "actives.mode", "observe")
		held = hold(t, p, strict, 3, "h")
		require.EqualValues(t, 2, metric(t, "weir_would_reject_total", at), "one that may not wait would have been refused")
		require.EqualValues(t, 3, metric(t, "weir_would_wait_total", at))
		p.Handler.Open("h")
		require.Zero(t, harness.Failed(held.Wait(t)))
		require.Zero(t, metric(t, "weir_rejected_total", at))
		eventuallyIdle(t, p.Group, c, strict)
	})
}
