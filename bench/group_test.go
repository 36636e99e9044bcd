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

	"dubbo.apache.org/dubbo-go/v3/cluster/router"
	dubbotag "dubbo.apache.org/dubbo-go/v3/cluster/router/tag"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group"
	"github.com/weir-go/weir/internal/chain"
	"github.com/weir-go/weir/internal/retry"
)

// grouped is a reference whose calls are of group core, to n providers of which a half
// is of it and of dubbo's tag core, a quarter of another and a quarter of none.
func grouped(tb testing.TB, n int) (u *common.URL, list []base.Invoker) {
	tb.Helper()
	u = common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("bench.Group"), common.WithInterface("bench.Group"),
		common.WithMethods([]string{"Get"}), common.WithParamsValue(conf.GroupKey, "core"))
	chain.NewProcessor(guard.NewRuntime(), func() error { return nil }).PostProcessReferenceConfig(u)
	for i := range n {
		p := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("bench.Group"), common.WithInterface("bench.Group"),
			common.WithIp("10.0."+strconv.Itoa(i/250)+"."+strconv.Itoa(i%250)), common.WithPort("20000"))
		if name := []string{"core", "noncore", "core", ""}[i%4]; name != "" {
			p.SetParam(conf.GroupKey, name)
			p.SetParam(constant.Tagkey, name)
		}
		list = append(list, &invoker{*base.NewBaseInvoker(p.MergeURL(u))})
	}
	return u, list
}

// routers are Weir's and dubbo-go's tag router, each with a call that it routes.
func routers(tb testing.TB, u *common.URL) map[string]func([]base.Invoker) []base.Invoker {
	tb.Helper()
	ours, err := extension.GetRouterFactories()[group.RouterName]().NewPriorityRouter(u)
	if err != nil {
		tb.Fatal(err)
	}
	theirs, err := dubbotag.NewTagPriorityRouter()
	if err != nil {
		tb.Fatal(err)
	}
	ref := retry.Of(u)
	route := func(r router.PriorityRouter, inv base.Invocation) func([]base.Invoker) []base.Invoker {
		return func(list []base.Invoker) []base.Invoker {
			if r == ours {
				ref.Grouper.Mark(context.Background(), inv)
			}
			got := r.Route(list, u, inv)
			if len(list) > 1 && len(got) != (len(list)+1)/2 {
				tb.Fatalf("%d of %d", len(got), len(list))
			}
			return got
		}
	}
	return map[string]func([]base.Invoker) []base.Invoker{
		"weir":  route(ours, invocation.NewRPCInvocation("Get", nil, nil)),
		"dubbo": route(theirs, invocation.NewRPCInvocation("Get", nil, map[string]any{constant.Tagkey: "core"})),
	}
}

// BenchmarkGroup is one call's way through a tag router, with the group put into the call
// for Weir. As dubbo does, the list is made anew for every call, out of the time.
func BenchmarkGroup(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		u, list := grouped(b, n)
		for _, name := range []string{"weir", "dubbo"} {
			route := routers(b, u)[name]
			copied := [2][]base.Invoker{append([]base.Invoker{}, list...), append([]base.Invoker{}, list...)}
			route(list)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					route(copied[i%2])
				}
			})
		}
	}
}

// BenchmarkGroupChanging is the same where the list changes every second of 10,000 calls.
func BenchmarkGroupChanging(b *testing.B) {
	const each = 10_000
	for _, n := range []int{10, 100, 1000} {
		u, list := grouped(b, n)
		lists := make([][]base.Invoker, 20) // more than are kept
		for i := range lists {
			lists[i] = append(append([]base.Invoker{}, list[4*(i%2):]...), list[:4*(i%2)]...)
			_, other := grouped(b, 4)
			copy(lists[i], other) // four have come, four have gone
		}
		for _, name := range []string{"weir", "dubbo"} {
			route := routers(b, u)[name]
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					route(lists[i/each%len(lists)])
				}
			})
		}
	}
}
