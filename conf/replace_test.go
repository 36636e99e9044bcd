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
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const allNames = "leastactive, shortestresponse, p2c, execute, tps, active"

func TestReplaceInYAML(t *testing.T) {
	t.Setenv("WEIR_TEST_NAMES", "execute,tps")
	for text, want := range map[string][]string{
		"[leastactive, execute]":                {"leastactive", "execute"},
		"leastactive, execute":                  {"leastactive", "execute"},
		"tps":                                   {"tps"},
		"[]":                                    {},
		"\n  - p2c\n  - active":                 {"p2c", "active"},
		"[" + allNames + "]":                    {"leastactive", "shortestresponse", "p2c", "execute", "tps", "active"},
		"${WEIR_TEST_NAMES}":                    {"execute", "tps"},
		"['${WEIR_TEST_NONE:active}', execute]": {"active", "execute"},
	} {
		cfg, _, faults := ParseYAML("f", []byte("weir:\n  replace: "+text+"\n"))
		assert.Empty(t, faults, text)
		assert.Equal(t, &Config{Replace: want}, cfg, text)
	}
	cfg, _, faults := ParseYAML("f", []byte("weir: {mode: off}"))
	assert.Empty(t, faults)
	assert.Nil(t, cfg.Replace, "not set")
}

func TestReplaceFaults(t *testing.T) {
	const allowed = "a list of " + allNames + "; [] is none"
	for text, want := range map[string]string{
		"[execut]":              `f:1 key=replace value="execut": "execut" is not a word of this list; allowed: did you mean execute? all: ` + allowed,
		"[execute, execute]":    `f:1 key=replace value="execute,execute": "execute" stands in the list twice; allowed: once`,
		"[random]":              `f:1 key=replace value="random": "random" is not a word of this list; allowed: ` + allowed,
		"Execute":               `f:1 key=replace value="Execute": "Execute" is not a word of this list; allowed: did you mean execute? all: ` + allowed,
		"''":                    `f:1 key=replace: the list is empty; allowed: ` + allowed,
		"":                      `f:1 key=replace value="": allowed: ` + allowed,
		"[execute, ]":           "",
		"[execute, ~]":          `f:1 key=replace value="~": a word of the list is empty; allowed: ` + allowed,
		"{execute: true}":       `f:1 key=replace: a map where a single value belongs; allowed: ` + allowed,
		"true":                  `f:1 key=replace value="true": "true" is not a word of this list; allowed: ` + allowed,
		"[[execute]]":           `f:1 key=replace: a list where a word belongs; allowed: ` + allowed,
		"[tps, '${WEIR_NONE}']": `f:1 key=replace value="${WEIR_NONE}": environment variable WEIR_NONE is not set and has no default; allowed: ` + allowed,
	} {
		cfg, _, faults := ParseYAML("f", []byte("weir: {replace: "+text+"}"))
		if want == "" {
			assert.Empty(t, faults, text)
			continue
		}
		if assert.Len(t, faults, 1, text) {
			assert.Equal(t, want, faults[0].String(), text)
		}
		assert.Nil(t, cfg.Replace, "what is wrong is left out: %s", text)
	}
}

func TestReplaceInCode(t *testing.T) {
	names := []string{"execute", "leastactive"}
	out, faults := (&Config{Replace: names}).Checked("code")
	assert.Empty(t, faults)
	assert.Equal(t, &Config{Replace: []string{"execute", "leastactive"}}, out)
	names[0] = "x"
	assert.Equal(t, "execute", out.Replace[0], "the copy shares nothing")
	out, faults = (&Config{Replace: []string{}}).Checked("code")
	assert.Empty(t, faults)
	assert.NotNil(t, out.Replace, "none is not the same as not set")
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{[]string{"executes", "tps"}, `code key=replace value="executes,tps": "executes" is not a word of this list; allowed: did you mean execute? all: a list of ` + allNames + `; [] is none`},
		{[]string{"p2c", "p2c"}, `code key=replace value="p2c,p2c": "p2c" stands in the list twice; allowed: once`},
		{[]string{"execute,tps"}, `code key=replace value="\"execute,tps\"": "execute,tps" is not a word of this list; allowed: a list of ` + allNames + `; [] is none`},
		{[]string{""}, `code key=replace: a word of the list is empty; allowed: a list of ` + allNames + `; [] is none`},
	} {
		out, faults := (&Config{Replace: tt.names, Mode: Off}).Checked("code")
		require.Len(t, faults, 1, tt.names)
		assert.Equal(t, tt.want, faults[0].String())
		assert.Equal(t, &Config{Mode: Off}, out)
	}
}

func TestReplaceOfTheHighestSourceHolds(t *testing.T) {
	assert.Nil(t, (&View{}).Replace())
	execute, none := &Config{Replace: []string{"execute"}}, &Config{Replace: []string{}}
	assert.Equal(t, []string{"execute"}, viewOf(nil, nil, execute).Replace())
	assert.Equal(t, []string{"tps"}, viewOf(nil, &Config{Replace: []string{"tps"}}, execute).Replace(), "they are not joined")
	assert.Empty(t, viewOf(none, execute, execute).Replace())
	assert.Equal(t, []string{"execute"}, viewOf(&Config{Mode: Off}, execute, none).Replace())
}

func TestReplaceConflicts(t *testing.T) {
	for _, tt := range []struct {
		a, b []string
		want string
	}{
		{nil, []string{"execute"}, ""},
		{[]string{"tps"}, nil, ""},
		{[]string{}, []string{"execute"}, `b key=replace value="execute": a sets the same key to "[]"; allowed: one of the two places`},
		{[]string{"tps", "p2c"}, []string{}, `b key=replace value="[]": a sets the same key to "tps,p2c"; allowed: one of the two places`},
	} {
		faults := Conflicts("a", &Config{Replace: tt.a}, "b", &Config{Replace: tt.b})
		if tt.want == "" {
			assert.Empty(t, faults)
		} else if assert.Len(t, faults, 1) {
			assert.Equal(t, tt.want, faults[0].String())
		}
	}
}
