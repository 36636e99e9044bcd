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

	"gopkg.in/yaml.v3"
)

// typedLimits are dubbo-go's own limits of a service, as dubbo-go 3.3.2 writes them
// into its URL, and where they stand.
type typedLimits struct {
	service *yaml.Node
	params  map[string]string
	nodes   map[string]*yaml.Node
}

// typed reads those that stand directly below a service and its methods and belong to
// filters that are replaced.
func (c *dubboChecker) typed(service string, n *yaml.Node) typedLimits {
	out := typedLimits{service: n, params: map[string]string{}, nodes: map[string]*yaml.Node{}}
	read := func(n *yaml.Node, field, name string) {
		if !ofReplaced(c.replaced, field) {
			return
		}
		out.params[name] = "" // dubbo-go writes what is not there, too
		if v := c.child(n, field); v != nil && v.Kind == yaml.ScalarNode && !isNull(v) {
			out.params[name], out.nodes[name] = v.Value, v
			if isPlaceholder(v.Value) {
				out.params[name] = c.filled(v.Value)
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(dubboLimits)) {
		read(n, field, field)
	}
	methods := c.child(n, "methods")
	if methods == nil || methods.Kind != yaml.SequenceNode {
		return out
	}
	ofService, ofMethods := out.params[executeLimit], false
	for _, m := range methods.Content {
		if resolveAlias(m).Kind != yaml.MappingNode {
			continue
		}
		for _, field := range []string{tpsLimitRate, tpsLimitInterval, tpsLimitStrategy} {
			read(m, field, methodsPrefix+c.text(m, "name")+"."+field)
		}
		read(m, executeLimit, executeLimit) // over the service's
		read(m, executeHandler, executeHandler)
		ofMethods = ofMethods || c.text(m, executeLimit) != ""
	}
	if last := out.params[executeLimit]; ofReplaced(c.replaced, executeLimit) && (ofMethods || last != ofService) {
		so := "so it is " + last + " for all methods together"
		if last == "" {
			so = "so there is none"
		}
		c.warn("%s service=%s dubbo-go writes the last method's %s over the service's, %s; write %s and %s<Method>.%s below params:",
			c.at(methods), service, executeLimit, so, ExecutesKey, methodsPrefix, ExecutesKey)
	}
	return out
}

// translated are the params with dubbo-go's limits in Weir's keys, where they can be.
// keys are where each stands.
func (c *dubboChecker) translated(service string, params map[string]string, keys map[string]*yaml.Node, typed typedLimits) map[string]string {
	for _, name := range slices.Sorted(maps.Keys(typed.params)) {
		if params[name] != "" {
			c.warn("%s service=%s %s=%s has no effect below params:, where dubbo-go overwrites it; write it directly below the service or method",
				c.at(keys[name]), service, name, params[name])
		}
		params[name] = typed.params[name]
		if n := typed.nodes[name]; n != nil {
			keys[name] = n
		}
	}
	t := Translate(service, params, c.replaced)
	for _, f := range t.Faults {
		c.fault(keys[f.param], f)
	}
	for _, w := range t.Warnings {
		c.warn("%s", w)
	}
	return t.On(params)
}
