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

package group

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3/cluster/cluster"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group/tag"
	"github.com/weir-go/weir/loadbalance/pick"
)

const (
	// maxViews bounds the lists of one router that are kept: routers before it may give
	// different calls different ones.
	maxViews = 8
	// sampleEvery is how often it is looked which providers of a group are available.
	// dubbo may have to connect to tell.
	sampleEvery = time.Second
)

// Misnamed is the group of providers that say they are of something that no group can be
// called. No call is of it: whoever wrote that did not mean them to be for everybody.
const Misnamed = "(misnamed)"

// view is a list of invokers, sorted by groups. dubbo makes the slice anew for every
// call, so it is known by its elements. It is immutable but for the samples.
type view struct {
	of       *consumer
	invokers []base.Invoker
	list     *tag.List[base.Invoker]
	// clusters is set when the invokers are no providers but clusters of them, of groups
	// or registries, which route by themselves.
	clusters  bool
	samples   []sample
	available func(*tag.Group[base.Invoker]) int
}

// sample is how many providers of a group are available.
type sample struct {
	n     atomic.Int64
	until atomic.Int64 // on the clock of guard.Now
	busy  atomic.Bool
}

func (c *consumer) newView(invokers []base.Invoker) *view {
	v := &view{of: c, invokers: slices.Clone(invokers), clusters: slices.ContainsFunc(invokers, isCluster)}
	if v.clusters {
		return v
	}
	v.list = tag.New(v.invokers, groupOf)
	v.samples = make([]sample, v.list.Groups())
	for i := range v.samples {
		v.samples[i].n.Store(int64(len(v.list.Group(i).Members)))
	}
	v.available = v.sampled
	c.newest.Store(v)
	return v
}

// isCluster tells whether an invoker stands for several providers.
func isCluster(i base.Invoker) bool {
	if _, ok := i.(*cluster.InterceptorInvoker); ok {
		return true
	}
	u := i.GetURL()
	return u != nil && (u.Protocol == constant.RegistryProtocol || u.Protocol == constant.ServiceRegistryProtocol)
}

// groupOf is the group that a provider says it belongs to.
func groupOf(i base.Invoker) string {
	u := i.GetURL()
	if u == nil {
		return "" // destroyed: the list will not come again
	}
	own := strings.TrimSpace(u.GetParam(conf.GroupKey, ""))
	if own == "" {
		return ""
	}
	name, ok := word(own)
	if !ok {
		return Misnamed
	}
	return named(name)
}

// stale reports whether dubbo has destroyed one of the invokers, so that the list will
// not come again.
func (v *view) stale() bool {
	return slices.ContainsFunc(v.invokers, func(i base.Invoker) bool { return i.GetURL() == nil })
}

// sampled is how many providers of a group were available when it was looked last. All
// are until then.
func (v *view) sampled(g *tag.Group[base.Invoker]) int {
	s := &v.samples[g.Index]
	if now := int64(guard.Now()); now >= s.until.Load() && s.busy.CompareAndSwap(false, true) {
		go v.sample(g, s)
	}
	return int(s.n.Load())
}

// sample looks. A provider is available when dubbo says so and nobody of this process
// keeps calls from it, as an open breaker does.
func (v *view) sample(g *tag.Group[base.Invoker], s *sample) {
	defer func() {
		if r := recover(); r != nil {
			logger.Errorf("[Weir][Group] cannot tell which providers are available, service=%s err=%v", v.of.name, r)
		}
		s.until.Store(int64(guard.Now() + sampleEvery))
		s.busy.Store(false)
	}()
	n := int64(0)
	for _, i := range g.Members {
		if i.IsAvailable() && !v.of.avoided(i) {
			n++
		}
	}
	s.n.Store(n)
}

// avoided tells whether the load balances keep calls from a provider.
func (c *consumer) avoided(i base.Invoker) (avoided bool) {
	u := i.GetURL()
	if u == nil {
		return true
	}
	now := guard.Now()
	c.ref.Peers.Instance(u.Location).Records(func(r *pick.Record) {
		avoided = avoided || r.AvoidedFor(now) > 0
	})
	return avoided
}
