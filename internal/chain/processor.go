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

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"

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

	mu       sync.Mutex
	exported map[string]map[string]*conf.Service // guarded by mu: service -> protocol -> params
}

// NewProcessor returns a post-processor.
func NewProcessor(rt *guard.Runtime, prepare func() error) *Processor {
	return &Processor{runtime: rt, prepare: prepare, exported: map[string]map[string]*conf.Service{}}
}

// PostProcessServiceConfig looks at a service that is about to be exported.
func (p *Processor) PostProcessServiceConfig(u *common.URL) {
	service := guard.ServiceOf(u)
	if guard.Internal(service.Interface) {
		return
	}
	var faults []conf.Fault
	p.add(&faults, p.prepare())
	view := p.runtime.Store.View()
	parsed := conf.ParseParams(conf.Provider, service.String(), guard.ParamsOf(u))
	faults = append(faults, parsed.Faults...)
	p.warn(parsed.Warnings)
	p.warnUnknownMethods(view, conf.Provider, service, u, &parsed.Service)
	faults = append(faults, p.declare(view, service, u.Protocol, &parsed.Service)...)
	if view.AutoChain() {
		u.SetParam(constant.ServiceFilterKey, place(conf.Provider, u.GetParam(constant.ServiceFilterKey, "")))
	}
	faults = append(faults, unknownFilters(u, conf.Provider, service)...)
	p.settle(faults, u, conf.Provider)
}

// PostProcessReferenceConfig looks at a reference that is about to be made. The
// reference's own params are kept aside: dubbo merges the provider's over them.
func (p *Processor) PostProcessReferenceConfig(u *common.URL) {
	service := guard.ServiceOf(u)
	if guard.Internal(service.Interface) {
		return
	}
	var faults []conf.Fault
	p.add(&faults, p.prepare())
	view := p.runtime.Store.View()
	parsed := conf.ParseParams(conf.Consumer, service.String(), guard.ParamsOf(u))
	faults = append(faults, parsed.Faults...)
	p.warn(parsed.Warnings)
	p.warnUnknownMethods(view, conf.Consumer, service, u, &parsed.Service)
	ref := retry.NewReference(&parsed.Service)
	ref.Cluster = u.GetParam(constant.ClusterKey, "")
	u.SetAttribute(retry.AttributeKey, ref)
	if view.AutoChain() {
		u.SetParam(constant.ReferenceFilterKey, place(conf.Consumer, u.GetParam(constant.ReferenceFilterKey, "")))
	}
	faults = append(faults, unknownFilters(u, conf.Consumer, service)...)
	p.settle(faults, u, conf.Consumer)
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

// settle panics with all faults, or logs them where that was asked for.
func (p *Processor) settle(faults []conf.Fault, u *common.URL, side conf.Side) {
	if len(faults) == 0 {
		return
	}
	err := &conf.Error{Faults: faults}
	if p.runtime.Store.View().OnError() == conf.Warn || side == conf.Consumer && p.runtime.Serving() {
		// A reference that is made while calls run must not take them down.
		p.runtime.ConfigError(err)
		dropUnknown(u, side)
		return
	}
	panic(err)
}

// misused says what is wrong with a filter of Weir's own in a list, or "".
func misused(name string, side conf.Side, seen map[string]bool) string {
	of, ours := guard.SideOf(name)
	switch {
	case !ours:
		return ""
	case of != side:
		return "that is a filter for " + of.String() + "s"
	case seen[name]:
		return "the filter stands in the list twice and would take two slots per call"
	}
	seen[name] = true
	return ""
}

// dropUnknown takes the names out of a chain that nobody registered, and those
// of Weir that are misused: a service that serves all the same must not panic
// on every call.
func dropUnknown(u *common.URL, side conf.Side) {
	key := filterKey(side)
	if list := u.GetParam(key, ""); list != "" {
		seen := map[string]bool{}
		names := slices.DeleteFunc(strings.Split(list, ","), func(name string) bool {
			name = strings.TrimSpace(name)
			_, ok := extension.GetFilter(name)
			return !ok || misused(name, side, seen) != ""
		})
		u.SetParam(key, strings.Join(names, ","))
	}
}

func filterKey(side conf.Side) string {
	if side == conf.Consumer {
		return constant.ReferenceFilterKey
	}
	return constant.ServiceFilterKey
}

func (p *Processor) warn(texts []string) {
	for _, text := range texts {
		p.runtime.Warn(text)
	}
}

// declare notes the params of an exported service. Protocols share a service's
// limits, so they must not say different things, unless each counts by itself.
func (p *Processor) declare(view *conf.View, service conf.ServiceKey, protocol string, params *conf.Service) []conf.Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := service.String()
	protocols := p.exported[key]
	if protocols == nil {
		protocols = map[string]*conf.Service{}
		p.exported[key] = protocols
	}
	var faults []conf.Fault
	for _, other := range slices.Sorted(maps.Keys(protocols)) {
		if other != protocol {
			faults = append(faults, conf.Differences(view, conf.Provider, service, other, protocols[other], protocol, params)...)
		}
	}
	if _, again := protocols[protocol]; again {
		// A second export is a change; the other protocols are expected to follow.
		for _, f := range faults {
			p.runtime.Warn(f.String())
		}
	} else if len(faults) > 0 {
		return faults
	}
	protocols[protocol] = params
	p.runtime.Declare(conf.Provider, key, protocol, params)
	return nil
}

// warnUnknownMethods tells of settings for methods that the service does not have.
func (p *Processor) warnUnknownMethods(view *conf.View, side conf.Side, service conf.ServiceKey, u *common.URL, params *conf.Service) {
	known := guard.KnownMethods(u)
	if len(known) == 0 {
		return
	}
	named := view.MethodsOf(side, service)
	named = append(named, slices.Collect(maps.Keys(params.Methods))...)
	slices.Sort(named)
	for _, name := range slices.Compact(named) {
		if !slices.ContainsFunc(known, func(k string) bool { return conf.SameMethod(k, name) }) {
			p.runtime.Warn(fmt.Sprintf("service=%s side=%s method=%s is configured but the service does not have it; it has: %s",
				service, side, name, strings.Join(known, ", ")))
		}
	}
}

// unknownFilters are the names in a chain that nobody registered. dubbo would
// put a nil filter there, which panics on every call.
func unknownFilters(u *common.URL, side conf.Side, service conf.ServiceKey) []conf.Fault {
	key := filterKey(side)
	list := u.GetParam(key, "")
	if list == "" {
		return nil
	}
	var faults []conf.Fault
	seen := map[string]bool{}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		if problem := misused(name, side, seen); problem != "" {
			faults = append(faults, conf.Fault{
				Source: "chain", Side: side.String(), Service: service.String(), Key: key, Value: name,
				Problem: problem, Allowed: "each of Weir's filters once, " + umbrella(side) + " on a " + side.String(),
			})
			continue
		}
		if _, ok := extension.GetFilter(name); ok {
			continue
		}
		problem := "no filter of that name is registered, dubbo would panic on every call"
		allowed := "names of registered filters; is the package that registers it imported?"
		if name == "" {
			problem = "there is an empty name in the list " + list
			allowed = "names of registered filters, separated by single commas"
		}
		faults = append(faults, conf.Fault{
			Source: "chain", Side: side.String(), Service: service.String(), Key: key, Value: name,
			Problem: problem, Allowed: allowed,
		})
	}
	return faults
}
