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
	"errors"
	"fmt"
	"runtime"
	"slices"
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
	_ "github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/rpcstatus"
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

func answer(context.Context, base.Invocation) result.Result { return &result.RPCResult{Rest: "result"} }

var services atomic.Int64

// chain is a chain of one guard, for a service of its own.
type chain struct {
	side  conf.Side
	rt    *guard.Runtime
	guard *guard.Guard
	url   *common.URL
	began time.Time
}

func newChain(t testing.TB, side conf.Side, protocol string, own map[string]string) *chain {
	t.Helper()
	rt := guard.NewRuntime()
	service := fmt.Sprintf("flow.Service%d", services.Add(1))
	opts := []common.Option{
		common.WithProtocol(protocol), common.WithPath(service), common.WithIp("127.0.0.1"), common.WithPort("20000"),
		common.WithInterface(service), common.WithMethods([]string{"Echo", "Other"}),
	}
	for k, v := range own {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	u := common.NewURLWithOptions(opts...)
	parsed := conf.ParseParams(side, service, own)
	require.Empty(t, parsed.Faults)
	if side == conf.Consumer {
		u.SetAttribute(retry.AttributeKey, retry.NewReference(&parsed.Service))
	}
	return &chain{side, rt, guard.New(rt, side), u, time.Now()}
}

func (c *chain) now() time.Duration { return time.Since(c.began) }

func (c *chain) callWith(ctx context.Context, method string, attachments map[string]any, f inner) error {
	if attachments == nil {
		attachments = map[string]any{}
	}
	return c.guard.Invoke(ctx, &end{*base.NewBaseInvoker(c.url), f}, invocation.NewRPCInvocation(method, nil, attachments)).Error()
}

func (c *chain) call() error { return c.callWith(context.Background(), "Echo", nil, answer) }

// admits makes n calls one after another and counts those that are let in.
func (c *chain) admits(t testing.TB, method string, n int) int {
	t.Helper()
	admitted := 0
	for range n {
		if err := c.callWith(context.Background(), method, nil, answer); err == nil {
			admitted++
		} else {
			e, ok := call.As(err)
			require.True(t, ok)
			require.Equal(t, "flow", e.Guard)
		}
	}
	return admitted
}

// atOnce makes n calls at the same moment and returns when each ran, in order, and
// how many were refused.
func (c *chain) atOnce(n int) (ran []time.Duration, refused int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			err := c.callWith(context.Background(), "Echo", nil, func(ctx context.Context, inv base.Invocation) result.Result {
				mu.Lock()
				defer mu.Unlock()
				ran = append(ran, c.now())
				return answer(ctx, inv)
			})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				refused++
			}
		})
		synctest.Wait()
	}
	wg.Wait()
	slices.Sort(ran)
	return ran, refused
}

func (c *chain) configure(t *testing.T, yaml string) {
	t.Helper()
	cfg, _, faults := conf.ParseYAML("test", []byte("weir:\n  "+c.side.String()+":\n    "+yaml+"\n"))
	require.Empty(t, faults)
	c.rt.Store.Set(conf.FromFile, "test", cfg)
}

// onBothSides runs a test in a bubble for each side and protocol.
func onBothSides(t *testing.T, f func(t *testing.T, side conf.Side, protocol string)) {
	t.Helper()
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		for _, protocol := range []string{"tri", "dubbo"} {
			t.Run(side.String()+" "+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { f(t, side, protocol) })
			})
		}
	}
}

func evenly(from, step time.Duration, n int) (out []time.Duration) {
	for i := range n {
		out = append(out, from+time.Duration(i)*step)
	}
	return out
}

func TestReject(t *testing.T) { // F1, F3
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, map[string]string{"flow": "10/1s"})
		require.Equal(t, 10, c.admits(t, "Echo", 11))
		sleep(999 * ms)
		require.Zero(t, c.admits(t, "Other", 3), "methods share a service's budget")
		e, _ := call.As(c.call())
		require.Equal(t, call.RejectError{
			Guard: "flow", Resource: guard.ServiceOf(c.url).String() + "#*", Reason: call.ReasonRate, Limit: 10, Observed: 10, RetryAfter: ms,
		}, *call.NewRejectError(*e, nil))
		sleep(ms)
		require.Equal(t, 10, c.admits(t, "Echo", 20))
		runtime.KeepAlive(c.guard)
	})
}

func TestWarmUp(t *testing.T) { // W1, W4
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, map[string]string{"methods.Echo.flow": "100/1s", "methods.Echo.flow.behavior": "warm-up"})
		var got []int
		for range 13 {
			n := 0
			for range 100 {
				n += c.admits(t, "Echo", 5)
				sleep(10 * ms)
			}
			got = append(got, n)
		}
		require.Equal(t, []int{33, 34, 36, 38, 41, 44, 47, 52, 58, 68, 83, 100, 100}, got)
		require.Equal(t, 5, c.admits(t, "Other", 5), "it has none")
		runtime.KeepAlive(c.guard)
	})
}

func TestQueue(t *testing.T) { // T2, H3
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, map[string]string{"flow": "10/1s", "flow.behavior": "queue"})
		ran, refused := c.atOnce(10)
		require.Equal(t, evenly(0, 100*ms, 6), ran)
		require.Equal(t, 4, refused)
		figures := c.rt.Status
		var f rpcstatus.Figures
		figures.Range(func(k rpcstatus.Key, s *rpcstatus.Status) bool {
			if k.Method == "Echo" {
				f = s.Figures()
			}
			return true
		})
		require.Zero(t, f.Elapsed, "a wait is no response time")
		require.EqualValues(t, 6, f.Total)
		waits := map[string]guard.WaitFigures{}
		c.rt.Waits(func(k guard.WaitKey, w *guard.Waits) { waits[k.Method] = w.Figures() })
		require.Equal(t, 1500*ms, waits["Echo"].Sum)
		runtime.KeepAlive(c.guard)
	})
}

func TestWarmUpQueue(t *testing.T) { // W2
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, map[string]string{
			"flow": "10/1s", "flow.behavior": "warm-up-queue", "flow.max-queue": "10m", "timeout": "20m",
		})
		ran, refused := c.atOnce(150)
		require.Zero(t, refused)
		require.Equal(t, 300*ms, ran[1]-ran[0])
		require.Equal(t, 100*ms, ran[149]-ran[148])
		runtime.KeepAlive(c.guard)
	})
}

// A turn that comes after the deadline is refused at once, and so is nobody who
// waits longer than the protocol gives a call.
func TestTheDeadlineBoundsTheWait(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, map[string]string{"flow": "1/1s", "flow.behavior": "queue", "flow.max-queue": "1h", "timeout": "2500ms"})
		require.NoError(t, c.call())
		ctx, cancel := context.WithTimeout(context.Background(), 900*ms)
		defer cancel()
		e, ok := call.As(c.callWith(ctx, "Echo", nil, answer))
		require.True(t, ok)
		require.Equal(t, call.ReasonRate, e.Reason)
		require.Equal(t, time.Hour, e.MaxWait)
		require.Zero(t, c.now())
		if side == conf.Provider && protocol == "dubbo" {
			require.Error(t, c.callWith(context.Background(), "Echo", map[string]any{constant.TimeoutKey: "900"}, answer))
			require.Zero(t, c.now())
		}
		if side == conf.Consumer {
			_, refused := c.atOnce(5)
			require.Equal(t, 3, refused, "two have their turn within the timeout")
		}
		runtime.KeepAlive(c.guard)
	})
}

func TestGivingUp(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, map[string]string{"flow": "10/1s", "flow.behavior": "queue"})
		require.NoError(t, c.call())
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("had enough")
		done := make(chan error)
		go func() { done <- c.callWith(ctx, "Echo", nil, answer) }()
		synctest.Wait()
		sleep(30 * ms)
		cancel(why)
		err := <-done
		require.ErrorIs(t, err, why)
		e, ok := call.As(err)
		require.True(t, ok)
		assert.Equal(t, call.ReasonCancelled, e.Reason)
		assert.Equal(t, 30*ms, e.Waited)
		require.NoError(t, c.call())
		require.Equal(t, 100*ms, c.now(), "the place was not lost")
		runtime.KeepAlive(c.guard)
	})
}

// A call that a later guard refuses has not used its share.
func TestALaterRefusalGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, behavior := range []string{"reject", "warm-up", "queue"} {
			c := newChain(t, conf.Provider, "tri", map[string]string{"flow": "3/1h", "flow.behavior": behavior, "executes": "1"})
			gate, entered := make(chan struct{}), make(chan struct{})
			done := make(chan error)
			go func() {
				done <- c.callWith(context.Background(), "Echo", nil, func(ctx context.Context, inv base.Invocation) result.Result {
					close(entered)
					<-gate
					return answer(ctx, inv)
				})
			}()
			<-entered
			if behavior == "queue" {
				sleep(20 * time.Minute) // the next turn
			}
			for range 10 {
				e, _ := call.As(c.call())
				if behavior == "warm-up" { // its one of the cold hour runs
					require.Equal(t, "flow", e.Guard)
				} else {
					require.Equal(t, "executes", e.Guard, behavior)
				}
			}
			close(gate)
			require.NoError(t, <-done)
			if behavior != "warm-up" {
				require.NoError(t, c.call(), behavior)
			}
			runtime.KeepAlive(c.guard)
		}
	})
}

func caller(c *chain, name string) map[string]any {
	if name == "" {
		return nil
	}
	return map[string]any{"weir-caller": name + "@" + guard.ServiceOf(c.url).String()}
}

func TestCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, behavior := range []string{"reject", "queue"} {
			c := newChain(t, conf.Provider, "tri", map[string]string{
				"flow": "100/1s", "flow.callers": "shop=5/1s, batch=2/1s, admin=0/1s, default=3/1s", "flow.behavior": behavior, "flow.max-queue": "0",
			})
			each := 1
			admits := func(name string) (n int) {
				for range 20 {
					if c.callWith(context.Background(), "Echo", caller(c, name), answer) == nil {
						n++
					}
					if behavior == "queue" {
						sleep(50 * ms)
					}
				}
				return n / each
			}
			if behavior == "queue" {
				require.Equal(t, 5, admits("shop"))
				require.Equal(t, 2, admits("batch"))
				require.Equal(t, 20, admits("admin"))
				require.InDelta(t, 3, admits(""), 1)
				continue
			}
			require.Equal(t, 5, admits("shop"))
			require.Equal(t, 2, admits("batch"))
			require.Equal(t, 20, admits("admin"), "it has no limit of its own")
			require.Equal(t, 3, admits("unheard-of")+admits("another")+admits(""), "those without a name of theirs share one")
			require.Zero(t, admits("default"), "nobody is called that")
			n := 0
			for range 20 {
				if c.callWith(context.Background(), "Echo", map[string]any{"remote.application": "shop"}, answer) == nil {
					n++
				}
			}
			require.Zero(t, n, "Java Dubbo tells it so")
			runtime.KeepAlive(c.guard)
		}
	})
}

func TestObserve(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		for _, behavior := range []string{"reject", "queue"} {
			c := newChain(t, side, protocol, map[string]string{"flow": "10/1s", "flow.behavior": behavior, "flow.mode": "observe", "flow.max-queue": "300ms"})
			before := c.now()
			require.Equal(t, 20, c.admits(t, "Echo", 20))
			require.Equal(t, before, c.now(), "nobody waits")
			would, wait := int64(0), int64(0)
			c.rt.Rejections(func(k guard.RejectionKey, r *guard.Rejections) { would += r.WouldReject() })
			c.rt.Waits(func(_ guard.WaitKey, w *guard.Waits) { wait += w.Figures().WouldWait })
			if behavior == "reject" {
				require.EqualValues(t, 10, would)
			} else {
				require.EqualValues(t, 16, would)
				require.EqualValues(t, 3, wait)
			}
			runtime.KeepAlive(c.guard)
		}
	})
}

// Those who wait learn of a change though nobody else calls.
func TestChangesReachThoseWhoWait(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		for _, change := range []string{
			"{flow: {rate: 1/1h, behavior: queue, max-queue: 24h, mode: observe}}", "{flow: {rate: 1/1h, behavior: queue, max-queue: 24h, mode: off}}",
			"{flow: {rate: 1000/1s, behavior: queue, max-queue: 24h}}", "{flow: {rate: 1000/1s}}",
		} {
			c := newChain(t, side, protocol, map[string]string{"timeout": "24h"})
			c.configure(t, "services: {"+guard.ServiceOf(c.url).String()+": {methods: {Echo: {flow: {rate: 1/1h, behavior: queue, max-queue: 24h}}}}}")
			require.NoError(t, c.call())
			done := make(chan error)
			for range 3 {
				go func() { done <- c.call() }()
			}
			synctest.Wait()
			before := c.now()
			c.configure(t, "services: {"+guard.ServiceOf(c.url).String()+": {methods: {Echo: "+change+"}}}")
			for range 3 {
				require.NoError(t, <-done, change)
			}
			require.Less(t, c.now()-before, time.Minute, change)
			runtime.KeepAlive(c.guard)
		}
	})
}

func TestChangesKeepWhatIsCounted(t *testing.T) {
	onBothSides(t, func(t *testing.T, side conf.Side, protocol string) {
		c := newChain(t, side, protocol, nil)
		c.configure(t, "flow: 10/1h")
		require.Equal(t, 10, c.admits(t, "Echo", 12))
		c.configure(t, "flow: 10/1h")
		require.Zero(t, c.admits(t, "Echo", 2))
		c.configure(t, "flow: 15/1h")
		require.Equal(t, 5, c.admits(t, "Echo", 9))
		c.configure(t, "flow: 0/1h")
		require.Equal(t, 9, c.admits(t, "Echo", 9))
		c.configure(t, "{}")
		require.Equal(t, 9, c.admits(t, "Echo", 9))
		seen := 0
		flowcontrol.Flows(c.rt, func(flowcontrol.Flow) { seen++ })
		require.Zero(t, seen)
		runtime.KeepAlive(c.guard)
	})
}

// The filter stands alone by its own name, and then the umbrella leaves it alone.
func TestAlone(t *testing.T) {
	for side, filter := range map[conf.Side]string{conf.Consumer: flowcontrol.ConsumerFilter, conf.Provider: flowcontrol.ProviderFilter} {
		key := map[conf.Side]string{conf.Consumer: constant.ReferenceFilterKey, conf.Provider: constant.ServiceFilterKey}[side]
		c := newChain(t, side, "tri", map[string]string{"flow": "3/1h"})
		c.url.SetParam(key, map[conf.Side]string{conf.Consumer: guard.ConsumerFilter, conf.Provider: guard.ProviderFilter}[side]+","+filter)
		alone := &chain{side, c.rt, guard.NewAlone(c.rt, side, filter, flowcontrol.Policy), c.url, c.began}
		admitted := 0
		for range 9 {
			if c.callWith(context.Background(), "Echo", nil, func(context.Context, base.Invocation) result.Result {
				return &result.RPCResult{Err: alone.call()}
			}) == nil {
				admitted++
			}
		}
		require.Equal(t, 3, admitted)
		runtime.KeepAlive(alone.guard)
	}
}

func BenchmarkPass(b *testing.B) {
	for _, behavior := range []string{"reject", "warm-up", "queue", "warm-up-queue"} {
		b.Run(behavior, func(b *testing.B) {
			c := newChain(b, conf.Provider, "tri", map[string]string{"flow": "2000000000/1s", "flow.behavior": behavior, "weir.stats": "false"})
			res := &result.RPCResult{}
			next := &end{*base.NewBaseInvoker(c.url), func(context.Context, base.Invocation) result.Result { return res }}
			inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{})
			ctx := context.Background()
			once := func() { c.guard.Invoke(ctx, next, inv) }
			once()
			require.Zero(b, testing.AllocsPerRun(10, once))
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
		})
	}
}
