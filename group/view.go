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

	"dubbo.apache.org/dubbo-go/v3/cluster/cluster"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/group/tag"
)

// maxViews bounds the lists of one router that are kept: routers before it may give
// different calls different ones.
const maxViews = 8

// Misnamed is the group of providers that say they are of something that no group can be
// called. No call is of it: whoever wrote that did not mean them to be for everybody.
const Misnamed = "(misnamed)"

// view is a list of invokers, sorted by groups. dubbo makes the slice anew for every
// call, so it is known by its elements. It is immutable but for what is counted again
// when somebody has looked.
type view struct {
	of       *consumer
	invokers []base.Invoker
	list     *tag.List[base.Invoker]
	// clusters is set when the invokers are no providers but clusters of them, of groups
	// or registries, which route by themselves.
	clusters  bool
	remaining []remaining // of the groups by their index
	alone     map[base.Invoker][]base.Invoker
	available func(*tag.Group[base.Invoker]) int
}

func (c *consumer) newView(invokers []base.Invoker) *view {
	v := &view{of: c, invokers: slices.Clone(invokers), clusters: slices.ContainsFunc(invokers, isCluster)}
	if v.clusters {
		return v
	}
	v.list = tag.New(v.invokers, groupOf)
	v.remaining = c.lookedAt(v.list)
	v.available, v.alone = v.availableOf, v.lones()
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
