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
	"slices"
	"strings"
)

const (
	groupName = "group"

	// GroupGuard is the name of the guard in the refusals of groups.
	GroupGuard = groupName

	// GroupSeparator parts the levels of a group.
	GroupSeparator = "|"

	// groupPattern is the form of a group: up to eight levels.
	groupPattern = `^[A-Za-z0-9._-]{1,64}(\|[A-Za-z0-9._-]{1,64}){0,7}$`
	// noGroup are words that are no group, though they have its form.
	noGroup   = `^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|[Yy][Ee][Ss]|[Nn][Oo]|[Oo][Nn]|[Oo][Ff][Ff]|N[Oo][Nn][Ee]|nO[Nn][Ee]|noN[Ee]|nonE)$`
	maxLevels = 8
	maxLevel  = 64 // letters

	allowedGroupName  = "a name of 1 to 64 letters, digits, dots, underscores and hyphens, not true, false, yes, no, on or off, or up to 8 of them parted by |, the widest first; or none"
	allowedMatch      = "strict or fallback"
	allowedGroups     = "untagged or any"
	allowedRole       = "inner or entry"
	allowedAvailable  = "a fraction from 0 to 1 such as 0.5, or a percentage such as 50%; 0 is none"
	allowedProviders  = "a whole number from 0 to 2147483647, 0 is none"
	allowedApplicants = "a list of application names, each of 1 to 64 letters, digits, dots, underscores and hyphens, not true or false; or none"
)

// isGroup tells whether a text has the form of groupPattern. It is asked for every call.
func isGroup(s string) bool {
	levels, letters := 1, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == GroupSeparator[0]:
			if levels++; letters == 0 || levels > maxLevels {
				return false
			}
			letters = 0
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
			if letters++; letters > maxLevel {
				return false
			}
		default:
			return false
		}
	}
	return letters > 0
}

// switches are words that would hardly be meant as a group: whoever writes group: off
// wants none, and would take his instances away from all callers.
var switches = []string{"true", "false", "yes", "no", "on", "off", GroupNone}

// isSwitch tells the same as noGroup. It is asked for every call.
func isSwitch(s string) bool {
	if len(s) < len("no") || len(s) > len("false") {
		return false
	}
	switch s[0] | 0x20 {
	case 't', 'f', 'y', 'n', 'o':
		return s != GroupNone && slices.ContainsFunc(switches, func(w string) bool { return strings.EqualFold(s, w) })
	}
	return false
}

// parseGroup reads a group.
func parseGroup(s string) (string, error) {
	if !isGroup(s) || isSwitch(s) {
		return "", errValue
	}
	return s, nil
}

// IsGroup reports whether a text is the name of a group: one that calls can carry.
func IsGroup(s string) bool {
	_, err := parseGroup(s)
	return err == nil && s != GroupNone
}

func isApplication(s string) bool {
	_, err := parseName(s)
	return err == nil
}

// groupKeys keep core and non-core consumers apart.
var groupKeys = []*key{
	{
		name: GroupKey, sides: both, levels: anywhere, plain: "name",
		kind: groupName, allowed: allowedGroupName, def: "none",
		doc: "Group that a provider belongs to, and that a consumer's calls carry where they come with none. none takes it away here, although a wider level sets one.",
		set: setter(parseGroup, func(p *Policies, s string) { made(&p.Group).Name = s }),
		get: func(p *Policies) (string, bool) { return word(or(p.Group).Name) },
	},
	groupWord(GroupMatchKey, Consumer, MatchFallback, allowedMatch,
		"What a call with a group needs: a provider of its very group, or it fails (strict); or one of the deepest of its groups that is there, else of the fallback (fallback).",
		func(g *Group) *GroupMatch { return &g.Match }, MatchStrict, MatchFallback),
	groupWord(GroupFallbackKey, Consumer, FallbackUntagged, allowedGroups,
		"Where a call goes for whose group there is no provider, or too few: to those without a group (untagged) or to all (any).",
		func(g *Group) *GroupFallback { return &g.Fallback }, FallbackUntagged, FallbackAny),
	groupWord(GroupUngroupedKey, Consumer, FallbackUntagged, allowedGroups,
		"Where a call without a group goes: to providers without one and nowhere else (untagged), or, where there are none, to all (any).",
		func(g *Group) *GroupFallback { return &g.Ungrouped }, FallbackUntagged, FallbackAny),
	{
		name: GroupMinAvailableKey, sides: []Side{Consumer}, levels: anywhere,
		kind: "ratio", max: 1, allowed: allowedAvailable, def: "none",
		doc: "Share of a group's providers that must be available. With fewer its calls go to the fallback too, so that the rest is not crushed. 0 is none.",
		set: setter(parseShare, func(p *Policies, r Ratio) { made(&p.Group).MinAvailable = &r }),
		get: func(p *Policies) (string, bool) { return share(or(p.Group).MinAvailable) },
	},
	{
		name: GroupMinProvidersKey, sides: []Side{Consumer}, levels: anywhere,
		kind: "integer", min: 0, max: maxLimit, allowed: allowedProviders, def: "none",
		doc: "How many of a group's providers must be there and available. With fewer its calls go to the fallback too. 0 is none.",
		set: setter(parseCount, func(p *Policies, n int) { made(&p.Group).MinProviders = &n }),
		get: func(p *Policies) (string, bool) { return whole(or(p.Group).MinProviders) },
	},
	listRow(key{
		name: GroupCallersKey, sides: []Side{Provider}, levels: anywhere,
		allowed: allowedApplicants, def: "none",
		doc:   "Applications that are let in whatever group their calls carry, by the names that they tell.",
		words: []string{GroupNone}, other: isApplication, names: true, pattern: `[A-Za-z0-9._-]{1,64}`,
	}, func(p *Policies) *[]string { return &made(&p.Group).Callers }, func(p *Policies) []string { return or(p.Group).Callers }),
	groupWord(GroupRoleKey, Provider, RoleInner, allowedRole,
		"Whether the groups of callers are taken and passed on down the call tree (inner), or stripped, because they come from outside (entry).",
		func(g *Group) *GroupRole { return &g.Role }, RoleInner, RoleEntry),
	groupMode,
}

// groupMode is the guard's own mode. A provider only observes until it is told.
var groupMode = func() *key {
	k := modeRow(GroupModeKey, both,
		func(p *Policies) *Mode { return &made(&p.Group).Mode },
		func(p *Policies) Mode { return or(p.Group).Mode })
	k.def = "observe on a provider, enforce on a consumer"
	k.doc = "What becomes of calls of other groups: a provider refuses them (enforce), only counts them (observe) or does not look (off); off on a consumer takes its groups out."
	return k
}()

// groupWord is a row whose value is the word at.
func groupWord[T ~string](name string, side Side, def T, allowed, doc string, at func(*Group) *T, words ...T) *key {
	var enum []string
	for _, w := range words {
		enum = append(enum, string(w))
	}
	return &key{
		name: name, sides: []Side{side}, levels: anywhere, kind: "string", enum: enum, allowed: allowed, def: string(def), doc: doc,
		set: setter(oneOf(words...), func(p *Policies, w T) { *at(made(&p.Group)) = w }),
		get: func(p *Policies) (string, bool) { g := or(p.Group); return word(*at(&g)) },
	}
}
