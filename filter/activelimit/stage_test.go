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

package activelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
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
	"github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/rpcstatus"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

const ms = time.Millisecond

// sleep lets the time of a bubble pass.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest

type inner func(context.Context, base.Invocation) result.Result

type end struct {
	base.BaseInvoker
	f inner
}

func (e *end) Invoke(ctx context.Context, inv base.Invocation) result.Result { return e.f(ctx, inv) }

func answer(context.Context, base.Invocation) result.Result {
	return &result.RPCResult{Rest: "result"}
}

// takes answers after a while.
func takes(d time.Duration) inner {
	return func(ctx context.Context, inv base.Invocation) result.Result {
		sleep(d)
		return answer(ctx, inv)
	}
}

var services atomic.Int64

// chain is a reference's chain to one provider.
type chain struct {
	rt    *guard.Runtime
	guard *guard.Guard
	url   *common.URL
	ref   *retry.Reference
}

// refer makes a chain to a provider at the port. Only own is the reference's;
// what the provider adds is in merged.
func refer(t testing.TB, rt *guard.Runtime, ref *retry.Reference, protocol, service, port string, merged map[string]string) *chain {
	t.Helper()
	opts := []common.Option{
		common.WithProtocol(protocol), common.WithPath(service), common.WithIp("127.0.0.1"), common.WithPort(port),
		common.WithInterface(service), common.WithMethods([]string{"Echo", "Other"}),
	}
	for k, v := range merged {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	u := common.NewURLWithOptions(opts...)
	u.Location = "127.0.0.1:" + port
	u.SetAttribute(retry.AttributeKey, ref)
	return &chain{rt, guard.New(rt, conf.Consumer), u, ref}
}

func reference(t testing.TB, service string, own map[string]string) *retry.Reference {
	t.Helper()
	parsed := conf.ParseParams(conf.Consumer, service, own)
	require.Empty(t, parsed.Faults)
	ref := retry.NewReference(&parsed.Service)
	ref.Cluster, ref.Raw = constant.ClusterKeyFailover, conf.OwnParams(own)
	return ref
}

func consumer(t testing.TB, protocol string, own map[string]string) *chain {
	t.Helper()
	service := fmt.Sprintf("actives.Service%d", services.Add(1))
	return refer(t, guard.NewRuntime(), reference(t, service, own), protocol, service, "20000", own)
}

func (c *chain) invoke(ctx context.Context, inv base.Invocation, f inner) result.Result {
	return c.guard.Invoke(ctx, &end{*base.NewBaseInvoker(c.url), f}, inv)
}

func (c *chain) call(ctx context.Context, method string, f inner) error {
	return c.invoke(ctx, invocation.NewRPCInvocation(method, nil, map[string]any{}), f).Error()
}

func (c *chain) queue(t testing.TB, method string) *concurrency.Queue {
	t.Helper()
	var out *concurrency.Queue
	activelimit.Queues(c.rt, func(k activelimit.Key, q *concurrency.Queue) {
		if k.Method == method && k.Service == guard.ServiceOf(c.url).String() && k.Address == c.url.Location && k.Reference == c.ref.ID {
			require.Nil(t, out, "there is a second queue")
			out = q
		}
	})
	return out
}

func (c *chain) atRest(t testing.TB, method string) {
	t.Helper()
	q := c.queue(t, method)
	require.NotNil(t, q)
	assert.Zero(t, q.Inflight())
	assert.Zero(t, q.Waiting())
	runtime.KeepAlive(c)
}

// crowd makes n calls at once and returns how many were refused.
func (c *chain) crowd(ctx context.Context, n int, f inner) int64 {
	var (
		wg      sync.WaitGroup
		refused atomic.Int64
	)
	for range n {
		wg.Go(func() {
			if c.call(ctx, "Echo", f) != nil {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	return refused.Load()
}

var protocols = []string{"tri", "dubbo"}

// bothProtocols runs a test in a bubble for each protocol.
func bothProtocols(t *testing.T, f func(t *testing.T, protocol string)) {
	t.Helper()
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, protocol) })
		})
	}
}

func TestActivesOfJava(t *testing.T) {
	ctx := context.Background()
	boom := func(context.Context, base.Invocation) result.Result { panic(errors.New("runtime exception")) }
	broken := func(context.Context, base.Invocation) result.Result {
		return &result.RPCResult{Err: errors.New("runtime exception")}
	}
	bothProtocols(t, func(t *testing.T, protocol string) {
		for name, steps := range map[string]func(t *testing.T){
			"A1 no actives": func(t *testing.T) {
				assert.NoError(t, consumer(t, protocol, map[string]string{"actives": "0"}).call(ctx, "Echo", answer))
				assert.NoError(t, consumer(t, protocol, nil).call(ctx, "Echo", answer))
			},
			"A2 fewer than actives": func(t *testing.T) {
				assert.NoError(t, consumer(t, protocol, map[string]string{"actives": "10"}).call(ctx, "Echo", answer))
			},
			"A3 slots that are never released": func(t *testing.T) {
				c := consumer(t, protocol, map[string]string{"actives": "1", "timeout": "1ms"})
				gate := make(chan struct{})
				go func() {
					_ = c.call(ctx, "Echo", func(ctx context.Context, inv base.Invocation) result.Result { <-gate; return answer(ctx, inv) })
				}()
				synctest.Wait()
				for range 100 {
					assert.EqualValues(t, 100, c.crowd(ctx, 100, takes(100*ms)))
				}
				close(gate)
				synctest.Wait()
				c.atRest(t, "Echo")
			},
			"A4 time out": func(t *testing.T) {
				c := consumer(t, protocol, map[string]string{"actives": "10", "timeout": "1ms"})
				assert.EqualValues(t, 90, c.crowd(ctx, 100, takes(100*ms)))
				c.atRest(t, "Echo")
			},
			"A5 no time out": func(t *testing.T) {
				c := consumer(t, protocol, map[string]string{"actives": "10", "timeout": "100s"})
				assert.Zero(t, c.crowd(ctx, 100, answer))
				assert.Zero(t, c.crowd(ctx, 100, takes(ms)))
				c.atRest(t, "Echo")
			},
			"A6, A7 an exception": func(t *testing.T) {
				for _, actives := range []string{"0", "1"} {
					c := consumer(t, protocol, map[string]string{"actives": actives})
					for range 3 {
						assert.ErrorContains(t, c.call(ctx, "Echo", broken), "runtime exception")
						assert.Panics(t, func() { _ = c.call(ctx, "Echo", boom) })
						done := make(chan struct{})
						go func() {
							defer close(done)
							_ = c.call(ctx, "Echo", func(context.Context, base.Invocation) result.Result { runtime.Goexit(); return nil })
						}()
						<-done
						c.atRest(t, "Echo")
					}
				}
			},
		} {
			t.Log(name)
			steps(t)
		}
	})
}

func TestRegression_CheckThenIncrease(t *testing.T) { // H23
	for _, n := range []int{2, 16} {
		old := runtime.GOMAXPROCS(n)
		c := consumer(t, "tri", map[string]string{"actives": "5", "timeout": "60s"})
		var running, most atomic.Int64
		for range 1000 {
			assert.Zero(t, c.crowd(context.Background(), 50, func(ctx context.Context, inv base.Invocation) result.Result {
				now := running.Add(1)
				for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
				}
				runtime.Gosched()
				running.Add(-1)
				return answer(ctx, inv)
			}))
		}
		assert.LessOrEqual(t, most.Load(), int64(5))
		c.atRest(t, "Echo")
		runtime.GOMAXPROCS(old)
	}
}

// N7: 100 waiters, one slot, served in the order of arrival.
func TestServedInOrderOfArrival(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol string) {
		c := consumer(t, protocol, map[string]string{"actives": "1", "timeout": "100s"})
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
		require.EqualValues(t, 100, c.queue(t, "Echo").Waiting())
		wg.Wait()
		assert.IsIncreasing(t, order)
		assert.Len(t, order, 101)
		c.atRest(t, "Echo")
	})
}

// hold keeps the only slot of Echo until release is called.
func (c *chain) hold(t testing.TB) (release func()) {
	t.Helper()
	gate, entered, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		err := c.call(context.Background(), "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
			close(entered)
			<-gate
			return answer(ctx, inv)
		})
		assert.NoError(t, err)
	}()
	<-entered
	return func() { close(gate); <-done }
}

// N4: a wait has an end, also when nothing says how long a call may take.
func TestTheWaitIsBoundedWithoutAnyTimeout(t *testing.T) {
	for name, params := range map[string]map[string]string{
		"nothing": {}, "zero": {"timeout": "0s"}, "negative": {"timeout": "-1s"}, "nonsense": {"timeout": "soon"}, "empty": {"timeout": ""},
	} {
		bothProtocols(t, func(t *testing.T, protocol string) {
			own := map[string]string{"actives": "1"}
			for k, v := range params {
				own[k] = v
			}
			c := consumer(t, protocol, own)
			release := c.hold(t)
			start := time.Now()
			err := c.call(context.Background(), "Echo", answer)
			require.ErrorIs(t, err, call.ErrRejected, name)
			assert.Equal(t, 3*time.Second, time.Since(start), name)
			release()
			c.atRest(t, "Echo")
		})
	}
}

func TestTheRefusalTellsAll(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol string) {
		c := consumer(t, protocol, map[string]string{"actives": "1", "actives.wait": "20", "timeout": "1s"})
		release := c.hold(t)
		start := time.Now()
		err := c.call(context.Background(), "Echo", answer)
		assert.Equal(t, 20*ms, time.Since(start))
		e, ok := call.As(err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, "actives", e.Guard)
		assert.Equal(t, guard.ServiceOf(c.url).String()+"#Echo", e.Resource)
		assert.Equal(t, call.ReasonWaitTimeout, e.Reason)
		assert.Equal(t, 20*ms, e.Waited)
		assert.Equal(t, 20*ms, e.MaxWait)
		assert.EqualValues(t, 1, e.Observed)
		assert.EqualValues(t, 1, e.Limit)
		assert.ErrorIs(t, err, concurrency.ErrWaitTimeout)
		assert.ErrorIs(t, err, concurrency.ErrLimitReached)
		assert.NotContains(t, err.Error(), "127.0.0.1", "an address must not leak")
		parsed, ok := call.Parse(e.Error())
		require.True(t, ok)
		assert.Equal(t, 20*ms, parsed.Waited)
		release()
		c.atRest(t, "Echo")
		f := c.rt.Status.Status(rpcstatus.Key{Side: "consumer", Reference: c.ref.ID, Service: guard.ServiceOf(c.url).String(), Method: "Echo"}).Figures()
		assert.EqualValues(t, 1, f.Outcomes[call.Rejected])
		assert.EqualValues(t, 1, f.Outcomes[call.Success])
	})
}

func TestNotToWait(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol string) {
		c := consumer(t, protocol, map[string]string{"actives": "1", "actives.wait": "0"})
		release := c.hold(t)
		start := time.Now()
		e, ok := call.As(c.call(context.Background(), "Echo", answer))
		require.True(t, ok)
		assert.Zero(t, time.Since(start))
		assert.Equal(t, call.ReasonConcurrency, e.Reason)
		assert.Zero(t, e.Waited)
		release()
		c.atRest(t, "Echo")
	})
}

// N6: a cancelled call leaves the queue at once.
func TestACancelledCallLeavesAtOnce(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol string) {
		c := consumer(t, protocol, map[string]string{"actives": "1"})
		release := c.hold(t)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(7*ms, cancel)
		start := time.Now()
		err := c.call(ctx, "Echo", answer)
		assert.Equal(t, 7*ms, time.Since(start))
		assert.ErrorIs(t, err, context.Canceled)
		e, ok := call.As(err)
		require.True(t, ok)
		assert.Equal(t, call.ReasonCancelled, e.Reason)
		assert.Equal(t, 7*ms, e.Waited)
		assert.Zero(t, c.queue(t, "Echo").Waiting())

		dead, cancel := context.WithCancel(context.Background())
		cancel()
		e, ok = call.As(c.call(dead, "Echo", answer))
		require.True(t, ok)
		assert.Equal(t, call.ReasonCancelled, e.Reason, "one that comes cancelled does not wait either")
		release()
		c.atRest(t, "Echo")
	})
}

// N6: the wait is part of the deadline of the call's context.
func TestTheWaitEndsWithTheDeadline(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol string) {
		c := consumer(t, protocol, map[string]string{"actives": "1", "timeout": "10s"})
		release := c.hold(t)
		ctx, cancel := context.WithTimeout(context.Background(), 30*ms)
		defer cancel()
		start := time.Now()
		e, ok := call.As(c.call(ctx, "Echo", answer))
		require.True(t, ok)
		assert.Equal(t, 30*ms, time.Since(start))
		assert.Equal(t, call.ReasonWaitTimeout, e.Reason)
		assert.Equal(t, 30*ms, e.Waited)

		e, ok = call.As(c.call(ctx, "Echo", answer))
		require.True(t, ok, "it is over already")
		assert.Equal(t, call.ReasonWaitTimeout, e.Reason)
		assert.Zero(t, e.Waited)
		release()
		c.atRest(t, "Echo")
	})
}

// The inner chain gets what the wait has left, by the way that its protocol reads.
func TestTheWaitIsChargedToTheCall(t *testing.T) {
	for _, tt := range []struct {
		name, protocol, own string
		attachments         map[string]any
		ctx                 time.Duration // 0 for none
		left                time.Duration // after 30 ms of waiting
		after               any           // the attachment for the next attempt
	}{
		{"triple, the reference's timeout", "tri", "100ms", map[string]any{}, 0, 70 * ms, nil},
		{"triple, the context's deadline", "tri", "1h", map[string]any{}, 100 * ms, 70 * ms, nil},
		{"triple, nothing", "tri", "", map[string]any{}, 0, 2970 * ms, nil},
		{"triple, an attachment counts where the reference has none", "tri", "", map[string]any{"timeout": "50ms"}, 0, 20 * ms, "50ms"},
		{"grpc", "grpc", "100ms", map[string]any{}, 0, 70 * ms, nil},
		{"dubbo, the reference's timeout", "dubbo", "100ms", map[string]any{}, 0, 70 * ms, "100ms"},
		{"dubbo, the call's", "dubbo", "1h", map[string]any{"timeout": "90ms"}, 0, 60 * ms, "90ms"},
		{"dubbo, a retry's, which has lost its unit", "dubbo", "1h", map[string]any{"timeout": "90"}, 0, 60 * ms, "90ms"},
		{"dubbo, the client's empty one", "dubbo", "1h", map[string]any{"timeout": ""}, 0, 2970 * ms, "3s"},
		{"dubbo, the context's deadline", "dubbo", "1h", map[string]any{}, 100 * ms, 70 * ms, "1h0m0s"},
		{"dubbo, the context's deadline is later", "dubbo", "90ms", map[string]any{}, time.Hour, 60 * ms, "90ms"},
		{"dubbo, nothing", "dubbo", "", map[string]any{}, 0, 2970 * ms, "3s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := consumer(t, tt.protocol, map[string]string{"actives": "1", "timeout": tt.own})
				release := c.hold(t)
				time.AfterFunc(30*ms, release)
				ctx := context.Background()
				if tt.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.ctx)
					defer cancel()
				}
				inv := invocation.NewRPCInvocation("Echo", nil, tt.attachments)
				var inside context.Context
				res := c.invoke(ctx, inv, func(ctx context.Context, inv base.Invocation) result.Result {
					inside = ctx
					if tt.protocol == "dubbo" {
						text, _ := inv.GetAttachment("timeout")
						left, err := time.ParseDuration(text)
						require.NoError(t, err, "dubbo's invoker cannot read it")
						assert.Equal(t, tt.left, left)
						inv.SetAttachment("timeout", fmt.Sprint(left.Milliseconds())) // as dubbo's invoker does
					} else {
						deadline, ok := ctx.Deadline()
						require.True(t, ok)
						assert.Equal(t, tt.left, time.Until(deadline))
					}
					return answer(ctx, inv)
				})
				require.NoError(t, res.Error())
				if tt.ctx == 0 && tt.protocol != "dubbo" {
					assert.Error(t, inside.Err(), "its timer is left behind")
				}
				after, there := inv.GetAttachment("timeout")
				if tt.after == nil {
					assert.False(t, there)
				} else {
					assert.Equal(t, tt.after, after, "the next attempt has the whole timeout")
				}
				c.atRest(t, "Echo")
			})
		})
	}
}

func TestWithoutAWaitNothingIsChanged(t *testing.T) {
	for _, protocol := range protocols {
		c := consumer(t, protocol, map[string]string{"actives": "1", "timeout": "100ms"})
		ctx := context.WithValue(context.Background(), constant.DubboCtxKey("some"), 1)
		inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{"timeout": "1s"})
		res := c.invoke(ctx, inv, func(inside context.Context, same base.Invocation) result.Result {
			assert.Equal(t, ctx, inside)
			assert.Same(t, inv, same)
			text, _ := same.GetAttachment("timeout")
			assert.Equal(t, "1s", text)
			return answer(ctx, inv)
		})
		require.NoError(t, res.Error())
	}
}

// A slot that frees when the call has no time left goes to the next.
func TestASlotFreedAtTheDeadlineIsNotLost(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol string) {
		for _, early := range []time.Duration{0, 1, ms - 1, ms} {
			c := consumer(t, protocol, map[string]string{"actives": "1", "timeout": "50ms"})
			release := c.hold(t)
			time.AfterFunc(50*ms-early, release)
			var first error
			go func() { first = c.call(context.Background(), "Echo", answer) }()
			sleep(10 * ms)
			start := time.Now()
			second := c.call(context.Background(), "Echo", answer)
			assert.NoError(t, second)
			assert.LessOrEqual(t, time.Since(start), 40*ms)
			synctest.Wait()
			if early == ms {
				assert.NoError(t, first)
			} else {
				assert.ErrorIs(t, first, call.ErrRejected, "%v before its end", early)
			}
			c.atRest(t, "Echo")
		}
	})
}

// Limits change while calls run and wait, and those who wait learn of it though
// no other call comes by.
func TestLimitsChangeWhileCallsWait(t *testing.T) {
	section := func(actives string) *conf.Config {
		return &conf.Config{Consumer: conf.Section{Policies: conf.Policies{Actives: map[string]*conf.Actives{
			"3":       {Limit: conf.Of(3)},
			"0":       {Limit: conf.Of(0)},
			"off":     {Mode: conf.Off},
			"observe": {Mode: conf.Observe},
			"":        nil,
		}[actives]}}}
	}
	for change, runs := range map[string]int{"3": 3, "0": 5, "off": 5, "observe": 5} {
		t.Run(change, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, protocol string) {
				own := map[string]string{"actives": "1", "timeout": "1h"}
				if change == "3" || change == "0" {
					delete(own, "actives")
				}
				c := consumer(t, protocol, own)
				if own["actives"] == "" {
					c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Consumer: conf.Section{Policies: conf.Policies{Actives: &conf.Actives{Limit: conf.Of(1)}}}})
				}
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
				c.rt.Store.Set(conf.FromCode, "code", section(change))
				synctest.Wait()
				assert.EqualValues(t, runs, running.Load())
				close(gate)
				wg.Wait()
				require.NoError(t, c.call(context.Background(), "Echo", answer))
			})
		})
	}
}

// What runs when the guard is switched counts afterwards, whatever it was then.
func TestTheModeChangesAtRunTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumer(t, "tri", map[string]string{"actives": "1", "actives.wait": "0"})
		mode := func(m conf.Mode) { c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: m}) }
		mode(conf.Observe)
		releaseFirst, releaseSecond := c.hold(t), c.hold(t)
		mode(conf.Enforce)
		require.ErrorIs(t, c.call(context.Background(), "Echo", answer), call.ErrRejected)
		releaseFirst()
		require.ErrorIs(t, c.call(context.Background(), "Echo", answer), call.ErrRejected, "the second still runs")
		releaseSecond()
		require.NoError(t, c.call(context.Background(), "Echo", answer))
		release := c.hold(t)
		mode(conf.Off)
		require.NoError(t, c.call(context.Background(), "Echo", answer))
		mode(conf.Enforce)
		require.ErrorIs(t, c.call(context.Background(), "Echo", answer), call.ErrRejected, "a call under the former plan still counts")
		release()
		require.NoError(t, c.call(context.Background(), "Echo", answer))
		c.atRest(t, "Echo")
	})
}

func TestObserving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for wait, counted := range map[string]string{"0": "refused", "": "waits"} {
			own := map[string]string{"actives": "2", "actives.mode": "observe"}
			if wait != "" {
				own["actives.wait"] = wait
			}
			c := consumer(t, "tri", own)
			assert.Zero(t, c.crowd(context.Background(), 7, takes(ms)), "nobody is refused")
			var wouldReject, wouldWait int64
			c.rt.Rejections(func(k guard.RejectionKey, r *guard.Rejections) {
				assert.Zero(t, r.Rejected())
				wouldReject += r.WouldReject()
			})
			c.rt.Waits(func(_ guard.WaitKey, w *guard.Waits) { wouldWait += w.Figures().WouldWait })
			if counted == "refused" {
				assert.EqualValues(t, 5, wouldReject)
				assert.Zero(t, wouldWait)
			} else {
				assert.Zero(t, wouldReject)
				assert.EqualValues(t, 5, wouldWait)
			}
			c.atRest(t, "Echo")
		}
	})
}

func TestWaitsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumer(t, "tri", map[string]string{"actives": "1", "actives.wait": "7ms"})
		assert.EqualValues(t, 6, c.crowd(context.Background(), 10, takes(2*ms))) // at 0, 2, 4, 6 ms; the others after 7
		var f guard.WaitFigures
		c.rt.Waits(func(k guard.WaitKey, w *guard.Waits) {
			if k == (guard.WaitKey{Side: "consumer", Service: guard.ServiceOf(c.url).String(), Method: "Echo", Guard: "actives"}) {
				f = w.Figures()
			}
		})
		assert.EqualValues(t, 1, f.Counts[0], "without a wait")
		assert.EqualValues(t, 1, f.Counts[2], "2 ms")
		assert.EqualValues(t, 1, f.Counts[3], "4 ms")
		assert.EqualValues(t, 7, f.Counts[4], "6 and 7 ms")
		assert.Equal(t, (2+4+6+6*7)*ms, f.Sum)
		runtime.KeepAlive(c)
	})
}

// Each method of each reference counts for each provider by itself.
func TestWhatSharesALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := map[string]string{"actives": "1", "actives.wait": "0", "methods.other.actives": "2"}
		c := consumer(t, "tri", own)
		service := guard.ServiceOf(c.url).String()
		release := c.hold(t)
		ctx := context.Background()
		require.Error(t, c.call(ctx, "Echo", answer))
		require.Error(t, c.call(ctx, "echo", answer), "the first letter's case does not matter")
		require.NoError(t, c.call(ctx, "Other", answer))
		require.NoError(t, refer(t, c.rt, c.ref, "tri", service, "20001", own).call(ctx, "Echo", answer), "another provider")
		require.NoError(t, refer(t, c.rt, reference(t, service, own), "tri", service, "20000", own).call(ctx, "Echo", answer), "another reference")
		require.Error(t, refer(t, c.rt, c.ref, "tri", service, "20000", own).call(ctx, "Echo", answer), "the same, made again")
		generic := invocation.NewRPCInvocation(constant.Generic, []any{"Echo", []string{}, []any{}}, map[string]any{})
		require.Error(t, c.invoke(ctx, generic, answer).Error(), "a generic call counts under the real method")
		release()
		c.atRest(t, "Echo")
	})
}

// dubbo returns when a stream is open; nobody here learns when it ends.
func TestStreamsAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumer(t, "tri", map[string]string{"actives": "1", "actives.wait": "0"})
		release := c.hold(t)
		for range 2 {
			inv := invocation.NewRPCInvocation("Other", nil, map[string]any{})
			inv.SetAttribute(constant.CallTypeKey, constant.CallBidiStream)
			require.NoError(t, c.invoke(context.Background(), inv, func(ctx context.Context, inv base.Invocation) result.Result {
				assert.Zero(t, c.queue(t, "Other").Inflight())
				return answer(ctx, inv)
			}).Error())
		}
		unary := invocation.NewRPCInvocation("Echo", nil, map[string]any{})
		unary.SetAttribute(constant.CallTypeKey, constant.CallUnary)
		require.Error(t, c.invoke(context.Background(), unary, answer).Error())
		release()
		c.atRest(t, "Echo")
	})
}

// The provider's actives hold where the reference has none.
func TestDeclaredByTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name        string
			own, merged map[string]string
			limit       int64 // of Echo; 0 for none
			other       int64
		}{
			{"declared", nil, map[string]string{"actives": "3"}, 3, 3},
			{"for a method", nil, map[string]string{"actives": "3", "methods.Echo.actives": "2"}, 2, 3},
			{"as application-level discovery tells it", nil, map[string]string{"Echo.actives": "2"}, 2, 0},
			{"the reference's own", map[string]string{"actives": "5"}, map[string]string{"actives": "3", "methods.Echo.actives": "2"}, 5, 5},
			{"the reference's own, unlimited", map[string]string{"actives": "0"}, map[string]string{"actives": "3"}, 0, 0},
			{"the reference's own for a method", map[string]string{"methods.Echo.actives": "5"}, map[string]string{"actives": "3"}, 5, 3},
			{"nonsense", nil, map[string]string{"actives": "many"}, 0, 0},
			{"a provider's tps and executes are its own", nil, map[string]string{"tps": "1", "executes": "1"}, 0, 0},
		} {
			service := fmt.Sprintf("actives.Service%d", services.Add(1))
			c := refer(t, guard.NewRuntime(), reference(t, service, tt.own), "tri", service, "20000", tt.merged)
			limit := func(method string) int64 {
				for range 3 {
					require.NoError(t, c.call(context.Background(), method, answer), tt.name)
				}
				if q := c.queue(t, method); q != nil {
					return q.Limit()
				}
				return 0
			}
			assert.Equal(t, tt.limit, limit("Echo"), tt.name)
			assert.Equal(t, tt.other, limit("Other"), tt.name)
			assert.Equal(t, tt.name == "nonsense", c.rt.ConfigErrors() > 0, tt.name)
			runtime.KeepAlive(c)
		}
	})
}

// N14: 100,000 provider addresses come and go.
func TestAddressesThatAreGoneTakeNoMemory(t *testing.T) {
	rt := guard.NewRuntime()
	service := "actives.Gone"
	own := map[string]string{"actives": "1"}
	ref := reference(t, service, own)
	const methods = 3 // Echo, Other and those that nobody knows
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	var stay *chain
	for i := range n {
		c := refer(t, rt, ref, "tri", service, fmt.Sprint(i), own)
		require.NoError(t, c.call(context.Background(), "Echo", answer))
		if i == 0 {
			stay = c
		}
	}
	left := func() (k int) {
		activelimit.Queues(rt, func(activelimit.Key, *concurrency.Queue) { k++ })
		return k
	}
	for range 100 {
		if runtime.GC(); left() <= methods {
			break
		}
		runtime.Gosched()
	}
	assert.LessOrEqual(t, left(), methods)
	stay.atRest(t, "Echo")
}

// 10,000 calls with random ends: slots are conserved, and never more run.
func TestCancellationStorm(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol string) {
		const n, limit = 10_000, 7
		c := consumer(t, protocol, map[string]string{"actives": fmt.Sprint(limit), "timeout": "300ms"})
		rnd := rand.New(rand.NewPCG(11, 13))
		var running, most, ran, refused atomic.Int64
		var wg sync.WaitGroup
		for range n {
			ctx, cancel := context.WithCancel(context.Background())
			if rnd.IntN(3) == 0 {
				ctx, cancel = context.WithTimeout(context.Background(), time.Duration(1+rnd.IntN(200))*ms)
			}
			if rnd.IntN(3) == 0 {
				time.AfterFunc(time.Duration(rnd.IntN(200))*ms, cancel)
			}
			begin, takes, panics := time.Duration(rnd.IntN(400))*ms, time.Duration(rnd.IntN(4))*ms, rnd.IntN(10) == 0
			wg.Go(func() {
				defer cancel()
				sleep(begin)
				defer func() { _ = recover() }()
				err := c.call(ctx, "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
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
				})
				if err != nil {
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		assert.EqualValues(t, limit, most.Load())
		assert.EqualValues(t, n, ran.Load()+refused.Load())
		assert.Greater(t, refused.Load(), int64(n/10), "the storm is none")
		assert.Greater(t, ran.Load(), int64(n/10), "the storm is none")
		c.atRest(t, "Echo")
	})
}
