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

func TestCheckedOfNothing(t *testing.T) {
	out, faults := (&Config{}).Checked("code")
	assert.Empty(t, faults)
	assert.Equal(t, &Config{}, out)
}

func TestCheckedKeepsWhatIsRight(t *testing.T) {
	out, faults := fullConfig().Checked("code")
	assert.Empty(t, faults)
	assert.Equal(t, fullConfig(), out)
}

func TestCheckedMakesNamesCanonical(t *testing.T) {
	five := Policies{Executes: &Executes{Limit: Of(5)}}
	out, faults := (&Config{Provider: Section{Services: map[string]Service{
		"g/a.B:0.0.0": {Methods: map[string]Policies{"SayHello": five, "sayBye": {}}},
	}}}).Checked("code")
	assert.Empty(t, faults)
	assert.Equal(t, &Config{Provider: Section{Services: map[string]Service{
		"g/a.B": {Methods: map[string]Policies{"sayHello": five, "sayBye": {}}},
	}}}, out)
}

func TestCheckedFaults(t *testing.T) {
	services := func(s map[string]Service) Config { return Config{Provider: Section{Services: s}} }
	for _, tt := range []struct {
		name  string
		c     Config
		fault string
	}{
		{"mode", Config{Mode: "on"}, `code key=mode value="on": allowed: enforce, observe or off`},
		{"on-error", Config{OnError: "panic"}, `code key=on-error value="panic": allowed: fail or warn`},
		{"service", services(map[string]Service{"a b": {}}), `code side=provider key=services value="a b": not a service; allowed: [group/]interface[:version]`},
		{"empty service", services(map[string]Service{"": {}}), `code side=provider key=services: a service without a name; allowed: [group/]interface[:version]`},
		{"service twice", services(map[string]Service{"a.B": {}, "a.B:0.0.0": {}}), `code side=provider key=services value="a.B:0.0.0": the service stands here twice; allowed: once`},
		{"method", services(map[string]Service{"a.B": {Methods: map[string]Policies{"m.n": {}}}}), `code side=provider service=a.B key=methods value="m.n": not a method; allowed: ` + allowedMethod},
		{"empty method", services(map[string]Service{"a.B": {Methods: map[string]Policies{"": {}}}}), `code side=provider service=a.B key=methods: a method without a name; allowed: ` + allowedMethod},
		{"method twice", services(map[string]Service{"a.B": {Methods: map[string]Policies{"m": {}, "M": {}}}}), `code side=provider service=a.B key=methods value="m": the method stands here twice (the case of its first letter does not matter); allowed: once`},
		{"wrong side", Config{Consumer: Section{Policies: Policies{Executes: &Executes{Limit: Of(1)}}}}, `code side=consumer key=executes value="1": executes is a provider's key and has no effect on a consumer; allowed: on a provider`},
		{"wrong level", Config{Consumer: Section{Services: map[string]Service{"a.B": {Methods: map[string]Policies{"m": {RetryRefused: Of(0.5)}}}}}}, `code side=consumer service=a.B method=m key=retry-refused value="0.5": weir.retry-refused cannot be set for a single method; allowed: for a whole service or reference, or for all of them`},
		{"scope of a method", services(map[string]Service{"a.B": {Methods: map[string]Policies{"m": {Executes: &Executes{Scope: ScopeService}}}}}), `code side=provider service=a.B method=m key=executes.scope value="service": allowed: method, service or protocol (service not for a single method)`},
	} {
		_, faults := tt.c.Checked("code")
		if assert.Len(t, faults, 1, tt.name) {
			assert.Equal(t, tt.fault, faults[0].String(), tt.name)
		}
	}
	out, faults := (&Config{
		Mode: "x", OnError: "y", AutoChain: Of(true),
		Provider: Section{
			Policies: Policies{Executes: &Executes{Limit: Of(1 << 40), Mode: Observe}},
			Services: map[string]Service{" ": {}, "a.B": {Methods: map[string]Policies{"m": {Executes: &Executes{Scope: "x", Limit: Of(3)}}, "-\n": {}}}},
		},
	}).Checked("code")
	assert.Len(t, faults, 6, "all are told")
	assert.Equal(t, &Config{
		AutoChain: Of(true),
		Provider: Section{
			Policies: Policies{Executes: &Executes{Mode: Observe}},
			Services: map[string]Service{"a.B": {Methods: map[string]Policies{"m": {Executes: &Executes{Limit: Of(3)}}}}},
		},
	}, out, "what is right stays")
}

func TestCheckedSharesNothing(t *testing.T) {
	c := fullConfig()
	out, faults := c.Checked("code")
	require.Empty(t, faults)

	*c.AutoChain = true
	for _, s := range []*Section{&c.Provider, &c.Consumer} {
		spoil(&s.Policies)
		for name, service := range s.Services {
			spoil(&service.Policies)
			for m, p := range service.Methods {
				spoil(&p)
				delete(service.Methods, m)
			}
			if service.Methods != nil {
				service.Methods["added"] = Policies{}
			}
			delete(s.Services, name)
		}
		s.Services["x.Y"] = Service{}
	}
	assert.Equal(t, fullConfig(), out)
}

// spoil writes through every pointer.
func spoil(p *Policies) {
	if p.Weight != nil {
		*p.Weight = 999
	}
	if p.Executes != nil {
		if p.Executes.Limit != nil {
			*p.Executes.Limit = 999
		}
		*p.Executes = Executes{Scope: "spoilt"}
	}
	if p.Actives != nil {
		if p.Actives.Limit != nil {
			*p.Actives.Limit = 999
		}
		if p.Actives.Wait != nil {
			*p.Actives.Wait = 999
		}
		*p.Actives = Actives{Mode: "spoilt"}
	}
	if p.TPS != nil {
		for _, n := range []*int{p.TPS.Limit, p.TPS.Burst} {
			if n != nil {
				*n = 999
			}
		}
		if p.TPS.Interval != nil {
			*p.TPS.Interval = 999
		}
		*p.TPS = TPS{Algorithm: "spoilt"}
	}
	if p.RetryRefused != nil {
		*p.RetryRefused = 0.999
	}
	if p.Stats != nil {
		*p.Stats = !*p.Stats
	}
}

func TestConflicts(t *testing.T) {
	assert.Empty(t, Conflicts("a", &Config{}, "b", &Config{}))
	assert.Empty(t, Conflicts("a", fullConfig(), "b", &Config{}))
	assert.Empty(t, Conflicts("a", &Config{}, "b", fullConfig()))

	a, _, faults := ParseYAML("a", []byte(`
weir:
  mode: off
  provider:
    executes: 5
    services:
      a.B: {executes.scope: service, methods: {SayHello: {executes: 1}}}
  consumer: {stats: true}
`))
	require.Empty(t, faults)
	b, _, faults := ParseYAML("b", []byte(`
weir:
  mode: off
  on-error: warn
  provider:
    executes.mode: observe
    services:
      a.B: {executes: {scope: method, limit: 3}, methods: {sayHello: {executes: 1}, SayBye: {executes: 2}}}
      g/a.B: {executes.scope: service}
  consumer: {stats: true}
`))
	require.Empty(t, faults)
	var got []string
	for _, f := range Conflicts("the file a", a, "the section", b) {
		got = append(got, f.String())
	}
	assert.ElementsMatch(t, []string{
		`the section key=mode value="off": the file a sets the same key to "off"; allowed: one of the two places`,
		`the section side=provider service=a.B key=executes.scope value="method": the file a sets the same key to "service"; allowed: one of the two places`,
		`the section side=provider service=a.B method=sayHello key=executes value="1": the file a sets the same key to "1"; allowed: one of the two places`,
		`the section side=consumer key=stats value="true": the file a sets the same key to "true"; allowed: one of the two places`,
	}, got, "the same value twice is a conflict too: neither place shows the other")

	for range 10 {
		var again []string
		for _, f := range Conflicts("the file a", a, "the section", b) {
			again = append(again, f.String())
		}
		require.Equal(t, got, again, "always in the same order")
	}
}

// Every key of the table, the root's included, can conflict.
func TestConflictsCoverEveryKey(t *testing.T) {
	n := 0
	for _, k := range keys {
		for _, text := range values {
			var p Policies
			if k.set(&p, text) != nil {
				continue
			}
			for _, at := range allLevels {
				if c := codeConfig(k.sides[0], at, p); k.levels&at != 0 {
					faults := Conflicts("a", c, "b", c)
					var got, want []string
					for _, f := range faults {
						got = append(got, f.Key)
					}
					for _, o := range k.stands() {
						want = append(want, o.section())
					}
					require.ElementsMatch(t, want, got)
					n++
				}
			}
		}
	}
	assert.Greater(t, n, len(keys))
	for key, c := range map[string]*Config{"mode": {Mode: Enforce}, "on-error": {OnError: Fail}, "auto-chain": {AutoChain: Of(false)}} {
		faults := Conflicts("a", c, "b", c)
		require.Len(t, faults, 1)
		assert.Equal(t, key, faults[0].Key)
		assert.Empty(t, faults[0].Side)
	}
}

func params(t *testing.T, keyValues ...string) *Service {
	t.Helper()
	m := map[string]string{}
	for i := 0; i < len(keyValues); i += 2 {
		m[keyValues[i]] = keyValues[i+1]
	}
	p := ParseParams(Provider, "a.B", m)
	require.Empty(t, p.Faults)
	return &p.Service
}

func TestDifferences(t *testing.T) {
	differ := func(a, b *Service) []string {
		var out []string
		for _, f := range Differences(&View{}, Provider, ServiceKey{Interface: "a.B"}, "tri", a, "dubbo", b) {
			out = append(out, f.String())
		}
		return out
	}
	none := params(t)
	five := params(t, "executes", "5")
	assert.Empty(t, differ(params(t, "weir.weight", "5"), params(t, "weir.weight", "6", "methods.m.weir.weight", "0")), "each protocol's URL has its own")
	assert.Empty(t, differ(none, none))
	assert.Empty(t, differ(five, params(t, "executes", "5")))
	assert.Equal(t, []string{
		`params side=provider service=a.B key=executes value="6": protocols share a service's limits, but tri says "5" and dubbo says "6"; allowed: the same for all protocols, or executes.scope: protocol`,
	}, differ(five, params(t, "executes", "6")))
	assert.Equal(t, []string{
		`params side=provider service=a.B key=executes: protocols share a service's limits, but tri says "5" and dubbo says nothing; allowed: the same for all protocols, or executes.scope: protocol`,
	}, differ(five, none))
	assert.Equal(t, []string{
		`params side=provider service=a.B key=executes value="5": protocols share a service's limits, but tri says nothing and dubbo says "5"; allowed: the same for all protocols, or executes.scope: protocol`,
	}, differ(none, five))
	assert.Equal(t, []string{
		`params side=provider service=a.B method=m key=executes value="2": protocols share a service's limits, but tri says "1" and dubbo says "2"; allowed: the same for all protocols, or executes.scope: protocol`,
		`params side=provider service=a.B method=n key=executes.mode: protocols share a service's limits, but tri says "off" and dubbo says nothing; allowed: the same for all protocols, or executes.scope: protocol`,
	}, differ(params(t, "methods.m.executes", "1", "methods.n.executes.mode", "off"), params(t, "methods.M.executes", "2")))

	// Where each protocol counts by itself, both must say so.
	protocol := func(kv ...string) *Service { return params(t, append(kv, "executes.scope", "protocol")...) }
	assert.Empty(t, differ(protocol("executes", "5"), protocol("executes", "6")))
	assert.Empty(t, differ(protocol("executes", "5", "methods.m.executes", "1"), protocol("methods.m.executes", "2", "methods.m.executes.mode", "off")))
	assert.Len(t, differ(protocol("executes", "5"), params(t, "executes", "6", "executes.scope", "method")), 2, "the scope and the limit")
	assert.Empty(t, differ(
		params(t, "methods.m.executes", "1", "methods.m.executes.scope", "protocol"),
		params(t, "methods.m.executes", "2", "methods.m.executes.scope", "protocol")))
	assert.Len(t, differ(
		protocol("methods.m.executes", "1", "methods.m.executes.scope", "method"),
		protocol("methods.m.executes", "2", "methods.m.executes.scope", "method")), 1, "the method's own scope counts")

	// A method that has the service's value has it all the same.
	assert.Empty(t, differ(params(t, "executes", "5"), params(t, "executes", "5", "methods.m.executes", "5")))
	assert.Equal(t, []string{
		`params side=provider service=a.B method=m key=executes value="4": protocols share a service's limits, but tri says "5" and dubbo says "4"; allowed: the same for all protocols, or executes.scope: protocol`,
	}, differ(params(t, "executes", "5"), params(t, "executes", "5", "methods.m.executes", "4")))
	assert.Len(t, differ(params(t, "executes", "5", "methods.m.executes.mode", "off"), params(t, "executes", "6", "methods.m.executes.mode", "off")), 1, "told once")
}

// The scope may come from any source, and a method that is shared in spite of
// its service's scope was not compared in what it has from the service.
func TestRegression_DifferencesByEffectiveScope(t *testing.T) {
	service := ServiceKey{Group: "g", Interface: "a.B"}
	a, b := params(t, "executes", "5", "methods.m.executes", "1"), params(t, "executes", "6", "methods.m.executes", "2")
	assert.Len(t, Differences(&View{}, Provider, service, "tri", a, "dubbo", b), 2)
	for _, where := range []string{"executes.scope: protocol", "services: {a.B: {executes.scope: protocol}}", "services: {g/a.B: {executes.scope: protocol}}"} {
		v := viewOf(nil, parsed(t, "weir: {provider: {"+where+"}}"), nil)
		assert.Empty(t, Differences(v, Provider, service, "tri", a, "dubbo", b), where)
	}
	v := viewOf(nil, parsed(t, "weir: {provider: {services: {a.B: {methods: {m: {executes.scope: protocol}}}}}}"), nil)
	faults := Differences(v, Provider, service, "tri", a, "dubbo", b)
	require.Len(t, faults, 1)
	assert.Empty(t, faults[0].Method)

	a = params(t, "executes", "5", "executes.scope", "protocol", "methods.m.executes.scope", "method")
	b = params(t, "executes", "6", "executes.scope", "protocol", "methods.m.executes.scope", "method")
	faults = Differences(&View{}, Provider, service, "tri", a, "dubbo", b)
	require.Len(t, faults, 1)
	assert.Equal(t, `params side=provider service=g/a.B method=m key=executes value="6": protocols share a service's limits, but tri says "5" and dubbo says "6"; allowed: the same for all protocols, or executes.scope: protocol`, faults[0].String())
}

// With executes.scope: protocol, protocols could also differ in how statistics
// are kept, which they share all the same.
func TestRegression_StatisticsAreSharedInAnyScope(t *testing.T) {
	a := params(t, "executes.scope", "protocol", "weir.stats", "true", "executes", "1")
	b := params(t, "executes.scope", "protocol", "weir.stats", "false", "executes", "2")
	faults := Differences(&View{}, Provider, ServiceKey{Interface: "a.B"}, "tri", a, "dubbo", b)
	require.Len(t, faults, 1)
	assert.Equal(t, StatsKey, faults[0].Key)
	assert.Equal(t, "the same for all protocols", faults[0].Allowed)
}

// A method's budget is its own or the service's, so a value that is the same as
// the service's is not the same as none.
func TestDifferencesOfBudgets(t *testing.T) {
	differ := func(a, b *Service) []string {
		var out []string
		for _, f := range Differences(&View{}, Provider, ServiceKey{Interface: "a.B"}, "tri", a, "dubbo", b) {
			out = append(out, strings.TrimPrefix(strings.TrimSuffix(f.String(), "; allowed: the same for all protocols"), "params side=provider service=a.B "))
		}
		return out
	}
	for _, same := range [][2]*Service{
		{params(t, "tps", "5", "actives", "3"), params(t, "tps", "5", "actives", "3")},
		{params(t, "tps.rate", "200/s"), params(t, "tps", "200", "tps.interval", "1000")},
		{params(t, "tps", "5", "tps.interval", "60s"), params(t, "tps", "5", "tps.interval", "1m")},
		{params(t, "methods.m.tps.rate", "5/s"), params(t, "methods.M.tps.rate", "5/1s")},
		{params(t, "actives", "5"), params(t, "actives", "5", "methods.m.actives", "5")},
		{params(t, "tps", "5", "tps.mode", "off"), params(t, "tps", "5", "tps.mode", "off", "methods.m.tps.mode", "off")},
	} {
		assert.Empty(t, differ(same[0], same[1]))
		assert.Empty(t, differ(same[1], same[0]))
	}
	assert.Equal(t, []string{
		`key=actives value="4": protocols share a service's limits, but tri says "3" and dubbo says "4"`,
		`key=tps: protocols share a service's limits, but tri says "5" and dubbo says nothing`,
		`key=tps.algorithm value="fixed": protocols share a service's limits, but tri says nothing and dubbo says "fixed"`,
	}, differ(params(t, "tps", "5", "actives", "3"), params(t, "actives", "4", "tps.algorithm", "fixed")))
	assert.Equal(t, []string{
		`key=tps value="6": protocols share a service's limits, but tri says "5" and dubbo says "6"`,
	}, differ(params(t, "tps", "5", "methods.m.tps", "1"), params(t, "tps", "6", "methods.m.tps", "1")))
	assert.Equal(t, []string{
		`method=m key=tps value="5": protocols share a service's limits, but tri says nothing and dubbo says "5"`,
	}, differ(params(t, "tps", "5"), params(t, "tps", "5", "methods.m.tps", "5")))
	assert.Equal(t, []string{
		`method=m key=tps.interval: protocols share a service's limits, but tri says "1s" and dubbo says nothing`,
	}, differ(params(t, "tps", "5", "methods.m.tps.interval", "1s"), params(t, "tps", "5", "methods.m.tps.mode", "enforce", "tps.mode", "enforce"))[1:2])

	// Each protocol counts its executes by itself then, and nothing else.
	assert.Len(t, differ(params(t, "executes.scope", "protocol", "tps", "5", "executes", "1"), params(t, "executes.scope", "protocol", "tps", "6", "executes", "2")), 1)
}
