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
// all other readers. These look for the very name of a method that is called, so they
// get one for each spelling that the service lists or that the URL already has.
func (d *declaring) weights(out map[string]string) {
	inEffect := func(method string) string {
		value, _ := whole(d.resolve(method).Weight)
		return value
	}
	all := inEffect("")
	d.differing(WeightKey, all, inEffect, out)
	if all != "" {
		out[dubboWeight] = all
	}
	for _, method := range d.methods {
		d.dubboWeight(method, all, inEffect(method), out)
	}
	for name := range d.params {
		if method, ok := weighted(name); ok {
			d.dubboWeight(method, all, inEffect(method), out)
		}
	}
}

func (d *declaring) dubboWeight(method, all, value string, out map[string]string) {
	name := methodsPrefix + method + "." + dubboWeight
	if _, stands := d.params[name]; isMethod(method) && value != "" && (value != all || stands) {
		out[name] = value
	}
}

// DubboWeight reports whether a param of that name is dubbo's own weight, of a service
// or of a method.
func DubboWeight(name string) bool {
	_, ofMethod := weighted(name)
	return name == dubboWeight || ofMethod
}

// weighted is the method whose weight dubbo's param of that name is.
func weighted(name string) (method string, ok bool) {
	rest, ok := strings.CutPrefix(name, methodsPrefix)
	if !ok {
		return "", false
	}
	method, ok = strings.CutSuffix(rest, "."+dubboWeight)
	return method, ok && isMethod(method)
}
