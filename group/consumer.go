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
	"cmp"
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group/tag"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/weakmap"
)

const (
	// Policy is the policy's name, and the guard's in a refusal.
	Policy = conf.GroupGuard
	// ReasonNoProvider is a call for whose group there is no provider.
	ReasonNoProvider = "no-provider"

	// maxMethods bounds the methods with a plan of their own: names come from the
	// program, and by generic calls perhaps from elsewhere.
	maxMethods = 1024
)

// consumer is what the groups of one reference go by. It is safe for concurrent use.
type consumer struct {
	runtime *guard.Runtime
	ref     *retry.Reference
	service conf.ServiceKey
	name    string // of the service

	plans  atomic.Pointer[plans]
	counts atomic.Pointer[tally]
	// newest is the list of providers that was met last.
	newest atomic.Pointer[view]

	mu       sync.Mutex
	refusals map[string]*guard.Refusal // guarded by mu: what calls of a method are refused by
	looked   map[string]*looked        // guarded by mu: what is known of groups of providers
}

// plans are the plans of one version of the configuration. They are immutable.
type plans struct {
	version  uint64
	byMethod map[string]*plan
}

// plan is what holds for the calls of one method.
type plan struct {
	method string
	mode   conf.Mode
	// group is what calls carry that have none, as an attachment and as a text.
	group    any
	name     string
	rule     tag.Rule
	refusal  *guard.Refusal
	prepared atomic.Pointer[nobody] // the refusal that was made last
}

// consumers are those of all references, by number.
var consumers weakmap.Map[uint64, consumer]

type ownerKey struct{}

func newConsumer(rt *guard.Runtime, service conf.ServiceKey, ref *retry.Reference) *consumer {
	c := consumers.Get(ref.ID, func() *consumer {
		return &consumer{runtime: rt, ref: ref, service: service, name: service.String(), refusals: map[string]*guard.Refusal{}, looked: map[string]*looked{}}
	})
	ref.Own(ownerKey{}, c)
	return c
}

func consumerOf(ref *retry.Reference) *consumer {
	c, _ := ref.Owned(ownerKey{}, func() any { return (*consumer)(nil) }).(*consumer)
	return c
}

// plan is that of a method.
func (c *consumer) plan(method string) *plan {
	p := c.plans.Load()
	if p != nil && p.version == c.runtime.Store.Version() {
		if m := p.byMethod[method]; m != nil {
			return m
		}
	}
	return c.makePlan(method)
}

func (c *consumer) makePlan(method string) *plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	view := c.runtime.Store.View()
	next := &plans{version: view.Version}
	if p := c.plans.Load(); p != nil && p.version == view.Version {
		if m := p.byMethod[method]; m != nil {
			return m
		}
		if len(p.byMethod) >= maxMethods {
			method = call.AnyMethod
			if m := p.byMethod[method]; m != nil {
				return m
			}
		}
		next.byMethod = maps.Clone(p.byMethod)
	} else {
		next.byMethod = map[string]*plan{}
	}
	e := view.Resolve(conf.Consumer, c.service, method, c.ref.Params).Group
	global, _ := view.Mode()
	m := &plan{
		method: method, mode: cmp.Or(e.Mode, global), name: e.Name, group: e.Name, refusal: c.refusalLocked(method),
		rule: tag.Rule{Strict: e.Strict, Any: e.Any, UngroupedAny: e.UngroupedAny, MinShare: e.MinAvailable, MinMembers: e.MinProviders},
	}
	next.byMethod[method] = m
	c.plans.Store(next)
	return m
}

// refusalLocked is what calls of a method are refused by, which keeps their counts.
func (c *consumer) refusalLocked(method string) *guard.Refusal {
	if r := c.refusals[method]; r != nil {
		return r
	}
	if len(c.refusals) > maxMethods {
		method = call.AnyMethod
		if r := c.refusals[method]; r != nil {
			return r
		}
	}
	r := c.runtime.NewRefusal(c.name, method, c.reject(method), tag.ErrNoProvider)
	c.refusals[method] = r
	return r
}

func (c *consumer) reject(method string) call.RejectError {
	return call.RejectError{Guard: Policy, Resource: call.Resource(c.name, method), Reason: ReasonNoProvider, Limit: 1}
}

// Mark has the call carry its group: the one set for it, else the one that it came with,
// which is what somebody further up the call tree carried, else the configured one.
func (c *consumer) Mark(ctx context.Context, inv base.Invocation) {
	p := c.plan(guard.MethodOf(inv))
	if p.mode == conf.Off {
		return
	}
	carried := only(inv, inv.GetAttachmentInterface(AttachmentKey))
	var name string
	var found bool
	if put, ok := inv.GetAttribute(markKey); !ok || put == nil || put != carried { // else the program uses the invocation again
		name, found = text(carried)
	}
	if ctx != nil {
		if set, ok := ctx.Value(contextKey{}).(string); ok {
			name, found = set, true
		} else if !found {
			name, found = inContext(ctx)
		}
	}
	if !found {
		if p.name != "" {
			inv.SetAttachment(AttachmentKey, p.group)
			inv.SetAttribute(markKey, p.group)
			return
		}
		name = ""
	}
	carry(ctx, inv, carried, named(name))
}

// carry puts a group that is the call's own into its invocation, which has carried
// another.
func carry(ctx context.Context, inv base.Invocation, carried any, name string) {
	asText, same := carried.(string)
	switch {
	case asText != name, !same && carried != nil:
		inv.SetAttachment(AttachmentKey, name)
	case carried == nil && ctx != nil && find(triple_protocol.ExtractFromOutgoingContext(ctx)) != nil:
		inv.SetAttachment(AttachmentKey, name) // it goes out over the header
	}
	if put, ok := inv.GetAttribute(markKey); ok && put != nil {
		inv.SetAttribute(markKey, nil) // of a former call
	}
}
