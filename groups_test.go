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

package weir

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/cluster/router"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/metadata/info"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group"
	"github.com/weir-go/weir/internal/chain"
	"github.com/weir-go/weir/internal/retry"
)

// routedCall routes one call of a reference to a provider of group core and one without
// a group. What it returns keeps the counts.
func routedCall(t *testing.T, rt *guard.Runtime, service string) any {
	t.Helper()
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(service), common.WithInterface(service), common.WithMethods([]string{"Get"}))
	chain.NewProcessor(rt, func() error { return nil }).PostProcessReferenceConfig(u)
	var invokers []base.Invoker
	for _, name := range []string{"core", ""} {
		p := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(service), common.WithInterface(service))
		if name != "" {
			p.SetParam(conf.GroupKey, name)
		}
		invokers = append(invokers, base.NewBaseInvoker(p.MergeURL(u)))
	}
	var r router.PriorityRouter
	r, err := extension.GetRouterFactories()[group.RouterName]().NewPriorityRouter(u)
	require.NoError(t, err)
	inv := invocation.NewRPCInvocation("Get", nil, nil)
	retry.Of(u).Grouper.Mark(context.Background(), inv)
	got := r.Route(invokers, u, inv)
	require.Len(t, got, 1)
	require.Same(t, invokers[0].GetURL(), got[0].GetURL())
	return u
}

func TestSnapshotShowsTheGroups(t *testing.T) {
	rt := guard.NewRuntime()
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Consumer: conf.Section{Policies: conf.Policies{Group: &conf.Group{Name: "core"}}}})
	u := routedCall(t, rt, "snapshot.Grouped")
	groups := snapshot(rt).Groups
	require.Len(t, groups, 2)
	for i := range groups {
		require.NotZero(t, groups[i].Reference)
		groups[i].Reference = 0
	}
	require.Equal(t, []GroupState{
		{Service: "snapshot.Grouped", Group: "core", Providers: 1, Routed: map[string]int64{"own": 1}},
		{Service: "snapshot.Grouped", Group: "none", Providers: 1, Routed: map[string]int64{}},
	}, groups)
	runtime.KeepAlive(u)
	require.NotNil(t, snapshot(guard.NewRuntime()).Groups)
}

func TestAGroupTravelsWithApplicationLevelDiscovery(t *testing.T) {
	require.True(t, info.IncludeKeys.Contains(conf.GroupKey))
}

func TestAGroupForOneCall(t *testing.T) {
	ctx := WithGroup(context.Background(), "core")
	require.Equal(t, "core", Group(ctx))
	require.Empty(t, Group(WithGroup(ctx, "none")))
	require.Empty(t, Group(context.Background()))
}

// Importing Weir, and a reference where no group is configured, register no router. It
// takes a process of its own, as other tests of this one do.
func TestNoRouterWithoutAGroup(t *testing.T) {
	const child = "WEIR_TEST_NO_ROUTER"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestNoRouterWithoutAGroup$")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return
	}
	require.Empty(t, extension.GetRouterFactories())
	rt := guard.NewRuntime()
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("none.Service"), common.WithInterface("none.Service"))
	chain.NewProcessor(rt, func() error { return nil }).PostProcessReferenceConfig(u)
	require.Empty(t, extension.GetRouterFactories())
	require.Nil(t, retry.Of(u).Grouper)
}
