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

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// check compares a tale with what is promised. All of it is about counts, and nothing
// about how long something took: the machine may be slow.
func (t tale) check() error {
	f := &faults{way: t.way}
	if t.way == shared {
		// The contrast: the flood takes core's calls with it.
		s := t.sum(core, during)
		f.unless(s.refusals() > 0, "during the flood: none of %d core calls was refused, so it was no flood", s.calls)
		return f.err()
	}
	for _, phase := range phases {
		c, n := t.sum(core, phase), t.sum(noncore, phase)
		f.unless(c.calls >= coreCalls, "%s: %d core calls, want %d at least", phase, c.calls, coreCalls)
		f.kept(phase, core, c)
		f.apart(t, phase, core, c)
		f.apart(t, phase, noncore, n)
		if phase == during {
			f.unless(n.refusals() >= risen, "%s: %d of %d non-core calls were refused, so it was no flood", phase, n.refusals(), n.calls)
			f.unless(n.answered > 0, "%s: no non-core call was answered", phase)
			for why := range n.refused {
				f.unless(strings.HasPrefix(why, "executes "), "%s: non-core calls were refused for %q, want the limit of their own providers", phase, why)
			}
			continue
		}
		f.unless(n.calls > 0, "%s: no non-core calls", phase)
		f.kept(phase, noncore, n)
	}
	if t.way == byTag {
		s := sumOf(t.strays, "")
		f.unless(s.calls == strays && s.refused["group no-group"] == strays,
			"the providers refused %v of %d calls without a group, want all %d", s.refused, s.calls, strays)
	}
	return f.err()
}

type faults struct {
	way  way
	list []string
}

func (f *faults) unless(ok bool, format string, args ...any) {
	if !ok {
		f.list = append(f.list, f.way.String()+", "+fmt.Sprintf(format, args...))
	}
}

// kept wants every call of a group to be answered.
func (f *faults) kept(phase, group string, s sum) {
	f.unless(s.refusals() == 0, "%s: %d of %d %s calls were refused: %v", phase, s.refusals(), s.calls, group, s.refused)
	f.unless(s.failures() == 0, "%s: %d of %d %s calls failed: %v", phase, s.failures(), s.calls, group, s.failed)
	f.unless(s.answered == s.calls, "%s: %d of %d %s calls were answered", phase, s.answered, s.calls, group)
}

// apart wants a group's calls to be answered by its own providers only.
func (f *faults) apart(t tale, phase, group string, s sum) {
	own := t.way.providers(group)
	for _, name := range slices.Sorted(maps.Keys(s.by)) {
		f.unless(slices.Contains(own, name), "%s: %q answered %d %s calls", phase, name, s.by[name], group)
	}
}

func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(f.list, "\n  "))
}
