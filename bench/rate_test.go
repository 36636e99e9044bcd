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
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/filter"
	_ "dubbo.apache.org/dubbo-go/v3/filter/tps"
	_ "dubbo.apache.org/dubbo-go/v3/filter/tps/limiter"
	_ "dubbo.apache.org/dubbo-go/v3/filter/tps/strategy"
	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/flow"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"golang.org/x/time/rate"

	"github.com/weir-go/weir/filter/guard"
	_ "github.com/weir-go/weir/filter/tpslimit"
	"github.com/weir-go/weir/tps"
)

// plenty is more calls a second than anybody makes here.
const plenty = 2_000_000_000

// once fills a limit of one call.
func once(f filter.Filter, u *common.URL) { filled(f, u)() }

// ratePeers are ways to limit the calls per interval. Those that refuse have had
// their only call of the day.
func ratePeers() []peer {
	weir := func(algorithm string) peer {
		params := func(limit, interval string) map[string]string {
			return map[string]string{"tps": limit, "tps.interval": interval, "tps.algorithm": algorithm, "weir.stats": "false"}
		}
		return filterPeerWith("weir/tps-"+algorithm, umbrella, params("2000000000", "1s"), params("1", "24h"), once)
	}
	together := func(algorithm string) peer {
		return filterPeerWith("weir/executes-tps-"+algorithm+"-times", umbrella, map[string]string{
			"executes": "1000", "tps": "2000000000", "tps.interval": "1s", "tps.algorithm": algorithm,
		}, nil, nil)
	}
	bare := func(name string, limiter func(tps.Quota) tps.Limiter) peer {
		return peer{
			name: "weir/" + name + "-bare",
			pass: func() func() {
				l := limiter(tps.Quota{Rate: plenty, Interval: time.Second})
				return func() { l.Allow() }
			},
			refuse: func() func() {
				l := limiter(tps.Quota{Rate: 1, Interval: 24 * time.Hour})
				l.Allow()
				return func() { l.Allow() }
			},
		}
	}
	return []peer{
		{name: "baseline/clock", pass: func() func() { return func() { guard.Now() } }},
		bare("sliding", func(q tps.Quota) tps.Limiter { return must(tps.NewSliding(q, guard.Now)) }),
		bare("fixed", func(q tps.Quota) tps.Limiter { return must(tps.NewFixed(q, guard.Now)) }),
		bare("bucket", func(q tps.Quota) tps.Limiter { return must(tps.NewBucket(q, guard.Now)) }),
		weir("sliding"), weir("fixed"), weir("bucket"),
		together("sliding"), together("fixed"), together("bucket"),
		filterPeerWith("dubbo-go/tps", named("tps"),
			map[string]string{"tps.limiter": "method-service", "tps.limit.strategy": "slidingWindow", "tps.limit.rate": "2000000000", "tps.limit.interval": "1000"},
			map[string]string{"tps.limiter": "method-service", "tps.limit.rate": "1", "tps.limit.interval": "86400000", "tps.limit.rejected.handler": "log"}, once),
		filterPeerWith("dubbo-go/tps-method", named("tps"),
			map[string]string{
				"tps.limiter": "method-service", "tps.limit.strategy": "slidingWindow",
				"methods.SayHello.tps.limit.rate": "2000000000", "methods.SayHello.tps.limit.interval": "1000",
			}, nil, nil),
		filterPeerWith("dubbo-go/tps-fixed", named("tps"),
			map[string]string{"tps.limiter": "method-service", "tps.limit.strategy": "fixedWindow", "tps.limit.rate": "2000000000", "tps.limit.interval": "1000"}, nil, nil),
		{
			name:   "sentinel/flow-reject",
			pass:   func() func() { return sentinelFlow(unique("flow"), plenty) },
			refuse: func() func() { f := sentinelFlow(unique("flow-full"), 0); f(); return f },
		},
		{
			name: "failsafe/bursty-bare",
			pass: func() func() {
				l := ratelimiter.NewBursty[any](plenty, time.Second)
				return func() { l.TryAcquirePermit() }
			},
			refuse: func() func() {
				l := ratelimiter.NewBursty[any](1, 24*time.Hour)
				l.TryAcquirePermit()
				return func() { l.TryAcquirePermit() }
			},
		},
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

func sentinelFlow(resource string, threshold float64) func() {
	return sentinelRule(resource, &flow.Rule{
		Resource: resource, Threshold: threshold, StatIntervalInMs: 1000,
		TokenCalculateStrategy: flow.Direct, ControlBehavior: flow.Reject,
	})
}

// sentinelRule is a call under a rule of Sentinel's.
func sentinelRule(resource string, rule *flow.Rule) func() {
	flows = append(flows, rule)
	must(flow.LoadRules(flows))
	return func() {
		if e, blocked := api.Entry(resource); blocked == nil {
			e.Exit()
		}
	}
}

var flows []*flow.Rule

// BenchmarkRatePass is a call within the rate, on one goroutine.
func BenchmarkRatePass(b *testing.B) { benchPass(b, ratePeers()) }

// BenchmarkRateContended is a call within the rate while others make theirs; see
// BenchmarkContended.
func BenchmarkRateContended(b *testing.B) { benchContended(b, ratePeers()) }

// BenchmarkRateRefuse is a call over the rate.
func BenchmarkRateRefuse(b *testing.B) { benchRefuse(b, ratePeers()) }
