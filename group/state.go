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

package group

import (
	"cmp"
	"slices"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group/tag"
)

// Ungrouped is the name of no group where one must have a name.
const Ungrouped = "none"

// State is what was seen of one group by one reference.
type State struct {
	Service   string
	Reference uint64
	// Group is [Ungrouped] for calls and providers without one, and [OtherGroups] for those
	// that are not told apart.
	Group string
	// Routed are the calls of the group by where they went.
	Routed [tag.Results]int64
	// Providers are those of the group in the list that was met last.
	Providers int
}

// States are those of a runtime's references, sorted.
func States(rt *guard.Runtime) []State {
	var out []State
	consumers.Range(func(id uint64, c *consumer) bool {
		if c.runtime != rt {
			return true
		}
		out = append(out, c.states(id)...)
		return true
	})
	slices.SortFunc(out, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Reference, b.Reference), cmp.Compare(a.Group, b.Group))
	})
	return out
}

func (c *consumer) states(id uint64) []State {
	byName := map[string]*State{}
	of := func(name string) *State {
		if name == "" {
			name = Ungrouped
		}
		if s := byName[name]; s != nil {
			return s
		}
		if len(byName) >= maxGroups+maxStrangers+2 { // with those of none and the others
			name = OtherGroups
			if s := byName[name]; s != nil {
				return s
			}
		}
		s := &State{Service: c.name, Reference: id, Group: name}
		byName[name] = s
		return s
	}
	if t := c.counts.Load(); t != nil {
		for name, n := range t.byName {
			s := of(name)
			for r := range tag.Results {
				s.Routed[r] += n[r].Load()
			}
		}
	}
	if v := c.newest.Load(); v != nil {
		for i := range v.list.Groups() {
			if g := v.list.Group(i); len(g.Members) > 0 {
				of(g.Name).Providers += len(g.Members)
			}
		}
	}
	out := make([]State, 0, len(byName))
	for _, s := range byName {
		out = append(out, *s)
	}
	return out
}
