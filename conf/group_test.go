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
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func groupOf(t *testing.T, side Side, doc string, params map[string]string) Effective {
	t.Helper()
	var s Store
	if doc != "" {
		s.Set(FromFile, "f", parsed(t, doc))
	}
	p := ParseParams(side, "a.B", params)
	require.Empty(t, p.Faults)
	return s.View().Resolve(side, ServiceKey{Interface: "a.B"}, "SayHello", &p.Service)
}

func TestGroupsInEffect(t *testing.T) {
	for _, tt := range []struct {
		name   string
		side   Side
		doc    string
		params map[string]string
		want   GroupPolicy
	}{
		{"nothing", Consumer, "", nil, GroupPolicy{}},
		{"the short form", Consumer, "weir: {group: core}", nil, GroupPolicy{Name: "core", Mode: Enforce}},
		{"a provider observes", Provider, "weir: {group: core}", nil, GroupPolicy{Name: "core", Mode: Observe}},
		{"until it is told", Provider, "weir: {group: {name: core, mode: enforce}}", nil, GroupPolicy{Name: "core", Mode: Enforce}},
		{"less than told", Provider, "weir: {mode: observe, group: {name: core, mode: enforce}}", nil, GroupPolicy{Name: "core", Mode: Observe}},
		{
			"each key for its side", Consumer, "weir: {group: {name: core|pay, match: strict, role: entry, callers: [a, b]}}", nil,
			GroupPolicy{Name: "core|pay", Strict: true, Mode: Enforce},
		},
		{
			"each key for the other side", Provider, "weir: {group: {name: core|pay, match: strict, role: entry, callers: [a, b]}}", nil,
			GroupPolicy{Name: "core|pay", Entry: true, Callers: []string{"a", "b"}, Mode: Observe},
		},
		{
			"a side wins", Consumer, "weir: {group: {name: core, fallback: any}, consumer: {group: noncore, group.ungrouped: any}}", nil,
			GroupPolicy{Name: "noncore", Any: true, UngroupedAny: true, Mode: Enforce},
		},
		{
			"a method wins", Consumer, "weir: {group: core, consumer: {services: {a.B: {group: {min-available: 50%, min-providers: 2}, methods: {sayHello: {group: {match: strict}}}}}}}", nil,
			GroupPolicy{Name: "core", Strict: true, MinAvailable: WholeRatio / 2, MinProviders: 2, Mode: Enforce},
		},
		{"none", Consumer, "weir: {group: core}", map[string]string{"weir.group": "none"}, GroupPolicy{Mode: Enforce}},
		{"params", Consumer, "", map[string]string{"weir.group": "core", "methods.SayHello.weir.group.match": "strict"}, GroupPolicy{Name: "core", Strict: true, Mode: Enforce}},
		{"nobody besides", Provider, "weir: {group: {name: core, callers: a}, provider: {services: {a.B: {group.callers: none}}}}", nil, GroupPolicy{Name: "core", Mode: Observe}},
	} {
		assert.Equal(t, tt.want, groupOf(t, tt.side, tt.doc, tt.params).Group, tt.name)
	}
}

func TestGroupNotes(t *testing.T) {
	for doc, want := range map[string][]string{
		"weir: {group: {name: core, match: strict}}":                                                                nil,
		"weir: {group: {name: core, match: strict, fallback: any}}":                                                 {"weir.group.fallback=any has no effect with weir.group.match=strict: a call goes to its very group or fails"},
		"weir: {group: {match: fallback}, consumer: {group.fallback: any, services: {a.B: {group.match: strict}}}}": nil,
	} {
		assert.Equal(t, want, groupOf(t, Consumer, doc, nil).Notes(), doc)
	}
	assert.Equal(t, []string{"weir.group.callers=a has no effect without weir.group"}, groupOf(t, Provider, "weir: {provider: {group.callers: a}}", nil).Notes())
}

func TestGroupFaults(t *testing.T) {
	for doc, want := range map[string]string{
		"group: {nam: core}":     `f:1 key=group.nam value="core": unknown key; allowed: did you mean group.name? all: group.name, group.match, group.fallback, group.ungrouped, group.min-available, group.min-providers, group.callers, group.role, group.mode, group.registries`,
		"group: [core]":          `f:1 key=group: a list where a single value belongs; allowed: ` + allowedGroupName,
		"group: 'core,noncore'":  `f:1 key=group value="core,noncore": allowed: ` + allowedGroupName,
		"group: off":             `f:1 key=group value="off": allowed: ` + allowedGroupName,
		"group: {name: NONE}":    `f:1 key=group.name value="NONE": allowed: ` + allowedGroupName,
		"group: {match: exact}":  `f:1 key=group.match value="exact": allowed: strict or fallback`,
		"group: {callers: [a,]}": "",
		"group: {callers: [a b]}": `f:1 key=group.callers value="a b": "a b" is not a word of this list; allowed: ` +
			allowedApplicants,
		"group.name: core": `f:1 key=group.name value="core": a dotted key is not read here; allowed: the key nested below group:`,
	} {
		_, _, faults := ParseYAML("f", []byte("weir: {"+doc+"}"))
		if want == "" {
			assert.Empty(t, faults, doc)
			continue
		}
		require.Len(t, faults, 1, doc)
		assert.Equal(t, want, faults[0].String(), doc)
	}
}

func TestGroupsAreAskedFor(t *testing.T) {
	for doc, want := range map[string][2]bool{
		"weir: {}":                                {},
		"weir: {group: core}":                     {true, true},
		"weir: {group: {role: entry}}":            {true, false},
		"weir: {consumer: {group.match: strict}}": {false, true},
		"weir: {consumer: {services: {x.Y: {methods: {m: {group: core}}}}}}": {false, true},
	} {
		var s Store
		s.Set(FromCode, "code", parsed(t, doc))
		assert.Equal(t, want, [2]bool{s.View().Grouped(Provider, nil), s.View().Grouped(Consumer, nil)}, doc)
	}
	p := ParseParams(Consumer, "a.B", map[string]string{"weir.group": "core"})
	assert.True(t, (&View{}).Grouped(Consumer, &p.Service))
}

func TestAProviderDeclaresItsGroup(t *testing.T) {
	var s Store
	s.Set(FromFile, "f", parsed(t, "weir: {group: core, provider: {services: {a.None: {group: none}}}}"))
	declared := func(service string, params map[string]string) map[string]string {
		return s.View().DeclareParams(ServiceKey{Interface: service}, nil, params)
	}
	assert.Equal(t, map[string]string{"weir.group": "core"}, declared("a.B", nil))
	assert.Equal(t, map[string]string{"weir.group": "core|pay"}, declared("a.B", map[string]string{"weir.group": "core|pay"}))
	assert.Empty(t, declared("a.None", nil))
	assert.Equal(t, map[string]string{"weir.group": "none"}, declared("a.None", map[string]string{"weir.group": "none"}))
}

// What tells groups by hand tells the same as the pattern of the schema.
func FuzzIsGroup(f *testing.F) {
	pattern, words := regexp.MustCompile(groupPattern), regexp.MustCompile(noGroup)
	long := strings.Repeat("a", 64)
	for _, text := range []string{
		"", "core", "core|pay|vip", "|", "|core", "core|", "core||pay", "a|b|c|d|e|f|g|h", "a|b|c|d|e|f|g|h|i", long, long + "a",
		strings.Repeat(long+"|", 7) + long, "core,pay", "core pay", " core", "core\n", "core\x00", "c\xf6re", "c\u00f6re", "CORE", "true", "fAlse", "oN", "off", "Yes", "nO", "none", "None", "NONE", "nonE", "noNe", "nOne", "nope", "offf", "o", "0", ".", "-", "_", "a/b", "a:b", "a{b", "a@b", "a[b", "a`b",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := isGroup(text), pattern.MatchString(text); got != want {
			t.Fatalf("%q: %v, not %v", text, got, want)
		}
		if got, want := isSwitch(text), words.MatchString(text); got != want && isGroup(text) {
			t.Fatalf("%q: %v, not %v", text, got, want)
		}
	})
}

func TestIsGroup(t *testing.T) {
	for text, want := range map[string]bool{"core": true, "core|pay": true, "none": false, "": false, "a b": false, "|": false, "a|": false} {
		assert.Equal(t, want, IsGroup(text), text)
	}
}
