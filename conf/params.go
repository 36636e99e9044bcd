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
	"strings"
)

const methodsPrefix = "methods."

// Parsed is what the params of one service or reference say.
type Parsed struct {
	Service
	// Faults are settings that are wrong; they are not in Service.
	Faults []Fault
	// Warnings are settings that have no effect, with what to write instead.
	Warnings []string
}

// ParseParams reads the flat form of a service's or a reference's params:
// executes, methods.SayHello.executes and so on. Keys that are not Weir's are
// left alone, except that ones that look like Weir's are warned about.
func ParseParams(side Side, service string, params map[string]string) Parsed {
	p := &paramsParser{side: side, service: service}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		p.read(name, params[name])
	}
	return p.out
}

type paramsParser struct {
	side    Side
	service string
	out     Parsed
	methods map[string]string // folded name -> as it was written
	// stand are the keys of each method, "" for the service, right or wrong.
	stand map[string]map[string]bool
}

// beside are the keys that were read of a method, and of k from now on.
func (p *paramsParser) beside(k *key, folded string) map[string]bool {
	if p.stand == nil {
		p.stand = map[string]map[string]bool{}
	}
	if p.stand[folded] == nil {
		p.stand[folded] = map[string]bool{}
	}
	p.stand[folded][k.name] = true
	return p.stand[folded]
}

func (p *paramsParser) fault(name string, f Fault) {
	f.Source, f.Side, f.Service, f.param = originParams, p.side.String(), p.service, name
	p.out.Faults = append(p.out.Faults, f)
}

func (p *paramsParser) read(name, value string) {
	method, flat, at := "", name, atService
	if rest, ok := strings.CutPrefix(name, methodsPrefix); ok {
		at = atMethod
		if method, flat, ok = cutMethod(rest); !ok {
			return
		}
	}
	k := keyNamed(flat)
	if k == nil {
		p.foreign(method, name, flat, value)
		return
	}
	f := Fault{Method: method, Key: flat, Value: value, Allowed: k.allowed}
	if at == atMethod && !isMethod(method) {
		f.Problem, f.Allowed = fmt.Sprintf("there is no method named %q", method), methodsPrefix+"<Method>."+flat+" with "+allowedMethod
		p.fault(name, f)
		return
	}
	if problem, allowed := k.misplaced(p.side, at); problem != "" {
		f.Problem, f.Allowed = problem, allowed
		p.fault(name, f)
		return
	}
	if problem, allowed := k.clash(p.beside(k, MethodKey(method))); problem != "" {
		f.Problem, f.Allowed = problem, allowed
		p.fault(name, f)
		return
	}
	filled, problem := expand(value)
	if problem != "" {
		f.Problem = problem
		p.fault(name, f)
		return
	}
	if at == atService {
		if err := setChecked(k, &p.out.Policies, filled, at); err != nil {
			f.because(err, expanded(value, filled))
			p.fault(name, f)
		}
		return
	}
	folded := MethodKey(method)
	if other, ok := p.methods[folded]; ok && other != method {
		f.Problem, f.Allowed = "methods "+other+" and "+method+" are the same method", "one of them"
		p.fault(name, f)
		return
	}
	if p.methods == nil {
		p.methods, p.out.Methods = map[string]string{}, map[string]Policies{}
	}
	p.methods[folded] = method
	policies := p.out.Methods[folded]
	if err := setChecked(k, &policies, filled, at); err != nil {
		f.because(err, expanded(value, filled))
		p.fault(name, f)
		return
	}
	p.out.Methods[folded] = policies
}

// cutMethod parts what follows "methods." into a method and a key. A key of
// Weir's counts whole, so that a method's name that is missing or has dots in it
// is noticed. It reports false for what is nobody's.
func cutMethod(rest string) (method, flat string, ok bool) {
	for _, k := range keys {
		before, found := strings.CutSuffix(rest, k.name)
		if found && len(k.name) > len(flat) && (before == "" || strings.HasSuffix(before, ".")) {
			method, flat, ok = strings.TrimSuffix(before, "."), k.name, true
		}
	}
	if ok {
		return method, flat, true
	}
	method, flat, ok = strings.Cut(rest, ".")
	return method, flat, ok && method != ""
}

// misplaced says why the key must not stand at a side and level, or "", and
// where it may.
func (k *key) misplaced(side Side, at level) (problem, allowed string) {
	switch {
	case !k.on(side):
		other := Provider
		if side == Provider {
			other = Consumer
		}
		return fmt.Sprintf("%s is a %s's key and has no effect on a %s", k.name, other, side), "on a " + other.String()
	case k.levels&at == 0:
		return k.name + " cannot be set for a single method", "for a whole service or reference, or for all of them"
	}
	return "", ""
}

// setChecked sets a value and turns down what only one level allows, or what is
// already said otherwise at the same place.
func setChecked(k *key, p *Policies, value string, at level) error {
	if at == atMethod && k.name == ExecutesScopeKey && value == string(ScopeService) {
		return errValue
	}
	if k.apart != "" {
		if err := k.apartFrom(p, value); err != nil {
			return err
		}
	}
	if k.fits != nil {
		var own Policies
		if err := k.set(&own, value); err != nil {
			return err
		}
		if err := k.fits(&own, p); err != nil {
			return err
		}
	}
	return k.set(p, value)
}

func keyNames(side Side) []string {
	var names []string
	for _, k := range keys {
		if k.on(side) {
			names = append(names, k.name)
		}
	}
	return names
}

func sectionNames(side Side, at level) []string {
	var names []string
	for _, k := range keys {
		if k.on(side) && k.levels&at != 0 {
			names = append(names, k.section())
		}
	}
	return names
}
