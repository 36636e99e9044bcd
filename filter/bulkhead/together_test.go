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
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/executelimit"
	_ "github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// fullest is a method with every step that a side can have, all of them wide open.
func fullest(side conf.Side) params {
	p := params{
		"tps": "1000000", "tps.interval": "1s",
		"flow": "1000000/1s", "flow.behavior": "queue", "flow.max-queue": "1h",
		"breaker.consecutive-errors": "3", "breaker.open-for": "1h", "breaker.slow-ratio": "1", "breaker.slow-call": "1h",
		"bulkhead": "1000", "bulkhead.queue": "10", "bulkhead.max-wait": "1h", "timeout": "2h",
	}
	if side == conf.Consumer {
		return with(p, "actives", "1000", "actives.wait", "1h")
	}
	return with(p, "executes", "1000", "executes.scope", "service", "methods.Echo.executes", "1000",
		"methods.Echo.executes.scope", "method", "flow.callers", "a=1000000/1s,default=1000000/1s", "bulkhead.run-timeout", "30m")
}

// idle requires that nothing of a chain is taken.
func (c *chain) idle(t testing.TB) {
	t.Helper()
	c.atRest(t)
	executelimit.Limiters(c.rt, func(k executelimit.Key, l *concurrency.Limiter) { assert.Zero(t, l.Inflight(), "%v", k) })
	activelimit.Queues(c.rt, func(k activelimit.Key, q *concurrency.Queue) {
		assert.Zero(t, q.Inflight(), "%v", k)
		assert.Zero(t, q.Waiting(), "%v", k)
	})
	assert.Zero(t, c.rt.Status.Status(c.statusKey("Echo")).Figures().Inflight)
	runtime.KeepAlive(c)
}

// Whichever step of the fullest plan refuses, nothing that the others gave is kept, and
// the first in the order of ranks speaks.
func TestTheFullestPlan(t *testing.T) {
	narrow := map[conf.Side][]string{
		conf.Provider: {"breaker", "tps", "bulkhead", "executes", "flow"},
		conf.Consumer: {"breaker", "tps", "actives", "bulkhead", "flow"},
	}
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		for i := range narrow[side] {
			p := fullest(side)
			for _, name := range narrow[side][i:] {
				switch name {
				case "breaker":
					p["breaker.force"] = "open"
				case "tps":
					p["tps"], p["tps.interval"] = "1", "24h"
				case "executes":
					p["executes"], p["methods.Echo.executes"] = "1", "1"
				case "flow":
					p["flow"], p["flow.max-queue"], p["flow.callers"] = "1/24h", "0", ""
				case "bulkhead":
					p["bulkhead"], p["bulkhead.queue"] = "1", "0"
				case "actives":
					p["actives"], p["actives.wait"] = "1", "0"
				}
			}
			if p["flow.callers"] == "" {
				delete(p, "flow.callers")
			}
			c := newChain(t, side, protocol, p)
			if i == 0 {
				e, ok := call.As(c.echo())
				require.True(t, ok)
				require.Equal(t, "breaker", e.Guard)
				continue
			}
			release := c.hold(t, "Echo")
			start := time.Now()
			e, ok := call.As(c.echo())
			require.True(t, ok, "%v", narrow[side][i])
			assert.Equal(t, narrow[side][i], e.Guard)
			assert.Less(t, time.Since(start), ms)
			release()
			synctest.Wait()
			c.idle(t)
		}
	})
}

// Those who wait for a rate do not wait for it only to find no slot afterwards.
func TestNobodyWaitsForARateOnlyToBeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, guard := range []string{"actives", "bulkhead"} {
			c := newChain(t, conf.Consumer, "tri", params{guard: "1", "actives.wait": "0", "flow": "1/1s", "flow.behavior": "queue", "flow.max-queue": "1h", "timeout": "1h"})
			release := c.hold(t, "Echo")
			start := time.Now()
			e, ok := call.As(c.echo())
			require.True(t, ok)
			assert.Equal(t, guard, e.Guard)
			assert.Zero(t, time.Since(start))
			release()
			c.idle(t)
		}
	})
}

// A breaker that opens while calls wait refuses them, with a run-timeout too.
func TestABreakerThatOpensWhileCallsWait(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		for _, mode := range []string{"enforce", "observe"} {
			c := newChain(t, side, protocol, with(fullest(side), "bulkhead", "1", "breaker.mode", mode, "breaker.consecutive-errors", "1", "breaker.slow-ratio", "0"))
			gate := make(chan struct{})
			first := c.later("Echo", func(context.Context, base.Invocation) result.Result {
				<-gate
				return &result.RPCResult{Err: context.DeadlineExceeded}
			})
			second := c.later("Echo", answer)
			sleep(ms) // it waits for its turn by the rate before
			require.EqualValues(t, 1, c.queue(t, "Echo", "").Waiting())
			close(gate)
			synctest.Wait()
			require.ErrorIs(t, *first, context.DeadlineExceeded)
			if mode == "observe" {
				require.NoError(t, *second)
			} else {
				e, ok := call.As(*second)
				require.True(t, ok)
				assert.Equal(t, "breaker", e.Guard)
			}
			c.idle(t)
		}
	})
}

// All guards at once, while their modes and values change under load.
func TestEverythingChangesUnderLoad(t *testing.T) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		t.Run(side.String(), func(t *testing.T) {
			c := newChain(t, side, "tri", with(fullest(side), "breaker.consecutive-errors", "0"))
			other := chainOf(t, c.rt, side, "dubbo", newService(), "20001", nil, with(fullest(side), "breaker.consecutive-errors", "0"))
			var (
				wg           sync.WaitGroup
				stop         = make(chan struct{})
				running, ran atomic.Int64
			)
			for range 16 {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						for _, ch := range []*chain{c, other} {
							ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(20))*ms+time.Hour*time.Duration(rand.IntN(2)))
							func() {
								defer func() { _ = recover() }()
								res := ch.invoke(ctx, invocation.NewRPCInvocation("Echo", nil, map[string]any{"remote.application": "a"}), func(ctx context.Context, inv base.Invocation) result.Result {
									running.Add(1)
									defer running.Add(-1)
									ran.Add(1)
									switch rand.IntN(8) {
									case 0:
										panic("handler")
									case 1:
										return &result.RPCResult{Err: context.DeadlineExceeded}
									case 2:
										select { // until it is told
										case <-ctx.Done():
										case <-time.After(3 * ms):
										}
									case 3:
										return nil
									}
									runtime.Gosched()
									return answer(ctx, inv)
								})
								_ = res
							}()
							cancel()
						}
					}
				})
			}
			modes := []string{"off", "observe", "enforce"}
			mode := func() string { return modes[rand.IntN(3)] }
			n := func(k int) int { return rand.IntN(k) + 1 }
			for range 300 {
				var b strings.Builder
				fmt.Fprintf(&b, "weir:\n  %s:\n", side)
				fmt.Fprintf(&b, "    tps: {limit: %d, interval: 1s, mode: %s}\n", 1000*n(1000), mode())
				fmt.Fprintf(&b, "    flow: {rate: %d/1s, behavior: %s, mode: %s}\n", 10000*n(100), []string{"queue", "reject", "warm-up-queue"}[rand.IntN(3)], mode())
				fmt.Fprintf(&b, "    breaker: {consecutive-errors: %d, open-for: 1ms, probe-timeout: 2ms, slow-ratio: %s, slow-call: 1ms, mode: %s}\n", n(3), []string{"0", "0.5"}[rand.IntN(2)], mode())
				fmt.Fprintf(&b, "    bulkhead: {max: %d, queue: %d, max-wait: %dms, mode: %s", n(6), n(6)-1, n(20), mode())
				if rand.IntN(2) == 0 {
					b.WriteString(", group: all")
				}
				if side == conf.Provider {
					fmt.Fprintf(&b, ", run-timeout: %dms", rand.IntN(3))
				}
				b.WriteString("}\n")
				if side == conf.Provider {
					fmt.Fprintf(&b, "    executes: {limit: %d, scope: service, mode: %s}\n", n(8), mode())
				} else {
					fmt.Fprintf(&b, "    actives: {limit: %d, wait: %dms, mode: %s}\n", n(6), n(20)-1, mode())
				}
				cfg, _, faults := conf.ParseYAML("test", []byte(b.String()))
				require.Empty(t, faults, b.String())
				c.rt.Store.Set(conf.FromFile, "test", cfg)
				for before, i := ran.Load(), 0; ran.Load() < before+50 && i < 200; i++ {
					runtime.Gosched()
				}
			}
			close(stop)
			wg.Wait()
			for running.Load() > 0 {
				runtime.Gosched()
			}
			cfg, _, _ := conf.ParseYAML("test", []byte("weir:\n"))
			c.rt.Store.Set(conf.FromFile, "test", cfg)
			require.Eventually(t, func() bool {
				taken := int64(0)
				activelimit.Queues(c.rt, func(_ activelimit.Key, q *concurrency.Queue) { taken += q.Inflight() + q.Waiting() })
				executelimit.Limiters(c.rt, func(_ executelimit.Key, l *concurrency.Limiter) { taken += l.Inflight() })
				return taken == 0
			}, 5*time.Second, ms)
			c.idle(t)
			other.idle(t)
			require.Positive(t, ran.Load())
		})
	}
}
