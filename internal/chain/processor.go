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

package chain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
)

// Processor is dubbo's config post-processor. It is safe for concurrent use.
type Processor struct {
	runtime *guard.Runtime
	// prepare runs before each URL is looked at: it reads the configuration
	// once and installs what must stand before a transport is made.
	prepare func() error
	// Service is told of each service that is about to be exported, and says what is wrong
	// with its registries.
	Service func(u *common.URL) error

	replacements *replacements
	looked       atomic.Bool // what was asked for by then has been replaced

	mu       sync.Mutex
	exported map[string]map[string]export // guarded by mu: service -> protocol
	// met are the services that were exported or referred to, and their interfaces.
	met map[conf.Side]map[string]bool // guarded by mu
}

// NewProcessor returns a post-processor.
func NewProcessor(rt *guard.Runtime, prepare func() error) *Processor {
	p := &Processor{
		runtime: rt, prepare: prepare, replacements: &ofProcess, exported: map[string]map[string]export{},
		met: map[conf.Side]map[string]bool{conf.Provider: {}, conf.Consumer: {}},
	}
	rt.Follow(p.follow)
	return p
}

// WarnUnmatched tells of services that are configured on a side on which others
// were exported or referred to, but they were not, and of fallbacks that nobody has
// registered. It is for once all are.
func (p *Processor) WarnUnmatched() {
	p.runtime.WarnFallbacks()
	view := p.runtime.Store.View()
	p.mu.Lock()
	defer p.mu.Unlock()
	for side, met := range p.met {
		for _, name := range view.ServicesOf(side) {
			key, _ := conf.ParseServiceKey(name)
			if len(met) > 0 && !met[name] && !met[anyGroup+key.Interface] {
				p.runtime.Warn(fmt.Sprintf("side=%s service=%s is configured, and this process has none of that name; it has: %s",
					side, name, strings.Join(slices.Sorted(maps.Keys(met)), ", ")))
			}
		}
	}
}

func (p *Processor) meet(side conf.Side, service conf.ServiceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.met[side][service.String()] = true
	p.met[side][service.Interface] = true
	if strings.ContainsAny(service.Group, ",*") {
		p.met[side][anyGroup+service.Interface] = true // a reference to several groups
	}
}

const anyGroup = "*/"

// PostProcessServiceConfig looks at a service that is about to be exported.
func (p *Processor) PostProcessServiceConfig(u *common.URL) { p.look(conf.Provider, u) }

// PostProcessReferenceConfig looks at a reference that is about to be made.
func (p *Processor) PostProcessReferenceConfig(u *common.URL) { p.look(conf.Consumer, u) }

func (p *Processor) look(side conf.Side, u *common.URL) {
	service := guard.ServiceOf(u)
	if guard.Internal(service.Interface) {
		return
	}
	p.meet(side, service)
	var faults []conf.Fault
	p.add(&faults, p.prepare())
	view := p.runtime.Store.View()
	faults = append(faults, p.replace(view)...)
	if side == conf.Provider {
		if p.Service != nil {
			p.add(&faults, p.Service(u))
		}
		faults = append(faults, p.translate(service, u)...)
	}
	params := guard.OwnParamsOf(u)
	parsed := conf.ParseParams(side, service.String(), params)
	faults = append(faults, parsed.Faults...)
	p.warn(parsed.Warnings)
	p.warnUnknownMethods(view, side, service, u, &parsed.Service)
	var former map[string]string
	if side == conf.Provider {
		var differences []conf.Fault
		differences, former = p.declare(view, service, u, params, &parsed.Service)
		faults = append(faults, differences...)
	} else {
		// The reference's own are kept aside: dubbo merges the provider's over them.
		ref := retry.NewReference(&parsed.Service)
		ref.Cluster = u.GetParam(constant.ClusterKey, "")
		ref.Application = u.GetParam(constant.ApplicationKey, "")
		ref.LoadBalance = u.GetParam(constant.LoadbalanceKey, "")
		ref.Raw = conf.OwnParams(params)
		ref.Answerer = guard.NewFallbacks(p.runtime, u, ref)
		u.SetAttribute(retry.AttributeKey, ref)
		for _, h := range referenceHooks() {
			h.Made(p.runtime, view, service, u, ref)
		}
		defer ownOnly(u)
		p.warnUncounted(service, u)
	}
	if view.AutoChain() {
		u.SetParam(filterKey(side), withOwn(side, u))
	}
	faults = append(faults, filterFaults(u, side, service)...)
	balance := balanceFaults(u, side, service)
	faults = append(faults, balance...)
	if len(faults) == 0 {
		p.settle(view, side, service, u, params, &parsed.Service)
		return
	}
	err := &conf.Error{Faults: faults}
	if view.OnError() != conf.Warn && (side == conf.Provider || !p.runtime.Serving()) {
		panic(err)
	}
	// It serves all the same, without what is wrong. A reference that is made
	// while calls run must not take them down either.
	p.runtime.ConfigError(err)
	mend(u, side, parsed.Faults, former)
	mendBalances(u, balance)
	if view.AutoChain() {
		u.SetParam(filterKey(side), withOwn(side, u))
	}
	if ref := retry.Of(u); side == conf.Consumer && ref != nil {
		ref.LoadBalance = u.GetParam(constant.LoadbalanceKey, "") // one that nobody has is gone
	}
	params = guard.OwnParamsOf(u)
	parsed = conf.ParseParams(side, service.String(), params)
	p.settle(view, side, service, u, params, &parsed.Service)
}

// settle tells what a user should know of settings that are right, and has a
// provider's URL declare to its consumers what is in effect for them.
func (p *Processor) settle(view *conf.View, side conf.Side, service conf.ServiceKey, u *common.URL, params map[string]string, parsed *conf.Service) {
	methods := guard.KnownMethods(u)
	for _, method := range append([]string{""}, methods...) {
		e := view.Resolve(side, service, method, parsed)
		for _, note := range e.NotesOf(method) {
			p.runtime.Warn(fmt.Sprintf("service=%s side=%s %s", service, side, note))
		}
	}
	if side != conf.Provider {
		return
	}
	declared := map[string]guard.Declared{}
	for _, method := range append([]string{""}, methods...) {
		if e := view.Resolve(side, service, method, parsed); len(e.Flow.Callers) > 0 || len(e.Group.Callers) > 0 {
			declared[guard.TellCallerKey] = guard.Declared{Value: "true"}
			u.SetParam(guard.TellCallerKey, "true")
		}
	}
	for name, value := range view.DeclareParams(service, methods, params) {
		former, had := params[name]
		if conf.DubboWeight(name) && former != "" && former != "0" && former != value {
			p.runtime.Warn(fmt.Sprintf("service=%s side=%s %s=%s is dubbo-go's and gives way to %s, which makes it %s", service, side, name, former, conf.WeightKey, value))
		}
		declared[name] = guard.Declared{Value: value, Former: former, Had: had}
		u.SetParam(name, value)
	}
	u.SetAttribute(guard.DeclaredKey, declared)
}

func (p *Processor) add(faults *[]conf.Fault, err error) {
	var e *conf.Error
	switch {
	case err == nil:
	case errors.As(err, &e):
		*faults = append(*faults, e.Faults...)
	default:
		*faults = append(*faults, conf.Fault{Source: "configuration", Problem: err.Error()})
	}
}

func (p *Processor) warn(texts []string) {
	for _, text := range texts {
		p.runtime.Warn(text)
	}
}

// export is what the params of a service say on one protocol.
type export struct {
	params *conf.Service
	own    map[string]string // those of the params that are Weir's, as they were written
}

// declare notes the params of an exported service. Protocols share a service's
// limits, so they must not say different things, unless each counts by itself:
// then it returns what the protocol before says.
func (p *Processor) declare(view *conf.View, service conf.ServiceKey, u *common.URL, params map[string]string, parsed *conf.Service) ([]conf.Fault, map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	protocols := p.exported[service.String()]
	if protocols == nil {
		protocols = map[string]export{}
		p.exported[service.String()] = protocols
	}
	_, again := protocols[u.Protocol]
	for _, other := range slices.Sorted(maps.Keys(protocols)) {
		if other == u.Protocol {
			continue
		}
		faults := conf.Differences(view, conf.Provider, service, other, protocols[other].params, u.Protocol, parsed)
		if len(faults) > 0 && !again {
			return faults, protocols[other].own
		}
		// A second export is a change; the other protocols are expected to follow.
		for _, f := range faults {
			p.runtime.Warn(f.String())
		}
	}
	protocols[u.Protocol] = export{parsed, conf.OwnParams(params)}
	p.runtime.Declare(conf.Provider, service, u.Protocol, guard.KnownMethods(u), parsed)
	return nil, nil
}

// warnUnknownMethods tells of settings for methods that the service does not have.
func (p *Processor) warnUnknownMethods(view *conf.View, side conf.Side, service conf.ServiceKey, u *common.URL, params *conf.Service) {
	known := guard.KnownMethods(u)
	if len(known) == 0 {
		return
	}
	has := map[string]string{} // dubbo lists a Go method under both of its spellings
	for _, name := range known {
		if old := has[conf.MethodKey(name)]; old == "" || name != conf.MethodKey(name) {
			has[conf.MethodKey(name)] = name
		}
	}
	named := view.MethodsOf(side, service)
	named = append(named, slices.Collect(maps.Keys(params.Methods))...)
	slices.Sort(named)
	for _, name := range slices.Compact(named) {
		if !slices.ContainsFunc(known, func(k string) bool { return conf.SameMethod(k, name) }) {
			p.runtime.Warn(fmt.Sprintf("service=%s side=%s method=%s is configured but the service does not have it; it has: %s",
				service, side, name, strings.Join(slices.Sorted(maps.Values(has)), ", ")))
		}
	}
}
