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

package metrics_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group"
	processor "github.com/weir-go/weir/internal/chain"
	"github.com/weir-go/weir/internal/retry"
)

// routed routes a call of group core among the providers of groups. What it returns
// keeps the counts.
func routed(t *testing.T, rt *guard.Runtime, service string, groups ...string) any {
	t.Helper()
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(service), common.WithInterface(service))
	u.SetParam(conf.GroupKey, "core")
	processor.NewProcessor(rt, func() error { return nil }).PostProcessReferenceConfig(u)
	var invokers []base.Invoker
	for _, name := range groups {
		p := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(service), common.WithInterface(service), common.WithParamsValue(conf.GroupKey, name))
		invokers = append(invokers, base.NewBaseInvoker(p.MergeURL(u)))
	}
	r, err := extension.GetRouterFactories()[group.RouterName]().NewPriorityRouter(u)
	require.NoError(t, err)
	inv := invocation.NewRPCInvocation("Get", nil, nil)
	retry.Of(u).Grouper.Mark(context.Background(), inv)
	r.Route(invokers, u, inv)
	return u
}

// References to one service are taken together.
func TestGroups(t *testing.T) {
	c := &chains{rt: guard.NewRuntime()}
	const service = "metrics.Grouped"
	a := routed(t, c.rt, service, "core", "none", "noncore")
	b := routed(t, c.rt, service, "none", "none")
	got := c.scrape(t)
	for name, want := range map[string]float64{
		"weir_group_routed_total{core,own,metrics.Grouped}": 1, "weir_group_routed_total{core,untagged,metrics.Grouped}": 1, "weir_group_routed_total{core,none,metrics.Grouped}": 0,
		"weir_group_providers{core,metrics.Grouped}": 1, "weir_group_providers{none,metrics.Grouped}": 2, "weir_group_providers{noncore,metrics.Grouped}": 1,
	} {
		require.InDelta(t, want, got[name], 0, "%s in %v", name, got)
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

// What providers and callers say is no text, or a very long one: one such label would fail
// the whole scrape.
func TestGroupsThatAreNoText(t *testing.T) {
	c := &chains{rt: guard.NewRuntime()}
	const service = "metrics.Ungroupable"
	u := routed(t, c.rt, service, "core", "c\xffre", strings.Repeat("x", 1<<16)).(*common.URL)
	r, err := extension.GetRouterFactories()[group.RouterName]().NewPriorityRouter(u)
	require.NoError(t, err)
	for _, text := range []string{"c\xffre", strings.Repeat("x", 1<<16)} {
		r.Route([]base.Invoker{base.NewBaseInvoker(u)}, u, invocation.NewRPCInvocation("Get", nil, map[string]any{group.AttachmentKey: text}))
	}
	got := c.scrape(t)
	require.InDelta(t, 1, got["weir_group_providers{none,"+service+"}"], 0, "%v", got)
	for name := range got {
		require.Less(t, len(name), 200)
	}
	runtime.KeepAlive(u)
}
