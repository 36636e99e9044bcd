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
	"math"
	"slices"
	"strconv"
	"strings"
)

// Translation is what becomes of dubbo-go's own limits in the params of a service,
// where Weir's filters stand in the place of dubbo-go's.
type Translation struct {
	// Set are params of Weir's that say the same. They are to be set, and Drop, which
	// are all of dubbo-go's, taken out: nobody reads them any more.
	Set  map[string]string
	Drop []string
	// Faults are what Weir has no way to say. They are about params in Drop.
	Faults []Fault
	// Warnings are what has no effect or is not quite the same, and Notes what was
	// taken as what.
	Warnings, Notes []string
}

// Translate reads the params of a service, as dubbo-go 3.3.2 writes them into its URL,
// for its limits of running calls where replaced has execute, and of calls per interval
// where it has tps. A key of Weir's that says the same of the service or of the same
// method wins. params are not changed.
func Translate(service string, params map[string]string, replaced []string) Translation {
	t := translator{name: service, methods: map[string]*place{}, told: map[string]bool{}}
	t.service = t.at("")
	t.gather(params, func(flat string) bool { return ofReplaced(replaced, flat) })
	t.executes()
	t.tps()
	return t.out
}

// ofReplaced reports whether a key is one of dubbo-go's that a replaced filter would
// have read.
func ofReplaced(replaced []string, flat string) bool {
	name := ReplaceTPS
	if strings.HasPrefix(flat, executeLimit) {
		name = ReplaceExecute
	}
	return dubboLimits[flat] != "" && slices.Contains(replaced, name)
}

// On returns a copy of params with the translation made.
func (t *Translation) On(params map[string]string) map[string]string {
	out := maps.Clone(params)
	for _, name := range t.Drop {
		delete(out, name)
	}
	maps.Copy(out, t.Set) // there is nothing to set without params
	return out
}

// place is what params say of a service or of one of its methods.
type place struct {
	// method is as Weir's keys spell it, or where there are none as dubbo-go's do; "" is
	// the service.
	method string
	dubbo  map[string]param  // by dubbo-go's key; what says nothing is not there
	own    map[string]string // by Weir's key
}

// param is one of dubbo-go's as it is written.
type param struct{ name, value string }

// prefix begins the names of the place's params.
func (p *place) prefix() string {
	if p.method == "" {
		return ""
	}
	return methodsPrefix + p.method + "."
}

// has reports whether one of dubbo-go's keys stands there.
func (p *place) has(flat string) bool { return p.dubbo[flat].value != "" }

// said are those of dubbo-go's keys that are there, with what they say.
func (p *place) said(dubbo ...string) string {
	var out []string
	for _, flat := range dubbo {
		if p.has(flat) {
			out = append(out, p.dubbo[flat].name+"="+p.dubbo[flat].value)
		}
	}
	return strings.Join(out, " ")
}

type translator struct {
	name    string
	service *place
	methods map[string]*place // by [MethodKey]
	told    map[string]bool   // the params that there is a fault of
	out     Translation
}

// at is the place of a method, or the service.
func (t *translator) at(method string) *place {
	if method == "" && t.service != nil {
		return t.service
	}
	p := t.methods[MethodKey(method)]
	if p == nil {
		p = &place{method: method, dubbo: map[string]param{}, own: map[string]string{}}
	}
	if method != "" {
		t.methods[MethodKey(method)] = p
	}
	return p
}

// gather sorts the params by place, Weir's first. wanted are the keys of dubbo-go to
// look for.
func (t *translator) gather(params map[string]string, wanted func(flat string) bool) {
	each := func(f func(method, flat, name string)) {
		for _, name := range slices.Sorted(maps.Keys(params)) {
			rest, ofMethod := strings.CutPrefix(name, methodsPrefix)
			if !ofMethod {
				f("", name, name)
			} else if method, flat, ok := cutMethod(rest); ok && method != "" {
				f(method, flat, name)
			}
		}
	}
	each(func(method, flat, name string) {
		if keyNamed(flat) != nil {
			t.at(method).own[flat] = params[name]
		}
	})
	spelled := map[string]string{}
	each(func(method, flat, name string) {
		if !wanted(flat) {
			return
		}
		t.out.Drop = append(t.out.Drop, name)
		if params[name] == "" {
			return // dubbo-go writes keys that nobody has set, too
		}
		alone := &place{method: method, dubbo: map[string]param{flat: {name, params[name]}}}
		if method != "" && !isMethod(method) {
			t.fault(alone, flat, fmt.Sprintf("there is no method named %q", method), methodsPrefix+"<Method>."+flat+" with "+allowedMethod)
			return
		}
		if other, ok := spelled[MethodKey(method)]; ok && other != method {
			t.fault(alone, flat, "methods "+other+" and "+method+" are the same method", "one of them")
			return
		}
		spelled[MethodKey(method)] = method
		t.at(method).dubbo[flat] = param{name, params[name]}
	})
}

// each calls f for the methods in order.
func (t *translator) each(f func(*place)) {
	for _, folded := range slices.Sorted(maps.Keys(t.methods)) {
		f(t.methods[folded])
	}
}

const (
	maxDubboLimit = math.MaxInt32

	// toKeep says how dubbo-go's filter stays.
	toKeep = "or keep dubbo-go's filter: take %s out of replace"
)

// number reads a number as dubbo-go does, in any base. What is not there is -1. One
// that is wrong is told once.
func (t *translator) number(p *place, flat string, most int64, allowed string) (n int64, ok bool) {
	if !p.has(flat) {
		return -1, true
	}
	n, err := strconv.ParseInt(p.dubbo[flat].value, 0, 0)
	switch {
	case err != nil:
		t.fault(p, flat, "dubbo-go reads no number there", allowed)
	case n > most:
		t.fault(p, flat, "", allowed)
	case n == 0 && flat != tpsLimitInterval:
		t.fault(p, flat, "dubbo-go refuses every call with it, and in Weir it is unlimited", allowed)
	default:
		return n, true
	}
	return 0, false
}

// handler tells of a handler of dubbo-go's that nobody calls any more.
func (t *translator) handler(p *place, flat string) {
	switch p.dubbo[flat].value {
	case "", "default", "log": // they say in the log what the caller gets to know
	default:
		t.fault(p, flat, "Weir calls no handler: the caller gets a typed error", "default, log or nothing; an answer of its own is a fallback of the consumer")
	}
}

func (t *translator) fault(p *place, flat, problem, allowed string) {
	f := Fault{
		Source: originParams, Side: Provider.String(), Service: t.name, Method: p.method, Key: flat, Value: p.dubbo[flat].value,
		Problem: problem, Allowed: allowed, param: p.dubbo[flat].name,
	}
	if !t.told[f.param] {
		t.told[f.param] = true
		t.out.Faults = append(t.out.Faults, f)
	}
}

func (t *translator) warn(format string, args ...any) {
	t.out.Warnings = append(t.out.Warnings, t.line(format, args...))
}

func (t *translator) line(format string, args ...any) string {
	return plain(fmt.Sprintf("service=%s side=%s ", t.name, Provider) + fmt.Sprintf(format, args...))
}

// givesWay reports whether one of Weir's keys stands at the place, and tells that
// dubbo-go's have no effect.
func (t *translator) givesWay(p *place, dubbo []string, own ...string) bool {
	for _, key := range own {
		value, stands := p.own[key]
		if !stands {
			continue
		}
		if said := p.said(dubbo...); said != "" {
			t.warn("%s has no effect beside %s%s=%s", said, p.prefix(), key, value)
		}
		return true
	}
	return false
}

// take sets Weir's keys, given as keys and values in turn, in the place of dubbo-go's.
// Values that are empty are not set.
func (t *translator) take(p *place, dubbo []string, keysAndValues ...string) {
	if t.out.Set == nil {
		t.out.Set = map[string]string{}
	}
	var as []string
	for i := 0; i < len(keysAndValues); i += 2 {
		if name, value := p.prefix()+keysAndValues[i], keysAndValues[i+1]; value != "" {
			t.out.Set[name] = value
			as = append(as, name+"="+value)
		}
	}
	t.out.Notes = append(t.out.Notes, t.line("%s is taken as %s", p.said(dubbo...), strings.Join(as, " ")))
}
