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

package group_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group"
	"github.com/weir-go/weir/group/tag"
	"github.com/weir-go/weir/loadbalance"
)

// A sticky reference sticks within the group of each call, and not to who refuses.
func TestSticky(t *testing.T) {
	for _, balance := range []string{"random", "roundrobin", loadbalance.FewChoices} {
		configured(t, "weir: {group: {name: core, match: strict}}")
		c := refer(t, map[string]string{constant.StickyKey: "true", constant.LoadbalanceKey: balance}, "a:core", "b:core", "c:noncore", "d:noncore")
		assert.Len(t, c.goes(t, ctx, nil), 1, "it sticks")
		for range 20 {
			require.ErrorIs(t, c.call(group.With(ctx, "batch"), nil), call.ErrRejected)
			require.Empty(t, c.hit())
			require.NoError(t, c.call(group.With(ctx, "noncore"), nil))
			require.Contains(t, []string{"c", "d"}, c.hit())
			require.NoError(t, c.call(ctx, nil))
			require.Contains(t, []string{"a", "b"}, c.hit())
		}
	}
}

// Retries of calls of a level stay where it leads to, and never come to another group.
func TestRetriesOfALevel(t *testing.T) {
	configured(t, "weir: {group: 'core|pay|vip'}")
	c := refer(t, map[string]string{constant.RetriesKey: "5"}, "a:core", "b:core|pay", "c:core|pay", "d:", "e:core|other|vip", "f:core|pay|vip|gold")
	for _, i := range c.instances {
		i.err = assert.AnError
	}
	for range 20 {
		require.Error(t, c.call(ctx, nil))
	}
	assert.Equal(t, "bc", c.hit())
	for _, s := range group.States(guard.Process()) {
		if s.Service == c.service && s.Group == "core|pay|vip" {
			assert.Equal(t, int64(20*6), s.Routed[tag.ByWider], "each try is routed by itself")
		}
	}
	runtime.KeepAlive(c)
}

// Levels of which some are there: the deepest of them.
func TestLevelsOfWhichSomeAreThere(t *testing.T) {
	for _, tt := range []struct {
		own, want string
		providers []string
	}{
		{"core|pay|vip", "a", []string{"a:core|pay", "b:"}},
		{"core|pay|vip", "b", []string{"a:pay", "b:", "c:vip", "d:pay|vip"}},
		{"core|pay|vip", "a", []string{"a:core", "b:core|vip", "c:"}},
		{"core", "b", []string{"a:core|pay", "b:"}},
		{"core|pay", "b", []string{"a:core|pay|vip", "b:core", "c:"}},
		{"CORE|pay", "b", []string{"a:core|pay", "b:"}},
		{"a|b|c|d|e|f|g|h", "a", []string{"a:a", "b:b", "c:"}},
		{"a|b|c|d|e|f|g|h", "b", []string{"a:a", "b:a|b|c|d|e|f|g", "c:"}},
	} {
		configured(t, "weir: {group: '"+tt.own+"'}")
		assert.Equal(t, tt.want, refer(t, nil, tt.providers...).goes(t, ctx, nil), "%v", tt)
		configured(t, "weir: {group: {name: '"+tt.own+"', match: strict}}")
		require.ErrorIs(t, refer(t, nil, tt.providers...).call(ctx, nil), call.ErrRejected, "%v", tt)
	}
}

// A generic call goes by the method that it names.
func TestGenericCalls(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, map[string]string{"methods.Put.weir.group": "noncore"}, "a:core", "b:noncore", "c:")
	generic := func(method string) string {
		for _, name := range []string{constant.Generic, constant.GenericAsync} {
			require.NoError(t, c.invoke(ctx, invocation.NewRPCInvocation(name, []any{method, []string{}, []any{}}, nil)))
		}
		return c.hit()
	}
	assert.Equal(t, "a", generic("Get"))
	assert.Equal(t, "b", generic("Put"))
	for _, args := range [][]any{nil, {1}, {1, 2, 3}, {nil, nil, nil}} { // dubbo's own clusters panic on some
		inv := invocation.NewRPCInvocation(constant.Generic, args, nil)
		c.ref.Grouper.Mark(ctx, inv)
		assert.Equal(t, addresses(c.invokers[:1]), addresses(c.router(t).Route(c.invokers, c.url, inv)), "%v", args)
	}
}

// Methods may be made up without end in generic calls: what is kept of them has one.
func TestMethodsWithoutEnd(t *testing.T) {
	configured(t, "weir: {group: {name: core, match: strict}}")
	c := refer(t, map[string]string{"methods.Put.weir.group": "noncore"}, "a:core", "b:noncore")
	for i := range 3000 {
		require.NoError(t, c.invoke(ctx, invocation.NewRPCInvocation(string(rune('a'+i)), nil, nil)))
	}
	assert.Equal(t, "a", c.hit())
	require.ErrorIs(t, c.call(group.With(ctx, "batch"), nil), call.ErrRejected)
}

// An invocation without attachments, without a context's, and no context at all.
func TestCallsWithNothing(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, nil, "a:core", "b:")
	for range 20 {
		inv := &invocation.RPCInvocation{}
		require.NoError(t, c.invoke(ctx, inv))
		require.Equal(t, "a", c.hit())
		c.ref.Grouper.Mark(nil, &invocation.RPCInvocation{}) //nolint:staticcheck // dubbo may be called with none
	}
	assert.Empty(t, group.Of(&invocation.RPCInvocation{}))
}

// URLs of other making: tags of dubbo's, of Java's, and nearly the right name say nothing.
func TestParamsThatAreNotOurs(t *testing.T) {
	configured(t, "weir: {group: {name: core, match: strict}}")
	for _, query := range []string{"tag=core", "dubbo.tag=core", "application.tag=core", "group=core", "weir-group=core", "weir.Group=core", "weir.group.name=core", "methods.Get.weir.group=core", "Get.weir.group=core", "weir.group=", "weir.group=none"} {
		c := newConsumer(t, nil)
		u, err := common.NewURL("dubbo://127.0.0.1:20880/" + c.service + "?interface=" + c.service + "&" + query)
		require.NoError(t, err)
		i := &instance{BaseInvoker: *base.NewBaseInvoker(u)}
		r := c.router(t)
		got := r.Route([]base.Invoker{i}, c.url, c.marked())
		require.Len(t, got, 1, query)
		assert.NotSame(t, i, got[0], query)
		require.ErrorContains(t, got[0].Invoke(ctx, c.marked()).Error(), "there are 1 without a group", query)
	}
	for _, query := range []string{"dubbo.tag=gray&weir.group=core", "weir.group=core%7Cpay", "weir.group=%20core%20"} { // as a provider in Java would say it
		c := newConsumer(t, nil)
		u, err := common.NewURL("dubbo://127.0.0.1:20880/" + c.service + "?interface=" + c.service + "&side=provider&release=3.2.0&" + query)
		require.NoError(t, err)
		i := &instance{BaseInvoker: *base.NewBaseInvoker(u)}
		inv := invocation.NewRPCInvocation("Get", nil, nil)
		own := "core"
		if query == "weir.group=core%7Cpay" {
			own = "core|pay"
		}
		c.ref.Grouper.Mark(group.With(ctx, own), inv)
		assert.Equal(t, []base.Invoker{i}, c.router(t).Route([]base.Invoker{i}, c.url, inv), query)
	}
}

// Providers that are destroyed while they are routed to.
func TestDestroyedProviders(t *testing.T) {
	configured(t, "weir: {group: {name: core, min-available: 50%}}")
	c := refer(t, nil, "a:core", "b:core", "c:")
	r, inv := c.router(t), c.marked()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 200 {
				list := c.invokers[:2+n%2]
				r.Notify(list)
				if len(r.Route(list, c.url, inv)) == 0 {
					t.Error("nobody")
				}
				runtime.Gosched()
			}
		})
	}
	for _, i := range c.invokers {
		i.Destroy()
		runtime.Gosched()
	}
	wg.Wait()
}

// Two references to one service, of different groups, and two routers of one reference,
// as two registries have them.
func TestTwoReferences(t *testing.T) {
	configured(t, "weir: {group: core}")
	providers := []string{"a:core", "b:noncore", "c:"}
	a, b := refer(t, nil, providers...), refer(t, map[string]string{"weir.group": "noncore"}, providers...)
	var wg sync.WaitGroup
	for _, c := range []*consumer{a, b, a, b} {
		wg.Go(func() {
			for range 100 {
				if err := c.call(ctx, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	assert.Equal(t, [2]string{"a", "b"}, [2]string{a.hit(), b.hit()})
	one, other := a.router(t), a.router(t)
	assert.Equal(t, addresses(a.invokers[:1]), addresses(one.Route(a.invokers, a.url, a.marked())))
	assert.Equal(t, addresses(a.invokers[2:]), addresses(other.Route(a.invokers[1:], a.url, a.marked())))
}

// Lists come and go: nothing is kept of those that are gone.
func TestNothingIsKeptOfListsThatAreGone(t *testing.T) {
	configured(t, "weir: {group: {name: core, min-providers: 1}}")
	c := refer(t, nil, "a:core")
	r, inv := c.router(t), c.marked()
	var mu sync.Mutex
	gone := 0
	const lists = 300
	for n := range lists {
		c.add(n, "x:made-up"+string(rune('a'+n)))
		list := c.invokers[1:]
		runtime.AddCleanup(c.instances[1], func(struct{}) { mu.Lock(); gone++; mu.Unlock() }, struct{}{})
		r.Route(list, c.url, inv)
		list[0].Destroy()
		c.invokers, c.instances = c.invokers[:1:1], c.instances[:1:1]
	}
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return gone > lists/2
	}
	for range 1000 {
		if enough() {
			break
		}
		runtime.GC()
	}
	assert.True(t, enough())
	runtime.KeepAlive(r)
	runtime.KeepAlive(c)
}

// The only one of its group is not available: the call fails as one to it does. dubbo's
// clusters panic when the only one of a list is not, and without groups there were others.
func TestTheOnlyOneIsNotAvailable(t *testing.T) {
	for _, cluster := range []string{"failover", "failfast", "failsafe", "failback", "forking", "broadcast", "available"} {
		for _, balance := range []string{"weir-p2c", "random", "roundrobin"} {
			for _, doc := range []string{"weir: {group: {name: core, match: strict}}", "weir: {group: 'core|pay'}", "weir: {group: {name: x, mode: observe}}", "weir: {group: {name: x, min-providers: 2}}"} {
				configured(t, doc)
				own := "core"
				if strings.Contains(doc, "x") {
					own = ""
				}
				c := refer(t, map[string]string{constant.ClusterKey: cluster, constant.LoadbalanceKey: balance, constant.RetriesKey: "1"}, "a:"+own, "b:noncore")
				c.instances[0].down.Store(true)
				c.instances[0].err = assert.AnError
				for range 3 {
					err := c.call(ctx, nil)
					if cluster == "failsafe" || cluster == "failback" {
						require.NoError(t, err, cluster)
					} else {
						require.ErrorIs(t, err, assert.AnError, "%s %s", cluster, doc)
					}
				}
				require.Equal(t, "a", c.hit(), "%s %s %s", cluster, balance, doc)
				c.instances[0].err = nil
				require.NoError(t, c.call(ctx, nil))
				require.Equal(t, "a", c.hit())
			}
		}
	}
}
