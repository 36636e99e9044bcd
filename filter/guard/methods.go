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

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

// keepNames takes over the methods of a former plan that have steps, so that those
// learn of what has changed before the next call comes: others may wait, and what a
// breaker is said to be must be what it is. Of the others that are configured it takes
// over the spelling.
func (c *chain) keepNames(old *chain, put func(string, bool)) {
	if old == nil {
		return
	}
	configured := c.configuredMethods()
	for _, m := range old.distinct() {
		if m.name != call.AnyMethod && m.spelled && (len(m.steps) > 0 || slices.Contains(configured, conf.MethodKey(m.name))) {
			put(m.name, true)
		}
	}
}

// configuredMethods are the names that some source mentions for the service, the
// first letter folded.
func (c *chain) configuredMethods() []string {
	names := c.view.MethodsOf(c.side, c.service)
	for _, s := range []*conf.Service{c.params, c.consumer.declared} {
		if s == nil {
			continue
		}
		for name := range s.Methods {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// distinct are the methods that the chain has entries for, each once.
func (c *chain) distinct() []*method {
	t := c.methods.Load()
	if t == nil {
		return nil
	}
	seen := map[*method]bool{}
	var out []*method
	t.each(func(_ string, m *method) {
		if !seen[m] {
			seen[m] = true
			out = append(out, m)
		}
	})
	if c.unknown != nil && !c.unknown.idle() {
		out = append(out, c.unknown)
	}
	return out
}

// lookup finds the plan of an invocation's method.
func (c *chain) lookup(inv base.Invocation) *method {
	name := methodName(inv)
	if m := c.methods.Load().find(name); m != nil {
		if !m.spelled {
			return c.current(c.spell(m, name))
		}
		return m
	}
	if !c.open || !nameable(name) {
		return c.unknown
	}
	return c.current(c.add(name))
}

// nameable tells whether a name from the network may get an entry of its own: it
// will stand in labels and in lines of the log.
func nameable(name string) bool {
	if name == "" || len(name) > 128 || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// add makes the plan of a name that comes up for the first time.
func (c *chain) add(name string) *method {
	if c.methods.Load().methods >= maxMethods {
		return c.unknown
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.methods.Load()
	if m := old.find(name); m != nil {
		return m
	}
	if old.methods >= maxMethods {
		return c.unknown
	}
	return c.putLocked(name)
}

// spell gives a method that was configured the name that it is called by: only its
// first letter's case can differ.
func (c *chain) spell(m *method, name string) *method {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.methods.Load().find(name); now == nil || now.spelled {
		return cmp.Or(now, m)
	}
	return c.putLocked(name)
}

// putLocked makes the plan of a name as it is called.
func (c *chain) putLocked(name string) *method {
	m := c.newMethod(name)
	m.spelled = true
	methods := map[string]*method{}
	c.methods.Load().each(func(name string, m *method) { methods[name] = m })
	for _, spelling := range spellings(name) {
		methods[spelling] = m
	}
	c.methods.Store(newTable(methods, true))
	return m
}

// current is the entry of a method that was just added. Where calls of it may
// wait and the configuration has changed meanwhile, nobody has told it: that is
// made up for here.
func (c *chain) current(m *method) *method {
	if !c.waits.Load() || c.version == c.guard.runtime.Store.Version() {
		return m
	}
	now := c.guard.refresh(c)
	switch {
	case now == c:
		return m
	case m == c.unknown:
		return now.unknown
	}
	if found := now.methods.Load().find(m.name); found != nil {
		if !found.spelled {
			found = now.spell(found, m.name)
		}
		return found
	}
	return now.current(now.add(m.name))
}

// spellings are the names under which a method may be called.
func spellings(name string) []string {
	lower := conf.MethodKey(name)
	if lower == "" || lower[0] < 'a' || lower[0] > 'z' {
		return []string{name}
	}
	return []string{lower, string(lower[0]-'a'+'A') + lower[1:]}
}

// methodName is the name of the method that is called, also of a generic call.
// dubbo's own ActualMethodName panics when the first argument is no string.
func methodName(inv base.Invocation) string {
	name := inv.MethodName()
	if name != constant.Generic && name != constant.GenericAsync {
		return name
	}
	if args := inv.Arguments(); len(args) == 3 {
		if actual, ok := args[0].(string); ok {
			return actual
		}
	}
	return name
}
