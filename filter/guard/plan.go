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
	"unicode"
	"unicode/utf8"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/rpcstatus"
)

// maxMethods bounds the methods of a chain whose service does not say which it
// has. Further names share the entry of the unknown.
const maxMethods = 1024

// chain is what a Guard knows of the chain that it stands in, for one version
// of the configuration. All but the methods of an open chain is immutable.
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
	// timed is set when response times are taken.
	timed bool
	// spelled is set when name is as the service, or a caller, spells it.
	spelled bool
	// clock is set when a step asks for the time.
	clock bool
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
		c.skip = aloneIn(names, g.side)
	}
	if g.side == conf.Consumer {
		c.initConsumer(u, old)
	} else {
		c.params = g.providerParams(c, u)
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

// keepNames takes over the methods of a former plan whose calls may wait, so that
// they learn of a limit that has changed, and the spelling of those that have been
// called.
func (c *chain) keepNames(old *chain, put func(string, bool)) {
	if old == nil {
		return
	}
	configured := c.configuredMethods()
	for _, m := range old.distinct() {
		waits := old.waits.Load() && len(m.steps) > 0
		if m.name != call.AnyMethod && m.spelled && (waits || slices.Contains(configured, conf.MethodKey(m.name))) {
			put(m.name, true)
		}
	}
}

// configuredMethods are the names that some source mentions for the service, the
// first letter folded.
func (c *chain) configuredMethods() []string {
	names := c.view.MethodsOf(c.side, c.service)
	for _, s := range []*conf.Service{c.params, c.consumer.declared} {
		if s == nil {
			continue
		}
		for name := range s.Methods {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (m *method) idle() bool { return len(m.steps) == 0 && m.stats == nil }

func (c *chain) refID() uint64 {
	if c.consumer.ref == nil {
		return 0
	}
	return c.consumer.ref.ID
}

// distinct are the methods that the chain has entries for, each once.
func (c *chain) distinct() []*method {
	t := c.methods.Load()
	if t == nil {
		return nil
	}
	seen := map[*method]bool{}
	var out []*method
	t.each(func(_ string, m *method) {
		if !seen[m] {
			seen[m] = true
			out = append(out, m)
		}
	})
	if c.unknown != nil && !c.unknown.idle() {
		out = append(out, c.unknown)
	}
	return out
}

// lookup finds the plan of an invocation's method.
func (c *chain) lookup(inv base.Invocation) *method {
	name := methodName(inv)
	if m := c.methods.Load().find(name); m != nil {
		if !m.spelled {
			return c.spell(m, name)
		}
		return m
	}
	if !c.open || !nameable(name) {
		return c.unknown
	}
	return c.current(c.add(name))
}

// nameable tells whether a name from the network may get an entry of its own: it
// will stand in labels and in lines of the log.
func nameable(name string) bool {
	if name == "" || len(name) > 128 || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// add makes the plan of a name that comes up for the first time.
func (c *chain) add(name string) *method {
	if c.methods.Load().methods >= maxMethods {
		return c.unknown
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.methods.Load()
	if m := old.find(name); m != nil {
		return m
	}
	if old.methods >= maxMethods {
		return c.unknown
	}
	m := c.newMethod(name)
	m.spelled = true
	methods := map[string]*method{}
	old.each(func(name string, m *method) { methods[name] = m })
	for _, spelling := range spellings(name) {
		methods[spelling] = m
	}
	c.methods.Store(newTable(methods, true))
	return m
}

// spell gives a method that was configured the name that it is called by: only its
// first letter's case can differ.
func (c *chain) spell(m *method, name string) *method {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.methods.Load()
	if now := old.find(name); now == nil || now.spelled {
		return m
	}
	m = c.newMethod(name)
	m.spelled = true
	methods := map[string]*method{}
	old.each(func(name string, m *method) { methods[name] = m })
	for _, spelling := range spellings(name) {
		methods[spelling] = m
	}
	c.methods.Store(newTable(methods, true))
	return m
}

// current is the entry of a method that was just added. Where calls of it may
// wait and the configuration has changed meanwhile, nobody has told it: that is
// made up for here.
func (c *chain) current(m *method) *method {
	if !c.waits.Load() || c.version == c.guard.runtime.Store.Version() {
		return m
	}
	now := c.guard.refresh(c)
	if now == c {
		return m
	}
	if m := now.methods.Load().find(m.name); m != nil {
		return m
	}
	return now.current(now.add(m.name))
}

func (c *chain) newMethod(name string) *method {
	m := &method{chain: c, name: name, policy: c.view.ResolveDeclared(c.side, c.service, name, c.params, c.consumer.declared)}
	rt := c.guard.runtime
	site := Site{
		Side: c.side, Service: c.serviceKey, Method: name, Protocol: c.protocol, Reference: c.refID(), Address: c.consumer.address,
		Policy: m.policy, chain: c, runtime: rt, version: c.version,
	}
	limited := false
	for _, r := range buildersOf(c.side) {
		switch {
		case c.guard.policy == r.policy, c.guard.policy == "" && !c.skip[r.policy]:
			m.steps = append(m.steps, r.build(site)...)
		case c.guard.policy == "":
			// It stands in the chain by its own name, and this Guard counts for it.
			limited = limited || len(r.build(site)) > 0
		}
	}
	limited = limited || len(m.steps) > 0
	slices.SortStableFunc(m.steps, func(a, b Step) int { return cmp.Compare(a.Rank, b.Rank) })
	if len(m.steps) > maxSteps {
		panic("weir: more steps in one plan than a call keeps permits for")
	}
	for _, s := range m.steps {
		if s.Waits {
			c.waits.Store(true)
		}
		m.clock = m.clock || s.Clock
	}
	mode, _ := c.view.Mode()
	wanted := m.policy.Stats
	if c.primary && mode != conf.Off && (limited || wanted != nil && *wanted) {
		m.stats = rt.Status.Status(rpcstatus.Key{Side: c.side.String(), Reference: c.refID(), Service: c.serviceKey, Method: name})
		m.timed = wanted == nil || *wanted
	}
	return m
}

// spellings are the names under which a method may be called.
func spellings(name string) []string {
	lower := conf.MethodKey(name)
	if lower == "" || lower[0] < 'a' || lower[0] > 'z' {
		return []string{name}
	}
	return []string{lower, string(lower[0]-'a'+'A') + lower[1:]}
}

// methodName is the name of the method that is called, also of a generic call.
// dubbo's own ActualMethodName panics when the first argument is no string.
func methodName(inv base.Invocation) string {
	name := inv.MethodName()
	if name != constant.Generic && name != constant.GenericAsync {
		return name
	}
	if args := inv.Arguments(); len(args) == 3 {
		if actual, ok := args[0].(string); ok {
			return actual
		}
	}
	return name
}

// providerParams reads the limits in a provider's URL. Of several exports of a
// service on one protocol the newest speaks for all of them.
func (g *Guard) providerParams(c *chain, u *common.URL) *conf.Service {
	parsed := conf.ParseParams(g.side, c.serviceKey, ParamsOf(u))
	if len(parsed.Faults) > 0 {
		g.runtime.ConfigError(&conf.Error{Faults: parsed.Faults})
		if last := g.runtime.declaredParams(g.side, c.serviceKey, u.Protocol); last != nil {
			return last
		}
		return &parsed.Service
	}
	return g.runtime.declare(g.number, g.side, c.serviceKey, u.Protocol, &parsed.Service)
}
