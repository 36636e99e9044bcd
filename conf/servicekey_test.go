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
)

func TestParseServiceKey(t *testing.T) {
	for text, want := range map[string]ServiceKey{
		"greet.GreetService":            {Interface: "greet.GreetService"},
		"GreetService":                  {Interface: "GreetService"},
		"g/greet.GreetService":          {Group: "g", Interface: "greet.GreetService"},
		"greet.GreetService:1.0.0":      {Interface: "greet.GreetService", Version: "1.0.0"},
		"g/greet.GreetService:1.0.0":    {Group: "g", Interface: "greet.GreetService", Version: "1.0.0"},
		"*/greet.GreetService":          {Group: "*", Interface: "greet.GreetService"}, // a reference of any group
		"a.B$C":                         {Interface: "a.B$C"},                          // a Java inner class
		"gruppe-ü/a.B:v1":               {Group: "gruppe-ü", Interface: "a.B", Version: "v1"},
		"team:1/a.B":                    {Group: "team:1", Interface: "a.B"},
		"a.B:1.0-SNAPSHOT+x":            {Interface: "a.B", Version: "1.0-SNAPSHOT+x"},
		"a.B:0.0.0":                     {Interface: "a.B", Version: "0.0.0"},
		strings.Repeat("a.", 500) + "B": {Interface: strings.Repeat("a.", 500) + "B"},
	} {
		got, ok := ParseServiceKey(text)
		assert.True(t, ok, "%q", text)
		assert.Equal(t, want, got, "%q", text)
		again, ok := ParseServiceKey(got.String())
		assert.True(t, ok, "%q", text)
		assert.Equal(t, got.String(), again.String())
	}
	for _, text := range []string{
		"", "/", ":", "/:", "g/", "g/:1", ":1", "a.B:", "g/a.B:", "/a.B", "/a.B:1",
		" a.B", "a.B ", "a B", "g /a.B", "a.B: 1", "a.B\t", "a.B\n", "a.B\x00", "a.B\x7f", "\u00a0a.B", "a.\u200bB", "a.B\u3000", "\u202ea.B", "\ufeffa.B", "\xff",
		"${SERVICE}", "a.${NAME:B}", "${GROUP}/a.B",
	} {
		_, ok := ParseServiceKey(text)
		assert.False(t, ok, "%q", text)
	}
}

// Such keys were taken, and matched no service.
func TestRegression_KeysThatMatchNothing(t *testing.T) {
	for _, text := range []string{"a/b/c", "g/a.B/SayHello", "a.B:1:2", "a.B:1/2/3", "/a.B/"} {
		_, ok := ParseServiceKey(text)
		assert.False(t, ok, "%q", text)
	}
}

func TestServiceKeyString(t *testing.T) {
	for want, k := range map[string]ServiceKey{
		"a.B":     {Interface: "a.B"},
		"g/a.B":   {Group: "g", Interface: "a.B"},
		"a.B:1":   {Interface: "a.B", Version: "1"},
		"g/a.B:1": {Group: "g", Interface: "a.B", Version: "1"},
		"h/a.B":   {Group: "h", Interface: "a.B", Version: "0.0.0"}, // dubbo leaves out 0.0.0
		"":        {},
	} {
		assert.Equal(t, want, k.String())
	}
}

func TestMethodNames(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"SayHello", "sayHello", true}, {"sayHello", "sayHello", true}, {"SayHello", "SayHello", true},
		{"sayHello", "sayhello", false}, {"SAYHELLO", "sAYHELLO", true}, {"say", "sayHello", false},
		{"", "", true}, {"", "a", false}, {"a", "A", true}, {"ä", "Ä", false}, {"_a", "_A", false},
		{"@", "`", false}, {"Z", "z", true}, {"[", "{", false}, {"$invoke", "$invoke", true}, {"1", "1", true},
	} {
		assert.Equal(t, tt.same, SameMethod(tt.a, tt.b), "%q %q", tt.a, tt.b)
		assert.Equal(t, tt.same, SameMethod(tt.b, tt.a), "%q %q", tt.a, tt.b)
		assert.Equal(t, tt.same, MethodKey(tt.a) == MethodKey(tt.b), "%q %q", tt.a, tt.b)
		assert.Equal(t, MethodKey(tt.a), MethodKey(MethodKey(tt.a)))
	}
}

func TestIsMethod(t *testing.T) {
	for _, name := range []string{"a", "SayHello", "sayHello", "$invoke", "_x", "größe", "方法", "foo-bar", "A1"} {
		assert.True(t, isMethod(name), name)
	}
	for _, name := range []string{"", " ", "a b", " a", "a\n", "*", "Say*", "a.B", "/a.B/c", "a#b", "a:b", "a,b", "${M}", "{x}", "a\u200b", "\xff"} {
		assert.False(t, isMethod(name), "%q", name)
	}
}

func FuzzServiceKey(f *testing.F) {
	f.Add("g/a.B:1", "SayHello", "sayHello")
	f.Add("//::", "", "x")
	f.Fuzz(func(t *testing.T, text, a, b string) {
		if k, ok := ParseServiceKey(text); ok {
			again, ok := ParseServiceKey(k.String())
			if !ok || k.Version != "0.0.0" && again != k {
				t.Fatalf("%q is %+v, then %+v", text, k, again)
			}
		}
		if SameMethod(a, b) != (MethodKey(a) == MethodKey(b)) {
			t.Fatalf("%q and %q", a, b)
		}
	})
}
