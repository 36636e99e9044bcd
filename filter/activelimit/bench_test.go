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
	"testing"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"
)

func benchmark(b *testing.B, c *chain) {
	res := &result.RPCResult{}
	next := &end{*base.NewBaseInvoker(c.url), func(context.Context, base.Invocation) result.Result { return res }}
	inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{})
	ctx := context.Background()
	require.Zero(b, testing.AllocsPerRun(10, func() { c.guard.Invoke(ctx, next, inv) }))
	b.ReportAllocs()
	for b.Loop() {
		c.guard.Invoke(ctx, next, inv)
	}
}

func BenchmarkAdmitted(b *testing.B) {
	benchmark(b, consumer(b, "tri", map[string]string{"actives": "100", "weir.stats": "false"}))
}

func BenchmarkAdmittedWithStats(b *testing.B) {
	benchmark(b, consumer(b, "tri", map[string]string{"actives": "100"}))
}

func BenchmarkObserved(b *testing.B) {
	benchmark(b, consumer(b, "tri", map[string]string{"actives": "100", "actives.mode": "observe", "weir.stats": "false"}))
}

func BenchmarkRefused(b *testing.B) {
	c := consumer(b, "tri", map[string]string{"actives": "1", "actives.wait": "0"})
	release := c.hold(b)
	next := &end{*base.NewBaseInvoker(c.url), answer}
	inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{})
	b.ReportAllocs()
	for b.Loop() {
		c.guard.Invoke(context.Background(), next, inv)
	}
	release()
}
