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
	"fmt"
	"strconv"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/cluster/loadbalance"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/leastactive"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/p2c"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/random"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/roundrobin"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
	_ "github.com/weir-go/weir/loadbalance"
)

// providers are n invokers of one reference, with what a URL has that came by a registry.
func providers(n int, weight func(int) int) []base.Invoker {
	none := conf.ParseParams(conf.Consumer, "", nil).Service
	ref := retry.NewReference(&none)
	out := make([]base.Invoker, n)
	for i := range out {
		u := common.NewURLWithOptions(
			common.WithProtocol("tri"), common.WithPath("bench.Balance"), common.WithInterface("bench.Balance"),
			common.WithIp("10.0."+strconv.Itoa(i/250)+"."+strconv.Itoa(i%250)), common.WithPort("20000"), common.WithMethods([]string{"Get"}),
			common.WithParamsValue(constant.TimestampKey, "1700000000"), common.WithParamsValue(constant.WeightKey, strconv.Itoa(weight(i))),
			common.WithParamsValue(constant.ReferenceFilterKey, guard.ConsumerFilter),
		)
		u.SetAttribute(retry.AttributeKey, ref)
		out[i] = &invoker{*base.NewBaseInvoker(u)}
	}
	return out
}

type invoker struct{ base.BaseInvoker }

func (i *invoker) Invoke(context.Context, base.Invocation) result.Result { return &result.RPCResult{} }

func evenly(int) int { return 100 }

// BenchmarkBalance is one choice among n providers, by Weir's load balances and by
// dubbo-go's. The list is one slice here; dubbo makes it anew for every call.
func BenchmarkBalance(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		list := providers(n, evenly)
		for _, name := range []string{
			"weir-leastactive", "weir-shortestresponse", "weir-p2c", "leastactive", "p2c", "random", "roundrobin",
		} {
			lb := extension.GetLoadbalance(name)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) { choose(b, lb, list) })
		}
		list = providers(n, func(i int) int { return 50 + i%100 })
		for _, name := range []string{"weir-leastactive", "weir-p2c", "leastactive"} {
			lb := extension.GetLoadbalance(name)
			b.Run(fmt.Sprintf("%s-weighted/%d", name, n), func(b *testing.B) { choose(b, lb, list) })
		}
	}
}

// BenchmarkBalanceBusy is one choice among providers that have calls running, up to six, and
// have answered some.
func BenchmarkBalanceBusy(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		for _, name := range []string{"weir-leastactive", "weir-shortestresponse", "weir-p2c"} {
			list := providers(n, evenly)
			lb := extension.GetLoadbalance(name)
			lb.Select(list, invocation.NewRPCInvocation("Get", nil, nil))
			for i, p := range list {
				r := retry.Of(p.GetURL()).Peers.Instance(p.GetURL().Location).Record(guard.RecordOf("Get"))
				r.Took(time.Duration(20+i%10)*time.Millisecond, guard.Now())
				for range i % 7 {
					r.Begin()
				}
			}
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) { choose(b, lb, list) })
		}
	}
}

func choose(b *testing.B, lb loadbalance.LoadBalance, list []base.Invoker) {
	inv := invocation.NewRPCInvocation("Get", nil, nil)
	lb.Select(list, inv)
	b.ReportAllocs()
	for b.Loop() {
		lb.Select(list, inv)
	}
}

// BenchmarkBalanceParallel has all cores choose among the same providers.
func BenchmarkBalanceParallel(b *testing.B) {
	list := providers(100, evenly)
	for _, name := range []string{"weir-leastactive", "weir-p2c"} {
		lb := extension.GetLoadbalance(name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				inv := invocation.NewRPCInvocation("Get", nil, nil)
				for pb.Next() {
					lb.Select(list, inv)
				}
			})
		})
	}
}

// BenchmarkBalanced is what a consumer's guard does for a call of a reference that
// balances, beside that of one that does not.
func BenchmarkBalanced(b *testing.B) {
	for _, balance := range []string{"none", "weir-leastactive", "weir-p2c"} {
		b.Run(balance, func(b *testing.B) {
			list := providers(2, evenly)
			inv := invocation.NewRPCInvocation("Get", nil, nil)
			if balance != "none" {
				extension.GetLoadbalance(balance).Select(list, inv)
			}
			g := guard.New(guard.NewRuntime(), conf.Consumer)
			b.ReportAllocs()
			for b.Loop() {
				g.Invoke(context.Background(), list[0], inv)
			}
		})
	}
}
