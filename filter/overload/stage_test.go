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

package overload_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
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
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/filter/overload"
	"github.com/weir-go/weir/internal/health"
	"github.com/weir-go/weir/internal/machine"
	"github.com/weir-go/weir/internal/retry"
)

type params = map[string]string

// chain is one of dubbo's, with one of Weir's guards.
type chain struct {
	rt     *guard.Runtime
	guard  *guard.Guard
	url    *common.URL
	events []overload.Event
	mu     sync.Mutex
	stop   func()
}

var sequence atomic.Int64

func newChain(t *testing.T, side conf.Side, p params) *chain {
	t.Helper()
	service := "overload.Service" + strconv.FormatInt(sequence.Add(1), 10)
	c := &chain{rt: guard.NewRuntime()}
	filter := constant.ServiceFilterKey
	if side == conf.Consumer {
		filter = constant.ReferenceFilterKey
	}
	c.url = common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(service), common.WithInterface(service),
		common.WithIp("127.0.0.1"), common.WithPort("20000"), common.WithMethods([]string{"Get", "Other"}),
		common.WithParamsValue(filter, map[conf.Side]string{conf.Provider: guard.ProviderFilter, conf.Consumer: guard.ConsumerFilter}[side]))
	for k, v := range p {
		c.url.SetParam(k, v)
	}
	parsed := conf.ParseParams(side, service, p)
	require.Empty(t, parsed.Faults)
	if side == conf.Consumer {
		c.url.SetAttribute(retry.AttributeKey, retry.NewReference(&parsed.Service))
	}
	c.guard = guard.New(c.rt, side)
	c.stop = overload.Subscribe(c.rt, func(e overload.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, e)
	})
	return c
}

func (c *chain) kinds(kind string) (out []overload.Event) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

type handler struct {
	base.BaseInvoker
	run func() error
}

func (h *handler) Invoke(context.Context, base.Invocation) result.Result {
	return &result.RPCResult{Err: h.run()}
}

func (c *chain) call(method string, run func() error) error {
	inv := invocation.NewRPCInvocation(method, nil, map[string]any{"remote.application": "shop"})
	return c.guard.Invoke(context.Background(), &handler{*base.NewBaseInvoker(c.url), run}, inv).Error()
}

func answer() error { return nil }

// hang starts calls that go on until they are let go.
func (c *chain) hang(t *testing.T, n int) (leave func()) {
	t.Helper()
	gate := make(chan struct{})
	var wg sync.WaitGroup
	var admitted atomic.Int64
	for range n {
		wg.Go(func() {
			err := c.call("Get", func() error {
				admitted.Add(1)
				<-gate
				return nil
			})
			if err != nil {
				t.Log(err)
			}
		})
	}
	synctest.Wait()
	require.EqualValues(t, n, admitted.Load())
	return func() { close(gate); wg.Wait() }
}

func (c *chain) state(t *testing.T) (out overload.State) {
	t.Helper()
	n := 0
	overload.Caps(c.rt, func(s overload.State) {
		if s.Method == "Get" {
			out = s
			n++
		}
	})
	require.Equal(t, 1, n)
	return out
}

func refusal(t *testing.T, err error) *call.RejectError {
	t.Helper()
	var e *call.RejectError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, overload.ErrOverloaded)
	return e
}

func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest

func everywhere(t *testing.T, f func(t *testing.T, side conf.Side)) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		t.Run(side.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, side) })
		})
	}
}

func TestExpandsAndRefuses(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, params{"overload": "5", "overload.calm": "10s"})
		defer c.stop()
		leave := c.hang(t, 20)
		e := refusal(t, c.call("Get", answer))
		assert.Equal(t, "overload", e.Guard)
		assert.Equal(t, call.ReasonConcurrency, e.Reason)
		assert.EqualValues(t, 20, e.Limit)
		require.NoError(t, c.call("Other", answer), "each method has its own")
		assert.Len(t, c.kinds("changed"), 2)
		held := c.kinds("held")
		require.Len(t, held, 1)
		assert.Equal(t, "Get", held[0].Method)
		leave()
		s := c.state(t)
		assert.Zero(t, s.Running)
		assert.EqualValues(t, 20, s.Cap)
		sleep(25 * time.Second)
		assert.EqualValues(t, 5, c.state(t).Cap)
		assert.Equal(t, map[string]int64{"healthy": 2, "calm": 2}, c.state(t).Changes)
		runtime.KeepAlive(c)
	})
}

func TestSlowCalls(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, params{"overload": "5"})
		defer c.stop()
		leave := c.hang(t, 5)
		sleep(3 * time.Second)
		e := refusal(t, c.call("Get", answer))
		assert.Equal(t, "slow-calls", e.Reason)
		assert.EqualValues(t, 5, e.Limit)
		slow := c.kinds("slow")
		require.Len(t, slow, 3)
		assert.EqualValues(t, 2, slow[2].More)
		want := "shop"
		if side == conf.Consumer {
			want = "" // it is this application
		}
		assert.Equal(t, want, slow[0].Caller)
		assert.EqualValues(t, 5, c.state(t).SlowCalls)
		leave()
		require.NoError(t, c.call("Get", answer))
		runtime.KeepAlive(c)
	})
}

func TestTightMachine(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, params{"overload": "5"})
		defer c.stop()
		var use atomic.Int64
		use.Store(95)
		require.NoError(t, machine.Of(c.rt).Add(health.Func("db", func(time.Duration) (float64, bool) {
			return float64(use.Load()) / 100, true
		}), health.Rule{Limit: 0.9}))
		require.NoError(t, c.call("Get", answer))
		sleep(2 * time.Second)
		leave := c.hang(t, 5)
		e := refusal(t, c.call("Get", answer))
		assert.Equal(t, "tight", e.Reason)
		assert.Equal(t, "db", c.kinds("held")[0].Signal)
		use.Store(10)
		sleep(900 * time.Millisecond)
		more := c.hang(t, 10)
		leave()
		more()
		assert.Zero(t, c.state(t).Running)
		runtime.KeepAlive(c)
	})
}

func TestCallsThatNeverEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, params{"overload": "5", "overload.entry-timeout": "20s"})
		defer c.stop()
		leave := c.hang(t, 5)
		sleep(19 * time.Second)
		_ = refusal(t, c.call("Get", answer))
		sleep(time.Second)
		require.NoError(t, c.call("Get", answer))
		s := c.state(t)
		assert.EqualValues(t, 5, s.Aside)
		assert.Zero(t, s.Running)
		assert.Len(t, c.kinds("overdue"), 5)
		leave()
		s = c.state(t)
		assert.Zero(t, s.Aside)
		assert.EqualValues(t, 5, s.Returned)
		assert.Zero(t, s.Running)
		runtime.KeepAlive(c)
	})
}

// Of events of the same look at the calls, those told later carried earlier times: each
// was worked out from two readings of clocks. Who sorted by them had causes after effects.
func TestRegression_TimesFollowTheOrderOfTelling(t *testing.T) {
	const n = 100
	c := newChain(t, conf.Provider, params{"overload": strconv.Itoa(n), "overload.entry-timeout": "1ms", "overload.slow-call": "1ms"})
	defer c.stop()
	gate := make(chan struct{})
	var hanging sync.WaitGroup
	var in atomic.Int64
	for range n {
		hanging.Go(func() {
			assert.NoError(t, c.call("Get", func() error {
				in.Add(1)
				<-gate
				return nil
			}))
		})
	}
	require.Eventually(t, func() bool { return in.Load() == n }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return c.state(t).Slow == n }, 10*time.Second, time.Millisecond)
	require.NoError(t, c.call("Get", answer))
	close(gate)
	hanging.Wait()
	told := func() []overload.Event {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.events[:len(c.events):len(c.events)]
	}
	require.Eventually(t, func() bool { return len(told()) >= n }, 10*time.Second, time.Millisecond)
	events := told()
	for i := 1; i < len(events); i++ {
		require.False(t, events[i].At.Before(events[i-1].At), "event %d, %s, is at %s, and the one before, %s, at %s",
			i, events[i].Kind, events[i].At, events[i-1].Kind, events[i-1].At)
	}
	runtime.KeepAlive(c)
}

func TestEveryWayOut(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side) {
		for _, p := range []params{{"overload": "2"}, {"overload": "auto"}, {"overload": "2", "executes": "1"}, {"overload": "2", "tps": "3"}} {
			if side == conf.Consumer && p["executes"] != "" {
				continue
			}
			c := newChain(t, side, p)
			for n := range 50 {
				func() {
					defer func() { _ = recover() }()
					_ = c.call("Get", func() error {
						switch n % 3 {
						case 0:
							panic("no")
						case 1:
							return errors.New("no")
						}
						return nil
					})
				}()
			}
			var wg sync.WaitGroup
			wg.Go(func() { _ = c.call("Get", func() error { runtime.Goexit(); return nil }) })
			wg.Wait()
			assert.Zero(t, c.state(t).Running, "%v", p)
			c.stop()
			runtime.KeepAlive(c)
		}
	})
}

// An observing guard counts what it would refuse.
func TestObserve(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, params{"overload": "2", "overload.max-expand": "1", "overload.mode": "observe"})
		defer c.stop()
		leave := c.hang(t, 10)
		leave()
		var would int64
		c.rt.Rejections(func(k guard.RejectionKey, r *guard.Rejections) {
			if k.Guard == overload.Policy {
				would += r.WouldReject()
				assert.Zero(t, r.Rejected())
			}
		})
		assert.EqualValues(t, 8, would)
		assert.Zero(t, c.state(t).Running)
		runtime.KeepAlive(c)
	})
}

// The limit that is found out goes up from the floor while calls do not wait.
func TestAuto(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, params{"overload": "auto", "overload.floor": "5", "overload.ceiling": "50"})
		defer c.stop()
		require.NoError(t, c.call("Get", answer))
		assert.EqualValues(t, 5, c.state(t).Cap)
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				for range 500 {
					if c.call("Get", func() error { sleep(20 * time.Millisecond); return nil }) != nil {
						sleep(10 * time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		s := c.state(t)
		assert.True(t, s.Auto)
		assert.Greater(t, s.Cap, int64(35))
		assert.LessOrEqual(t, s.Cap, int64(50))
		assert.InDelta(t, 20*time.Millisecond, s.Alone, float64(time.Millisecond))
		runtime.KeepAlive(c)
	})
}

func TestConfigurationChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Provider, params{"overload": "2", "overload.max-expand": "1"})
		defer c.stop()
		leave := c.hang(t, 2)
		_ = refusal(t, c.call("Get", answer))
		set := func(policy string) {
			text := "weir: {provider: {services: {" + guard.ServiceOf(c.url).String() + ": {overload: " + policy + "}}}}"
			cfg, _, faults := conf.ParseYAML("test", []byte(text))
			require.Empty(t, faults)
			c.rt.Store.Set(conf.FromCode, "code", cfg)
		}
		set("{limit: 4, max-expand: 1}")
		more := c.hang(t, 2)
		_ = refusal(t, c.call("Get", answer))
		set("{limit: 4, mode: off}")
		require.NoError(t, c.call("Get", answer))
		set("{limit: 4, max-expand: 1}")
		_ = refusal(t, c.call("Get", answer))
		leave()
		more()
		assert.Zero(t, c.state(t).Running)
		runtime.KeepAlive(c)
	})
}
