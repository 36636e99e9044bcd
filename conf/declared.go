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
	"maps"
	"slices"
	"strings"
)

// ParseDeclared reads what a provider's URL declares for its consumers: actives
// of the service, and of a method as methods.<Method>.actives or, as
// application-level discovery carries it, <Method>.actives. Of two for one method
// the former counts, and the other is a fault if it says something else. Whatever
// else is in the URL is left alone, and an empty value says nothing, as everywhere
// in dubbo's URLs.
//
// The URL is another process's: nothing in it is filled in from the environment
// of this one. A value that is wrong is left out and is a fault with the source
// "provider".
func ParseDeclared(service string, params map[string]string) (Service, []Fault) {
	k := keyNamed(ActivesKey)
	var out Service
	var faults []Fault
	fault := func(name, method, problem, allowed string) {
		faults = append(faults, Fault{
			Source: originProvider, Side: Provider.String(), Service: service, Method: method, Key: k.name, Value: params[name],
			Problem: problem, Allowed: allowed, param: name,
		})
	}
	written := map[string]string{} // the param of each folded method
	for _, name := range declaredNames(params) {
		value := params[name]
		var method string
		if name != k.name {
			method = strings.TrimPrefix(strings.TrimSuffix(name, "."+k.name), methodsPrefix)
		}
		var p Policies
		if k.set(&p, value) != nil {
			fault(name, method, "", k.allowed)
			continue
		}
		if method == "" {
			out.Policies = p
			continue
		}
		folded := MethodKey(method)
		if other, ok := written[folded]; ok {
			if params[other] != value {
				fault(name, method, other+"="+params[other]+" is about the same method", "one of them")
			}
			continue
		}
		if out.Methods == nil {
			out.Methods = map[string]Policies{}
		}
		written[folded], out.Methods[folded] = name, p
	}
	return out, faults
}

// declaredNames are the params that say something of actives, those with the
// prefix for methods first.
func declaredNames(params map[string]string) []string {
	var short, long []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		method, ok := strings.CutSuffix(name, "."+ActivesKey)
		if params[name] == "" || !ok && name != ActivesKey {
			continue
		}
		if bare, prefixed := strings.CutPrefix(method, methodsPrefix); prefixed && isMethod(bare) {
			long = append(long, name)
		} else if !ok || isMethod(method) {
			short = append(short, name)
		}
	}
	return append(long, short...)
}

// DeclareParams are the params in which a provider's URL tells its consumers the
// actives and the weights that are in effect, from whichever source: one for the
// service, and methods.<Method>.actives or methods.<Method>.weir.weight for a method in
// which it differs; each weight under dubbo's own name too; and the group, for the service. They are to be set over
// those of the URL. methods are the service's, and params what its URL says.
//
// Where params have a value for a method it is always among them, or it would hold
// in place of the one in effect. A method that params name is spelled as there, as
// two spellings of one are a fault. Of what no source sets there are none.
//
// What is set stands in the URL from then on and is read as its own: who resolves
// it again, after a change, goes by the params as they were before.
func (v *View) DeclareParams(service ServiceKey, methods []string, params map[string]string) map[string]string {
	parsed := ParseParams(Provider, service.String(), params).Service
	d := declaring{methods: methods, params: params, resolve: func(method string) Effective {
		return v.Resolve(Provider, service, method, &parsed)
	}}
	out := map[string]string{}
	d.actives(out)
	d.weights(out)
	d.group(out)
	return out
}

// declaring is what a provider declares by.
type declaring struct {
	methods []string
	params  map[string]string
	resolve func(method string) Effective
}

func (d *declaring) actives(out map[string]string) {
	inEffect := func(method string) string {
		e := d.resolve(method).Actives
		if !e.Set {
			return ""
		}
		value, _ := whole(&e.Limit)
		return value
	}
	d.differing(ActivesKey, inEffect(""), inEffect, out)
}

// differing adds a key's value for the service, if there is one, and those for the
// methods that have another.
func (d *declaring) differing(key, all string, inEffect func(method string) string, out map[string]string) {
	if all != "" {
		out[key] = all
	}
	for _, method := range spellings(d.methods, d.params) {
		name := methodsPrefix + method + "." + key
		_, stands := d.params[name]
		if value := inEffect(method); value != "" && (value != all || stands) {
			out[name] = value
		}
	}
}

// spellings are the methods and those that params name, each once and by its
// folded name.
func spellings(methods []string, params map[string]string) map[string]string {
	out := map[string]string{}
	add := func(method string) {
		if folded := MethodKey(method); isMethod(method) && out[folded] == "" {
			out[folded] = method
		}
	}
	for _, name := range slices.Sorted(maps.Keys(OwnParams(params))) {
		if rest, ok := strings.CutPrefix(name, methodsPrefix); ok {
			method, _, _ := cutMethod(rest)
			add(method)
		}
	}
	for _, method := range methods {
		add(method)
	}
	return out
}
