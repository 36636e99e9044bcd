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
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Checked returns a copy of c with its names in canonical form, and what is
// wrong with it. source names c in the faults. The copy shares nothing with c.
// Values that are wrong are left out of it.
func (c *Config) Checked(source string) (*Config, []Fault) {
	v := checker{source: source}
	out := &Config{Mode: c.Mode, OnError: c.OnError}
	if c.AutoChain != nil {
		out.AutoChain = Of(*c.AutoChain)
	}
	if c.Replace != nil {
		names, err := checkReplace(c.Replace)
		if err != nil {
			f := Fault{Source: source, Key: replaceKey, Value: replaceText(c.Replace), Allowed: replaceList.allowed}
			f.because(err, "")
			v.faults = append(v.faults, f)
		}
		out.Replace = names
	}
	if c.Mode != "" {
		if _, err := parseOneOf(string(c.Mode), Enforce, Observe, Off); err != nil {
			v.faults = append(v.faults, Fault{Source: source, Key: "mode", Value: string(c.Mode), Allowed: allowedMode})
			out.Mode = ""
		}
	}
	if c.OnError != "" {
		if _, err := parseOneOf(string(c.OnError), Fail, Warn); err != nil {
			v.faults = append(v.faults, Fault{Source: source, Key: "on-error", Value: string(c.OnError), Allowed: allowedOnError})
			out.OnError = ""
		}
	}
	v.root(c, out)
	out.Provider = v.section(Provider, c.Provider)
	out.Consumer = v.section(Consumer, c.Consumer)
	return out, v.faults
}

type checker struct {
	source string
	faults []Fault
}

func (v *checker) section(side Side, s Section) Section {
	out := Section{Policies: v.policies(side, "", "", atDefaults, s.Policies)}
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		f := Fault{Source: v.source, Side: side.String(), Key: "services", Value: name, Problem: notA("service", name), Allowed: allowedService}
		sk, ok := ParseServiceKey(name)
		if !ok {
			v.faults = append(v.faults, f)
			continue
		}
		if out.Services == nil {
			out.Services = map[string]Service{}
		}
		if _, twice := out.Services[sk.String()]; twice {
			f.Problem, f.Allowed = "the service stands here twice", "once"
			v.faults = append(v.faults, f)
			continue
		}
		out.Services[sk.String()] = v.service(side, name, s.Services[name])
	}
	return out
}

func (v *checker) service(side Side, name string, s Service) Service {
	out := Service{Policies: v.policies(side, name, "", atService, s.Policies)}
	for _, m := range slices.Sorted(maps.Keys(s.Methods)) {
		f := Fault{Source: v.source, Side: side.String(), Service: name, Key: "methods", Value: m, Problem: notA("method", m), Allowed: allowedMethod}
		if !isMethod(m) {
			v.faults = append(v.faults, f)
			continue
		}
		folded := MethodKey(m)
		if _, twice := out.Methods[folded]; twice {
			f.Problem, f.Allowed = methodTwice, "once"
			v.faults = append(v.faults, f)
			continue
		}
		if out.Methods == nil {
			out.Methods = map[string]Policies{}
		}
		out.Methods[folded] = v.policies(side, name, m, atMethod, s.Methods[m])
	}
	return out
}

func (v *checker) policies(side Side, service, method string, at level, p Policies) Policies {
	var out Policies
	for _, k := range keys {
		value, ok := k.get(&p)
		if !ok {
			continue
		}
		f := Fault{Source: v.source, Side: side.String(), Service: service, Method: method, Key: k.section(), Value: value, Allowed: k.allowed}
		if problem, allowed := k.misplaced(side, at); problem != "" {
			f.Problem, f.Allowed = problem, allowed
			v.faults = append(v.faults, f)
			continue
		}
		if err := setChecked(k, &out, value, at); err != nil {
			f.because(err, "")
			v.faults = append(v.faults, f)
		}
	}
	return out
}

// Conflicts are the settings that both a and b make. Two places that a team
// edits apart must not both claim a setting, because neither shows the other.
func Conflicts(nameA string, a *Config, nameB string, b *Config) []Fault {
	set := a.settings()
	var faults []Fault
	other := b.settings()
	for _, at := range slices.SortedFunc(maps.Keys(other), compareWhere) {
		if value, twice := set[at]; twice {
			f := Fault{
				Source: nameB, Service: at.service, Method: at.method, Key: at.key, Value: other[at],
				Problem: fmt.Sprintf("%s sets the same key to %q", nameA, value), Allowed: "one of the two places",
			}
			if at.side != noSide {
				f.Side = Side(at.side).String()
			}
			faults = append(faults, f)
		}
	}
	return faults
}

const noSide = 255

type settingKey struct {
	side                 uint8
	service, method, key string
}

func compareWhere(a, b settingKey) int {
	as, bs := fmt.Sprint(a), fmt.Sprint(b)
	switch {
	case as < bs:
		return -1
	case as > bs:
		return 1
	}
	return 0
}

// settings lists everything that c sets, as text.
func (c *Config) settings() map[settingKey]string {
	out := map[settingKey]string{}
	root := func(key, value string) {
		if value != "" {
			out[settingKey{side: noSide, key: key}] = value
		}
	}
	root("mode", string(c.Mode))
	root("on-error", string(c.OnError))
	if c.Replace != nil {
		root(replaceKey, replaceText(c.Replace))
	}
	if c.AutoChain != nil {
		root("auto-chain", fmt.Sprint(*c.AutoChain))
	}
	for _, k := range c.rootKeys() {
		if value, ok := k.get(c); ok {
			out[settingKey{side: noSide, key: k.name}] = value
		}
	}
	for side, section := range [...]*Section{Provider: &c.Provider, Consumer: &c.Consumer} {
		add := func(service, method string, p Policies) {
			for _, k := range keys {
				if value, ok := k.get(&p); ok {
					out[settingKey{uint8(side), service, method, k.section()}] = value
				}
			}
		}
		add("", "", section.Policies)
		for name, s := range section.Services {
			add(name, "", s.Policies)
			for m, p := range s.Methods {
				add(name, m, p)
			}
		}
	}
	return out
}

func allowedDifference(k *key) string {
	if ofExecutes(k) {
		return "the same for all protocols, or executes.scope: protocol"
	}
	return "the same for all protocols"
}

func ofExecutes(k *key) bool {
	return k.name == ExecutesKey || strings.HasPrefix(k.name, ExecutesKey+".")
}

// Differences are the settings in which the params of one service differ
// between two protocols that share its limits. Where each protocol counts by
// itself, which any source in v may say, its limits may differ; its statistics
// are shared all the same.
func Differences(v *View, side Side, service ServiceKey, protocolA string, a *Service, protocolB string, b *Service) []Fault {
	var faults []Fault
	apart := func(method string) bool {
		for _, s := range [...]*Service{a, b} {
			r := newResolver(v, side, service, method, s)
			if scope, _, _, _ := r.lookup(keyNamed(ExecutesScopeKey), anywhere); scope != string(ScopeProtocol) {
				return false
			}
		}
		return true
	}
	compare := func(method string) {
		for _, k := range keys {
			say := (*Service).say
			if method != "" && (slices.Contains(budgetKeys, k.name) || slices.Contains(flowBudgetKeys, k.name)) {
				say = (*Service).sayOwn // its own budget, or the one that all share
			}
			if k.name == WeightKey {
				continue // each protocol's URL has its own
			}
			va, own := say(a, k, method)
			vb, ownB := say(b, k, method)
			if va == vb || ofExecutes(k) && apart(method) {
				continue
			}
			if method != "" && !own && !ownB && !(ofExecutes(k) && apart("")) {
				continue // told for the service
			}
			said := func(text string) string {
				if text == "" {
					return "nothing"
				}
				return strconv.Quote(text)
			}
			faults = append(faults, Fault{
				Source: originParams, Side: side.String(), Service: service.String(), Method: method, Key: k.name, Value: vb,
				Problem: fmt.Sprintf("protocols share a service's limits, but %s says %s and %s says %s", protocolA, said(va), protocolB, said(vb)),
				Allowed: allowedDifference(k),
			})
		}
	}
	compare("")
	methods := map[string]bool{}
	for m := range a.Methods {
		methods[m] = true
	}
	for m := range b.Methods {
		methods[m] = true
	}
	for _, m := range slices.Sorted(maps.Keys(methods)) {
		compare(m)
	}
	return faults
}

// say is what params say of a key for a method, "" for nothing, and whether
// they say it of this method alone. Without a method it is about the service.
func (s *Service) say(k *key, method string) (text string, own bool) {
	if method != "" {
		if text, ok := s.get(k, atMethod, method); ok {
			return text, true
		}
	}
	text, _ = s.get(k, atService, "")
	return text, false
}

// sayOwn is [Service.say] of the method alone.
func (s *Service) sayOwn(k *key, method string) (text string, own bool) {
	return s.get(k, atMethod, method)
}
