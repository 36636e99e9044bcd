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
	"strings"

	"gopkg.in/yaml.v3"
)

// group reads the section at the root, which holds for both sides: each key of it for
// the sides that it is for.
func (p *yamlParser) group(n *yaml.Node, out *Policies) {
	set := func(n *yaml.Node, name string, k *key) {
		set := func(s string) error { return k.set(out, s) }
		if k.kind == "list" && n.Kind == yaml.SequenceNode {
			p.list(n, where{}, name, k, set)
			return
		}
		p.scalar(n, where{}, name, k.allowed, set)
	}
	if n.Kind != yaml.MappingNode {
		if !isNull(n) {
			set(n, groupName, keyNamed(GroupKey))
		}
		return
	}
	p.eachField(n, where{}, groupName, func(part string, key, value *yaml.Node) {
		full := groupName + "." + part
		if part == registriesPart {
			p.registries(value)
			return
		}
		k := sectionKey(full)
		if part == keyNamed(GroupKey).plainName() {
			k = keyNamed(GroupKey)
		}
		if k == nil {
			var names []string
			for _, k := range groupKeys {
				names = append(names, k.section())
			}
			names[0] = groupName + "." + groupKeys[0].plainName()
			names = append(names, registriesName)
			p.fault(key, where{}, full, Fault{Value: value.Value, Problem: "unknown key", Allowed: hint(full, names)})
			return
		}
		set(value, full, k)
	})
}

// groups gives both sides what the section at the root says and they do not.
func (c *Config) groups(root *Policies) {
	if root.Group == nil {
		return
	}
	for side, section := range [...]*Section{Provider: &c.Provider, Consumer: &c.Consumer} {
		for _, k := range groupKeys {
			value, ok := k.get(root)
			if _, own := k.get(&section.Policies); !ok || own || !k.on(Side(side)) {
				continue
			}
			_ = k.set(&section.Policies, value) // it is right there, so it is here
		}
	}
}

// groupSchema is that of the section at the root.
func groupSchema() map[string]any {
	parts := map[string]any{}
	for _, k := range groupKeys {
		parts[strings.TrimPrefix(k.section(), groupName+".")] = keyRef(k)
	}
	delete(parts, groupName)
	name := keyRef(groupKeys[0])
	parts[groupKeys[0].plainName()] = name
	parts[registriesPart] = rootSchema(registryKeys)
	return map[string]any{
		"description": "Groups of both sides: core and non-core apart. A side, service or method that says otherwise wins.",
		"anyOf":       []any{name, orNull(object(parts))},
	}
}
