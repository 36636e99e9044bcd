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
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func limitOfActives(n int) Policies { return Policies{Actives: &Actives{Limit: Of(n)}} }

func TestParseDeclared(t *testing.T) {
	for name, tt := range map[string]struct {
		params map[string]string
		want   Service
	}{
		"nothing":                 {nil, Service{}},
		"nothing of ours":         {map[string]string{"interface": "a.B", "timeout": "3s", "methods": "SayHello,sayBye", "methods.SayHello.retries": "1"}, Service{}},
		"the service":             {map[string]string{"actives": "5"}, Service{Policies: limitOfActives(5)}},
		"unlimited":               {map[string]string{"actives": "-1", "methods.m.actives": "0"}, Service{Policies: limitOfActives(-1), Methods: map[string]Policies{"m": limitOfActives(0)}}},
		"a method":                {map[string]string{"methods.SayHello.actives": "5"}, Service{Methods: map[string]Policies{"sayHello": limitOfActives(5)}}},
		"application-level":       {map[string]string{"actives": "7", "SayHello.actives": "5"}, Service{Policies: limitOfActives(7), Methods: map[string]Policies{"sayHello": limitOfActives(5)}}},
		"both forms, the same":    {map[string]string{"sayHello.actives": "5", "methods.SayHello.actives": "5"}, Service{Methods: map[string]Policies{"sayHello": limitOfActives(5)}}},
		"odd names":               {map[string]string{"methods.actives": "1", "actives.actives": "2", "$invoke.actives": "3"}, Service{Methods: map[string]Policies{"methods": limitOfActives(1), "actives": limitOfActives(2), "$invoke": limitOfActives(3)}}},
		"empty":                   {map[string]string{"actives": "", "m.actives": "", "methods.n.actives": ""}, Service{}},
		"what is nobody's":        {map[string]string{"actives.wait": "x", "Actives": "x", ".actives": "x", "methods..actives": "x", "a.b.actives": "x", "methods.a.b.actives": "x", "a b.actives": "x", "*.actives": "x", "xactives": "x", "methods.m.actives.mode": "off"}, Service{}},
		"other keys of the table": {map[string]string{"executes": "x", "tps": "x", "tps.rate": "x", "weir.stats": "x", "weir.unknown": "x"}, Service{}},
	} {
		got, faults := ParseDeclared("a.B", tt.params)
		assert.Empty(t, faults, name)
		assert.Equal(t, tt.want, got, name)
	}
}

func TestParseDeclaredFaults(t *testing.T) {
	t.Setenv("WEIR_TEST_N", "5")
	got, faults := ParseDeclared("g/a.B:1", map[string]string{
		"actives": "ten", "methods.Good.actives": "3", "methods.M.actives": "1.5", "n.actives": " 3", "o.actives": "${WEIR_TEST_N}", "p.actives": strings.Repeat("9", 5000),
		"methods.Q.actives": "1", "q.actives": "2",
	})
	assert.Equal(t, Service{Methods: map[string]Policies{"good": limitOfActives(3), "q": limitOfActives(1)}}, got, "what is right stays")
	var lines, names []string
	for _, f := range faults {
		lines, names = append(lines, f.String()), append(names, f.Param())
	}
	assert.Equal(t, []string{
		`provider side=provider service=g/a.B:1 method=M key=actives value="1.5": allowed: ` + allowedLimit,
		`provider side=provider service=g/a.B:1 key=actives value="ten": allowed: ` + allowedLimit,
		`provider side=provider service=g/a.B:1 method=n key=actives value=" 3": allowed: ` + allowedLimit,
		`provider side=provider service=g/a.B:1 method=o key=actives value="${WEIR_TEST_N}": allowed: ` + allowedLimit,
		`provider side=provider service=g/a.B:1 method=p key=actives value="` + strings.Repeat("9", maxQuoted) + `...": allowed: ` + allowedLimit,
		`provider side=provider service=g/a.B:1 method=q key=actives value="2": methods.Q.actives=1 is about the same method; allowed: one of them`,
	}, lines, "another process's placeholders are not ours")
	assert.Equal(t, []string{"methods.M.actives", "actives", "n.actives", "o.actives", "p.actives", "q.actives"}, names)
}

func TestDeclareParams(t *testing.T) {
	methods := []string{"SayHello", "SayBye", "List"}
	section := viewOf(nil, parsed(t, `
weir:
  provider:
    actives: 9
    services:
      a.B: {actives: 5, methods: {sayHello: {actives: 2}, sayBye: {actives: 5}, gone: {actives: 7}}}
  consumer: {actives: 1}
`), nil)
	for _, tt := range []struct {
		name         string
		v            *View
		params, want map[string]string
	}{
		{"nothing", &View{}, map[string]string{"executes": "5", "timeout": "1s"}, map[string]string{}},
		{"params", &View{}, map[string]string{"actives": "3", "methods.SayBye.actives": "4"}, map[string]string{"actives": "3", "methods.SayBye.actives": "4"}},
		{"a method only", &View{}, map[string]string{"methods.SayBye.actives": "-4"}, map[string]string{"methods.SayBye.actives": "0"}},
		{"the section", section, nil, map[string]string{"actives": "5", "methods.SayHello.actives": "2"}},
		{"the section over params", section, map[string]string{"actives": "50", "methods.SayHello.actives": "20", "methods.SayBye.actives": "30"}, map[string]string{"actives": "5", "methods.SayHello.actives": "2", "methods.SayBye.actives": "5"}},
		{"params beside the section", section, map[string]string{"methods.List.actives": "3"}, map[string]string{"actives": "5", "methods.SayHello.actives": "2", "methods.List.actives": "3"}},
		{"spelled as in params", section, map[string]string{"methods.sayHello.executes": "3"}, map[string]string{"actives": "5", "methods.sayHello.actives": "2"}},
		{"of a method that nobody named", &View{}, map[string]string{"actives": "5", "methods.Other.actives": "3"}, map[string]string{"actives": "5", "methods.Other.actives": "3"}},
		{"wrong", &View{}, map[string]string{"actives": "ten", "methods.SayBye.actives": "x", "methods.a.b.actives": "1"}, map[string]string{}},
		{"the side", viewOf(&Config{Provider: Section{Policies: limitOfActives(-3)}}, nil, nil), nil, map[string]string{"actives": "0"}},
	} {
		before := maps.Clone(tt.params)
		got := tt.v.DeclareParams(ServiceKey{Interface: "a.B"}, methods, tt.params)
		assert.Equal(t, tt.want, got, tt.name)
		assert.Equal(t, before, tt.params, "they are not changed: %s", tt.name)
	}
	assert.Empty(t, (&View{}).DeclareParams(ServiceKey{Interface: "a.B"}, []string{"", "a.b", "*"}, nil))
	assert.Equal(t, map[string]string{"actives": "5"}, section.DeclareParams(ServiceKey{Interface: "a.B"}, nil, nil))
}

func TestDeclareWeights(t *testing.T) {
	section := viewOf(nil, parsed(t, `
weir:
  provider:
    weight: 10
    services:
      a.B: {weight: 50, methods: {sayHello: {weight: 0}, sayBye: {weight: 50}}}
      c.D: {methods: {sayHello: {weight: 0}}}
`), nil)
	// As dubbo-go writes them: 0 for what is not set, each method twice.
	methods := []string{"SayHello", "sayHello", "SayBye", "sayBye"}
	for _, tt := range []struct {
		name, service string
		v             *View
		params, want  map[string]string
	}{
		{"nothing", "a.B", &View{}, map[string]string{"weight": "0", "methods.SayBye.weight": "0"}, map[string]string{}},
		{"params", "a.B", &View{}, map[string]string{"weight": "0", "weir.weight": "7"}, map[string]string{"weight": "7", "weir.weight": "7"}},
		{"drained", "a.B", &View{}, map[string]string{"weight": "100", "weir.weight": "0"}, map[string]string{"weight": "0", "weir.weight": "0"}},
		{
			"a method only", "a.B", &View{}, map[string]string{"weight": "0", "methods.SayHello.weir.weight": "3"},
			map[string]string{"methods.SayHello.weir.weight": "3", "methods.SayHello.weight": "3", "methods.sayHello.weight": "3"},
		},
		{
			"the section", "a.B", section, map[string]string{"weight": "0"},
			map[string]string{"weight": "50", "weir.weight": "50", "methods.SayHello.weir.weight": "0", "methods.SayHello.weight": "0", "methods.sayHello.weight": "0"},
		},
		{
			"the section over params", "a.B", section, map[string]string{"weir.weight": "7", "methods.SayBye.weir.weight": "8"},
			map[string]string{
				"weight": "50", "weir.weight": "50", "methods.SayBye.weir.weight": "50", "methods.SayBye.weight": "50", "methods.sayBye.weight": "50",
				"methods.SayHello.weir.weight": "0", "methods.SayHello.weight": "0", "methods.sayHello.weight": "0",
			},
		},
		{
			"over those that dubbo-go writes for methods", "x.Y", section, map[string]string{"methods.SayBye.weight": "0", "methods.Other.weight": "30", "methods.a.b.weight": "1"},
			map[string]string{"weight": "10", "weir.weight": "10", "methods.SayBye.weight": "10", "methods.Other.weight": "10"},
		},
		{
			"the side and a method", "c.D", section, nil,
			map[string]string{"weight": "10", "weir.weight": "10", "methods.SayHello.weir.weight": "0", "methods.SayHello.weight": "0", "methods.sayHello.weight": "0"},
		},
		{"wrong", "a.B", &View{}, map[string]string{"weir.weight": "-1", "methods.SayBye.weir.weight": "1.5"}, map[string]string{}},
	} {
		got := tt.v.DeclareParams(ServiceKey{Interface: tt.service}, methods, tt.params)
		assert.Equal(t, tt.want, got, tt.name)
		url := maps.Clone(got)
		maps.Copy(url, map[string]string{"interface": "a.B"})
		assert.Empty(t, ParseParams(Provider, tt.service, url).Faults, tt.name)
		assert.Empty(t, ParseParams(Provider, tt.service, url).Warnings, tt.name)
		declared, faults := ParseDeclared(tt.service, url)
		assert.Equal(t, Service{}, declared, "a consumer does not take weights for limits")
		assert.Empty(t, faults, tt.name)
	}
	// Consumers look for the name that they call.
	assert.Equal(t, map[string]string{
		"weir.weight": "7", "weight": "7", "methods.sayBye.weir.weight": "0", "methods.SayBye.weir.weight": "0", "methods.SayBye.weight": "0", "methods.sayBye.weight": "0",
	}, (&View{}).DeclareParams(ServiceKey{Interface: "a.B"}, methods, map[string]string{"weir.weight": "7", "methods.sayBye.weir.weight": "0"}))
	assert.Equal(t, map[string]string{"methods.other.weir.weight": "4", "methods.other.weight": "4", "methods.weir.weir.weight": "5", "methods.weir.weight": "5"},
		(&View{}).DeclareParams(ServiceKey{Interface: "a.B"}, nil, map[string]string{"methods.other.weir.weight": "4", "methods.weir.weir.weight": "5", "methods.weir.weight": "0"}),
		"of a service that does not say which methods it has")
	for name, want := range map[string]bool{
		"weight": true, "methods.m.weight": true, "weir.weight": false, "methods.m.weir.weight": false, "methods.weight": false, "methods..weight": false, "m.weight": false,
	} {
		assert.Equal(t, want, DubboWeight(name), name)
	}
}

// What a provider declares is what its consumers have, and the URL is read as
// before and without faults.
func TestDeclareAndParse(t *testing.T) {
	service := ServiceKey{Interface: "a.B"}
	v := viewOf(nil, parsed(t, "weir: {provider: {actives: 9, services: {a.B: {methods: {sayHello: {actives: 2}}}}}}"), nil)
	for _, raw := range []map[string]string{
		{}, {"actives": "4"}, {"methods.SayHello.actives": "4", "methods.SayBye.actives": "6"}, {"methods.sayHello.executes": "1", "methods.sayBye.actives": "0"},
	} {
		url := maps.Clone(raw)
		maps.Copy(url, v.DeclareParams(service, []string{"SayHello", "SayBye", "List"}, raw))
		p := ParseParams(Provider, "a.B", url)
		require.Empty(t, p.Faults)
		before := ParseParams(Provider, "a.B", raw)
		declared, faults := ParseDeclared("a.B", url)
		require.Empty(t, faults)
		for _, method := range []string{"SayHello", "sayBye", "list"} {
			want := v.Resolve(Provider, service, method, &before.Service).Actives
			assert.Equal(t, want, v.Resolve(Provider, service, method, &p.Service).Actives, "%v %s", raw, method)
			got := (&View{}).ResolveDeclared(Consumer, service, method, nil, &declared).Actives
			assert.Equal(t, WaitLimit{Set: want.Set, Limit: want.Limit, Wait: -1, Mode: Enforce, Declared: true}, got, "%v %s", raw, method)
		}
	}
}

// ExampleParseDeclared shows what a consumer makes of its provider's URL.
func ExampleParseDeclared() {
	declared, _ := ParseDeclared("greet.GreetService", map[string]string{"actives": "20", "methods.SayHello.actives": "5"})
	e := (&View{}).ResolveDeclared(Consumer, ServiceKey{Interface: "greet.GreetService"}, "sayHello", nil, &declared)
	fmt.Println(e.Actives.Limit, e.Actives.Declared)
	// Output: 5 true
}
