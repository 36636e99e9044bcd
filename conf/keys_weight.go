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

import "strings"

const (
	dubboWeight = "weight" // dubbo's own key, which every balancer of its world reads

	allowedWeight = "a whole number from 0 to 2147483647, 0 takes no calls"
)

// weightKeys tell consumers that balance by weight how much a provider can take.
var weightKeys = []*key{
	{
		name: WeightKey, sides: []Side{Provider}, levels: anywhere,
		kind: "integer", min: 0, max: maxLimit, allowed: allowedWeight, def: "what dubbo-go says",
		doc: "Share of the calls that this provider is to get, in proportion to the weights of the others. 0 takes it out of balancing: it is drained. Consumers learn of it when the service is exported.",
		set: setter(parseCount, func(p *Policies, n int) { p.Weight = &n }),
		get: func(p *Policies) (string, bool) { return whole(p.Weight) },
	},
}

// weights adds the weights in effect: as [WeightKey], which tells a 0 that is meant
// from the one that dubbo-go writes where nothing is set, and as dubbo's own key for
// all other readers. Both are looked for by the very name of the method that is called.
// So the former is there for each method as the service spells it, the latter for each
// spelling that it lists, for callers in Java; and each where the URL has it already.
func (d *declaring) weights(out map[string]string) {
	inEffect := func(method string) string {
		value, _ := whole(d.resolve(method).Weight)
		return value
	}
	all := inEffect("")
	if all != "" {
		out[WeightKey], out[dubboWeight] = all, all
	}
	stands := map[string]bool{} // methods that the URL has a weight of Weir's for
	for name := range d.params {
		for _, key := range [...]string{WeightKey, dubboWeight} {
			method, ok := ofMethod(name, key)
			value := inEffect(method)
			if !ok || value == "" {
				continue
			}
			out[name] = value
			if key == WeightKey {
				out[methodsPrefix+method+"."+dubboWeight] = value
				stands[MethodKey(method)] = true
			}
		}
	}
	spelled := map[string]bool{}
	for _, method := range d.methods {
		value, folded := inEffect(method), MethodKey(method)
		if value == "" || !isMethod(method) || value == all && !stands[folded] {
			continue
		}
		if !spelled[folded] {
			out[methodsPrefix+method+"."+WeightKey] = value
			spelled[folded] = true
		}
		out[methodsPrefix+method+"."+dubboWeight] = value
	}
}

// DubboWeight reports whether a param of that name is dubbo's own weight, of a service
// or of a method.
func DubboWeight(name string) bool {
	_, ok := ofMethod(name, dubboWeight)
	return name == dubboWeight || ok
}

// ofMethod is the method whose value of the key a param of that name is.
func ofMethod(name, key string) (method string, ok bool) {
	rest, ok := strings.CutPrefix(name, methodsPrefix)
	if !ok {
		return "", false
	}
	method, ok = strings.CutSuffix(rest, "."+key)
	return method, ok && isMethod(method)
}
