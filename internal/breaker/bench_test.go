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

package breaker_test

import (
	"testing"
	"time"

	"github.com/weir-go/weir/internal/breaker"
)

// clock is what a filter reads: a monotonic one.
var origin = time.Now()

func clock() time.Duration { return time.Since(origin) }

func benchRules(slow bool) breaker.Rules {
	return rules(func(r *breaker.Rules) {
		r.MinCalls = 20
		if slow {
			r.SlowRatio, r.SlowCall = breaker.Million/2, time.Second
		}
	})
}

func benchBreaker(b *testing.B, slow bool) *breaker.Breaker {
	b.Helper()
	br, err := breaker.New(benchRules(slow), clock())
	if err != nil {
		b.Fatal(err)
	}
	return br
}

func errorCall(b *breaker.Breaker) bool {
	p, ok := b.TryClosed()
	if ok {
		b.End(p, breaker.Success, 0, clock())
	}
	return ok
}

func slowCall(b *breaker.Breaker) bool {
	begun := clock()
	p, v := b.Allow(begun)
	if v != nil {
		return false
	}
	p = b.Begin(p, begun)
	now := clock()
	b.End(p, breaker.Success, now-begun, now)
	return true
}

func BenchmarkClosed(b *testing.B) {
	for name, run := range map[string]func(*breaker.Breaker) bool{"errors": errorCall, "slow": slowCall} {
		b.Run(name, func(b *testing.B) {
			br := benchBreaker(b, name == "slow")
			b.ReportAllocs()
			for b.Loop() {
				if !run(br) {
					b.Fatal("open")
				}
			}
		})
		b.Run(name+"-64", func(b *testing.B) {
			br := benchBreaker(b, name == "slow")
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					run(br)
				}
			})
		})
	}
}

// BenchmarkClosedWithoutClock is what is added to a chain that reads the clock anyway.
func BenchmarkClosedWithoutClock(b *testing.B) {
	for name, slow := range map[string]bool{"errors": false, "slow": true} {
		b.Run(name, func(b *testing.B) {
			br := benchBreaker(b, slow)
			now := clock()
			b.ReportAllocs()
			for b.Loop() {
				p, _ := br.Allow(now)
				if slow {
					p = br.Begin(p, now)
				}
				br.End(p, breaker.Success, 0, now)
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	br := benchBreaker(b, false)
	_ = br.Update(rules(func(r *breaker.Rules) { r.MinCalls, r.OpenFor = 1, time.Hour }), breaker.Free, clock())
	p, _ := br.TryClosed()
	br.End(p, breaker.Failure, 0, clock())
	b.ReportAllocs()
	for b.Loop() {
		if _, v := br.Allow(clock()); v == nil {
			b.Fatal("closed")
		}
	}
}
