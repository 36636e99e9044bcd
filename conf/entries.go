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
	"gopkg.in/yaml.v3"
)

// expansion walks maps with aliases and merge keys resolved. A few lines of
// aliases of aliases stand for billions of entries, so there is a bound: each
// node of the document may be looked at ten times, and some more.
type expansion struct {
	left    int
	tooMuch bool
}

func newExpansion(doc *yaml.Node) *expansion {
	return &expansion{left: 10*nodes(doc) + 100_000}
}

func (x *expansion) tooLarge(source string) Fault {
	return Fault{Source: source, Problem: "aliases make the document far larger than it is written", Allowed: "fewer aliases of aliases"}
}

func nodes(n *yaml.Node) int {
	count := 1
	for _, c := range n.Content {
		count += nodes(c)
	}
	return count
}

// entry is one entry of a map, or what stands there instead.
type entry struct {
	name       string
	key, value *yaml.Node
	// problem is set when it is no entry that can be read; key tells where.
	problem, allowed string
}

// entries calls f for every entry of a map: its own in their order, then those
// of merged maps that it does not have itself. A null has none.
func (x *expansion) entries(n *yaml.Node, f func(entry)) {
	x.walk(n, map[string]bool{}, map[*yaml.Node]bool{}, f)
}

// walk visits a node once: a second visit could add nothing, as all its names
// have been seen.
func (x *expansion) walk(n *yaml.Node, seen map[string]bool, visited map[*yaml.Node]bool, f func(entry)) {
	n = resolveAlias(n)
	if visited[n] || isNull(n) {
		return
	}
	visited[n] = true
	if n.Kind != yaml.MappingNode {
		f(entry{key: n, value: n, problem: kindName(n) + " where a map belongs", allowed: "a map of keys"})
		return
	}
	own := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if x.left--; x.left < 0 {
			x.tooMuch = true
			return
		}
		e := entry{key: resolveAlias(n.Content[i]), value: resolveAlias(n.Content[i+1])}
		e.name = e.key.Value
		switch {
		case n.Content[i].Tag == "!!merge":
			if e.value.Kind == yaml.SequenceNode {
				merged = append(merged, e.value.Content...)
			} else {
				merged = append(merged, e.value)
			}
		case e.key.Kind != yaml.ScalarNode:
			f(entry{key: e.key, value: e.value, problem: kindName(e.key) + " as a key", allowed: "a name"})
		case own[e.name]:
			e.problem, e.allowed = "the key stands here twice", "once"
			f(e)
		default:
			own[e.name] = true
			if !seen[e.name] {
				seen[e.name] = true
				f(e)
			}
		}
	}
	for _, m := range merged {
		if x.left--; x.left < 0 {
			x.tooMuch = true
			return
		}
		x.walk(m, seen, visited, f)
	}
}

func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return "a single value"
	}
	return "nothing readable"
}
