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
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGroupRegistries(t *testing.T) {
	for doc, want := range map[string]GroupRegistries{
		"{}":                                   {},
		"{join: core}":                         {Join: []string{"core"}, See: "core"},
		"{see: core}":                          {Join: []string{"core"}, See: "core"},
		"{join: [core, noncore]}":              {Join: []string{"core", "noncore"}, See: "core"},
		"{join: 'noncore , core', see: other}": {Join: []string{"noncore", "core"}, See: "other"},
		"{from: zk, join: [core], also: [5]}":  {From: "zk", Join: []string{"core"}, See: "core", Also: []string{"5"}},
	} {
		c := parsed(t, "weir: {group: {name: core, registries: "+doc+"}}")
		v := &View{}
		v.layers[FromFile] = layer{cfg: c}
		got, asked := v.GroupRegistries()
		assert.Equal(t, want, got, doc)
		assert.Equal(t, doc != "{}", asked, doc)
		out, faults := c.Checked("code")
		assert.Empty(t, faults)
		assert.Equal(t, c, out, "and in code")
		assert.Equal(t, "core", c.Provider.Group.Name, "what else there is of groups")
	}
	v := &View{}
	v.layers[FromFile] = layer{cfg: parsed(t, "weir: {group: {registries: {from: zk, join: [core]}}}")}
	v.layers[FromCode] = layer{cfg: &Config{GroupRegistries: &GroupRegistries{Join: []string{"noncore"}, Also: []string{"core"}}}}
	got, asked := v.GroupRegistries()
	assert.True(t, asked)
	assert.Equal(t, GroupRegistries{From: "zk", Join: []string{"noncore"}, See: "noncore", Also: []string{"core"}}, got, "value by value")
	assert.Equal(t, []string{"noncore", "core"}, got.Groups())
	got, asked = (&View{}).GroupRegistries()
	assert.False(t, asked)
	assert.Empty(t, got.Groups())
}

func TestGroupRegistryValues(t *testing.T) {
	for text, right := range map[string]bool{
		"core": true, "CORE-1_a.b": true, "5": true, "...": true, "dubbo": true, strings.Repeat("a", 64): true,
		strings.Repeat("a", 65): false, ".": false, "..": false, "zookeeper": false, "none": false, "true": false, "False": false,
		"a/b": false, "/core": false, "a|b": false, "a b": false, "kärn": false, "a\x00": false,
	} {
		for _, k := range registryKeys {
			if k.part() == "from" {
				continue
			}
			var c Config
			assert.Equal(t, right, k.set(&c, text) == nil, "%s=%q", k.name, text)
			_, set := k.get(&c)
			assert.Equal(t, right, set, "%s=%q", k.name, text)
		}
	}
	for doc, want := range map[string]string{
		"{join: [core, a/b]}":    `f:1 key=group.registries.join value="core,a/b": "a/b" is not a word of this list; allowed: ` + allowedSegments,
		"{join: [core, core]}":   `f:1 key=group.registries.join value="core,core": "core" stands in the list twice; allowed: once`,
		"{join: []}":             `f:1 key=group.registries.join: the list is empty; allowed: ` + allowedSegments,
		"{join: }":               `f:1 key=group.registries.join value="": allowed: ` + allowedSegments,
		"{see: zookeeper}":       `f:1 key=group.registries.see value="zookeeper": allowed: ` + allowedSegment,
		"{see: [core]}":          `f:1 key=group.registries.see: a list where a single value belongs; allowed: ` + allowedSegment,
		"{from: a b}":            `f:1 key=group.registries.from value="a b": allowed: ` + allowedRegistry,
		"{form: zk}":             `f:1 key=group.registries.form value="zk": unknown key; allowed: did you mean group.registries.from? all: group.registries.from, group.registries.join, group.registries.see, group.registries.also`,
		"core":                   `f:1 key=group.registries value="core": a single value where a map belongs; allowed: a map of keys`,
		"{also: ['${WEIR_NO}']}": `f:1 key=group.registries.also value="${WEIR_NO}": environment variable WEIR_NO is not set and has no default; allowed: ` + allowedSegments,
	} {
		_, _, faults := ParseYAML("f", []byte("weir: {group: {registries: "+doc+"}}"))
		require.Len(t, faults, 1, doc)
		assert.Equal(t, want, faults[0].String(), doc)
	}
	_, faults := (&Config{GroupRegistries: &GroupRegistries{Join: []string{"a,b"}, See: ".."}}).Checked("code")
	assert.Len(t, faults, 2)
	faults = Conflicts("a", parsed(t, "weir: {group: {registries: {join: [core]}}}"), "b", parsed(t, "weir: {group: {registries: {join: [noncore], see: core}}}"))
	require.Len(t, faults, 1)
	assert.Equal(t, `b key=group.registries.join value="noncore": a sets the same key to "core"; allowed: one of the two places`, faults[0].String())
}

func TestGroupRegistriesOfADocument(t *testing.T) {
	const zk = "zk: {protocol: zookeeper, address: 127.0.0.1}"
	for _, tt := range []struct{ registries, asked, want string }{
		{zk, "{join: core}", ""},
		{zk, "{from: zk, see: core, also: [noncore]}", ""},
		{"zk: {address: '${where:zookeeper://127.0.0.1}'}", "{join: core}", ""},
		{zk, "{also: [core]}", "f:3 key=weir.group.registries: it names no group; allowed: join, see or both"},
		{"", "{join: core}", "f:3 key=weir.group.registries: dubbo has no registry to make those of the groups out of; allowed: one registry below dubbo.registries, or by dubbo.WithRegistry"},
		{zk + ", a: {protocol: nacos}", "{join: core}", "f:3 key=weir.group.registries.from: dubbo has several registries; allowed: one of a, zk"},
		{zk, "{from: zoo, join: core}", `f:3 key=weir.group.registries.from value="zoo": dubbo has no such registry; allowed: one of zk`},
		{"zk: {protocol: '${p:etcdv3}'}", "{join: core}", `f:3 key=dubbo.registries.zk.protocol value="etcdv3": groups by the path of a registry are for ZooKeeper: elsewhere dubbo-go 3.3.2 mixes them, or finds nobody, or it is not known; allowed: zookeeper, or groups by tag: weir.group`},
		{"zk: {protocol: zookeeper, group: a}", "{join: core}", `f:3 key=dubbo.registries.zk.group value="a": the groups are those of weir.group.registries; allowed: none here`},
		{zk + ", zk-core: {protocol: zookeeper}", "{from: zk, join: core}", `f:3 key=dubbo.registries.zk-core: this is the name of the registry of group core; allowed: another name`},
	} {
		section := "group: {registries: " + tt.asked + "}"
		for _, doc := range []string{
			"weir: {" + section + "}\ndubbo:\n  registries: {" + tt.registries + "}\n",
			"dubbo:\n  custom: {config-map: {weir: {" + section + "}}}\n  registries: {" + tt.registries + "}\n",
		} {
			report := Validate("f", []byte(doc))
			if tt.want == "" {
				assert.Empty(t, report.Faults, doc)
			} else if assert.Len(t, report.Faults, 1, doc) {
				assert.Equal(t, tt.want, report.Faults[0].String(), doc)
			}
		}
	}
	report := Validate("f", []byte("weir: {group: {registries: {join: core}}}"))
	assert.Empty(t, report.Faults, "dubbo's document is another")
}
