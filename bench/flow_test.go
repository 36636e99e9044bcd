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
	"testing"
	"time"

	"github.com/alibaba/sentinel-golang/core/flow"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"golang.org/x/time/rate"

	_ "github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/tps"
)

// flowPeers are ways to shape the rate of calls, of which none has to wait here: it is
// so high that the clock is always further than a spacing, but where calls contend.
func flowPeers() []peer {
	weir := func(behavior string) peer {
		params := func(rate, mode string) map[string]string {
			return map[string]string{
				"flow": rate, "flow.behavior": behavior, "flow.max-queue": "0", "flow.mode": mode, "weir.stats": "false",
			}
		}
		return filterPeerWith("weir/flow-"+behavior, umbrella, params("2000000000/1s", "enforce"), params("1/24h", "enforce"), once)
	}
	callers := filterPeerWith("weir/flow-queue-callers", umbrella, map[string]string{
		"flow": "2000000000/1s", "flow.behavior": "queue", "flow.callers": "shop=2000000000/1s, default=2000000000/1s", "weir.stats": "false",
	}, nil, nil)
	quota, warming := tps.Quota{Rate: plenty, Interval: time.Second}, tps.Warming{Time: 10 * time.Second, Factor: 3}
	day := tps.Quota{Rate: 1, Interval: 24 * time.Hour}
	pacer := func(name string, w tps.Warming) peer {
		call := func(q tps.Quota) func() {
			p := must(tps.NewPacer(q, w, guard.Now))
			ctx := context.Background()
			return func() { _, _ = p.Wait(ctx, guard.Now(), 0) }
		}
		return peer{
			name: "weir/" + name + "-bare",
			pass: func() func() { return call(quota) },
			refuse: func() func() {
				f := call(day)
				f()
				return f
			},
		}
	}
	return []peer{
		{name: "baseline/clock", pass: func() func() { return func() { guard.Now() } }},
		{
			name: "weir/warm-up-bare",
			pass: func() func() {
				l := must(tps.NewWarmUp(quota, warming, guard.Now))
				return func() { l.Allow() }
			},
			refuse: func() func() {
				l := must(tps.NewWarmUp(day, warming, guard.Now))
				l.Allow()
				return func() { l.Allow() }
			},
		},
		pacer("pacer", tps.Warming{}), pacer("pacer-warm-up", warming),
		weir("reject"), weir("warm-up"), weir("queue"), weir("warm-up-queue"), callers,
		sentinelShape("reject", flow.Direct, flow.Reject),
		sentinelShape("warm-up", flow.WarmUp, flow.Reject),
		sentinelShape("throttling", flow.Direct, flow.Throttling),
		sentinelShape("warm-up-throttling", flow.WarmUp, flow.Throttling),
		failsafeRate("smooth", ratelimiter.NewSmooth[any]), failsafeRate("bursty", ratelimiter.NewBursty[any]),
		{
			name: "x-time/rate-bare",
			pass: func() func() { l := rate.NewLimiter(plenty, plenty); return func() { l.Allow() } },
			refuse: func() func() {
				l := rate.NewLimiter(rate.Every(24*time.Hour), 1)
				l.Allow()
				return func() { l.Allow() }
			},
		},
	}
}

func failsafeRate(name string, limiter func(uint, time.Duration) ratelimiter.RateLimiter[any]) peer {
	return peer{
		name: "failsafe/" + name + "-bare",
		pass: func() func() {
			l := limiter(1_000_000_000, time.Second) // a smooth one has no spacing below a nanosecond
			return func() { l.TryAcquirePermit() }
		},
		refuse: func() func() {
			l := limiter(1, 24*time.Hour)
			l.TryAcquirePermit()
			return func() { l.TryAcquirePermit() }
		},
	}
}

// sentinelShape is a rule of Sentinel's. One that refuses has had the only call of
// its ten minutes, the longest interval that its statistics take.
func sentinelShape(name string, strategy flow.TokenCalculateStrategy, behavior flow.ControlBehavior) peer {
	entry := func(threshold float64, interval uint32) func() {
		resource := unique("flow-" + name)
		return sentinelRule(resource, &flow.Rule{
			Resource: resource, Threshold: threshold, StatIntervalInMs: interval,
			TokenCalculateStrategy: strategy, ControlBehavior: behavior,
			WarmUpPeriodSec: 10, WarmUpColdFactor: 3, MaxQueueingTimeMs: 0,
		})
	}
	return peer{
		name: "sentinel/flow-" + name,
		pass: func() func() { return entry(plenty, 1000) },
		refuse: func() func() {
			f := entry(1, 600_000)
			f()
			return f
		},
	}
}

// BenchmarkFlowPass is a call within the rate, on one goroutine.
func BenchmarkFlowPass(b *testing.B) { benchPass(b, flowPeers()) }

// BenchmarkFlowContended is a call within the rate while others make theirs; see
// BenchmarkContended.
func BenchmarkFlowContended(b *testing.B) { benchContended(b, flowPeers()) }

// BenchmarkFlowRefuse is a call over the rate.
func BenchmarkFlowRefuse(b *testing.B) { benchRefuse(b, flowPeers()) }
