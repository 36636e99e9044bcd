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

package guard

// table finds a method's plan by name. It is immutable. Method names are few and
// short, so a hash over three of their bytes takes half the time of a map, which
// reads all of them. Where names come from the network it is a map all the same:
// nobody can make that slow by names that collide.
type table struct {
	open    map[string]*method
	slots   []slot // a power of two, at most a quarter full
	methods int
}

type slot struct {
	name string
	m    *method
}

func newTable(methods map[string]*method, open bool) *table {
	if open {
		return &table{open: methods, methods: countMethods(methods)}
	}
	size := 8
	for size < 4*len(methods) {
		size *= 2
	}
	t := &table{slots: make([]slot, size), methods: countMethods(methods)}
	for name, m := range methods {
		i := hash(name) & (size - 1)
		for t.slots[i].m != nil {
			i = (i + 1) & (size - 1)
		}
		t.slots[i] = slot{name, m}
	}
	return t
}

func countMethods(methods map[string]*method) int {
	distinct := map[*method]struct{}{}
	for _, m := range methods {
		distinct[m] = struct{}{}
	}
	return len(distinct)
}

// find returns nil for a name that is not in the table.
func (t *table) find(name string) *method {
	if t.open != nil {
		return t.open[name]
	}
	mask := len(t.slots) - 1
	for i := hash(name) & mask; ; i = (i + 1) & mask {
		s := &t.slots[i&mask]
		if s.m == nil || s.name == name {
			return s.m
		}
	}
}

func hash(name string) int {
	n := len(name)
	if n == 0 {
		return 0
	}
	return n*131 + int(name[0])*31 + int(name[n/2])*17 + int(name[n-1])
}

// each calls f for every name.
func (t *table) each(f func(string, *method)) {
	for name, m := range t.open {
		f(name, m)
	}
	for _, s := range t.slots {
		if s.m != nil {
			f(s.name, s.m)
		}
	}
}
