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

package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/afex/hystrix-go/hystrix"
	"github.com/alibaba/sentinel-golang/api"
	sentinelbreaker "github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	_ "github.com/weir-go/weir/filter/circuitbreaker"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/breaker"
)

var errBroken = errors.New("broken")

// breakOne has a call fail, which opens a breaker of one error in a row.
func breakOne(f filter.Filter, u *common.URL) {
	err := triple_protocol.NewError(triple_protocol.CodeUnavailable, errBroken)
	next := &stub{*base.NewBaseInvoker(u), &result.RPCResult{Err: err}}
	f.Invoke(context.Background(), next, invocation.NewRPCInvocation("SayHello", nil, map[string]any{}))
}

// breakerPeers are circuit breakers. Those that refuse have been opened for a day.
func breakerPeers() []peer {
	rules := func(slow bool) breaker.Rules {
		r := breaker.Rules{
			ErrorRatio: breaker.Million / 2, MinCalls: 20, Width: time.Second, Buckets: 10,
			OpenFor: 24 * time.Hour, Probes: 1, ProbeTimeout: time.Minute,
		}
		if slow {
			r.SlowRatio, r.SlowCall = breaker.Million/2, time.Second
		} else {
			r.ConsecutiveErrors = 1
		}
		return r
	}
	filtered := func(name, side string, f func() filter.Filter, more ...string) peer {
		params := func(stats string, strategy ...string) map[string]string {
			out := map[string]string{"breaker.error-ratio": "0.5", "weir.stats": stats}
			for i := 0; i < len(strategy); i += 2 {
				out[strategy[i]] = strategy[i+1]
			}
			return out
		}
		stats := "false"
		if name != "" && name[0] == 't' {
			stats = "true"
		}
		return filterPeerWith("weir/breaker-"+name+side, f, params(stats, more...),
			params(stats, "breaker.consecutive-errors", "1", "breaker.open-for", "24h"), breakOne)
	}
	slow := []string{"breaker.slow-ratio", "0.5"}
	together := map[string]string{"executes": "1000", "tps": "2000000000", "tps.interval": "1s", "tps.algorithm": "bucket"}
	with := func(more ...string) map[string]string {
		out := map[string]string{}
		for k, v := range together {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	return []peer{
		{name: "baseline/clock", pass: func() func() { return func() { guard.Now() } }},
		{
			name: "weir/breaker-errors-bare",
			pass: func() func() {
				b := must(breaker.New(rules(false), guard.Now()))
				return func() {
					if p, ok := b.TryClosed(); ok {
						b.End(p, breaker.Success, 0, guard.Now())
					}
				}
			},
			refuse: func() func() {
				b := must(breaker.New(rules(false), guard.Now()))
				p, _ := b.TryClosed()
				b.End(p, breaker.Failure, 0, guard.Now())
				return func() { b.Allow(guard.Now()) }
			},
		},
		{
			name: "weir/breaker-slow-bare",
			pass: func() func() {
				b := must(breaker.New(rules(true), guard.Now()))
				return func() {
					began := guard.Now()
					if p, v := b.Allow(began); v == nil {
						p = b.Begin(p, began)
						now := guard.Now()
						b.End(p, breaker.Success, now-began, now)
					}
				}
			},
		},
		filtered("errors", "", umbrella), filtered("slow", "", umbrella, slow...),
		filtered("errors", "-consumer", consumer), filtered("slow", "-consumer", consumer, slow...),
		filterPeer("weir/times", umbrella, map[string]string{"weir.stats": "true"}, nil),
		filtered("times-errors", "", umbrella), filtered("times-slow", "", umbrella, slow...),
		filterPeer("weir/executes-tps-times", umbrella, together, nil),
		filterPeer("weir/executes-tps-breaker-times", umbrella, with("breaker.error-ratio", "0.5"), nil),
		filterPeer("weir/executes-tps-breaker-slow-times", umbrella, with("breaker.error-ratio", "0.5", "breaker.slow-ratio", "0.5"), nil),
		{
			name: "gobreaker/execute",
			pass: func() func() {
				b := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{})
				f := func() (any, error) { return nil, nil } //nolint:nilnil // an answer
				return func() { _, _ = b.Execute(f) }
			},
			refuse: func() func() {
				b := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{
					Timeout: 24 * time.Hour, ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > 0 },
				})
				_, _ = b.Execute(func() (any, error) { return nil, errBroken })
				f := func() (any, error) { return nil, nil } //nolint:nilnil // an answer
				return func() { _, _ = b.Execute(f) }
			},
		},
		failsafePeer("failsafe/count-bare", func(b circuitbreaker.Builder[any]) { b.WithFailureThresholdRatio(50, 100) }),
		failsafePeer("failsafe/time-bare", func(b circuitbreaker.Builder[any]) { b.WithFailureRateThreshold(0.5, 20, 10*time.Second) }),
		{
			name: "failsafe/time-executor",
			pass: func() func() {
				e := failsafe.With(circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(0.5, 20, 10*time.Second).Build())
				f := func() error { return nil }
				return func() { _ = e.Run(f) }
			},
		},
		{
			name:   "sentinel/error-ratio",
			pass:   func() func() { return sentinelBreaker(unique("errors"), sentinelbreaker.ErrorRatio, 0) },
			refuse: func() func() { f := sentinelBreaker(unique("open"), sentinelbreaker.ErrorRatio, 1); f(); return f },
		},
		{
			name: "sentinel/slow-ratio",
			pass: func() func() { return sentinelBreaker(unique("slow"), sentinelbreaker.SlowRequestRatio, 0) },
		},
		{
			name: "hystrix-go/closed",
			pass: func() func() {
				name := unique("closed")
				hystrix.ConfigureCommand(name, hystrix.CommandConfig{MaxConcurrentRequests: 1000, Timeout: 60000})
				f := func() error { return nil }
				return func() { _ = hystrix.Do(name, f, nil) }
			},
		},
	}
}

// failsafePeer asks for a permit and records what came of it, without an executor.
func failsafePeer(name string, configure func(circuitbreaker.Builder[any])) peer {
	build := func() circuitbreaker.CircuitBreaker[any] {
		b := circuitbreaker.NewBuilder[any]().WithDelay(24 * time.Hour)
		configure(b)
		return b.Build()
	}
	return peer{
		name: name,
		pass: func() func() {
			b := build()
			return func() {
				if b.TryAcquirePermit() {
					b.RecordSuccess()
				}
			}
		},
		refuse: func() func() { b := build(); b.Open(); return func() { b.TryAcquirePermit() } },
	}
}

// sentinelBreaker has so many calls fail beforehand.
func sentinelBreaker(resource string, strategy sentinelbreaker.Strategy, failing int) func() {
	breakerRules = append(breakerRules, &sentinelbreaker.Rule{
		Resource: resource, Strategy: strategy, RetryTimeoutMs: 24 * 3600 * 1000, MinRequestAmount: 1, StatIntervalMs: 10000, StatSlidingWindowBucketCount: 10,
		MaxAllowedRtMs: 1000, Threshold: 0.5,
	})
	must(sentinelbreaker.LoadRules(breakerRules))
	for range failing {
		if e, blocked := api.Entry(resource); blocked == nil {
			api.TraceError(e, errBroken)
			e.Exit()
		}
	}
	return func() {
		if e, blocked := api.Entry(resource); blocked == nil {
			e.Exit()
		}
	}
}

var breakerRules []*sentinelbreaker.Rule

// BenchmarkBreakerClosed is a call that succeeds, on one goroutine.
func BenchmarkBreakerClosed(b *testing.B) { benchPass(b, breakerPeers()) }

// BenchmarkBreakerContended is a call that succeeds while others make theirs; see
// BenchmarkContended.
func BenchmarkBreakerContended(b *testing.B) { benchContended(b, breakerPeers()) }

// BenchmarkBreakerOpen is a call that an open breaker refuses.
func BenchmarkBreakerOpen(b *testing.B) { benchRefuse(b, breakerPeers()) }
