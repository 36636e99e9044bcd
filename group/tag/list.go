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

package tag

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// Group are the members of a list that belong to one group. It is immutable.
type Group[T any] struct {
	// Name is the group's, "" for the untagged.
	Name string
	// Index tells the groups of a list apart: from 0 to [List.Groups]-1.
	Index int
	// Members are in the list's order. They are shared: do not change them.
	Members []T

	// relieved are the members and the untagged, made when first asked for.
	relieved atomic.Pointer[[]T]
}

// List is a list of providers, sorted into their groups. It is immutable and safe
// for concurrent use: whoever has it may keep what it returns, and change nothing
// of it. It is made in time and space linear in the number of members.
type List[T any] struct {
	all     []T
	groups  []*Group[T] // the untagged come first, whether or not there are any
	byName  map[string]*Group[T]
	belongs []int32 // of each member the index of its group

	text atomic.Pointer[string] // of String
}

// New sorts members into the groups that groupOf says, "" for none. It keeps
// members, which must not change any more.
func New[T any](members []T, groupOf func(T) string) *List[T] {
	l := &List[T]{all: slices.Clip(members), groups: []*Group[T]{{}}, belongs: make([]int32, len(members))}
	last, sizes := l.groups[0], []int{0}
	for i, m := range members {
		name := groupOf(m)
		if name != last.Name {
			if last = l.group(name); last == nil {
				last = &Group[T]{Name: name, Index: len(l.groups)}
				l.groups, sizes = append(l.groups, last), append(sizes, 0)
				if l.byName == nil {
					l.byName = map[string]*Group[T]{}
				}
				l.byName[name] = last
			}
		}
		l.belongs[i] = int32(last.Index)
		sizes[last.Index]++
	}
	if len(l.groups) == 1 {
		l.groups[0].Members = l.all
		return l
	}
	room := make([]T, len(members))
	at := 0
	for i, g := range l.groups {
		g.Members = room[at : at : at+sizes[i]]
		at += sizes[i]
	}
	for i, m := range members {
		g := l.groups[l.belongs[i]]
		g.Members = append(g.Members, m)
	}
	return l
}

// group is the group of that name, nil for none.
func (l *List[T]) group(name string) *Group[T] {
	if name == "" {
		return l.groups[0]
	}
	return l.byName[name]
}

// Has tells whether there are members of the group of that name, "" for none.
func (l *List[T]) Has(name string) bool {
	g := l.group(name)
	return g != nil && len(g.Members) > 0
}

// Len is the number of members.
func (l *List[T]) Len() int { return len(l.all) }

// Groups is the number of groups, the untagged among them.
func (l *List[T]) Groups() int { return len(l.groups) }

// Group is the group of an index.
func (l *List[T]) Group(index int) *Group[T] { return l.groups[index] }

// All are the members. They are shared: do not change them.
func (l *List[T]) All() []T { return l.all }

// relieved are the members of g and the untagged, in the list's order.
func (l *List[T]) relieved(g *Group[T]) []T {
	if p := g.relieved.Load(); p != nil {
		return *p
	}
	out := make([]T, 0, len(g.Members)+len(l.groups[0].Members))
	for i, m := range l.all {
		if l.belongs[i] == 0 || int(l.belongs[i]) == g.Index {
			out = append(out, m)
		}
	}
	g.relieved.Store(&out)
	return out
}

// maxNamed is how many groups [List.String] names.
const maxNamed = 5

// String tells how many members there are of which group, the largest first.
func (l *List[T]) String() string {
	if s := l.text.Load(); s != nil {
		return *s
	}
	s := l.describe()
	l.text.Store(&s)
	return s
}

func (l *List[T]) describe() string {
	groups := slices.SortedFunc(maps.Values(l.byName), func(a, b *Group[T]) int {
		return cmp.Or(cmp.Compare(len(b.Members), len(a.Members)), strings.Compare(a.Name, b.Name))
	})
	var parts []string
	for i, g := range groups {
		if i == maxNamed {
			parts = append(parts, fmt.Sprintf("others of %d more groups", len(groups)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%d of group %q", len(g.Members), g.Name))
	}
	if n := len(l.groups[0].Members); n > 0 {
		parts = append(parts, fmt.Sprintf("%d without a group", n))
	}
	if len(parts) == 0 {
		return "none at all"
	}
	return strings.Join(parts, ", ")
}
