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

package guard

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/loadbalance/pick"
	"github.com/weir-go/weir/rpcstatus"
)

// maxMethods bounds the methods of a chain whose service does not say which it
// has. Further names share the entry of the unknown.
const maxMethods = 1024

// chain is what a Guard knows of the chain that it stands in, for one version
// of the configuration. All but the methods of an open chain, and what is found
// out about calls, is immutable.
type chain struct {
	guard *Guard
	// next is an invoker of the chain: whether it still has a URL tells whether
	// dubbo has destroyed it.
	next       base.Invoker
	url        *common.URL
	version    uint64
	view       *conf.View
	side       conf.Side
	service    conf.ServiceKey
	serviceKey string
	protocol   string
	params     *conf.Service

	// idle is set when no method has a policy or statistics; a consumer's chain
	// then still looks after refusals.
	idle bool
	// waits is set when calls of a method may wait.
	waits atomic.Bool
	// primary is set for the one Guard of a chain that keeps its statistics,
	// stamps forwarded refusals, and rebuilds those that come in.
	primary bool
	// skip are the policies that stand in the chain by their own name.
	skip map[string]bool
	// open is set when the service does not say which methods it has.
	open bool
	// streams are the methods of a provider that it says are streams.
	streams map[string]bool

	methods atomic.Pointer[table]
	unknown *method
	mu      sync.Mutex // guarded by mu: adding a method

	consumer consumerSide
}

// method is the plan of one method.
type method struct {
	chain  *chain
	name   string
	policy conf.Effective
	steps  []Step
	// stats is nil when nothing is kept.
	stats *rpcstatus.Status
	// timed is set when response times are kept, and clocked when they are taken.
	timed, clocked bool
	// spelled is set when name is as the service, or a caller, spells it.
	spelled bool
	// clock is set when a step asks for the time, starts when one wants to know that
	// the call runs, and asksAgain when one does so after a wait.
	clock, starts, asksAgain bool
	// path is how a provider's calls run: with so many steps, or pathBounded.
	path int
	// runFor is how long a call may run before its caller is answered, and overtime the
	// text of that; 0 is as long as it takes.
	runFor   time.Duration
	overtime string
	// record is what the balancer of a consumer's reference goes by, nil where another
	// Guard of the chain keeps it.
	record *pick.Record
	// unary is set once a consumer has called the method as one that is no stream.
	unary atomic.Bool
}

// internalServices are dubbo's own: limiting them would take down what the
// limits protect.
var internalServices = map[string]bool{
	"grpc.health.v1.Health":                      true,
	"grpc.reflection.v1.ServerReflection":        true,
	"grpc.reflection.v1alpha.ServerReflection":   true,
	constant.MetadataServiceName:                 true,
	constant.MetadataServiceV2Name:               true,
	"com.alibaba.dubbo.metadata.MetadataService": true,
}

// Internal reports whether an interface is one of dubbo's own services, which
// are never limited.
func Internal(iface string) bool { return internalServices[iface] }

// compile makes the plan for a URL. A fault in params that were not there when
// the service was exported leaves the last good ones in force.
func (g *Guard) compile(next base.Invoker, u *common.URL, old *chain) *chain {
	view := g.runtime.Store.View()
	c := &chain{guard: g, next: next, url: u, version: view.Version, view: view, side: g.side, protocol: u.Protocol}
	c.service = ServiceOf(u)
	c.serviceKey = c.service.String()
	names := filterNames(u, g.side)
	c.primary = primaryIn(names, g)
	if Internal(c.service.Interface) {
		c.idle, c.primary = true, false
		return c
	}
	g.runtime.serving.Store(true)
	if g.policy == "" {
		c.skip = aloneIn(names, g)
	}
	if g.side == conf.Consumer {
		c.initConsumer(u, old)
	} else {
		c.params = g.providerParams(c, u)
		c.streams = streamsOf(u)
	}
	methods := map[string]*method{}
	known := KnownMethods(u)
	c.open = len(known) == 0
	put := func(name string, spelled bool) {
		if methods[name] != nil {
			return // dubbo lists a Go method under both of its spellings
		}
		m := c.newMethod(name)
		m.spelled = spelled
		for _, spelling := range spellings(name) {
			methods[spelling] = m
		}
	}
	for _, name := range known {
		put(name, true)
	}
	if c.open {
		c.keepNames(old, put)
		// Names with a policy of their own get their place before any other.
		for _, name := range c.configuredMethods() {
			put(name, false)
		}
	}
	c.unknown = c.newMethod(call.AnyMethod)
	c.unknown.spelled = true
	c.methods.Store(newTable(methods, c.open))
	c.idle = c.unknown.idle() && !slices.ContainsFunc(c.distinct(), func(m *method) bool { return !m.idle() })
	g.runtime.chains.Get(g.runtime.lastChain.Add(1), func() *chain { return c })
	return c
}

func (m *method) idle() bool { return len(m.steps) == 0 && m.stats == nil }

func (c *chain) refID() uint64 {
	if c.consumer.ref == nil {
		return 0
	}
	return c.consumer.ref.ID
}

func (c *chain) newMethod(name string) *method {
	m := &method{chain: c, name: name, policy: c.view.ResolveDeclared(c.side, c.service, name, c.params, c.consumer.declared)}
	rt := c.guard.runtime
	site := Site{
		Side: c.side, Service: c.serviceKey, Method: name, Protocol: c.protocol, Reference: c.refID(), Address: c.consumer.address,
		Policy: m.policy, Streams: c.streams[conf.MethodKey(name)], chain: c, runtime: rt, version: c.version,
	}
	limited := false
	for _, r := range buildersOf(c.side) {
		switch {
		case c.guard.policy == r.policy, c.guard.policy == "" && !c.skip[r.policy]:
			m.steps = append(m.steps, r.build(site)...)
		case c.guard.policy == "":
			// It stands in the chain by its own name, and this Guard counts for it.
			limited = limited || r.set(m.policy)
		}
	}
	limited = limited || len(m.steps) > 0
	slices.SortStableFunc(m.steps, func(a, b Step) int { return cmp.Compare(a.Rank, b.Rank) })
	m.steps = withLooks(m.steps)
	if len(m.steps) > maxSteps {
		panic("weir: more steps in one plan than a call keeps permits for")
	}
	for _, s := range m.steps {
		if s.Waits {
			c.waits.Store(true)
		}
		m.clock = m.clock || s.Clock
		m.starts = m.starts || s.Start != nil
		m.asksAgain = m.asksAgain || s.Again != nil
	}
	m.boundRun()
	if c.side == conf.Consumer && c.primary {
		m.record = c.consumer.peer.Record(RecordOf(name))
	}
	mode, _ := c.view.Mode()
	wanted := m.policy.Stats
	if c.primary && mode != conf.Off && (limited || wanted != nil && *wanted) {
		m.stats = rt.Status.Status(rpcstatus.Key{Side: c.side.String(), Reference: c.refID(), Service: c.serviceKey, Method: name})
		m.timed = wanted == nil || *wanted
	}
	// On the dubbo protocol a provider finds out by the time alone that an answer was late.
	byTime := c.side == conf.Provider && c.protocol == constant.DubboProtocol
	m.asksAgain = m.asksAgain && slices.ContainsFunc(m.steps, func(s Step) bool { return s.Waits })
	if m.asksAgain && m.path != pathBounded {
		m.path = few // the paths of fewer steps do not ask again
	}
	m.clocked = m.timed || slices.ContainsFunc(m.steps, func(s Step) bool { return s.Ended != nil && (byTime || !s.Untimed) })
	return m
}

// withLooks has those steps that could refuse a call after it has waited look before
// it does.
func withLooks(steps []Step) []Step {
	wait := slices.IndexFunc(steps, func(s Step) bool { return s.Waits && !s.Observe })
	if wait < 0 {
		return steps
	}
	var looks []Step
	for _, s := range steps[wait+1:] {
		if s.Look != nil && !s.Observe {
			looks = append(looks, Step{
				Policy: s.Policy, Rank: RankLook, PerInstance: s.PerInstance,
				Take: func(c Call) (Permit, *Refusal) { return Permit{}, s.Look(c) },
			})
		}
	}
	return slices.Insert(steps, wait, looks...)
}

// providerParams reads the limits in a provider's URL. Of several exports of a
// service on one protocol the newest speaks for all of them.
func (g *Guard) providerParams(c *chain, u *common.URL) *conf.Service {
	parsed := conf.ParseParams(g.side, c.serviceKey, OwnParamsOf(u))
	if len(parsed.Faults) > 0 {
		g.runtime.ConfigError(&conf.Error{Faults: parsed.Faults})
		if last := g.runtime.declaredParams(g.side, c.serviceKey, u.Protocol); last != nil {
			return last
		}
		return &parsed.Service
	}
	return g.runtime.declare(g.number, g.side, c.serviceKey, u.Protocol, &parsed.Service)
}
