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

package conf

import "slices"

const (
	originDefault  = "default"
	originParams   = "params"
	originProvider = "provider"
)

// Resolve computes what holds for a method of a service. params is what the
// URL says, nil for nothing. For every key the most exact level wins: method,
// then service, then side; at one level code wins over file, section and params.
func (v *View) Resolve(side Side, service ServiceKey, method string, params *Service) Effective {
	return v.ResolveDeclared(side, service, method, params, nil)
}

// ResolveDeclared is [View.Resolve] for a reference to a provider that declared
// limits for its consumers, see [ParseDeclared]; nil for none. Where nothing of
// the reference's own sets actives, at any level, the provider's value for the
// method holds, else the one for its service.
func (v *View) ResolveDeclared(side Side, service ServiceKey, method string, params, declared *Service) Effective {
	r := newResolver(v, side, service, MethodKey(method), params)
	if side == Consumer {
		r.declared = declared
	}
	e := Effective{RetryRefused: DefaultRetryRefused}
	if side == Provider {
		r.executes(&e)
		var p Policies
		r.apply(&e, WeightKey, &p, anywhere)
		e.Weight = p.Weight
	} else {
		var p Policies
		if r.apply(&e, RetryRefusedKey, &p, atService|atDefaults) {
			e.RetryRefused = *p.RetryRefused
		}
	}
	r.group(&e)
	r.actives(&e)
	r.tps(&e)
	r.flow(&e)
	r.bulkhead(&e)
	r.overload(&e)
	r.breaker(&e)
	if side == Consumer {
		r.fallback(&e)
	}
	var p Policies
	if r.apply(&e, StatsKey, &p, anywhere) {
		e.Stats = p.Stats
	}
	r.apply(&e, BusinessErrorsKey, &p, anywhere)
	e.BusinessErrorsFail = p.BusinessErrors == ErrorsAsFailure
	return e
}

type resolver struct {
	view   *View
	side   Side
	method string
	params *Service
	// services are what each layer of the view says of the service.
	services [slotCount][]*Service
	// declared is what a consumer's provider says.
	declared *Service
}

// newResolver returns one for a method, its name folded.
func newResolver(v *View, side Side, service ServiceKey, method string, params *Service) *resolver {
	r := &resolver{view: v, side: side, method: method, params: params}
	for i, l := range v.layers {
		if l.cfg != nil {
			r.services[i] = l.cfg.section(side).matching(service)
		}
	}
	return r
}

func (r *resolver) executes(e *Effective) {
	global, _ := r.view.Mode()
	var noted Policies
	r.apply(e, ExecutesScopeKey, &noted, anywhere)
	r.apply(e, ExecutesModeKey, &noted, anywhere)
	limit := func(levels level) Limit {
		var p Policies
		if !r.apply(e, ExecutesKey, &p, levels) {
			return Limit{}
		}
		r.apply(e, ExecutesScopeKey, &p, levels)
		r.apply(e, ExecutesModeKey, &p, anywhere)
		l := Limit{Set: true, Limit: max(*p.Executes.Limit, 0), Scope: p.Executes.Scope, Mode: p.Executes.Mode.And(global)}
		if l.Scope == "" {
			l.Scope = ScopeMethod
		}
		return l
	}
	var shared Policies
	var ignored Effective
	if r.apply(&ignored, ExecutesScopeKey, &shared, atService|atDefaults) && shared.Executes.Scope == ScopeService {
		if l := limit(atService | atDefaults); l.Set {
			l.Scope = ScopeService
			e.SharedExecutes = l
		}
		e.Executes = limit(atMethod)
		return
	}
	e.Executes = limit(anywhere)
}

func (r *resolver) actives(e *Effective) {
	var p Policies
	set := r.apply(e, ActivesKey, &p, anywhere)
	own := set
	if !own {
		set = r.applyDeclared(e, ActivesKey, &p)
	}
	if r.side == Provider {
		if set {
			e.Actives = WaitLimit{Set: true, Limit: max(*p.Actives.Limit, 0)}
		}
		return
	}
	r.apply(e, ActivesWaitKey, &p, anywhere)
	r.apply(e, ActivesModeKey, &p, anywhere)
	if !set {
		return
	}
	global, _ := r.view.Mode()
	e.Actives = WaitLimit{Set: true, Limit: max(*p.Actives.Limit, 0), Wait: -1, Mode: p.Actives.Mode.And(global), Declared: !own}
	if p.Actives.Wait != nil {
		e.Actives.Wait = *p.Actives.Wait
	}
}

// tps resolves each key by itself. Where the method has none of its own, that is
// the service's value, and its methods share the budget.
func (r *resolver) tps(e *Effective) {
	var p Policies
	own := false
	for _, name := range budgetKeys {
		own = r.apply(e, name, &p, anywhere) && e.setting(name).Level == levelName(atMethod) || own
	}
	r.apply(e, TPSModeKey, &p, anywhere)
	t := or(p.TPS)
	if t.Limit == nil {
		return
	}
	global, _ := r.view.Mode()
	e.TPS = RateLimit{Set: true, Rate: max(*t.Limit, 0), Interval: DefaultTPSInterval, Algorithm: t.Algorithm, Mode: t.Mode.And(global), Own: own}
	if t.Interval != nil {
		e.TPS.Interval = *t.Interval
	}
	if t.Algorithm == "" {
		e.TPS.Algorithm = AlgorithmSliding
	}
	if t.Algorithm == AlgorithmBucket && t.Burst != nil {
		e.TPS.Burst = e.TPS.burst(*t.Burst)
	}
}

// apply finds the value of a key at the given levels, sets it in p and notes
// where it comes from.
func (r *resolver) apply(e *Effective, name string, p *Policies, levels level) bool {
	k := keyNamed(name)
	value, source, at, ok := r.lookup(k, levels)
	if !ok {
		return false
	}
	return e.take(k, value, source, at, p)
}

// applyDeclared is apply for what the provider declared.
func (r *resolver) applyDeclared(e *Effective, name string, p *Policies) bool {
	if r.declared == nil {
		return false
	}
	k := keyNamed(name)
	for _, lv := range [...]level{atMethod, atService} {
		if value, ok := r.declared.get(k, lv, r.method); ok {
			return e.take(k, value, originProvider, levelName(lv), p)
		}
	}
	return false
}

// take sets a value in p and notes where it comes from.
func (e *Effective) take(k *key, value, source, at string, p *Policies) bool {
	if k.set(p, value) != nil {
		return false // cannot be: sources are checked
	}
	if s := (Setting{Key: k.name, Value: value, Source: source, Level: at}); !slices.Contains(e.Settings, s) {
		e.Settings = append(e.Settings, s)
	}
	return true
}

func (r *resolver) lookup(k *key, levels level) (value, source, at string, ok bool) {
	for _, lv := range [...]level{atMethod, atService, atDefaults} {
		if levels&lv == 0 {
			continue
		}
		for i := range r.view.layers {
			l := &r.view.layers[i]
			if l.cfg == nil {
				continue
			}
			if lv == atDefaults {
				if value, ok = k.get(&l.cfg.section(r.side).Policies); ok {
					return value, l.origin, levelName(lv), true
				}
				continue
			}
			for _, s := range r.services[i] {
				if value, ok = s.get(k, lv, r.method); ok {
					return value, l.origin, levelName(lv), true
				}
			}
		}
		if lv != atDefaults && r.params != nil {
			if value, ok = r.params.get(k, lv, r.method); ok {
				return value, originParams, levelName(lv), true
			}
		}
	}
	return "", "", "", false
}

func levelName(lv level) string {
	switch lv {
	case atMethod:
		return "method"
	case atService:
		return "service"
	}
	return "side"
}

func (s *Service) get(k *key, lv level, method string) (string, bool) {
	if lv == atService {
		return k.get(&s.Policies)
	}
	m, ok := s.Methods[method]
	if !ok {
		return "", false
	}
	return k.get(&m)
}
