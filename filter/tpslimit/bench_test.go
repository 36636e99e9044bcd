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

package tpslimit_test

import (
	"context"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

func benchmark(b *testing.B, side conf.Side, params map[string]string, allocs float64) {
	b.Helper()
	c := newChain(b, side, params)
	res := &result.RPCResult{}
	next := &end{*base.NewBaseInvoker(c.url), func(context.Context, base.Invocation) result.Result { return res }}
	inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{})
	ctx := context.Background()
	c.guard.Invoke(ctx, next, inv)
	c.guard.Invoke(ctx, next, inv)
	require.LessOrEqual(b, testing.AllocsPerRun(10, func() { c.guard.Invoke(ctx, next, inv) }), allocs)
	b.ReportAllocs()
	for b.Loop() {
		c.guard.Invoke(ctx, next, inv)
	}
}

var algorithms = []string{"sliding", "fixed", "bucket"}

func BenchmarkClock(b *testing.B) {
	for b.Loop() {
		guard.Now()
	}
}

// Admitted: 2,000,000,000 calls a second are never reached.
func BenchmarkAdmitted(b *testing.B) {
	for _, algorithm := range algorithms {
		b.Run(algorithm, func(b *testing.B) {
			benchmark(b, conf.Provider, map[string]string{"tps": "2000000000", "tps.interval": "1s", "tps.algorithm": algorithm, "weir.stats": "false"}, 0)
		})
	}
}

// Refused: one call a day.
func BenchmarkRefused(b *testing.B) {
	for _, algorithm := range algorithms {
		b.Run(algorithm, func(b *testing.B) {
			benchmark(b, conf.Provider, map[string]string{"tps": "1", "tps.interval": "24h", "tps.algorithm": algorithm, "weir.stats": "false"}, 1)
		})
	}
}

func BenchmarkConsumer(b *testing.B) {
	for _, algorithm := range algorithms {
		b.Run(algorithm, func(b *testing.B) {
			benchmark(b, conf.Consumer, map[string]string{"tps": "2000000000", "tps.interval": "1s", "tps.algorithm": algorithm, "weir.stats": "false"}, 0)
		})
	}
}

// BenchmarkUmbrella is executes, tps and response times together.
func BenchmarkUmbrella(b *testing.B) {
	for _, algorithm := range algorithms {
		b.Run(algorithm, func(b *testing.B) {
			benchmark(b, conf.Provider, map[string]string{"tps": "2000000000", "tps.interval": "1s", "tps.algorithm": algorithm, "executes": "100"}, 0)
		})
	}
}
