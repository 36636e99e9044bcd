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
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func validate(t *testing.T, doc string) Report {
	t.Helper()
	return Validate("f.yaml", []byte(doc))
}

// dubbo fills in the interface of a service from its stub when the file leaves it out.
func TestAttackInterfaceLeftOut(t *testing.T) {
	r := validate(t, `
dubbo:
  provider:
    services:
      GreetProvider: {version: ""}
      Other: {interface: org.x.Other}
weir:
  provider:
    services:
      org.x.Greet: {executes: 5}
`)
	require.Empty(t, r.Faults)
	assert.Empty(t, r.Warnings)
}

func TestAttackInterfacePlaceholder(t *testing.T) {
	r := validate(t, `
names: {greet: org.x.Greet}
dubbo:
  provider:
    services:
      GreetProvider: {interface: "${names.greet}"}
weir:
  provider:
    services:
      org.x.Greet: {executes: 5}
`)
	require.Empty(t, r.Faults)
	assert.Empty(t, r.Warnings)
}

func TestAttackMoreServicesThanRead(t *testing.T) {
	var b strings.Builder
	b.WriteString("dubbo:\n  provider:\n    services:\n")
	for i := range maxFaults + 1 {
		fmt.Fprintf(&b, "      S%d: {interface: org.x.S%d}\n", i, i)
	}
	fmt.Fprintf(&b, "weir:\n  provider:\n    services:\n      org.x.S%d: {executes: 5}\n", maxFaults)
	r := validate(t, b.String())
	require.Empty(t, r.Faults)
	for _, w := range r.Warnings {
		t.Errorf("%.100s (%d bytes)", w, len(w))
	}
}

func TestAttackTopMergeKey(t *testing.T) {
	r := validate(t, `
base: &base
  dubbo:
    provider:
      services:
        Greet: {interface: org.x.Greet, params: {executes: "5"}}
<<: *base
`)
	assert.Empty(t, r.Faults)
	r = validate(t, `
base: &base
  weir:
    provider: {executes: 5}
<<: *base
`)
	assert.Empty(t, r.Faults)
	assert.True(t, r.Section)
}

func TestAttackGroupsOfReference(t *testing.T) {
	for _, group := range []string{"a,b", "*"} {
		r := validate(t, `
dubbo:
  consumer:
    references:
      Greet: {interface: org.x.Greet, group: "`+group+`"}
weir:
  consumer:
    services:
      a/org.x.Greet: {actives: 5}
      org.x.Greet: {actives: 6}
`)
		require.Empty(t, r.Faults)
		assert.Empty(t, r.Warnings, group)
	}
}

func TestAttackVersion(t *testing.T) {
	for _, v := range []string{"0.0.0", "1.0.0", "*", ""} {
		want := "org.x.Greet"
		if v == "1.0.0" {
			want += ":1.0.0"
		}
		r := validate(t, `
dubbo:
  consumer:
    references:
      Greet: {interface: org.x.Greet, version: "`+v+`"}
weir:
  consumer:
    services:
      "`+want+`": {actives: 6}
`)
		require.Empty(t, r.Faults)
		assert.Empty(t, r.Warnings, v)
		r = validate(t, `
dubbo:
  consumer:
    references:
      Greet: {interface: org.x.Greet, version: 1.0}
      Greet2: {interface: org.x.Greet, group: gg, version: "${WEIR_ATTACK_UNSET:2.0}"}
weir:
  consumer:
    services:
      "org.x.Greet:1.0": {actives: 6}
      "gg/org.x.Greet:2.0": {actives: 6}
`)
		require.Empty(t, r.Faults)
		assert.Empty(t, r.Warnings, v)
	}
}

// Documents of all shapes: those with a section are not told that they have none, and
// nothing panics.
func TestAttackDocuments(t *testing.T) {
	for _, doc := range []string{
		`{"dubbo": {"provider": {"services": {"G": {"interface": "g"}}}}}`,
		"dubbo:\n", "---\ndubbo: {}\n", "\ufeffdubbo: {}\n", "k: &k dubbo\n*k : {}\n",
		"weir:\n", "weir: ~\n", "{weir: {}}", "# c\n---\n# d\ndubbo: {}\n",
	} {
		assert.Empty(t, validate(t, doc).Faults, "%q", doc)
	}
	for _, doc := range []string{
		"", "# only\n", "---\n", "[]", "x", "~", "*a", "&a [*a]", "&a {x: *a}", "<<: {}", "<<: 1", "{dub: {}}", "weirr: {}", "wier: {}", "a: 1\na: 2\n",
		"dubbo.provider.services.G.interface: x\n", "---\n---\ndubbo: {}\n",
	} {
		assert.NotEmpty(t, validate(t, doc).Faults, "%q", doc)
	}
	for _, doc := range []string{"1: x\ndubbo: {}\n", "? [a, b]\n: x\ndubbo: {}\n", "true: 1\n2.5: 1\nnull: 1\ndubbo: {}\n"} {
		validate(t, doc)
	}
}
