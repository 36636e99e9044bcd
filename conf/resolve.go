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

import (
	"slices"
	"time"
)

const (
	originDefault = "default"
	originParams  = "params"
)

// Setting is one effective value and where it comes from.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
	// Level is method, service or side.
	Level string `json:"level"`
}

// Effective are the policies that hold for one method.
type Effective struct {
	// Executes is the method's own limit.
	Executes Limit
	// SharedExecutes is the one that all methods of the service share.
	SharedExecutes Limit
	// Actives is the limit of running calls per provider address.
	Actives WaitLimit
	// TPS is the limit of calls per interval.
	TPS RateLimit
	// RetryRefused is the ratio of the reference.
	RetryRefused float64
	// Stats is nil when no source says anything.
	Stats *bool
	// BusinessErrorsFail makes business errors count as failures.
	BusinessErrorsFail bool
	// Settings tells every value that some source set and that counts, once. A
	// key is there twice where two values hold side by side.
	Settings []Setting
}

// Limit is a limit of running calls in effect.
type Limit struct {
	// Set is false when no source sets one.
	Set bool
	// Limit is 0 when unlimited.
	Limit int
	Scope Scope
	Mode  Mode
}

// WaitLimit is a limit of running calls in effect over which calls wait.
type WaitLimit struct {
	// Set is false when no source sets one.
	Set bool
	// Limit is 0 when unlimited.
	Limit int
	// Wait is the longest wait, negative for as long as the call has.
	Wait time.Duration
	Mode Mode
	// Declared is set when the provider declared it and the reference has none.
	Declared bool
}

// RateLimit is a limit of calls per interval in effect.
type RateLimit struct {
	// Set is false when no source sets one.
	Set bool
	// Rate is the number of calls per Interval, 0 when unlimited.
	Rate     int
	Interval time.Duration
	// Burst is 0 for as many as Rate. Only the bucket has one.
	Burst     int
	Algorithm Algorithm
	Mode      Mode
	// Own is set when the method has a budget of its own; otherwise the methods
	// of the service share one.
	Own bool
}

// Resolve computes what holds for a method of a service. params is what the
// URL says, nil for nothing. For every key the most exact level wins: method,
// then service, then side; at one level code wins over file, section and params.
func (v *View) Resolve(side Side, service ServiceKey, method string, params *Service) Effective {
	r := resolver{view: v, side: side, service: service, method: MethodKey(method), params: params}
	e := Effective{RetryRefused: DefaultRetryRefused}
	if side == Provider {
		r.executes(&e)
	} else {
		var p Policies
		if r.apply(&e, RetryRefusedKey, &p, atService|atDefaults) {
			e.RetryRefused = *p.RetryRefused
		}
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
	view    *View
	side    Side
	service ServiceKey
	method  string
	params  *Service
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

// apply finds the value of a key at the given levels, sets it in p and notes
// where it comes from.
func (r *resolver) apply(e *Effective, name string, p *Policies, levels level) bool {
	k := keyNamed(name)
	value, source, at, ok := r.lookup(k, levels)
	if !ok {
		return false
	}
	if k.set(p, value) != nil {
		return false // cannot be: sources are checked
	}
	if s := (Setting{Key: name, Value: value, Source: source, Level: at}); !slices.Contains(e.Settings, s) {
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
			section := l.cfg.section(r.side)
			if lv == atDefaults {
				if value, ok = k.get(&section.Policies); ok {
					return value, l.origin, "side", true
				}
				continue
			}
			for _, s := range section.matching(r.service) {
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
	if lv == atMethod {
		return "method"
	}
	return "service"
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
