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

package flowcontrol_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/filter/guard"
)

func (c *chain) service() string { return guard.ServiceOf(c.url).String() }

// of configures the chain's service.
func (c *chain) of(t *testing.T, settings string) {
	t.Helper()
	c.configure(t, "services: {"+c.service()+": "+settings+"}")
}

// waiters makes calls that wait, and returns what they end with.
func (c *chain) waiters(n int, method string, attachments map[string]any) chan error {
	done := make(chan error, n)
	for range n {
		go func() { done <- c.callWith(context.Background(), method, attachments, answer) }()
		synctest.Wait()
	}
	return done
}

// A method that only observes shares the budget of the others, and leaves them their limit.
func TestAnObservingMethodLeavesTheOthersTheirQueue(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		for _, observing := range []string{"Echo", "Other"} {
			c := newChain(t, side, protocol, map[string]string{"timeout": "24h"})
			settings := "{flow: {rate: 1/1h, behavior: queue, max-queue: 24h}, methods: {" + observing + ": {flow: {mode: observe}}}"
			enforced := map[string]string{"Echo": "Other", "Other": "Echo"}[observing]
			c.of(t, settings+"}")
			require.NoError(t, c.callWith(context.Background(), enforced, nil, answer))
			done := c.waiters(1, enforced, nil)
			require.Empty(t, done, "it waits")
			before := c.now()
			require.NoError(t, c.callWith(context.Background(), observing, nil, answer))
			require.Equal(t, before, c.now())
			c.of(t, settings+", tps: 1000000}") // another change
			synctest.Wait()
			require.Empty(t, done, "it waits still")
			require.NoError(t, <-done)
			require.Equal(t, time.Hour, c.now()-before)
			runtime.KeepAlive(c.guard)
		}
	})
}

// Those who wait learn of changes to what methods share, and to what is for callers.
func TestChangesReachThoseWhoWaitForWhatIsShared(t *testing.T) {
	const queue = "{rate: 1/1h, behavior: queue, max-queue: 24h"
	const callers = "{behavior: queue, max-queue: 24h, callers: {shop: 1/1h}"
	for name, tt := range map[string]struct{ from, to string }{
		"shared observe":                 {"{flow: " + queue + "}}", "{flow: " + queue + ", mode: observe}}"},
		"shared off":                     {"{flow: " + queue + "}}", "{flow: " + queue + ", mode: off}}"},
		"shared gone":                    {"{flow: " + queue + "}}", "{}"},
		"callers gone":                   {"{flow: " + callers + "}}", "{}"},
		"callers off":                    {"{flow: " + callers + "}}", "{flow: " + callers + ", mode: off}}"},
		"callers observe":                {"{flow: " + callers + "}}", "{flow: " + callers + ", mode: observe}}"},
		"callers unlimited":              {"{flow: " + callers + "}}", "{flow: {behavior: queue, max-queue: 24h, callers: {shop: 0/1h, other: 1/1h}}}"},
		"caller no longer named":         {"{flow: " + callers + "}}", "{flow: {behavior: queue, max-queue: 24h, callers: {other: 1/1h}}}"},
		"callers of a method":            {"{methods: {Echo: {flow: " + callers + "}}}}", "{methods: {Echo: {flow: {behavior: queue, callers: {other: 1/1h}}}}}"},
		"callers of the method to those": {"{methods: {Echo: {flow: " + callers + "}}}}", "{flow: {behavior: queue, callers: {shop: 1000/1s}}}"},
		"callers refuse":                 {"{flow: " + callers + "}}", "{flow: {behavior: reject, callers: {shop: 1/1h}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newChain(t, conf.Provider, "tri", nil)
				c.of(t, tt.from)
				attachments := caller(c, "shop")
				require.NoError(t, c.callWith(context.Background(), "Echo", attachments, answer))
				done := c.waiters(3, "Echo", attachments)
				require.Empty(t, done)
				before := c.now()
				c.of(t, tt.to)
				for range 3 {
					require.NoError(t, <-done)
				}
				require.Less(t, c.now()-before, time.Minute)
				c.of(t, tt.from) // and back: nothing is left over from those who were let go
				if c.callWith(context.Background(), "Echo", attachments, answer) == nil {
					require.LessOrEqual(t, c.now()-before, time.Hour+time.Minute)
				}
				runtime.KeepAlive(c.guard)
			})
		})
	}
}

// Those who wait when a rate becomes so low that their turn would come too late are refused then.
func TestALowerRateRefusesThoseWhoWaitTooLong(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, nil)
		c.of(t, "{flow: {rate: 10/1s, behavior: queue}}")
		require.NoError(t, c.call())
		done := c.waiters(3, "Echo", nil)
		sleep(50 * ms)
		c.of(t, "{flow: {rate: 10/1h, behavior: queue}}")
		for range 3 {
			err := <-done
			e, ok := call.As(err)
			require.True(t, ok, err)
			assert.Equal(t, call.ReasonRate, e.Reason)
			assert.Equal(t, 50*ms, e.Waited)
			assert.Positive(t, e.RetryAfter)
		}
		require.Equal(t, 50*ms, c.now())
		runtime.KeepAlive(c.guard)
	})
}

// What a caller waits for its own turn and for that of all is together no longer than
// max-queue, and nobody waits for the first only to be refused at the second.
func TestTheWaitsOfACallerTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Provider, "tri", nil)
		c.of(t, "{flow: {rate: 10/1s, behavior: queue, max-queue: 500ms, callers: {shop: 2/1s, batch: 0/1s}}}")
		from := func(name string) error { return c.callWith(context.Background(), "Echo", caller(c, name), answer) }
		require.NoError(t, from("shop"))
		others := c.waiters(5, "Echo", caller(c, "batch")) // 100, 200 ... 500 ms
		require.Error(t, from("shop"), "its turn of its own would be at 500 ms, that of all at 600")
		require.Zero(t, c.now(), "nobody waits only to be refused")
		for range 5 {
			require.NoError(t, <-others)
		}
		require.Equal(t, 500*ms, c.now())

		sleep(time.Minute)
		require.NoError(t, from("shop"))
		sleep(200 * ms) // its next is in 300 ms
		shop := c.waiters(1, "Echo", caller(c, "shop"))
		sleep(250 * ms) // at 450 ms
		others = c.waiters(5, "Echo", caller(c, "batch"))
		began := c.now()
		err := <-shop // at 500 ms those before it have all until 850
		require.Error(t, err, "300 ms for its own turn leave 200")
		require.Equal(t, 50*ms, c.now()-began)
		for range 5 {
			require.NoError(t, <-others)
		}
		runtime.KeepAlive(c.guard)
	})
}

// executes is looked at before the wait: nobody waits for a turn only to find all slots taken.
func TestSlotsAreLookedAtBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Provider, "tri", map[string]string{"flow": "1/1h", "flow.behavior": "queue", "flow.max-queue": "24h", "executes": "1"})
		gate := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- c.callWith(context.Background(), "Echo", nil, func(ctx context.Context, inv base.Invocation) result.Result {
				<-gate
				return answer(ctx, inv)
			})
		}()
		synctest.Wait()
		e, ok := call.As(c.call())
		require.True(t, ok)
		require.Equal(t, "executes", e.Guard)
		require.Zero(t, c.now())
		close(gate)
		require.NoError(t, <-done)
		runtime.KeepAlive(c.guard)
	})
}

// One plan has one to more than four steps, and waits in each of them alike.
func TestWaitsInPlansOfAnyLength(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		for _, more := range []map[string]string{
			{}, {"tps": "1000"}, {"tps": "1000", "executes": "9"}, {"tps": "1000", "executes": "9", "flow.callers": "default=1000/1s"},
		} {
			params := map[string]string{"flow": "10/1s", "flow.behavior": "queue"}
			for k, v := range more {
				if side == conf.Consumer && k != "tps" {
					continue
				}
				params[k] = v
			}
			c := newChain(t, side, protocol, params)
			ran, refused := c.atOnce(10)
			require.Equal(t, evenly(0, 100*ms, 6), ran, "%v", params)
			require.Equal(t, 4, refused)
			for _, w := range figures(c) {
				require.InDelta(t, 1500*ms, w.Sum, float64(50*ms))
			}
			runtime.KeepAlive(c.guard)
		}
	})
}

func figures(c *chain) map[string]guard.WaitFigures {
	out := map[string]guard.WaitFigures{}
	c.rt.Waits(func(k guard.WaitKey, w *guard.Waits) {
		if f := w.Figures(); f.Sum > 0 {
			out[k.Method] = f
		}
	})
	return out
}

// A stream goes on after the call that opened it is over for dubbo, also where it had to wait.
func TestAStreamThatWaitedGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, more := range []string{"", "1000"} {
			params := map[string]string{"flow": "10/1s", "flow.behavior": "queue"}
			if more != "" {
				params["tps"] = more
			}
			c := newChain(t, conf.Consumer, "tri", params)
			open := func() (streamed context.Context) {
				inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{})
				inv.SetAttribute(constant.CallTypeKey, constant.CallBidiStream)
				res := c.guard.Invoke(context.Background(), &end{*base.NewBaseInvoker(c.url), func(ctx context.Context, inv base.Invocation) result.Result {
					streamed = ctx
					return answer(ctx, inv)
				}}, inv)
				require.NoError(t, res.Error())
				return streamed
			}
			before := c.now()
			require.NoError(t, open().Err())
			waited := open()
			require.Equal(t, 100*ms, c.now()-before)
			require.NoError(t, waited.Err())
			_, bounded := waited.Deadline()
			require.False(t, bounded)
			runtime.KeepAlive(c.guard)
		}
	})
}

// What a wait has cost is charged to what a consumer's call has left, with and without
// a deadline, and over either protocol.
func TestAConsumersWaitIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, protocol := range []string{"tri", "dubbo"} {
			for _, more := range []string{"", "1000"} {
				params := map[string]string{"flow": "10/1s", "flow.behavior": "queue", "timeout": "2s"}
				if more != "" {
					params["tps"] = more
				}
				c := newChain(t, conf.Consumer, protocol, params)
				left := func(ctx context.Context) (out time.Duration) {
					require.NoError(t, c.callWith(ctx, "Echo", nil, func(ctx context.Context, inv base.Invocation) result.Result {
						out = -1
						if text, ok := inv.GetAttachment(constant.TimeoutKey); ok && protocol == "dubbo" {
							d, err := time.ParseDuration(text)
							require.NoError(t, err)
							out = d
						} else if deadline, ok := ctx.Deadline(); ok {
							out = time.Until(deadline)
						}
						return answer(ctx, inv)
					}))
					return out
				}
				require.EqualValues(t, -1, left(context.Background()), "nothing is changed where nobody waits")
				require.Equal(t, 1900*ms, left(context.Background()))
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				require.Equal(t, 900*ms, left(ctx))
				cancel()
				runtime.KeepAlive(c.guard)
			}
		}
	})
}

// A provider's call that gives up is refused in the form that servers know, and as its own.
func TestAProvidersCallThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Provider, "tri", map[string]string{"flow": "1/1h", "flow.behavior": "queue", "flow.max-queue": "24h"})
		require.NoError(t, c.call())
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- c.callWith(ctx, "Echo", nil, answer) }()
		synctest.Wait()
		cancel()
		err := <-done
		e, ok := call.As(err)
		require.True(t, ok)
		assert.Equal(t, call.ReasonCancelled, e.Reason)
		assert.False(t, e.Forwarded)
		var wire *triple_protocol.Error
		require.ErrorAs(t, err, &wire)
		assert.Equal(t, triple_protocol.CodeResourceExhausted, wire.Code())
		runtime.KeepAlive(c.guard)
	})
}

// Chains of one service share its budget, whichever protocol they are on.
func TestChainsShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Provider, "tri", map[string]string{"flow": "10/1s", "flow.behavior": "queue"})
		u := c.url.Clone()
		u.Protocol = "dubbo"
		other := &chain{c.side, c.rt, guard.New(c.rt, conf.Provider), u, c.began}
		require.NoError(t, c.call())
		for i := range 5 {
			require.NoError(t, []*chain{c, other}[i%2].call())
		}
		require.Equal(t, 500*ms, c.now())
		runtime.KeepAlive(c.guard)
		runtime.KeepAlive(other.guard)
	})
}

// A provider that comes again finds its budget as it left it.
func TestABudgetOutlivesTheChain(t *testing.T) {
	c := newChain(t, conf.Provider, "tri", map[string]string{"flow": "3/1h", "flow.callers": "shop=1/1h"})
	require.Equal(t, 3, c.admits(t, "Echo", 5))
	c.guard = nil
	for range 3 {
		runtime.GC()
	}
	c.guard = guard.New(c.rt, conf.Provider)
	require.Zero(t, c.admits(t, "Echo", 5))
}

// Of many who come at once no more pass than may, and behaviors that change meanwhile
// leave nobody waiting. N5
func TestBehaviorsChangeUnderLoad(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	c := newChain(t, conf.Provider, "tri", nil)
	var over atomic.Bool
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := 0; !over.Load(); i++ {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%5)*ms)
				_ = c.callWith(ctx, []string{"Echo", "Other"}[i%2], caller(c, []string{"", "shop", "batch"}[i%3]), answer)
				cancel()
			}
		})
	}
	for i := range 60 {
		c.of(t, []string{
			"{flow: {rate: 100/1s, behavior: queue, max-queue: 24h}}",
			"{flow: {rate: 100/1s, behavior: warm-up-queue, callers: {shop: 10/1s, default: 5/1s}}}",
			"{flow: {rate: 100/1s}}", "{}",
			"{flow: {rate: 1/1h, behavior: queue, max-queue: 24h}, methods: {Other: {flow: {behavior: warm-up}}}}",
			"{flow: {rate: 1/1h, behavior: queue, mode: observe}, methods: {Other: {flow: {mode: enforce}}}}",
		}[i%6])
		for range 200 {
			runtime.Gosched()
		}
	}
	c.of(t, "{}")
	over.Store(true)
	wg.Wait()
	flowcontrol.Flows(c.rt, func(f flowcontrol.Flow) { assert.Zero(t, f.Waiting) })

	// What was counted under the last rate that refuses would still count.
	c.of(t, "{flow: {rate: 100/1s, behavior: queue}}")
	require.NoError(t, c.call())
	c.of(t, "{flow: {rate: 7/1h}}")
	var admitted atomic.Int64
	begin := make(chan struct{})
	for range 64 {
		wg.Go(func() {
			<-begin
			if c.call() == nil {
				admitted.Add(1)
			}
		})
	}
	close(begin)
	wg.Wait()
	require.EqualValues(t, 7, admitted.Load())
	runtime.KeepAlive(c.guard)
}

// A caller's name may have whatever the configuration allows in it.
func TestNamesOfCallers(t *testing.T) {
	for _, name := range []string{"shop@eu", "a@b@c", "größe.x/y:1", "@"} {
		c := newChain(t, conf.Provider, "tri", nil)
		c.of(t, "{flow: {callers: {'"+name+"': 2/1h, default: 1/1h}}}")
		n := 0
		for range 5 {
			if c.callWith(context.Background(), "Echo", caller(c, name), answer) == nil {
				n++
			}
		}
		require.Equal(t, 2, n, name)
		runtime.KeepAlive(c.guard)
	}
}

// While it observes, what would wait and what would be refused are counted; and when
// it enforces then, nobody waits for calls that did not.
func TestFromObservingToEnforcing(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, map[string]string{"timeout": "24h"})
		c.of(t, "{flow: {rate: 1/1m, behavior: queue, max-queue: 10h, mode: observe}}")
		require.Equal(t, 100, c.admits(t, "Echo", 100))
		c.of(t, "{flow: {rate: 1/1m, behavior: queue, max-queue: 10h}}")
		require.NoError(t, c.call())
		require.LessOrEqual(t, c.now(), time.Minute)
		runtime.KeepAlive(c.guard)
	})
}
