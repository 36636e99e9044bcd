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

package circuitbreaker_test

import (
	"context"
	"maps"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
)

// strategies are the cheaper and the dearer of the two kinds of breakers.
var strategies = map[string]map[string]string{
	"errors": {"breaker.error-ratio": "0.5"},
	"slow":   {"breaker.error-ratio": "0.5", "breaker.slow-ratio": "0.5"},
}

func with(params map[string]string, more ...string) map[string]string {
	out := maps.Clone(params)
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

type bed struct {
	*chain
	next *end
	inv  base.Invocation
}

func newBed(b *testing.B, side conf.Side, params map[string]string) *bed {
	b.Helper()
	c := newChain(b, side, params)
	res := &result.RPCResult{}
	s := &bed{c, &end{*base.NewBaseInvoker(c.url), func(context.Context, base.Invocation) result.Result { return res }}, nil}
	s.inv = invocation.NewRPCInvocation("Echo", nil, map[string]any{})
	s.once()
	return s
}

func (s *bed) once() { s.guard.Invoke(context.Background(), s.next, s.inv) }

func (s *bed) run(b *testing.B, allocs float64) {
	b.Helper()
	require.LessOrEqual(b, testing.AllocsPerRun(10, s.once), allocs)
	b.ReportAllocs()
	for b.Loop() {
		s.once()
	}
}

// BenchmarkClosed is the breaker alone: it reads the clock for itself.
func BenchmarkClosed(b *testing.B) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		for name, params := range strategies {
			b.Run(side.String()+"/"+name, func(b *testing.B) { newBed(b, side, with(params, "weir.stats", "false")).run(b, 0) })
			b.Run(side.String()+"/"+name+"-64", func(b *testing.B) {
				s := newBed(b, side, with(params, "weir.stats", "false"))
				b.SetParallelism(32)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{})
					for pb.Next() {
						s.guard.Invoke(context.Background(), s.next, inv)
					}
				})
			})
		}
	}
}

// BenchmarkTimed is a chain that takes response times anyway, without a breaker
// and with one.
func BenchmarkTimed(b *testing.B) {
	b.Run("none", func(b *testing.B) { newBed(b, conf.Provider, map[string]string{"weir.stats": "true"}).run(b, 0) })
	for name, params := range strategies {
		b.Run(name, func(b *testing.B) { newBed(b, conf.Provider, with(params, "weir.stats", "true")).run(b, 0) })
	}
}

// BenchmarkUmbrella is executes, tps and response times together, without a
// breaker and with one.
func BenchmarkUmbrella(b *testing.B) {
	limits := map[string]string{"executes": "100", "tps": "2000000000", "tps.interval": "1s", "tps.algorithm": "bucket"}
	b.Run("none", func(b *testing.B) { newBed(b, conf.Provider, limits).run(b, 0) })
	for name, params := range strategies {
		b.Run(name, func(b *testing.B) {
			all := with(limits)
			maps.Copy(all, params)
			newBed(b, conf.Provider, all).run(b, 0)
		})
	}
}

// BenchmarkOpen is a refusal. What it allocates is its result.
func BenchmarkOpen(b *testing.B) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		b.Run(side.String(), func(b *testing.B) {
			s := newBed(b, side, map[string]string{"breaker.consecutive-errors": "1", "breaker.open-for": "24h", "weir.stats": "false"})
			require.Error(b, s.call(broken))
			s.run(b, 1)
		})
	}
	// The first refusal of a call by one instance is remembered for failover.
	for _, scope := range []string{"instance", "service"} {
		b.Run("new-call/"+scope, func(b *testing.B) {
			s := newBed(b, conf.Consumer, map[string]string{
				"breaker.consecutive-errors": "1", "breaker.open-for": "24h", "weir.stats": "false", "breaker.scope": scope,
			})
			require.Error(b, s.call(broken))
			b.ReportAllocs()
			for b.Loop() {
				s.inv = invocation.NewRPCInvocation("Echo", nil, map[string]any{})
				s.once()
			}
		})
	}
}
