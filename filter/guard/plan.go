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
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/rpcstatus"
)

// maxMethods bounds the methods of a chain whose service does not say which it
// has. Further names share the entry of the unknown.
const maxMethods = 1024

// chain is what a Guard knows of the chain that it stands in, for one version
// of the configuration. All but the methods of an open chain is immutable.
type chain struct {
	guard      *Guard
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
	// clock is set when a step asks for the time.
	clock bool
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
func (g *Guard) compile(u *common.URL, old *chain) *chain {
	view := g.runtime.Store.View()
	c := &chain{guard: g, url: u, version: view.Version, view: view, side: g.side, protocol: u.Protocol}
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
		c.skip = aloneIn(names)
	}
	if g.side == conf.Consumer {
		c.initConsumer(u, old)
	} else {
		c.params = g.providerParams(c, u)
	}
	methods := map[string]*method{}
	known := KnownMethods(u)
	c.open = len(known) == 0
	for _, name := range known {
		if methods[name] != nil {
			continue // dubbo lists a Go method under both of its spellings
		}
		m := c.newMethod(name)
		for _, spelling := range spellings(name) {
			methods[spelling] = m
		}
	}
	c.unknown = c.newMethod(call.AnyMethod)
	c.methods.Store(newTable(methods))
	c.idle = c.unknown.idle() && !slices.ContainsFunc(c.distinct(), func(m *method) bool { return !m.idle() })
	if c.idle && c.open {
		// No name is known beforehand, but only names that some source mentions
		// can have a policy of their own.
		c.idle = len(view.MethodsOf(g.side, c.service)) == 0 && (c.params == nil || len(c.params.Methods) == 0)
	}
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
		return m
	}
	if !c.open || !nameable(name) {
		return c.unknown
	}
	return c.add(name)
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
	methods := map[string]*method{}
	old.each(func(name string, m *method) { methods[name] = m })
	for _, spelling := range spellings(name) {
		methods[spelling] = m
	}
	c.methods.Store(newTable(methods))
	return m
}

func (c *chain) newMethod(name string) *method {
	m := &method{chain: c, name: name, policy: c.view.Resolve(c.side, c.service, name, c.params)}
	rt := c.guard.runtime
	site := Site{
		Side: c.side, Service: c.serviceKey, Method: name, Protocol: c.protocol, Reference: c.refID(),
		Policy: m.policy, runtime: rt, version: c.version,
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

// ServiceOf is the service that a URL stands for.
func ServiceOf(u *common.URL) conf.ServiceKey {
	iface := u.GetParam(constant.InterfaceKey, "")
	if iface == "" {
		iface = trimPath(u.Path)
	}
	k := conf.ServiceKey{Group: u.GetParam(constant.GroupKey, ""), Interface: iface, Version: u.GetParam(constant.VersionKey, "")}
	if k.Version == "0.0.0" {
		k.Version = ""
	}
	return k
}

// KnownMethods are those that the service of a URL says it has, none when it
// does not say.
func KnownMethods(u *common.URL) []string {
	if v, ok := u.GetAttribute(constant.ServiceInfoKey); ok {
		if info, ok := v.(*common.ServiceInfo); ok && info != nil {
			names := make([]string, 0, len(info.Methods))
			for i := range info.Methods {
				names = append(names, info.Methods[i].Name)
			}
			return names
		}
	}
	var names []string
	for _, name := range u.Methods {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	if names == nil {
		for _, name := range strings.Split(u.GetParam(constant.MethodsKey, ""), ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func filterNames(u *common.URL, side conf.Side) []string {
	key := constant.ServiceFilterKey
	if side == conf.Consumer {
		key = constant.ReferenceFilterKey
	}
	var names []string
	for _, name := range strings.Split(u.GetParam(key, ""), ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// alone are the filters of a single policy, by filter name.
var alone struct {
	sync.RWMutex
	policies map[string]string
}

// RegisterAlone notes that a filter's name stands for a single policy.
func RegisterAlone(filter, policy string) {
	alone.Lock()
	defer alone.Unlock()
	if alone.policies == nil {
		alone.policies = map[string]string{}
	}
	alone.policies[filter] = policy
}

// SideOf is the side of one of Weir's own filters, by its name in a chain.
func SideOf(filter string) (side conf.Side, ours bool) {
	switch filter {
	case ProviderFilter:
		return conf.Provider, true
	case ConsumerFilter:
		return conf.Consumer, true
	}
	alone.RLock()
	defer alone.RUnlock()
	_, ours = alone.policies[filter]
	return conf.Provider, ours
}

func aloneIn(names []string) map[string]bool {
	alone.RLock()
	defer alone.RUnlock()
	out := map[string]bool{}
	for _, name := range names {
		if policy, ok := alone.policies[name]; ok {
			out[policy] = true
		}
	}
	return out
}

// primaryIn tells whether g is the chain's first filter of Weir, or the umbrella.
func primaryIn(names []string, g *Guard) bool {
	umbrella := ProviderFilter
	if g.side == conf.Consumer {
		umbrella = ConsumerFilter
	}
	if g.policy == "" {
		return true
	}
	if slices.Contains(names, umbrella) {
		return false
	}
	alone.RLock()
	defer alone.RUnlock()
	for _, name := range names {
		if _, ok := alone.policies[name]; ok {
			return name == g.name
		}
	}
	return true
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

// ParamsOf are a URL's params as a flat map.
func ParamsOf(u *common.URL) map[string]string {
	values := u.GetParams()
	out := make(map[string]string, len(values))
	for k, v := range values {
		if len(v) > 0 {
			out[k] = v[0]
		}
	}
	return out
}

// consumerSide is what a consumer's chain knows besides.
type consumerSide struct {
	ref      *retry.Reference
	address  string
	failover bool
}

func (c *chain) initConsumer(u *common.URL, old *chain) {
	ref := retry.Of(u)
	switch {
	case ref != nil:
	case old != nil && old.consumer.ref != nil:
		ref = old.consumer.ref
	default:
		parsed := conf.ParseParams(conf.Consumer, c.serviceKey, nil)
		ref = retry.NewReference(&parsed.Service)
	}
	c.params = ref.Params
	ref.SetRatio(c.version, c.view.Resolve(conf.Consumer, c.service, "", c.params).RetryRefused)
	// The reference's own cluster: a provider's may have been merged over it.
	cluster := ref.Cluster
	if cluster == "" {
		cluster = u.GetParam(constant.ClusterKey, constant.ClusterKeyFailover)
	}
	c.consumer = consumerSide{ref: ref, address: u.Location, failover: cluster == "" || cluster == constant.ClusterKeyFailover}
}
