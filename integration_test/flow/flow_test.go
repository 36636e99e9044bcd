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

package flow

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
	"github.com/weir-go/weir/tps"
)

func TestRejectHoldsExactly(t *testing.T) {
	atEither(t, func(t *testing.T, side conf.Side, protocol string) {
		p, c := start(t, side, protocol, nil, "flow", "4/1h")
		served, refusals := spend(t, c, 12)
		require.Equal(t, 4, served)
		for _, err := range refusals {
			e := refused(t, err, p.Group, call.ReasonRate, 4)
			require.Positive(t, e.RetryAfter)
			require.LessOrEqual(t, e.RetryAfter, time.Hour)
			require.Zero(t, e.Waited)
			require.Zero(t, e.MaxWait)
			if side == conf.Consumer {
				require.ErrorIs(t, err, tps.ErrLimitReached, "it was made here")
			}
		}
		require.Equal(t, 4, p.Handler.Stats("").Total, "a refused call never reaches the handler")
		require.EqualValues(t, 8, metric(t, "weir_rejected_total", p.Group, map[string]string{"guard": "flow", "side": side.String()}), "no call is tried again")
		keep(c)
	})
}

func TestABurstIsAdmittedUpToTheRate(t *testing.T) {
	atEither(t, func(t *testing.T, side conf.Side, protocol string) {
		p, c := start(t, side, protocol, nil, "flow", "30/1h")
		calls := harness.Go(100, func(int) error {
			_, err := c.SayHello(context.Background(), "x")
			return err
		})
		require.Equal(t, 70, harness.Failed(calls.Wait(t)))
		require.Equal(t, 30, p.Handler.Stats("").Total)
		keep(c)
	})
}

func TestWarmUpBeginsCold(t *testing.T) {
	atEither(t, func(t *testing.T, side conf.Side, protocol string) {
		p, c := start(t, side, protocol, nil, "flow", "30/1h", "flow.behavior", "warm-up")
		served, refusals := spend(t, c, 15)
		require.Equal(t, 10, served)
		for _, err := range refusals {
			refused(t, err, p.Group, call.ReasonRate, 30)
		}
		require.EqualValues(t, 10, limitsOf(p.Group)[0].Limit, "what holds now")
		keep(c)
	})
}

func TestQueueServesInTheOrderOfArrival(t *testing.T) {
	const n = 10
	atEither(t, func(t *testing.T, side conf.Side, protocol string) {
		var (
			mu    sync.Mutex
			order []string
		)
		handler := &harness.Handler{Func: func(_ context.Context, _, arg string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, arg)
			return arg, nil
		}}
		p, c := start(t, side, protocol, handler)
		queue := conf.Flow{Rate: &conf.Rate{Calls: 1, Interval: time.Hour}, Behavior: conf.BehaviorQueue, MaxQueue: conf.Of(time.Hour)}
		configure(t, side, p.Group, queue)
		served, _ := spend(t, c, 1)
		require.Equal(t, 1, served)

		// All are there before the first of them has its turn.
		queue.Rate = &conf.Rate{Calls: 1, Interval: 100 * time.Millisecond}
		queue.MaxQueue = conf.Of(time.Minute)
		var want []string
		for i := range n {
			want = append(want, fmt.Sprint("n", i))
		}
		configure(t, side, p.Group, conf.Flow{Rate: &conf.Rate{Calls: n, Interval: time.Hour}, Behavior: conf.BehaviorQueue, MaxQueue: conf.Of(time.Hour)})
		calls := wait(t, c, p.Group, want...)
		configure(t, side, p.Group, queue)
		succeed(t, calls)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, append([]string{"x"}, want...), order)
		require.EqualValues(t, n+1, metric(t, "weir_queue_wait_seconds", p.Group, map[string]string{"guard": "flow"}))
		require.Zero(t, waiting(p.Group))
		keep(c)
	})
}

func TestQueueRefusesAtOnceWhatWouldWaitTooLong(t *testing.T) {
	atEither(t, func(t *testing.T, side conf.Side, protocol string) {
		p, c := start(t, side, protocol, nil, "flow", "10/1h", "flow.behavior", "queue", "flow.max-queue", "1m")
		served, refusals := spend(t, c, 5)
		require.Equal(t, 1, served)
		for _, err := range refusals {
			e := refused(t, err, p.Group, call.ReasonRate, 10)
			require.Zero(t, e.Waited)
			require.Equal(t, time.Minute, e.MaxWait)
			require.Greater(t, e.RetryAfter, 4*time.Minute, "its turn is in six, and it may wait for one")
			require.LessOrEqual(t, e.RetryAfter, 5*time.Minute*5/4)
		}
		require.Equal(t, 1, p.Handler.Stats("").Total)
		keep(c)
	})
}

func TestWarmUpQueueBeginsCold(t *testing.T) {
	atEither(t, func(t *testing.T, side conf.Side, protocol string) {
		p, c := start(t, side, protocol, nil, "flow", "30/1h", "flow.behavior", "warm-up-queue", "flow.max-queue", "1m")
		served, refusals := spend(t, c, 2)
		require.Equal(t, 1, served)
		e := refused(t, refusals[0], p.Group, call.ReasonRate, 30)
		require.Greater(t, e.RetryAfter, 4*time.Minute, "six, where a warm one has two")
		require.EqualValues(t, 10, limitsOf(p.Group)[0].Limit)
		keep(c)
	})
}

func TestTheDeadlineBoundsTheWait(t *testing.T) {
	atEither(t, func(t *testing.T, side conf.Side, protocol string) {
		p, c := start(t, side, protocol, nil, "flow", "1/1h", "flow.behavior", "queue", "flow.max-queue", "1h")
		served, _ := spend(t, c, 1)
		require.Equal(t, 1, served)
		ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
		defer cancel()
		_, err := c.SayHello(ctx, "x")
		e := refused(t, err, p.Group, call.ReasonRate, 1)
		require.Zero(t, e.Waited)
		require.NoError(t, ctx.Err(), "it was refused at once")
		require.Equal(t, 1, p.Handler.Stats("").Total)
		keep(c)
	})
}

func TestWhoeverGivesUpLeavesThePlaceToThoseBehind(t *testing.T) {
	atEither(t, func(t *testing.T, side conf.Side, protocol string) {
		if side == conf.Provider && protocol == harness.Dubbo {
			return // nobody tells a provider there that its caller has given up
		}
		p, c := start(t, side, protocol, nil)
		queue := conf.Flow{Rate: &conf.Rate{Calls: 4, Interval: time.Hour}, Behavior: conf.BehaviorQueue, MaxQueue: conf.Of(time.Hour)}
		configure(t, side, p.Group, queue)
		served, _ := spend(t, c, 1)
		require.Equal(t, 1, served)
		before := wait(t, c, p.Group, "before")
		ctx, cancel := context.WithCancel(long(t))
		given := harness.Go(1, func(int) error {
			_, err := c.SayHello(ctx, "given up")
			return err
		})
		eventuallyWait(t, p.Group, 2)
		behind := wait(t, c, p.Group, "behind")
		cancel()
		err := given.Wait(t)[0]
		if side == conf.Consumer {
			e := refused(t, err, p.Group, call.ReasonCancelled, 4)
			require.Positive(t, e.Waited)
			require.ErrorIs(t, err, context.Canceled)
		} else {
			require.Error(t, err)
		}
		eventuallyWait(t, p.Group, 2)

		queue.Rate = &conf.Rate{Calls: 10, Interval: time.Second}
		configure(t, side, p.Group, queue)
		succeed(t, append(before, behind...))
		require.Equal(t, 3, p.Handler.Stats("").Total)
		keep(c)
	})
}

func TestAChangeReachesThoseWhoWait(t *testing.T) {
	atEither(t, func(t *testing.T, side conf.Side, protocol string) {
		p, c := start(t, side, protocol, nil)
		queue := conf.Flow{Rate: &conf.Rate{Calls: 4, Interval: time.Hour}, Behavior: conf.BehaviorQueue, MaxQueue: conf.Of(time.Hour)}
		slow := func() []*harness.Calls {
			configure(t, side, p.Group, queue)
			calls := wait(t, c, p.Group, "a", "b", "c")
			require.EqualValues(t, 3, metric(t, "weir_queue_waiting", p.Group, map[string]string{"guard": "flow"}))
			return calls
		}
		configure(t, side, p.Group, queue)
		served, _ := spend(t, c, 1)
		require.Equal(t, 1, served)

		for name, change := range map[string]conf.Flow{
			"rate":     {Rate: &conf.Rate{Calls: 20, Interval: time.Second}, Behavior: conf.BehaviorQueue},
			"observe":  {Rate: queue.Rate, Behavior: conf.BehaviorQueue, Mode: conf.Observe},
			"off":      {Rate: queue.Rate, Behavior: conf.BehaviorQueue, Mode: conf.Off},
			"none":     {Rate: &conf.Rate{Interval: time.Hour}},
			"behavior": {Rate: queue.Rate, Behavior: conf.BehaviorReject},
		} {
			calls := slow()
			configure(t, side, p.Group, change)
			for _, one := range calls {
				require.NoError(t, one.Wait(t)[0], name)
			}
			// One that begins anew lets the next pass.
			configure(t, side, p.Group, queue)
			if name == "behavior" {
				_, _ = spend(t, c, 1)
			}
		}

		calls := slow()
		less := queue
		less.Rate = &conf.Rate{Calls: 1, Interval: 24 * time.Hour}
		configure(t, side, p.Group, less)
		for _, one := range calls {
			e := refused(t, one.Wait(t)[0], p.Group, call.ReasonRate, 4)
			require.Positive(t, e.Waited)
			require.Positive(t, e.RetryAfter)
		}
		keep(c)
	})
}

func TestObservedFlowHoldsUpNobody(t *testing.T) {
	atEither(t, func(t *testing.T, side conf.Side, protocol string) {
		p, c := start(t, side, protocol, nil, "flow", "60/1h", "flow.behavior", "queue", "flow.max-queue", "150s", "flow.mode", "observe")
		served, _ := spend(t, c, 9)
		require.Equal(t, 9, served)
		at := map[string]string{"guard": "flow", "side": side.String()}
		require.EqualValues(t, 2, metric(t, "weir_would_wait_total", p.Group, at), "one and two minutes")
		require.EqualValues(t, 6, metric(t, "weir_would_reject_total", p.Group, at))
		require.Zero(t, metric(t, "weir_rejected_total", p.Group, at))
		keep(c)
	})
}

func TestSlotsAreLookedAtBeforeTheWait(t *testing.T) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) {
			p, c := start(t, conf.Provider, protocol, nil, "flow", "1/1h", "flow.behavior", "queue", "flow.max-queue", "1h", "executes", "1")
			ctx := long(t)
			held := harness.Go(1, func(int) error {
				_, err := c.SayHello(ctx, harness.Hold("g"))
				return err
			})
			harness.Eventually(t, "it runs", func() bool { return p.Handler.Stats("").Running == 1 })
			_, err := c.SayHello(ctx, "x")
			e, ok := call.As(err)
			require.True(t, ok, err)
			require.Equal(t, "executes", e.Guard)
			require.Zero(t, waiting(p.Group))
			p.Handler.Open("g")
			require.NoError(t, held.Wait(t)[0])
		})
	}
}

func TestAStreamThatHadToWaitGoesOn(t *testing.T) {
	p, _ := start(t, conf.Provider, harness.Triple, nil)
	c := harness.Dial(t, harness.ConsumerConfig{
		Providers: []harness.Endpoint{p.Endpoint}, Bare: true,
		Params: map[string]string{"flow": "10/1s", "flow.behavior": "queue", "flow.max-queue": "1m"},
		Client: []client.ClientOption{client.WithClientRequestTimeout(time.Minute)},
	})
	for i := range 4 {
		stream, err := c.Stub().Chat(context.Background())
		require.NoError(t, err)
		require.NoError(t, stream.Send(&greet.HelloRequest{Name: fmt.Sprint(i)}))
		reply, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("hello %d", i), reply.GetGreeting())
		require.NoError(t, stream.CloseRequest())
	}
	keep(c)
}

const callers = "shop=3/1h, admin=0/1h, default=1/1h"

func TestCallersHaveRatesOfTheirOwn(t *testing.T) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) {
			p, _ := start(t, conf.Provider, protocol, nil, "flow", "100/1h", "flow.callers", callers)
			const asks = "?weir.tell-caller=true"
			shop, other, another, admin := named(t, p, "shop", asks), named(t, p, "other", asks), named(t, p, "another", asks), named(t, p, "admin", asks)
			served, refusals := spend(t, shop, 6)
			require.Equal(t, 3, served)
			refused(t, refusals[0], p.Group, call.ReasonRate, 3)
			served, _ = spend(t, other, 3)
			require.Equal(t, 1, served)
			served, refusals = spend(t, another, 3)
			require.Zero(t, served, "those without a rate of theirs share one")
			refused(t, refusals[0], p.Group, call.ReasonRate, 1)
			served, _ = spend(t, admin, 9)
			require.Equal(t, 9, served)
			require.EqualValues(t, 3, metric(t, "weir_rejected_by_caller_total", p.Group, map[string]string{"caller": "shop"}))
			keep(shop, other, another, admin)
		})
	}
}

func TestACallerTellsItsNameOnceRefused(t *testing.T) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) {
			p, _ := start(t, conf.Provider, protocol, nil, "flow.callers", callers)
			shop := named(t, p, "shop", "")
			served, _ := spend(t, shop, 1)
			require.Equal(t, 1, served, "by default")
			served, _ = spend(t, shop, 1)
			require.Zero(t, served, "that is used up, and nobody has asked for a name")
			served, _ = spend(t, shop, 5)
			require.Equal(t, 3, served)
			keep(shop)
		})
	}
}

func TestCallersQueueApart(t *testing.T) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) {
			p, _ := start(t, conf.Provider, protocol, nil, "flow.callers", callers, "flow.behavior", "queue", "flow.max-queue", "1h")
			const asks = "?weir.tell-caller=true"
			shop, other := named(t, p, "shop", asks), named(t, p, "other", asks)
			served, _ := spend(t, shop, 1)
			require.Equal(t, 1, served)
			calls := wait(t, shop, p.Group, "waits")
			served, _ = spend(t, other, 1)
			require.Equal(t, 1, served)
			configure(t, conf.Provider, p.Group, conf.Flow{Mode: conf.Off})
			succeed(t, calls)
			keep(shop, other)
		})
	}
}
