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

package bulkhead_test

import (
	"context"
	"errors"
	"math/rand/v2"
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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/bulkhead"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/rpcstatus"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// I1: 10 enter, the 11th is refused; after 10 have left 10 more enter.
func TestI1(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, params{"bulkhead": "10"})
		for range 2 {
			var releases []func()
			for range 10 {
				releases = append(releases, c.hold(t, "Echo"))
			}
			e := refusal(t, c.echo())
			assert.Equal(t, call.ReasonConcurrency, e.Reason)
			assert.EqualValues(t, 10, e.Limit)
			assert.EqualValues(t, 10, e.Observed)
			assert.Zero(t, e.Waited)
			assert.NoError(t, c.call(context.Background(), "Other", answer), "each method has its own")
			for _, release := range releases {
				release()
			}
		}
		c.atRest(t)
	})
}

// I2: with two slots P, P, B; one is given back: P, B; two: P, P, B.
func TestI2(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, params{"bulkhead": "2"})
		a, b := c.hold(t, "Echo"), c.hold(t, "Echo")
		refused(t, c.echo())
		a()
		a = c.hold(t, "Echo")
		refused(t, c.echo())
		a()
		b()
		a, b = c.hold(t, "Echo"), c.hold(t, "Echo")
		refused(t, c.echo())
		a()
		b()
		c.atRest(t)
	})
}

// I3: with one slot and a wait of 100 ms the second fails after 100 ms.
func TestI3(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, params{"bulkhead": "1", "bulkhead.queue": "1", "bulkhead.max-wait": "100ms"})
		release := c.hold(t, "Echo")
		start := time.Now()
		err := c.echo()
		assert.Equal(t, 100*ms, time.Since(start))
		e := refusal(t, err)
		assert.Equal(t, call.ReasonWaitTimeout, e.Reason)
		assert.Equal(t, 100*ms, e.Waited)
		assert.Equal(t, 100*ms, e.MaxWait)
		assert.EqualValues(t, 1, e.Limit)
		assert.EqualValues(t, 1, e.Observed)
		assert.Equal(t, guard.ServiceOf(c.url).String()+"#Echo", e.Resource)
		require.ErrorIs(t, err, concurrency.ErrWaitTimeout)
		parsed, ok := call.Parse(e.Error())
		require.True(t, ok)
		assert.Equal(t, 100*ms, parsed.Waited)
		release()
		c.atRest(t)
	})
}

// I4: with two slots and one given back after 200 ms the third waits so long and runs.
func TestI4(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, params{"bulkhead": "2", "bulkhead.queue": "1"})
		a, b := c.hold(t, "Echo"), c.hold(t, "Echo")
		time.AfterFunc(200*ms, a)
		start := time.Now()
		require.NoError(t, c.echo())
		assert.Equal(t, 200*ms, time.Since(start))
		b()
		c.atRest(t)
	})
}

// N5: of a crowd exactly as many run as may, as many wait as may, and the rest is
// refused at once.
func TestN5(t *testing.T) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		t.Run(side.String(), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
			c := newChain(t, side, "tri", params{"bulkhead": "4", "bulkhead.queue": "6", "bulkhead.max-wait": "1h", "timeout": "1h"})
			require.NoError(t, c.echo())
			q := c.queue(t, "Echo", "")
			for range 100 {
				var refused, running, most atomic.Int64
				start, gate := make(chan struct{}), make(chan struct{})
				var wg sync.WaitGroup
				for range 64 {
					wg.Go(func() {
						<-start
						if c.call(context.Background(), "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
							now := running.Add(1)
							for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
							}
							<-gate
							running.Add(-1)
							return answer(ctx, inv)
						}) != nil {
							refused.Add(1)
						}
					})
				}
				close(start)
				for refused.Load() < 54 {
					runtime.Gosched()
				}
				require.EqualValues(t, 4, q.Inflight())
				require.EqualValues(t, 6, q.Waiting())
				close(gate)
				wg.Wait()
				require.EqualValues(t, 54, refused.Load())
				require.LessOrEqual(t, most.Load(), int64(4))
			}
			c.atRest(t)
		})
	}
}

// N9: what waits is not what responds, and it is counted as waiting.
func TestN9WaitingIsNotResponseTime(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		for name, more := range map[string][]string{
			"alone":         nil,
			"with one more": {"tps", "1000"},
			"with executes": {"executes", "10"},
			"of three":      {"tps", "1000", "executes", "10"},
			"of four":       {"tps", "1000", "executes", "10", "executes.scope", "service", "methods.Echo.executes", "9"},
		} {
			if side == conf.Consumer && len(more) > 0 {
				more = []string{"actives", "10", "actives.wait", "0"}
			}
			c := newChain(t, side, protocol, with(params{"bulkhead": "1", "bulkhead.queue": "2", "bulkhead.max-wait": "10s", "timeout": "1h"}, more...))
			first, second, third := c.later("Echo", takes(50*ms)), c.later("Echo", takes(50*ms)), c.later("Echo", takes(50*ms))
			sleep(time.Second)
			synctest.Wait()
			require.NoError(t, errors.Join(*first, *second, *third), name)
			f := c.rt.Status.Status(c.statusKey("Echo")).Figures()
			assert.EqualValues(t, 3, f.Outcomes[call.Success], name)
			assert.Equal(t, 150*ms, f.Elapsed, name)
			w := c.waits("Echo")
			assert.EqualValues(t, 1, w.Counts[0], name)
			assert.Equal(t, 150*ms, w.Sum, name) // 50 and 100
			c.atRest(t)
		}
	})
}

func (c *chain) statusKey(method string) rpcstatus.Key {
	k := rpcstatus.Key{Side: c.side.String(), Service: guard.ServiceOf(c.url).String(), Method: method}
	if c.side == conf.Consumer {
		k.Reference = referenceOf(c.url).ID
	}
	return k
}

func (c *chain) waits(method string) (f guard.WaitFigures) {
	c.rt.Waits(func(k guard.WaitKey, w *guard.Waits) {
		if k == (guard.WaitKey{Side: c.side.String(), Service: guard.ServiceOf(c.url).String(), Method: method, Guard: "bulkhead"}) {
			f = w.Figures()
		}
	})
	runtime.KeepAlive(c)
	return f
}

// N9: a call that a later guard would refuse does not wait first, and nobody waits
// while it holds a slot that others could use.
func TestN9RefusalsComeBeforeWaits(t *testing.T) {
	t.Run("executes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newChain(t, conf.Provider, "tri", params{
				"executes": "2", "executes.scope": "service", "methods.Echo.bulkhead": "1", "methods.Echo.bulkhead.queue": "5",
			})
			release := c.hold(t, "Echo")
			waiting := c.later("Echo", answer)
			require.EqualValues(t, 1, c.queue(t, "Echo", "").Waiting())
			other := c.hold(t, "Other") // there is a slot of executes left for it
			start := time.Now()
			e, ok := call.As(c.echo())
			require.True(t, ok)
			assert.Equal(t, "executes", e.Guard, "two run, and there is room in the queue")
			assert.Zero(t, time.Since(start))
			assert.EqualValues(t, 1, c.rt.Status.Status(c.statusKey("Echo")).Figures().Outcomes[call.Rejected])
			release()
			synctest.Wait()
			require.NoError(t, *waiting)
			other()
			c.atRest(t)
		})
	})
	t.Run("actives", func(t *testing.T) {
		for _, queue := range []string{"0", "1"} {
			synctest.Test(t, func(t *testing.T) {
				// One reference, two providers with a slot each, and two calls allowed in all.
				own := params{"actives": "1", "bulkhead": "2", "bulkhead.queue": queue, "timeout": "10s"}
				a := newChain(t, conf.Consumer, "tri", own)
				service := guard.ServiceOf(a.url).String()
				b := chainOf(t, a.rt, conf.Consumer, "tri", service, "20001", referenceOf(a.url), own)
				releaseA := a.hold(t, "Echo")
				waiting := a.later("Echo", answer)
				releaseB := b.hold(t, "Echo") // the one that waits for a holds no slot of the bulkhead
				full := b.later("Echo", answer)
				if queue == "0" {
					refused(t, *full)
				} else {
					require.EqualValues(t, 0, a.queue(t, "Echo", "").Waiting(), "it waits for the provider's slot")
				}
				releaseB()
				releaseA()
				synctest.Wait()
				require.NoError(t, *waiting)
				a.atRest(t)
				runtime.KeepAlive(b)
			})
		}
	})
}

// N10: a wait ends with the context, and nothing of it stays.
func TestN10ACancelledWaitLeavesAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, params{"bulkhead": "1", "bulkhead.queue": "1", "timeout": "10s"})
		release := c.hold(t, "Echo")
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(7*ms, cancel)
		start := time.Now()
		err := c.call(ctx, "Echo", answer)
		assert.Equal(t, 7*ms, time.Since(start))
		require.ErrorIs(t, err, context.Canceled)
		e := refusal(t, err)
		assert.Equal(t, call.ReasonCancelled, e.Reason)
		assert.Equal(t, 7*ms, e.Waited)
		assert.Zero(t, c.queue(t, "Echo", "").Waiting())
		next := c.later("Echo", answer) // its place is free again
		release()
		synctest.Wait()
		require.NoError(t, *next)
		c.atRest(t)
	})
}

// The wait is part of what the call has: its context's deadline, and on the dubbo
// protocol the timeout that its caller tells.
func TestTheWaitEndsWithTheCall(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, params{"bulkhead": "1", "bulkhead.queue": "5", "bulkhead.max-wait": "10s", "timeout": "9s"})
		release := c.hold(t, "Echo")
		ctx, cancel := context.WithTimeout(context.Background(), 30*ms)
		defer cancel()
		start := time.Now()
		err := c.call(ctx, "Echo", answer)
		e := refusal(t, err)
		assert.Equal(t, 30*ms, time.Since(start))
		assert.Equal(t, call.ReasonWaitTimeout, e.Reason)
		assert.Equal(t, 30*ms, e.Waited)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		e = refusal(t, c.call(ctx, "Echo", answer))
		assert.Equal(t, call.ReasonWaitTimeout, e.Reason, "it is over already")
		assert.Zero(t, e.Waited)

		if protocol == "dubbo" {
			// A consumer's deadline is what its invoker makes of the timeout, which for 0 is
			// dubbo's default, too.
			for text, d := range map[string]time.Duration{"40": 40 * ms, "50ms": 50 * ms, "0": 3000 * ms} {
				start = time.Now()
				inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{constant.TimeoutKey: text})
				e = refusal(t, c.invoke(context.Background(), inv, answer).Error())
				assert.Equal(t, call.ReasonWaitTimeout, e.Reason)
				assert.Equal(t, d, time.Since(start), text)
			}
		}
		release()
		c.atRest(t)
	})
}

// A slot that comes when nothing is left to do with it goes to the next.
func TestASlotFreedAtTheDeadlineIsNotLost(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		for _, early := range []time.Duration{0, 1, ms - 1, ms} {
			c := newChain(t, side, protocol, params{"bulkhead": "1", "bulkhead.queue": "5", "timeout": "1h"})
			release := c.hold(t, "Echo")
			time.AfterFunc(50*ms-early, release)
			var first error
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 50*ms)
				defer cancel()
				first = c.call(ctx, "Echo", answer)
			}()
			sleep(10 * ms)
			start := time.Now()
			require.NoError(t, c.echo())
			assert.LessOrEqual(t, time.Since(start), 40*ms)
			synctest.Wait()
			if early == ms {
				assert.NoError(t, first)
			} else {
				assert.ErrorIs(t, first, call.ErrRejected, "%v before its end", early)
			}
			c.atRest(t)
		}
	})
}

// On a provider of the dubbo protocol an answer is late when the wait and the run
// together are.
func TestAWaitMakesAnAnswerLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Provider, "dubbo", params{"bulkhead": "1", "bulkhead.queue": "5"})
		release := c.hold(t, "Echo")
		time.AfterFunc(60*ms, release)
		inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{constant.TimeoutKey: "100"})
		require.NoError(t, c.invoke(context.Background(), inv, takes(50*ms)).Error())
		f := c.rt.Status.Status(c.statusKey("Echo")).Figures()
		assert.EqualValues(t, 1, f.Outcomes[call.Timeout])
		assert.Equal(t, 110*ms, f.Elapsed)
	})
}

// What the wait takes is taken from what the provider is told.
func TestTheWaitIsChargedToAConsumersCall(t *testing.T) {
	for _, steps := range []params{{}, {"actives": "5"}} {
		for protocol := range map[string]bool{"tri": true, "dubbo": true} {
			synctest.Test(t, func(t *testing.T) {
				own := with(steps, "bulkhead", "1", "bulkhead.queue", "1", "timeout", "100ms")
				c := newChain(t, conf.Consumer, protocol, own)
				release := c.hold(t, "Echo")
				time.AfterFunc(30*ms, release)
				require.NoError(t, c.call(context.Background(), "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
					if protocol == "dubbo" {
						text, _ := inv.GetAttachment(constant.TimeoutKey)
						assert.Equal(t, "70ms", text)
					} else {
						deadline, ok := ctx.Deadline()
						require.True(t, ok)
						assert.Equal(t, 70*ms, time.Until(deadline))
					}
					return answer(ctx, inv)
				}))
				c.atRest(t)
			})
		}
	}
}

// Two waits of one call together take no longer than it has.
func TestTwoWaitsShareWhatTheCallHas(t *testing.T) {
	for _, protocol := range []string{"tri", "dubbo"} {
		synctest.Test(t, func(t *testing.T) {
			own := params{"actives": "1", "bulkhead": "1", "bulkhead.queue": "9", "bulkhead.max-wait": "10s", "timeout": "100ms"}
			a := newChain(t, conf.Consumer, protocol, own)
			b := chainOf(t, a.rt, conf.Consumer, protocol, guard.ServiceOf(a.url).String(), "20001", referenceOf(a.url), own)
			release := a.hold(t, "Echo") // the bulkhead's slot, and a's
			first := b.later("Echo", answer)
			sleep(60 * ms)
			second := b.later("Echo", answer) // waits for b's slot, which first gives up at 100 ms
			sleep(40*ms + 1)
			synctest.Wait()
			assert.Equal(t, call.ReasonWaitTimeout, refusal(t, *first).Reason)
			sleep(60*ms - 1) // it had 60 ms left for the bulkhead
			synctest.Wait()
			e := refusal(t, *second)
			assert.Equal(t, call.ReasonWaitTimeout, e.Reason)
			assert.Equal(t, 60*ms, e.MaxWait)
			release()
			a.atRest(t)
			runtime.KeepAlive(b)
		})
	}
}

func TestFirstComeFirstServed(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, params{"bulkhead": "1", "bulkhead.queue": "100", "bulkhead.max-wait": "10s", "timeout": "100s"})
		var order []int // guarded by the slot
		var wg sync.WaitGroup
		for i := range 101 {
			wg.Go(func() {
				assert.NoError(t, c.call(context.Background(), "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
					sleep(ms)
					order = append(order, i)
					return answer(ctx, inv)
				}))
			})
			synctest.Wait()
		}
		require.EqualValues(t, 100, c.queue(t, "Echo", "").Waiting())
		refused(t, c.echo())
		wg.Wait()
		assert.IsIncreasing(t, order)
		assert.Len(t, order, 101)
		c.atRest(t)
	})
}

// However a call ends its slot is there for the next.
func TestHoweverACallEnds(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, params{"bulkhead": "1", "bulkhead.queue": "1"})
		for name, f := range map[string]inner{
			"error": func(context.Context, base.Invocation) result.Result {
				return &result.RPCResult{Err: errors.New("boom")}
			},
			"panic": func(context.Context, base.Invocation) result.Result { panic("boom") },
			"exit":  func(context.Context, base.Invocation) result.Result { runtime.Goexit(); return nil },
			"nil":   func(context.Context, base.Invocation) result.Result { return nil },
		} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_ = c.call(context.Background(), "Echo", f)
			}()
			<-done
			c.atRest(t)
			require.NoError(t, c.echo(), name)
		}
	})
}

// Calls with all kinds of ends: slots are conserved, and never more run or wait.
func TestCancellationStorm(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		const n = 3000
		c := newChain(t, side, protocol, params{"bulkhead": "7", "bulkhead.queue": "20", "bulkhead.max-wait": "50ms", "timeout": "300ms"})
		require.NoError(t, c.echo())
		q := c.queue(t, "Echo", "")
		rnd := rand.New(rand.NewPCG(11, 13))
		var running, most, ran, refused, waited atomic.Int64
		var wg sync.WaitGroup
		for range n {
			ctx, cancel := context.WithCancel(context.Background())
			if rnd.IntN(3) == 0 {
				ctx, cancel = context.WithTimeout(context.Background(), time.Duration(1+rnd.IntN(200))*ms)
			}
			if rnd.IntN(3) == 0 {
				time.AfterFunc(time.Duration(rnd.IntN(200))*ms, cancel)
			}
			begin, takes, panics := time.Duration(rnd.IntN(400))*ms, time.Duration(rnd.IntN(6))*ms, rnd.IntN(10) == 0
			wg.Go(func() {
				defer cancel()
				sleep(begin)
				waited.Store(max(waited.Load(), q.Waiting()))
				defer func() { _ = recover() }()
				if c.call(ctx, "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
					now := running.Add(1)
					for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
					}
					ran.Add(1)
					sleep(takes)
					running.Add(-1)
					if panics {
						panic("boom")
					}
					return answer(ctx, inv)
				}) != nil {
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		assert.EqualValues(t, 7, most.Load())
		assert.EqualValues(t, 20, waited.Load())
		assert.EqualValues(t, n, ran.Load()+refused.Load())
		assert.Greater(t, refused.Load(), int64(n/10), "the storm is none")
		assert.Greater(t, ran.Load(), int64(n/10), "the storm is none")
		c.atRest(t)
	})
}

// Settings change while calls run and wait, and those who wait learn of it though no
// other call comes by.
func TestSettingsChangeWhileCallsWait(t *testing.T) {
	for name, tt := range map[string]struct {
		change conf.Bulkhead
		runs   int
	}{
		"more":       {conf.Bulkhead{Max: conf.Of(3), Queue: conf.Of(9)}, 3},
		"unlimited":  {conf.Bulkhead{Max: conf.Of(0)}, 5},
		"observe":    {conf.Bulkhead{Max: conf.Of(1), Queue: conf.Of(9), Mode: conf.Observe}, 5},
		"off":        {conf.Bulkhead{Max: conf.Of(1), Queue: conf.Of(9), Mode: conf.Off}, 5},
		"no places":  {conf.Bulkhead{Max: conf.Of(1)}, 1},
		"into group": {conf.Bulkhead{Max: conf.Of(1), Queue: conf.Of(9), Group: "island"}, 5},
		"nothing":    {conf.Bulkhead{}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
				c := newChain(t, side, protocol, params{"timeout": "1h"})
				c.configure(conf.Bulkhead{Max: conf.Of(1), Queue: conf.Of(4), MaxWait: conf.Of(time.Hour)})
				gate := make(chan struct{})
				var running atomic.Int64
				var wg sync.WaitGroup
				for range 5 {
					wg.Go(func() {
						assert.NoError(t, c.call(context.Background(), "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
							running.Add(1)
							<-gate
							return answer(ctx, inv)
						}))
					})
					synctest.Wait()
				}
				require.EqualValues(t, 1, running.Load())
				refused(t, c.echo())
				c.configure(tt.change)
				synctest.Wait()
				assert.EqualValues(t, tt.runs, running.Load())
				if name == "no places" {
					refused(t, c.echo())
					assert.EqualValues(t, 4, c.queue(t, "Echo", "").Waiting(), "those who wait keep their places")
				}
				close(gate)
				wg.Wait()
				require.NoError(t, c.echo())
				c.atRest(t)
			})
		})
	}
}

// configure sets the bulkhead of all methods of the chain's side.
func (c *chain) configure(b conf.Bulkhead) {
	section := conf.Section{Policies: conf.Policies{Bulkhead: &b}}
	cfg := &conf.Config{Provider: section}
	if c.side == conf.Consumer {
		cfg = &conf.Config{Consumer: section}
	}
	c.rt.Store.Set(conf.FromCode, "code", cfg)
}

func TestObserving(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		for _, tt := range []struct {
			queue       string
			waits, refs int64
		}{{"0", 0, 5}, {"2", 2, 3}, {"9", 5, 0}} {
			c := newChain(t, side, protocol, params{"bulkhead": "2", "bulkhead.mode": "observe", "bulkhead.queue": tt.queue})
			assert.Zero(t, c.crowd(context.Background(), 7, takes(ms)), "nobody is refused")
			var wouldReject int64
			c.rt.Rejections(func(_ guard.RejectionKey, r *guard.Rejections) {
				assert.Zero(t, r.Rejected())
				wouldReject += r.WouldReject()
			})
			assert.Equal(t, tt.refs, wouldReject, tt.queue)
			assert.Equal(t, tt.waits, c.waits("Echo").WouldWait, tt.queue)
			c.atRest(t)
		}
	})
}

// What runs when the guard is switched counts afterwards.
func TestTheModeChangesAtRunTime(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, params{"bulkhead": "1"})
		mode := func(m conf.Mode) { c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: m}) }
		mode(conf.Observe)
		first, second := c.hold(t, "Echo"), c.hold(t, "Echo")
		mode(conf.Enforce)
		refused(t, c.echo())
		first()
		refused(t, c.echo()) // the second still runs
		second()
		require.NoError(t, c.echo())
		release := c.hold(t, "Echo")
		mode(conf.Off)
		require.NoError(t, c.echo())
		mode(conf.Enforce)
		refused(t, c.echo())
		release()
		require.NoError(t, c.echo())
		c.atRest(t)
	})
}

// A consumer's bulkhead is the reference's, whichever provider a call goes to; a
// provider's the service's, whichever protocol it comes by.
func TestWhatSharesABulkhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := params{"bulkhead": "1", "methods.other.bulkhead": "2"}
		c := newChain(t, conf.Consumer, "tri", own)
		service := guard.ServiceOf(c.url).String()
		release := c.hold(t, "Echo")
		ctx := context.Background()
		refused(t, c.echo())
		refused(t, c.call(ctx, "echo", answer))
		require.NoError(t, c.call(ctx, "Other", answer))
		same := chainOf(t, c.rt, conf.Consumer, "tri", service, "20001", referenceOf(c.url), own)
		refused(t, same.echo())
		require.NoError(t, chainOf(t, c.rt, conf.Consumer, "tri", service, "20000", nil, own).echo(), "another reference")
		require.NoError(t, chainOf(t, c.rt, conf.Provider, "tri", service, "20000", nil, own).echo(), "another side")
		generic := invocation.NewRPCInvocation(constant.Generic, []any{"Echo", []string{}, []any{}}, map[string]any{})
		refused(t, c.invoke(ctx, generic, answer).Error())
		release()
		require.NoError(t, same.echo())

		p := chainOf(t, c.rt, conf.Provider, "tri", service, "20000", nil, own)
		q := chainOf(t, c.rt, conf.Provider, "dubbo", service, "20001", nil, own)
		release = p.hold(t, "Echo")
		refused(t, q.echo())
		require.NoError(t, chainOf(t, c.rt, conf.Provider, "tri", newService(), "20000", nil, own).echo(), "another service")
		release()
		c.atRest(t)
		runtime.KeepAlive([]*chain{p, q, same})
	})
}

// dubbo returns when a consumer's stream is open; nobody here learns when it ends.
func TestAConsumersStreamsAreLeftAlone(t *testing.T) {
	for _, mode := range []string{"enforce", "observe"} {
		synctest.Test(t, func(t *testing.T) {
			c := newChain(t, conf.Consumer, "tri", params{"bulkhead": "1", "bulkhead.queue": "1", "bulkhead.mode": mode, "actives": "9"})
			release := c.hold(t, "Echo")
			for range 2 {
				inv := invocation.NewRPCInvocation("Other", nil, map[string]any{})
				inv.SetAttribute(constant.CallTypeKey, constant.CallBidiStream)
				require.NoError(t, c.invoke(context.Background(), inv, func(ctx context.Context, inv base.Invocation) result.Result {
					assert.Zero(t, c.queue(t, "Other", "").Inflight())
					return answer(ctx, inv)
				}).Error())
			}
			release()
			c.atRest(t)
		})
	}
}

// By its own name it enforces nothing else, and the umbrella leaves it to it.
func TestTheFilterOfThatName(t *testing.T) {
	for name, side := range map[string]conf.Side{bulkhead.ProviderFilter: conf.Provider, bulkhead.ConsumerFilter: conf.Consumer} {
		synctest.Test(t, func(t *testing.T) {
			key := constant.ServiceFilterKey
			if side == conf.Consumer {
				key = constant.ReferenceFilterKey
			}
			c := newChain(t, side, "tri", params{"bulkhead": "1", "bulkhead.queue": "1", "tps": "1", key: name + ",weir,weir-consumer"})
			umbrella := c.guard
			c.guard = guard.NewAlone(c.rt, side, name, bulkhead.Policy)
			require.NoError(t, c.echo())
			require.NoError(t, c.echo(), "it has no tps")
			release := c.hold(t, "Echo")
			waiting := c.later("Echo", answer)
			refused(t, c.echo())
			alone := c.guard
			c.guard = umbrella
			require.NoError(t, c.echo(), "the umbrella has no bulkhead then")
			c.guard = alone
			release()
			synctest.Wait()
			require.NoError(t, *waiting)
			c.atRest(t)
			runtime.KeepAlive(umbrella)
		})
	}
}
