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
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/cluster/directory/static"
	"dubbo.apache.org/dubbo-go/v3/cluster/router"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group"
	"github.com/weir-go/weir/group/tag"
)

func (c *consumer) router(t testing.TB) router.PriorityRouter {
	t.Helper()
	r, err := extension.GetRouterFactories()[group.RouterName]().NewPriorityRouter(c.url)
	require.NoError(t, err)
	require.NotNil(t, r)
	return r
}

func (c *consumer) marked() base.Invocation {
	inv := invocation.NewRPCInvocation("Get", []any{1}, nil)
	c.ref.Grouper.Mark(ctx, inv)
	return inv
}

// A group is relieved while too few of its providers are available, and not for longer.
func TestTooFewAreAvailable(t *testing.T) {
	configured(t, "weir: {group: {name: core, min-available: 60%}}")
	synctest.Test(t, func(t *testing.T) {
		c := refer(t, nil, "a:core", "b:core", "c:", "d:noncore")
		r, inv := c.router(t), c.marked()
		goes := func() int {
			r.Route(c.invokers, c.url, inv)
			synctest.Wait()
			return len(r.Route(c.invokers, c.url, inv))
		}
		assert.Equal(t, 2, goes())
		c.instances[0].down.Store(true)
		assert.Equal(t, 2, goes(), "nobody looks before a second has passed")
		time.Sleep(time.Second + time.Millisecond) //nolint:forbidigo // synctest
		assert.Equal(t, 3, goes(), "its own and the untagged")
		c.instances[0].down.Store(false)
		time.Sleep(time.Second + time.Millisecond) //nolint:forbidigo // synctest
		assert.Equal(t, 2, goes())
		// One that the load balances avoid, as with an open breaker, is not available.
		c.ref.Peers.Instance(c.instances[1].GetURL().Location).Record("get").Avoid(guard.Now() + time.Hour)
		time.Sleep(time.Second + time.Millisecond) //nolint:forbidigo // synctest
		assert.Equal(t, 3, goes())
	})
}

// To look takes as long as to connect: no call waits for it.
func TestNobodyWaitsForTheLook(t *testing.T) {
	configured(t, "weir: {group: {name: core, min-available: 60%}}")
	synctest.Test(t, func(t *testing.T) {
		c := newConsumer(t, nil)
		var looks atomic.Int64
		for range 2 {
			u := common.NewURLWithOptions(common.WithIp("127.0.0.1"), common.WithPort("1"), common.WithParamsValue("weir.group", "core")).MergeURL(c.url)
			c.invokers = append(c.invokers, &connecting{*base.NewBaseInvoker(u), &looks})
		}
		r, inv, began := c.router(t), c.marked(), time.Now()
		for range 100 {
			assert.Len(t, r.Route(c.invokers, c.url, inv), 2)
		}
		assert.Zero(t, time.Since(began))
		time.Sleep(time.Minute) //nolint:forbidigo // synctest
		assert.Equal(t, int64(2), looks.Load(), "one looks, whoever else comes")
	})
}

// connecting takes its time to say that it is not available.
type connecting struct {
	base.BaseInvoker
	looks *atomic.Int64
}

func (c *connecting) IsAvailable() bool {
	c.looks.Add(1)
	time.Sleep(3 * time.Second) //nolint:forbidigo // synctest
	return false
}

// Lists change, by turns and for good; each call goes by its own.
func TestListsAreKnownByTheirElements(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, nil, "a:core", "b:core", "c:", "d:noncore", "e:core", "f:")
	r, inv := c.router(t), c.marked()
	lists := [][]int{{0, 1, 2}, {0, 2, 4}, {1, 2}, {2, 5}, {0}, {4, 3, 2, 1, 0}, {5, 0}, {3, 5}, {1, 4}, {2, 1}, {0, 1, 2, 3, 4, 5}}
	for range 500 {
		list := lists[rand.IntN(len(lists))]
		var invokers, want, untagged []base.Invoker
		for _, i := range list {
			invokers = append(invokers, c.invokers[i])
			switch i {
			case 0, 1, 4:
				want = append(want, c.invokers[i])
			case 2, 5:
				untagged = append(untagged, c.invokers[i])
			}
		}
		if want == nil {
			want = untagged
		}
		require.Equal(t, addresses(want), addresses(r.Route(invokers, c.url, inv)), "%v", list)
	}
}

// A call allocates nothing while the list is the same.
func TestARoutedCallAllocatesNothing(t *testing.T) {
	for _, doc := range []string{"weir: {group: core}", "weir: {group: {name: core, match: strict}}", "weir: {group: {name: core, min-providers: 3}}", "weir: {group: {name: other, match: strict}}"} {
		configured(t, doc)
		c := refer(t, nil, "a:core", "b:core", "c:", "d:noncore")
		r, inv := c.router(t), c.marked()
		route := func() {
			c.ref.Grouper.Mark(ctx, inv)
			r.Route(c.invokers, c.url, inv)
		}
		route()
		assert.LessOrEqual(t, testing.AllocsPerRun(1000, route), 0.01, doc)
	}
}

// A reference to several groups or registries is a cluster of clusters: what is inside
// routes, not what chooses among them.
func TestClustersOfClusters(t *testing.T) {
	configured(t, "weir: {group: {name: core, match: strict}}")
	c := newConsumer(t, map[string]string{constant.RetriesKey: "5"})
	var outer []base.Invoker
	failover, err := extension.GetCluster("failover")
	require.NoError(t, err)
	for g, providers := range [][]string{{"a:", "b:core"}, {"c:noncore", "d:"}} {
		from := len(c.invokers)
		for n, p := range providers {
			c.add(g*10+n, p)
		}
		outer = append(outer, failover.Join(static.NewDirectory(c.invokers[from:])))
	}
	c.cluster = failover.Join(static.NewDirectory(outer))
	served := 0
	for range 50 {
		if err := c.call(ctx, nil); err == nil {
			served++
		} else {
			require.ErrorIs(t, err, call.ErrRejected)
		}
	}
	assert.Equal(t, "b", c.hit())
	assert.Greater(t, served, 45, "failover goes on to the cluster that has somebody")
}

func TestStates(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, nil, "a:core", "b:core", "c:", "d:noncore")
	for range 3 {
		require.NoError(t, c.call(ctx, nil))
	}
	require.NoError(t, c.call(group.With(ctx, "core|pay"), nil))
	require.NoError(t, c.call(group.With(ctx, "none"), nil))
	require.NoError(t, c.call(group.With(ctx, "batch"), nil))
	got := map[string]group.State{}
	for _, s := range group.States(guard.Process()) {
		if s.Service == c.service {
			assert.Equal(t, c.ref.ID, s.Reference)
			got[s.Group] = s
		}
	}
	assert.Equal(t, int64(3), got["core"].Routed[tag.Own])
	assert.Equal(t, int64(1), got["core|pay"].Routed[tag.ByWider])
	assert.Equal(t, int64(1), got[group.Ungrouped].Routed[tag.Untagged])
	assert.Equal(t, int64(1), got["batch"].Routed[tag.Untagged])
	assert.Equal(t, [3]int{2, 1, 1}, [3]int{got["core"].Providers, got[group.Ungrouped].Providers, got["noncore"].Providers})
	runtime.KeepAlive(c)
}

// Names of groups come with calls: there is an end to those that are told apart.
func TestTheGroupsThatAreCountedAreBounded(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, nil, "a:")
	for i := range 1000 {
		require.NoError(t, c.call(ctx, map[string]any{group.AttachmentKey: time.Duration(i).String()}))
	}
	n, sum := 0, int64(0)
	for _, s := range group.States(guard.Process()) {
		if s.Service == c.service {
			n++
			sum += s.Routed[tag.Untagged]
		}
	}
	assert.LessOrEqual(t, n, 66)
	assert.Equal(t, int64(1000), sum)
	runtime.KeepAlive(c)
}

// Calls, changes of the configuration and of lists, looks, all at once.
func TestAllAtOnce(t *testing.T) {
	docs := []string{"weir: {group: core}", "weir: {group: {name: core, min-available: 1}}", "weir: {group: {name: core, match: strict}}", "weir: {mode: off, group: core}"}
	configured(t, docs[0])
	c := refer(t, nil, "a:core", "b:core", "c:", "d:noncore")
	r := c.router(t)
	var wg sync.WaitGroup
	var stop atomic.Bool
	for g := range 4 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				inv := c.marked()
				if got := r.Route(c.invokers[:3+(g+i)%2], c.url, inv); len(got) == 0 {
					t.Error("nobody")
				}
				_ = c.call(ctx, nil)
				group.States(guard.Process())
			}
		})
	}
	for i := range 200 {
		configured(t, docs[i%len(docs)])
		c.instances[i%4].down.Store(i%3 == 0)
		runtime.Gosched()
	}
	stop.Store(true)
	wg.Wait()
}
