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

package circuitbreaker

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

// Each plan of a chain was kept as one more that uses the breaker, for as long as
// the chain lived.
func TestRegression_PlansOfAChainAreOneUser(t *testing.T) {
	rt := guard.NewRuntime()
	g := guard.New(rt, conf.Provider)
	next := base.NewBaseInvoker(common.NewURLWithOptions(
		common.WithProtocol("tri"), common.WithPath("breaker.Users"), common.WithInterface("breaker.Users"), common.WithMethods([]string{"Echo"})))
	for i := range 50 {
		cfg, _, faults := conf.ParseYAML("test", fmt.Appendf(nil, "weir: {provider: {breaker: {error-count: %d}}}", i+1))
		require.Empty(t, faults)
		rt.Store.Set(conf.FromFile, "test", cfg)
		g.Invoke(context.Background(), next, invocation.NewRPCInvocation("Echo", nil, map[string]any{}))
	}
	seen := 0
	entries.Range(func(k Key, e *entry) bool {
		if k.runtime == rt {
			seen++
			require.Len(t, e.users.alive, 1)
		}
		return true
	})
	require.Equal(t, 2, seen)
	runtime.KeepAlive(g)
}

// At each plan the breaker of a service looked at the chains of all of its addresses:
// a thousand of them with a hundred methods took half a minute.
func TestRegression_UsersAreLookedAtNowAndThen(t *testing.T) {
	const n = 10_000
	var u users
	looked, live := 0, true
	for i := range uint64(n) {
		u.add(i, func() bool { looked++; return live })
	}
	require.Less(t, looked, 4*n)
	require.Len(t, u.alive, n)
	require.True(t, u.any())
	live = false
	for i := range uint64(2 * n) {
		u.add(n+i, func() bool { return true })
	}
	require.Less(t, looked, 6*n)
	require.Less(t, len(u.alive), 3*n, "the dead are forgotten")
}

// However many names come from the network, and however often the configuration
// changes meanwhile, breakers are bounded: the unknown share one. N15
func TestRegression_NamesFromTheNetworkAreBounded(t *testing.T) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		rt := guard.NewRuntime()
		g := guard.New(rt, side)
		service := "breaker.Names" + side.String()
		next := base.NewBaseInvoker(common.NewURLWithOptions(
			common.WithProtocol("tri"), common.WithPath(service), common.WithInterface(service), common.WithIp("127.0.0.1"), common.WithPort("1")))
		for version := range 3 {
			cfg, _, faults := conf.ParseYAML("test", fmt.Appendf(nil, "weir: {%s: {breaker: {error-count: %d}}}", side, version+1))
			require.Empty(t, faults)
			rt.Store.Set(conf.FromFile, "test", cfg)
			for i := range 1500 {
				g.Invoke(context.Background(), next, invocation.NewRPCInvocation(fmt.Sprintf("m%d-%d", version, i), nil, map[string]any{}))
			}
		}
		seen := 0
		entries.Range(func(k Key, _ *entry) bool {
			if k.runtime == rt {
				seen++
			}
			return true
		})
		require.LessOrEqual(t, seen, 1025, side)
		runtime.KeepAlive(g)
	}
}
