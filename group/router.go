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
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	dubbo "dubbo.apache.org/dubbo-go/v3/cluster/router"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group/tag"
	"github.com/weir-go/weir/internal/retry"
)

// RouterName is the name under which the router is registered with dubbo.
const RouterName = "weir-group"

// factory makes the routers of references.
type factory struct{}

// NewPriorityRouter returns the router of a reference, nil for one of dubbo's own.
func (factory) NewPriorityRouter(u *common.URL) (dubbo.PriorityRouter, error) {
	ref := retry.Of(u)
	if ref == nil {
		return nil, nil //nolint:nilnil // that is how dubbo is told that there is none
	}
	c := consumerOf(ref)
	if c == nil {
		return nil, nil //nolint:nilnil // as above
	}
	return &router{consumer: c}, nil
}

// router sends each call of one list of providers to those of its group. It implements
// dubbo's PriorityRouter and is safe for concurrent use.
type router struct {
	consumer *consumer
	views    atomic.Pointer[[]*view] // the newest come first
	mu       sync.Mutex              // guarded by mu: making views
	// some is set while the directory has any providers.
	some atomic.Bool
}

// URL is nil, as that of dubbo's own routers is.
func (r *router) URL() *common.URL { return nil }

// Priority puts the router behind all others: what it returns nobody takes from again.
func (r *router) Priority() int64 { return math.MaxInt64 }

// Notify is told of a new list. The next call brings it along, as far as the routers
// before leave it.
func (r *router) Notify(invokers []base.Invoker) { r.some.Store(len(invokers) > 0) }

// Route returns the invokers that the call may go to. It never returns an empty list
// unless a registry has none either.
func (r *router) Route(invokers []base.Invoker, u *common.URL, inv base.Invocation) []base.Invoker {
	c := r.consumer
	p := c.plan(guard.MethodOf(inv))
	if p.mode == conf.Off {
		return invokers
	}
	group := p.of(inv)
	if len(invokers) == 0 {
		if !r.some.Load() {
			return invokers // a registry knows of none, and dubbo says so
		}
		c.count(group, group == p.name, tag.None)
		return p.nobody(c, group, nil, u)
	}
	v := r.view(invokers)
	if v.clusters {
		return invokers
	}
	members, result := v.list.Select(group, p.rule, v.available)
	c.count(group, group == p.name || v.list.Has(group), result)
	switch {
	case result != tag.None:
		return v.safe(members)
	case p.mode == conf.Observe:
		p.refusal.Refused(context.Background(), inv, true) // a router gets no context
		members, _ = v.list.Select("", tag.Rule{UngroupedAny: true}, nil)
		return v.safe(members)
	}
	return p.nobody(c, group, v, v.invokers[0].GetURL())
}

// of is the group of a call, which Mark has seen. Most calls are of the configured one,
// which needs no look at what it is called.
func (p *plan) of(inv base.Invocation) string {
	value := inv.GetAttachmentInterface(AttachmentKey)
	if s, ok := value.(string); ok && s == p.name {
		return s
	}
	name, _ := text(value)
	return named(name)
}

// view is that of the invokers.
func (r *router) view(invokers []base.Invoker) *view {
	if views := r.views.Load(); views != nil {
		for _, v := range *views {
			if slices.Equal(v.invokers, invokers) {
				return v
			}
		}
	}
	return r.look(invokers)
}

// look makes the view of a list that was not met before.
func (r *router) look(invokers []base.Invoker) *view {
	r.mu.Lock()
	defer r.mu.Unlock()
	var views []*view
	if old := r.views.Load(); old != nil {
		for _, v := range *old {
			if slices.Equal(v.invokers, invokers) {
				return v
			}
		}
		views = *old
	}
	v := r.consumer.newView(invokers)
	next := []*view{v}
	for _, old := range views {
		if len(next) < maxViews && !old.stale() {
			next = append(next, old)
		}
	}
	r.views.Store(&next)
	return v
}
