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
	"fmt"
	"slices"
)

// group resolves each key by itself.
func (r *resolver) group(e *Effective) {
	if !r.some(func(p *Policies) bool { return p.Group != nil }) {
		return
	}
	var p Policies
	for _, k := range groupKeys {
		if k.on(r.side) {
			r.apply(e, k.name, &p, anywhere)
		}
	}
	global, _ := r.view.Mode()
	g := or(p.Group)
	if g.Mode == "" && r.side == Provider {
		g.Mode = Observe
	}
	e.Group = GroupPolicy{
		Name: g.Name, Strict: g.Match == MatchStrict, Any: g.Fallback == FallbackAny, UngroupedAny: g.Ungrouped == FallbackAny,
		MinAvailable: or(g.MinAvailable), MinProviders: or(g.MinProviders), Callers: g.Callers, Entry: g.Role == RoleEntry, Mode: g.Mode.And(global),
	}
	if g.Name == GroupNone {
		e.Group.Name = ""
	}
	if slices.Contains(g.Callers, GroupNone) {
		e.Group.Callers = nil
	}
	r.groupNotes(e)
}

// groupNotes tell what has no effect.
func (r *resolver) groupNotes(e *Effective) {
	if r.side == Provider {
		if e.setting(GroupKey).Value == "" {
			r.unused(e, []string{GroupCallersKey}, GroupKey)
		}
		return
	}
	if !e.Group.Strict {
		return
	}
	strict := e.setting(GroupMatchKey)
	for _, name := range []string{GroupFallbackKey, GroupMinAvailableKey, GroupMinProvidersKey} {
		if s := e.setting(name); s.Value != "" && exactness(strict.Level) <= exactness(s.Level) {
			e.noteIdle(GroupKey, fmt.Sprintf("%s=%s has no effect with %s=%s: a call goes to its very group or fails", s.Key, s.Value, strict.Key, strict.Value))
		}
	}
}

// Grouped reports whether some source says something of the groups of a side, or params
// do, so that somebody must look at them.
func (v *View) Grouped(side Side, params *Service) bool {
	has := func(s *Service) bool {
		if s.Group != nil {
			return true
		}
		for _, m := range s.Methods {
			if m.Group != nil {
				return true
			}
		}
		return false
	}
	for _, l := range v.layers {
		if l.cfg == nil {
			continue
		}
		section := l.cfg.section(side)
		if section.Group != nil {
			return true
		}
		for _, s := range section.Services {
			if has(&s) {
				return true
			}
		}
	}
	return params != nil && has(params)
}

// group adds the group in effect.
func (d *declaring) group(out map[string]string) {
	e := d.resolve("")
	_, stands := d.params[GroupKey]
	switch {
	case e.Group.Name != "":
		out[GroupKey] = e.Group.Name
	case stands:
		out[GroupKey] = GroupNone
	}
}
