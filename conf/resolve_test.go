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
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	exactKey = ServiceKey{Group: "g", Interface: "a.B", Version: "1.0"}
	origins  = [...]string{FromCode: "code", FromFile: "file x.yaml", FromSection: "the section"}
)

// viewOf is a view of sources; nil for none.
func viewOf(code, file, section *Config) *View {
	var s Store
	for slot, c := range [...]*Config{FromCode: code, FromFile: file, FromSection: section} {
		if c != nil {
			s.Set(Slot(slot), origins[slot], c)
		}
	}
	return s.View()
}

// parsed is what a document says, which must be right.
func parsed(t *testing.T, doc string) *Config {
	t.Helper()
	cfg, found, faults := ParseYAML("x.yaml", []byte(doc))
	require.True(t, found, doc)
	require.Empty(t, faults, doc)
	return cfg
}

// TestPrecedence tries every combination of places that may set executes: for
// each of three sources the side, the service and the method, the latter two
// under the exact and the bare key, and in params the service and the method.
func TestPrecedence(t *testing.T) {
	const (
		side = 1 << iota
		exactService
		bareService
		exactMethod
		bareMethod
		combinations
	)
	const paramService, paramMethod, paramCombinations = 1, 2, 4
	// The number tells the place: 1000 of the source and the bit.
	limit := func(source, bit int) Policies {
		return Policies{Executes: &Executes{Limit: Of((source+1)*1000 + bit)}}
	}
	source := func(source, bits int) *Config {
		if bits == 0 {
			return nil
		}
		c := &Config{Provider: Section{Services: map[string]Service{}}}
		if bits&side != 0 {
			c.Provider.Policies = limit(source, side)
		}
		for name, bit := range map[string][2]int{"g/a.B:1.0": {exactService, exactMethod}, "a.B": {bareService, bareMethod}} {
			s := Service{Methods: map[string]Policies{"other": limit(source, 999)}}
			if bits&bit[0] != 0 {
				s.Policies = limit(source, bit[0])
			}
			if bits&bit[1] != 0 {
				s.Methods["sayHello"] = limit(source, bit[1])
			}
			c.Provider.Services[name] = s
		}
		c.Provider.Services["g/a.B:2.0"] = Service{Policies: limit(source, 998)}
		c.Provider.Services["h/a.B:1.0"] = Service{Policies: limit(source, 997)}
		c.Provider.Services["g/a.B"] = Service{Policies: limit(source, 996)}
		c.Consumer = Section{Policies: Policies{Stats: Of(true)}}
		return c
	}
	var configs [3][combinations]*Config
	for s := range configs {
		for bits := range combinations {
			configs[s][bits] = source(s, bits)
		}
	}
	var fromURL [paramCombinations]*Service
	for bits := 1; bits < paramCombinations; bits++ {
		s := &Service{}
		if bits&paramService != 0 {
			s.Policies = limit(3, paramService)
		}
		if bits&paramMethod != 0 {
			s.Methods = map[string]Policies{"sayHello": limit(3, paramMethod)}
		}
		fromURL[bits] = s
	}

	// oracle asks place after place in the order that the documentation gives.
	type place struct {
		level       string
		source, bit int
	}
	var order []place
	for source := range 3 {
		order = append(order, place{"method", source, exactMethod}, place{"method", source, bareMethod})
	}
	order = append(order, place{"method", 3, paramMethod})
	for source := range 3 {
		order = append(order, place{"service", source, exactService}, place{"service", source, bareService})
	}
	order = append(order, place{"service", 3, paramService})
	for source := range 3 {
		order = append(order, place{"side", source, side})
	}
	names := [...]string{origins[0], origins[1], origins[2], "params"}

	count := 0
	for a := range combinations {
		for b := range combinations {
			for c := range combinations {
				v := View{layers: [slotCount]layer{{origins[0], configs[0][a]}, {origins[1], configs[1][b]}, {origins[2], configs[2][c]}}}
				for d := range paramCombinations {
					count++
					bits := [...]int{a, b, c, d}
					var want *place
					for i := range order {
						if bits[order[i].source]&order[i].bit != 0 {
							want = &order[i]
							break
						}
					}
					got := v.Resolve(Provider, exactKey, "SayHello", fromURL[d])
					if want == nil {
						if got.Executes.Set || len(got.Settings) != 0 {
							t.Fatalf("%v: %+v, want nothing", bits, got)
						}
						continue
					}
					n := (want.source+1)*1000 + want.bit
					setting := Setting{Key: "executes", Value: strconv.Itoa(n), Source: names[want.source], Level: want.level}
					if got.Executes != (Limit{Set: true, Limit: n, Scope: ScopeMethod, Mode: Enforce}) || got.SharedExecutes.Set ||
						len(got.Settings) != 1 || got.Settings[0] != setting {
						t.Fatalf("%v: %+v, want %+v", bits, got, setting)
					}
				}
			}
		}
	}
	assert.Equal(t, 1<<17, count)
}

func TestBareKeyMatchesAllGroupsAndVersions(t *testing.T) {
	v := viewOf(nil, parsed(t, `
weir:
  provider:
    services:
      a.B: {executes: 1}
      g/a.B: {executes: 2}
      a.B:2.0: {executes: 3}
`), nil)
	for want, keys := range map[int][]ServiceKey{
		1: {{Interface: "a.B"}, {Group: "h", Interface: "a.B"}, {Interface: "a.B", Version: "1.0"}, {Group: "g", Interface: "a.B", Version: "2.0"}, {Interface: "a.B", Version: "0.0.0"}},
		2: {{Group: "g", Interface: "a.B"}, {Group: "g", Interface: "a.B", Version: "0.0.0"}},
		3: {{Interface: "a.B", Version: "2.0"}},
	} {
		for _, k := range keys {
			assert.Equal(t, want, v.Resolve(Provider, k, "m", nil).Executes.Limit, k)
		}
	}
	for _, k := range []ServiceKey{{Interface: "a.C"}, {Interface: "A.B"}, {Interface: "B"}, {Group: "g"}, {}} {
		assert.False(t, v.Resolve(Provider, k, "m", nil).Executes.Set, k)
	}
}

func TestNegativeAndZeroAreUnlimited(t *testing.T) {
	for _, n := range []string{"0", "-1", "-2147483648"} {
		v := viewOf(nil, parsed(t, "weir: {provider: {executes: "+n+"}}"), nil)
		e := v.Resolve(Provider, exactKey, "m", nil)
		assert.Equal(t, Limit{Set: true, Scope: ScopeMethod, Mode: Enforce}, e.Executes, n)
		assert.Equal(t, n, e.Settings[0].Value)
	}
	// Unlimited is a value: it hides those of wider places.
	v := viewOf(nil, parsed(t, "weir: {provider: {executes: 5, services: {a.B: {executes: 0, methods: {m: {executes: 7}}}}}}"), nil)
	assert.Zero(t, v.Resolve(Provider, exactKey, "n", nil).Executes.Limit)
	assert.Equal(t, 7, v.Resolve(Provider, exactKey, "m", nil).Executes.Limit)
	assert.Equal(t, 5, v.Resolve(Provider, ServiceKey{Interface: "a.C"}, "m", nil).Executes.Limit)
}

func TestMethodNamesFold(t *testing.T) {
	for _, written := range []string{"SayHello", "sayHello"} {
		v := viewOf(nil, parsed(t, "weir: {provider: {services: {a.B: {methods: {"+written+": {executes: 7}}}}}}"), nil)
		p := ParseParams(Provider, "a.B", map[string]string{"methods." + written + ".executes": "8"})
		for _, called := range []string{"SayHello", "sayHello"} {
			assert.Equal(t, 7, v.Resolve(Provider, exactKey, called, nil).Executes.Limit)
			assert.Equal(t, 8, (&View{}).Resolve(Provider, exactKey, called, &p.Service).Executes.Limit)
		}
		assert.False(t, v.Resolve(Provider, exactKey, "sayhello", nil).Executes.Set)
		assert.False(t, v.Resolve(Provider, exactKey, "", nil).Executes.Set)
	}
}

// With executes.scope: service a method's own value and the shared one both hold.
func TestScopeService(t *testing.T) {
	v := viewOf(nil, parsed(t, `
weir:
  provider:
    services:
      a.B:
        executes: 20
        executes.scope: service
        methods:
          own: {executes: 3}
          unlimited: {executes: -1}
          apart: {executes: 4, executes.scope: protocol}
          onlyScope: {executes.scope: protocol}
`), nil)
	shared := Limit{Set: true, Limit: 20, Scope: ScopeService, Mode: Enforce}
	for method, own := range map[string]Limit{
		"none":      {},
		"own":       {Set: true, Limit: 3, Scope: ScopeMethod, Mode: Enforce},
		"unlimited": {Set: true, Limit: 0, Scope: ScopeMethod, Mode: Enforce},
		"apart":     {Set: true, Limit: 4, Scope: ScopeProtocol, Mode: Enforce},
		"onlyScope": {},
	} {
		e := v.Resolve(Provider, exactKey, method, nil)
		assert.Equal(t, shared, e.SharedExecutes, method)
		assert.Equal(t, own, e.Executes, method)
	}

	// The scope alone limits nothing.
	v = viewOf(nil, parsed(t, "weir: {provider: {executes.scope: service, services: {a.B: {methods: {m: {executes: 3}}}}}}"), nil)
	e := v.Resolve(Provider, exactKey, "m", nil)
	assert.False(t, e.SharedExecutes.Set)
	assert.Equal(t, 3, e.Executes.Limit)

	// A service turns back what holds for all of the side.
	v = viewOf(nil, parsed(t, "weir: {provider: {executes: 9, executes.scope: service, services: {a.B: {executes.scope: method}}}}"), nil)
	e = v.Resolve(Provider, exactKey, "m", nil)
	assert.False(t, e.SharedExecutes.Set)
	assert.Equal(t, Limit{Set: true, Limit: 9, Scope: ScopeMethod, Mode: Enforce}, e.Executes)
	e = v.Resolve(Provider, ServiceKey{Interface: "a.C"}, "m", nil)
	assert.Equal(t, Limit{Set: true, Limit: 9, Scope: ScopeService, Mode: Enforce}, e.SharedExecutes)
	assert.False(t, e.Executes.Set)

	// Scope from one source, limit from another.
	p := ParseParams(Provider, "a.B", map[string]string{"executes": "6"})
	e = viewOf(&Config{Provider: Section{Policies: Policies{Executes: &Executes{Scope: ScopeService}}}}, nil, nil).Resolve(Provider, exactKey, "m", &p.Service)
	assert.Equal(t, Limit{Set: true, Limit: 6, Scope: ScopeService, Mode: Enforce}, e.SharedExecutes)
}

func TestScopeProtocol(t *testing.T) {
	p := ParseParams(Provider, "a.B", map[string]string{"executes": "6", "executes.scope": "protocol", "methods.m.executes.scope": "method"})
	assert.Equal(t, ScopeProtocol, (&View{}).Resolve(Provider, exactKey, "n", &p.Service).Executes.Scope)
	assert.Equal(t, Limit{Set: true, Limit: 6, Scope: ScopeMethod, Mode: Enforce}, (&View{}).Resolve(Provider, exactKey, "m", &p.Service).Executes)
}

// Settings tell each value once, whether or not a limit makes use of it.
func TestRegression_SettingsTellEachOnce(t *testing.T) {
	v := viewOf(nil, parsed(t, `
weir:
  provider:
    executes.mode: observe
    services:
      a.B: {executes: 20, executes.scope: service, methods: {m: {executes: 3}}}
`), nil)
	assert.ElementsMatch(t, []Setting{
		{"executes.scope", "service", "file x.yaml", "service"},
		{"executes.mode", "observe", "file x.yaml", "side"},
		{"executes", "20", "file x.yaml", "service"},
		{"executes", "3", "file x.yaml", "method"},
	}, v.Resolve(Provider, exactKey, "m", nil).Settings)

	assert.Equal(t, []Setting{{"executes.mode", "observe", "file x.yaml", "side"}},
		v.Resolve(Provider, ServiceKey{Interface: "a.C"}, "m", nil).Settings, "a mode without a limit")
	assert.Empty(t, v.Resolve(Consumer, exactKey, "m", nil).Settings)
}

func TestSettingsOfEveryKey(t *testing.T) {
	for _, k := range keys {
		for _, text := range values {
			var p Policies
			if k.set(&p, text) != nil {
				continue
			}
			for _, side := range k.sides {
				for _, at := range allLevels {
					if k.levels&at == 0 || !accepts(t, k, at, text) {
						continue
					}
					c, faults := codeConfig(side, at, p).Checked("code")
					require.Empty(t, faults)
					e := viewOf(c, nil, nil).Resolve(side, exactKey, "SayHello", nil)
					var want []Setting
					for _, o := range k.stands() {
						canonical, _ := o.get(&p)
						want = append(want, Setting{o.name, canonical, "code", map[level]string{atDefaults: "side", atService: "service", atMethod: "method"}[at]})
					}
					require.Equal(t, want, e.Settings)
				}
			}
		}
	}
}

func TestActives(t *testing.T) {
	v := viewOf(nil, parsed(t, `
weir:
  consumer:
    actives.mode: observe
    services:
      a.B:
        actives: {limit: 10, wait: 200ms}
        methods:
          n: {actives: 3, actives.mode: enforce}
          w: {actives.wait: 0}
          u: {actives: -1}
          o: {actives.mode: off}
`), nil)
	for method, want := range map[string]WaitLimit{
		"m": {Set: true, Limit: 10, Wait: 200 * time.Millisecond, Mode: Observe},
		"N": {Set: true, Limit: 3, Wait: 200 * time.Millisecond, Mode: Enforce},
		"w": {Set: true, Limit: 10, Wait: 0, Mode: Observe},
		"u": {Set: true, Limit: 0, Wait: 200 * time.Millisecond, Mode: Observe},
		"o": {Set: true, Limit: 10, Wait: 200 * time.Millisecond, Mode: Off},
	} {
		assert.Equal(t, want, v.Resolve(Consumer, exactKey, method, nil).Actives, method)
		assert.Zero(t, v.Resolve(Provider, exactKey, method, nil).Actives, "the other side's")
	}
	e := v.Resolve(Consumer, exactKey, "w", nil)
	assert.Equal(t, []Setting{
		{"actives", "10", "file x.yaml", "service"}, {"actives.wait", "0s", "file x.yaml", "method"}, {"actives.mode", "observe", "file x.yaml", "side"},
	}, e.Settings)
	e = v.Resolve(Consumer, ServiceKey{Interface: "a.C"}, "m", nil)
	assert.Zero(t, e.Actives, "a mode without a limit")
	assert.Equal(t, []Setting{{"actives.mode", "observe", "file x.yaml", "side"}}, e.Settings)

	p := ParseParams(Consumer, "a.B", map[string]string{"actives": "7", "methods.m.actives.wait": "1500"})
	require.Empty(t, p.Faults)
	assert.Equal(t, WaitLimit{Set: true, Limit: 7, Wait: 1500 * time.Millisecond, Mode: Enforce}, (&View{}).Resolve(Consumer, exactKey, "M", &p.Service).Actives)
	assert.Equal(t, WaitLimit{Set: true, Limit: 7, Wait: -1, Mode: Enforce}, (&View{}).Resolve(Consumer, exactKey, "n", &p.Service).Actives, "nobody sets a wait")

	// The mode for all joins in.
	var s Store
	s.SetEnvMode(Off)
	assert.Equal(t, Off, s.View().Resolve(Consumer, exactKey, "M", &p.Service).Actives.Mode)
}

func TestActivesOfTheProvider(t *testing.T) {
	declared := params(t, "actives", "5", "methods.m.actives", "2", "methods.u.actives", "-3")
	wait := viewOf(nil, parsed(t, "weir: {mode: observe, consumer: {services: {a.B: {methods: {m: {actives.wait: 1s}}}}}}"), nil)
	for _, tt := range []struct {
		name    string
		v       *View
		method  string
		params  *Service
		want    WaitLimit
		setting *Setting
	}{
		{"of the method", &View{}, "M", nil, WaitLimit{Set: true, Limit: 2, Wait: -1, Mode: Enforce, Declared: true}, &Setting{"actives", "2", "provider", "method"}},
		{"of the service", &View{}, "n", nil, WaitLimit{Set: true, Limit: 5, Wait: -1, Mode: Enforce, Declared: true}, &Setting{"actives", "5", "provider", "service"}},
		{"unlimited", &View{}, "u", nil, WaitLimit{Set: true, Wait: -1, Mode: Enforce, Declared: true}, &Setting{"actives", "-3", "provider", "method"}},
		{"wait and mode are the reference's", wait, "m", nil, WaitLimit{Set: true, Limit: 2, Wait: time.Second, Mode: Observe, Declared: true}, &Setting{"actives", "2", "provider", "method"}},
		{"the side's default comes first", viewOf(nil, nil, parsed(t, "weir: {consumer: {actives: 9}}")), "m", nil, WaitLimit{Set: true, Limit: 9, Wait: -1, Mode: Enforce}, &Setting{"actives", "9", "the section", "side"}},
		{"and so does unlimited", &View{}, "m", &Service{Policies: Policies{Actives: &Actives{Limit: Of(0)}}}, WaitLimit{Set: true, Wait: -1, Mode: Enforce}, &Setting{"actives", "0", "params", "service"}},
		{"another method's does not", &View{}, "m", &Service{Methods: map[string]Policies{"n": {Actives: &Actives{Limit: Of(8)}}}}, WaitLimit{Set: true, Limit: 2, Wait: -1, Mode: Enforce, Declared: true}, &Setting{"actives", "2", "provider", "method"}},
	} {
		e := tt.v.ResolveDeclared(Consumer, exactKey, tt.method, tt.params, declared)
		assert.Equal(t, tt.want, e.Actives, tt.name)
		assert.Contains(t, e.Settings, *tt.setting, tt.name)
		count := 0
		for _, s := range e.Settings {
			if s.Key == ActivesKey {
				count++
			}
		}
		assert.Equal(t, 1, count, tt.name)
	}
	// What else a provider might say is not a consumer's.
	other := &Service{Policies: Policies{Actives: &Actives{Wait: Of(time.Second), Mode: Off}, Stats: Of(true), RetryRefused: Of(0.9), Executes: &Executes{Limit: Of(1)}}}
	assert.Equal(t, Effective{RetryRefused: DefaultRetryRefused}, (&View{}).ResolveDeclared(Consumer, exactKey, "m", nil, other))
	assert.Equal(t, Effective{RetryRefused: DefaultRetryRefused}, (&View{}).ResolveDeclared(Provider, exactKey, "m", nil, declared), "a provider has no provider")

	e := (&View{}).Resolve(Provider, exactKey, "m", declared)
	assert.Equal(t, WaitLimit{Set: true, Limit: 2}, e.Actives, "what it declares")
	assert.Equal(t, []Setting{{"actives", "2", "params", "method"}}, e.Settings)
	assert.Equal(t, WaitLimit{Set: true}, (&View{}).Resolve(Provider, exactKey, "u", declared).Actives)
}

func TestTPS(t *testing.T) {
	v := viewOf(nil, parsed(t, `
weir:
  provider:
    tps.mode: observe
    services:
      a.B:
        tps: {rate: 200/1s, algorithm: bucket, burst: 50}
        methods:
          mode: {tps.mode: enforce}
          limit: {tps: 30}
          interval: {tps.interval: 1h}
          algorithm: {tps.algorithm: fixed}
          burst: {tps.burst: 0}
          scope: {tps.scope: instance}
          rate: {tps.rate: 1/2s}
          unlimited: {tps: -1}
      a.C:
        methods:
          own: {tps: 5}
          none: {tps.interval: 1s, tps.algorithm: fixed}
`), nil)
	shared := RateLimit{Set: true, Rate: 200, Interval: time.Second, Burst: 50, Algorithm: AlgorithmBucket, Mode: Observe}
	with := func(change func(*RateLimit)) RateLimit {
		l := shared
		change(&l)
		return l
	}
	for method, want := range map[string]RateLimit{
		"any":       shared,
		"mode":      with(func(l *RateLimit) { l.Mode = Enforce }),
		"limit":     with(func(l *RateLimit) { l.Own, l.Rate = true, 30 }),
		"interval":  with(func(l *RateLimit) { l.Own, l.Interval = true, time.Hour }),
		"algorithm": with(func(l *RateLimit) { l.Own, l.Algorithm, l.Burst = true, AlgorithmFixed, 0 }),
		"burst":     with(func(l *RateLimit) { l.Own, l.Burst = true, 0 }),
		"scope":     with(func(l *RateLimit) { l.Own = true }),
		"Rate":      with(func(l *RateLimit) { l.Own, l.Rate, l.Interval = true, 1, 2*time.Second }),
		"unlimited": with(func(l *RateLimit) { l.Own, l.Rate = true, 0 }),
	} {
		assert.Equal(t, want, v.Resolve(Provider, exactKey, method, nil).TPS, method)
		assert.Zero(t, v.Resolve(Consumer, exactKey, method, nil).TPS, "the other side's")
	}
	other := ServiceKey{Interface: "a.C"}
	assert.Equal(t, RateLimit{Set: true, Rate: 5, Interval: time.Minute, Algorithm: AlgorithmSliding, Mode: Observe, Own: true}, v.Resolve(Provider, other, "own", nil).TPS)
	assert.Zero(t, v.Resolve(Provider, other, "none", nil).TPS, "nothing is limited")
	assert.Zero(t, v.Resolve(Provider, other, "any", nil).TPS)

	// The keys may come from any source: rate here, interval there.
	p := ParseParams(Consumer, "a.B", map[string]string{"tps": "7", "methods.m.tps.burst": "9"})
	require.Empty(t, p.Faults)
	v = viewOf(&Config{Consumer: Section{Policies: Policies{TPS: &TPS{Interval: Of(time.Second), Algorithm: AlgorithmBucket}}}}, nil, nil)
	e := v.Resolve(Consumer, exactKey, "M", &p.Service)
	assert.Equal(t, RateLimit{Set: true, Rate: 7, Interval: time.Second, Burst: 9, Algorithm: AlgorithmBucket, Mode: Enforce, Own: true}, e.TPS)
	assert.Equal(t, []Setting{
		{"tps", "7", "params", "service"}, {"tps.interval", "1s", "code", "side"}, {"tps.algorithm", "bucket", "code", "side"}, {"tps.burst", "9", "params", "method"},
	}, e.Settings)
}

func TestResolveTheRest(t *testing.T) {
	e := (&View{}).Resolve(Consumer, exactKey, "m", nil)
	assert.Equal(t, Effective{RetryRefused: DefaultRetryRefused}, e)
	e = (&View{}).Resolve(Provider, exactKey, "m", &Service{})
	assert.Equal(t, Effective{RetryRefused: DefaultRetryRefused}, e)

	v := viewOf(nil, parsed(t, full), nil)
	pay := ServiceKey{Interface: "pay.PayService", Group: "x"}
	e = v.Resolve(Consumer, pay, "Pay", nil)
	assert.Zero(t, e.RetryRefused, "0 turns it off")
	assert.Equal(t, Of(false), e.Stats)
	assert.False(t, e.BusinessErrorsFail)
	e = v.Resolve(Consumer, pay, "Refund", nil)
	assert.Equal(t, Of(true), e.Stats)
	e = v.Resolve(Consumer, ServiceKey{Interface: "z"}, "", nil)
	assert.InDelta(t, 0.2, e.RetryRefused, 0)
	e = v.Resolve(Provider, ServiceKey{Interface: "greet.GreetService"}, "SayHello", nil)
	assert.True(t, e.BusinessErrorsFail)
}

func TestModeAnd(t *testing.T) {
	for _, tt := range []struct{ a, b, want Mode }{
		{"", "", Enforce}, {"", Enforce, Enforce}, {Enforce, Enforce, Enforce},
		{"", Observe, Observe}, {Enforce, Observe, Observe}, {Observe, Observe, Observe},
		{"", Off, Off}, {Enforce, Off, Off}, {Observe, Off, Off}, {Off, Off, Off},
	} {
		assert.Equal(t, tt.want, tt.a.And(tt.b), tt)
		assert.Equal(t, tt.want, tt.b.And(tt.a), tt)
	}
}

func TestModeOfAll(t *testing.T) {
	mode := func(m Mode) *Config { return &Config{Mode: m} }
	for _, tt := range []struct {
		code, file, section *Config
		env                 Mode
		want                Mode
		source              string
	}{
		{nil, nil, nil, "", Enforce, "default"},
		{nil, nil, mode(Off), "", Off, "the section"},
		{nil, mode(Observe), mode(Off), "", Observe, "file x.yaml"},
		{nil, mode(Observe), mode(Off), Enforce, Enforce, "WEIR_MODE"},
		{nil, nil, nil, Off, Off, "WEIR_MODE"},
		{mode(Enforce), mode(Observe), mode(Off), Off, Enforce, "code"},
		{mode(Off), nil, nil, "", Off, "code"},
		{mode(""), mode(""), mode(Observe), "", Observe, "the section"},
		{mode(""), mode(Off), nil, Observe, Observe, "WEIR_MODE"},
	} {
		var s Store
		for slot, c := range [...]*Config{FromCode: tt.code, FromFile: tt.file, FromSection: tt.section} {
			s.Set(Slot(slot), origins[slot], c)
		}
		s.SetEnvMode(tt.env)
		m, source := s.View().Mode()
		assert.Equal(t, tt.want, m, tt)
		assert.Equal(t, tt.source, source, tt)

		// It holds for every guard, together with the guard's own.
		for _, own := range []Mode{"", Enforce, Observe, Off} {
			p := &Service{Policies: Policies{Executes: &Executes{Limit: Of(1), Mode: own}}}
			assert.Equal(t, own.And(tt.want), s.View().Resolve(Provider, exactKey, "m", p).Executes.Mode, tt)
		}
	}
}

func TestRootSettings(t *testing.T) {
	v := viewOf(nil, nil, nil)
	assert.True(t, v.AutoChain())
	assert.Equal(t, Fail, v.OnError())
	v = viewOf(nil, &Config{AutoChain: Of(false)}, &Config{AutoChain: Of(true), OnError: Warn})
	assert.False(t, v.AutoChain())
	assert.Equal(t, Warn, v.OnError())
	v = viewOf(&Config{AutoChain: Of(true), OnError: Fail}, &Config{AutoChain: Of(false)}, &Config{OnError: Warn})
	assert.True(t, v.AutoChain())
	assert.Equal(t, Fail, v.OnError())
}

func TestMethodsOf(t *testing.T) {
	a := parsed(t, "weir: {provider: {services: {a.B: {methods: {Z: {}, SayHello: {}}}, g/a.B:1.0: {methods: {sayBye: {}, sayHello: {}}}, c.D: {methods: {x: {}}}}}}")
	b := parsed(t, "weir: {provider: {services: {a.B: {methods: {sayHello: {}}}}}, consumer: {services: {a.B: {methods: {y: {}}}}}}")
	v := viewOf(a, b, nil)
	assert.Equal(t, []string{"sayBye", "sayHello", "z"}, v.MethodsOf(Provider, exactKey))
	assert.Equal(t, []string{"sayHello", "z"}, v.MethodsOf(Provider, ServiceKey{Interface: "a.B"}))
	assert.Equal(t, []string{"y"}, v.MethodsOf(Consumer, exactKey))
	assert.Empty(t, v.MethodsOf(Provider, ServiceKey{Interface: "e.F"}))
	assert.Empty(t, (&View{}).MethodsOf(Provider, exactKey))
}

// TestResolveAgainstOracle compares random configurations of limits and what
// belongs to them with an oracle that knows only a flat list of settings.
func TestResolveAgainstOracle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	side, sharedFlow := Provider, false
	policies := func(at level) Policies {
		var p Policies
		for _, s := range []struct {
			k      *key
			values []string
		}{
			{keyNamed(ExecutesKey), []string{"", "", "-1", "0", "1", "50"}},
			{keyNamed(ExecutesScopeKey), []string{"", "", "", "method", "service", "protocol"}},
			{keyNamed(ExecutesModeKey), []string{"", "", "", "enforce", "observe", "off"}},
			{keyNamed(StatsKey), []string{"", "", "true", "false"}},
			{keyNamed(ActivesKey), []string{"", "", "", "", "", "", "", "", "", "", "-1", "0", "50"}},
			{keyNamed(ActivesWaitKey), []string{"", "", "0", "1s", "200ms"}},
			{keyNamed(ActivesModeKey), []string{"", "", "", "enforce", "observe", "off"}},
			{keyNamed(TPSKey), []string{"", "", "", "-1", "0", "7", "200"}},
			{keyNamed(TPSRateKey), []string{"", "", "", "", "", "", "5/s", "1/2s"}},
			{keyNamed(TPSIntervalKey), []string{"", "", "", "", "1s", "1h"}},
			{keyNamed(TPSAlgorithmKey), []string{"", "", "", "", "sliding", "fixed", "bucket", "bucket"}},
			{keyNamed(TPSBurstKey), []string{"", "", "", "", "0", "3", "50"}},
			{keyNamed(TPSScopeKey), []string{"", "", "", "", "instance"}},
			{keyNamed(TPSModeKey), []string{"", "", "", "enforce", "observe", "off"}},
			{keyNamed(FlowKey), []string{"", "", "", "", "", "", "", "", "5/s", "1/2m", "0/s"}},
			{keyNamed(FlowBehaviorKey), []string{"", "", "", "", "", "", "reject", "queue", "warm-up", "warm-up-queue"}},
			{keyNamed(FlowMaxQueueKey), []string{"", "", "", "", "", "", "0", "2s"}},
			{keyNamed(FlowWarmUpKey), []string{"", "", "", "", "", "", "", "1m"}},
			{keyNamed(FlowColdFactorKey), []string{"", "", "", "", "", "", "", "1.5"}},
			{keyNamed(FlowCallersKey), []string{"", "", "", "", "", "", "", "", "", "b=3/s,a=4/m", "default=0/s"}},
			{keyNamed(FlowModeKey), []string{"", "", "", "enforce", "observe", "off"}},
			{keyNamed(BulkheadKey), append(slices.Repeat([]string{""}, 60), "-1", "0", "5", "9")},
			{keyNamed(BulkheadQueueKey), []string{"", "", "", "", "", "0", "3"}},
			{keyNamed(BulkheadMaxWaitKey), []string{"", "", "", "", "", "0", "2s"}},
			{keyNamed(BulkheadRunTimeoutKey), append(slices.Repeat([]string{""}, 40), "0", "3s")},
			{keyNamed(BulkheadGroupKey), []string{"", "", "", "", "", "g", "none"}},
			{keyNamed(BulkheadModeKey), []string{"", "", "", "enforce", "observe", "off"}},
			{keyNamed(OverloadKey), []string{"", "", "", "", "", "", "-1", "0", "5", "200", "auto", "auto"}},
			{keyNamed(OverloadMaxExpandKey), []string{"", "", "", "", "", "1", "8"}},
			{keyNamed(OverloadSlowCallKey), []string{"", "", "", "", "", "0", "500ms", "5s", "2m"}},
			{keyNamed(OverloadSlowShareKey), []string{"", "", "", "", "", "0", "50%"}},
			{keyNamed(OverloadEntryTimeoutKey), []string{"", "", "", "", "", "0", "500ms", "3s", "1h"}},
			{keyNamed(OverloadMaxOverdueKey), []string{"", "", "", "", "", "0", "7"}},
			{keyNamed(OverloadCalmKey), []string{"", "", "", "", "", "1m"}},
			{keyNamed(OverloadFloorKey), []string{"", "", "", "", "", "5", "100", "5000"}},
			{keyNamed(OverloadCeilingKey), []string{"", "", "", "", "", "3", "300", "3000"}},
			{keyNamed(OverloadDumpIntervalKey), []string{"", "", "", "", "", "0", "1h"}},
			{keyNamed(OverloadModeKey), []string{"", "", "", "enforce", "observe", "off"}},
			{keyNamed(BreakerKey), []string{"", "", "", "", "", "", "", "hystrix", "standard", "off"}},
			{keyNamed(BreakerErrorRatioKey), []string{"", "", "", "", "", "", "", "", "0", "0.3"}},
			{keyNamed(BreakerConsecutiveErrorsKey), []string{"", "", "", "", "", "", "", "", "", "0", "5"}},
			{keyNamed(BreakerSlowRatioKey), []string{"", "", "", "", "", "", "", "", "", "", "", "50%"}},
			{keyNamed(BreakerSlowCallKey), []string{"", "", "", "", "", "250ms", "1h"}},
			{keyNamed(BreakerBucketsKey), []string{"", "", "", "", "", "3", "1000"}},
			{keyNamed(BreakerOpenForKey), []string{"", "", "", "", "", "1s", "10m"}},
			{keyNamed(BreakerOpenMaxKey), []string{"", "", "", "", "", "2s", "20m"}},
			{keyNamed(BreakerProbesKey), []string{"", "", "", "", "", "2", "9"}},
			{keyNamed(BreakerProbeSuccessesKey), []string{"", "", "", "", "", "1", "5"}},
			{keyNamed(BreakerProbeUnderKey), []string{"", "", "", "", "", "", "", "100ms"}},
			{keyNamed(BreakerFailuresKey), []string{"", "", "", "", "", "not_found,com.acme.X", "not_found"}},
			{keyNamed(BreakerIgnoreKey), []string{"", "", "", "", "", "timeout", "timeout,not_found"}},
			{keyNamed(BreakerScopeKey), []string{"", "", "", "", "instance", "service"}},
			{keyNamed(BreakerModeKey), []string{"", "", "", "", "enforce", "observe", "off"}},
			{keyNamed(FallbackKey), []string{"", "", "", "", "x", "y", "off"}},
			{keyNamed(FallbackOnKey), []string{"", "", "", "", "breaker", "failure,refused"}},
		} {
			if sharedFlow && at == atMethod && strings.HasPrefix(s.k.name, FlowKey) {
				continue
			}
			if value := pick(s.values...); value != "" && s.k.on(side) {
				_ = setChecked(s.k, &p, value, at) // a scope that is not for methods is left out
			}
		}
		return p
	}
	service := func() Service {
		return Service{Policies: policies(atService), Methods: map[string]Policies{"m": policies(atMethod), "n": policies(atMethod)}}
	}
	config := func() *Config {
		if rnd.IntN(4) == 0 {
			return nil
		}
		c := &Config{Mode: Mode(pick("", "", "", "enforce", "observe", "off"))}
		*c.section(side) = Section{Policies: policies(atDefaults), Services: map[string]Service{"a.B": service(), "g/a.B:1.0": service()}}
		return c
	}
	ownBudgets, ownFlows, declared, breakers, bulkheads, autos := 0, 0, 0, 0, 0, 0
	for i := range 10_000 {
		side, sharedFlow = both[i%2], i%3 == 0
		sources := [...]*Config{config(), config(), config()}
		var s Store
		env := Mode(pick("", "", "", "enforce", "observe", "off"))
		s.SetEnvMode(env)
		for slot, c := range sources {
			s.Set(Slot(slot), origins[slot], c)
		}
		var params *Service
		if rnd.IntN(3) > 0 {
			p := service()
			params = &p
		}
		o := oracle{side: uint8(side), env: env}
		for _, c := range sources {
			if c == nil {
				c = &Config{}
			}
			o.sources = append(o.sources, c.settings())
		}
		if params != nil {
			o.params = (&Config{Provider: Section{Services: map[string]Service{"params": *params}}}).settings()
		}
		var provider *Service
		if rnd.IntN(2) > 0 {
			p := service()
			provider = &p
			o.provider = (&Config{Provider: Section{Services: map[string]Service{"params": p}}}).settings()
		}
		got := s.View().ResolveDeclared(side, exactKey, "M", params, provider)
		require.Equal(t, o.actives(), got.Actives, "%+v", o)
		require.Equal(t, o.tps(), got.TPS, "%+v", o)
		require.Equal(t, o.flow(), got.Flow, "%+v", o)
		require.Equal(t, o.bulkhead(), got.Bulkhead, "%+v", o)
		require.Equal(t, o.overload(), got.Overload, "%+v", o)
		require.Equal(t, o.breaker(), got.Breaker, "%+v", o)
		require.Equal(t, o.fallback(), got.Fallback, "%+v", o)
		if got.Breaker.Set {
			breakers++
		}
		if got.Overload.Auto {
			autos++
		}
		if got.Flow.Own {
			ownFlows++
		}
		if got.Bulkhead.Set {
			bulkheads++
		}
		if got.TPS.Own {
			ownBudgets++
		}
		if got.Actives.Declared {
			declared++
		}
		shared, own := o.executes()
		require.Equal(t, shared, got.SharedExecutes, "%+v", o)
		require.Equal(t, own, got.Executes, "%+v", o)
		stats := ""
		if got.Stats != nil {
			stats = strconv.FormatBool(*got.Stats)
		}
		require.Equal(t, o.find("stats", "method", "service", "side"), stats, "%+v", o)
		seen := map[Setting]bool{}
		for _, s := range got.Settings {
			require.False(t, seen[s], "%+v twice", s)
			seen[s] = true
		}
	}
	assert.Greater(t, ownBudgets, 1000)
	assert.Greater(t, ownFlows, 1000)
	assert.Less(t, ownFlows, 9000)
	assert.Greater(t, bulkheads, 1000)
	assert.Less(t, bulkheads, 9000)
	assert.Greater(t, autos, 1000)
	assert.Less(t, autos, 9000)
	assert.Greater(t, breakers, 1000)
	assert.Less(t, breakers, 9000)
	assert.Greater(t, declared, 50)
}

type oracle struct {
	side    uint8
	sources []map[settingKey]string
	params  map[settingKey]string
	// provider is what the provider declared, laid out as params are.
	provider map[settingKey]string
	env      Mode
}

// find is the text of a key at the first of the levels that has one, or "".
func (o oracle) find(key string, levels ...string) string {
	for _, l := range levels {
		places := map[string][]settingKey{
			"method":  {{o.side, "g/a.B:1.0", "m", key}, {o.side, "a.B", "m", key}},
			"service": {{o.side, "g/a.B:1.0", "", key}, {o.side, "a.B", "", key}},
			"side":    {{o.side, "", "", key}},
		}[l]
		for _, source := range o.sources {
			for _, p := range places {
				if value, ok := source[p]; ok {
					return value
				}
			}
		}
		method := map[string]string{"method": "m"}[l]
		if value, ok := o.params[settingKey{0, "params", method, key}]; ok && l != "side" {
			return value
		}
	}
	return ""
}

// mode is a guard's, joined with the one for all.
func (o oracle) mode(key string) Mode {
	mode := o.sources[0][settingKey{side: noSide, key: "mode"}]
	for _, next := range []string{string(o.env), o.sources[1][settingKey{side: noSide, key: "mode"}], o.sources[2][settingKey{side: noSide, key: "mode"}]} {
		if mode == "" {
			mode = next
		}
	}
	weakness := map[string]int{"": 0, "enforce": 0, "observe": 1, "off": 2}
	return []Mode{Enforce, Observe, Off}[max(weakness[mode], weakness[o.find(key, "method", "service", "side")])]
}

func (o oracle) actives() WaitLimit {
	text, declared := o.find("actives", "method", "service", "side"), false
	for _, method := range []string{"m", ""} {
		if value, ok := o.provider[settingKey{0, "params", method, "actives"}]; ok && text == "" && o.side == 1 {
			text, declared = value, true
		}
	}
	if text == "" {
		return WaitLimit{}
	}
	n, _ := strconv.Atoi(text)
	if o.side == 0 {
		return WaitLimit{Set: true, Limit: max(n, 0)}
	}
	wait := time.Duration(-1)
	if text := o.find("actives.wait", "method", "service", "side"); text != "" {
		wait, _ = time.ParseDuration(text)
	}
	return WaitLimit{Set: true, Limit: max(n, 0), Wait: wait, Mode: o.mode("actives.mode"), Declared: declared}
}

func (o oracle) tps() RateLimit {
	budget := []string{"tps", "tps.interval", "tps.algorithm", "tps.burst", "tps.scope"}
	own := false
	for _, key := range budget {
		own = own || o.find(key, "method") != ""
	}
	found := map[string]string{}
	for _, key := range budget {
		found[key] = o.find(key, "service", "side")
		if own {
			found[key] = o.find(key, "method", "service", "side")
		}
	}
	if found["tps"] == "" {
		return RateLimit{}
	}
	l := RateLimit{Set: true, Interval: time.Minute, Algorithm: "sliding", Mode: o.mode("tps.mode"), Own: own}
	n, _ := strconv.Atoi(found["tps"])
	l.Rate = max(n, 0)
	if text := found["tps.interval"]; text != "" {
		l.Interval, _ = time.ParseDuration(text)
	}
	if text := found["tps.algorithm"]; text != "" {
		l.Algorithm = Algorithm(text)
	}
	if l.Algorithm == "bucket" {
		l.Burst, _ = strconv.Atoi(found["tps.burst"])
	}
	return l
}

func (o oracle) flow() FlowPolicy {
	own := false
	value := func(key, def string) string {
		own = own || o.find(key, "method") != ""
		if text := o.find(key, "method", "service", "side"); text != "" {
			return text
		}
		return def
	}
	rate := map[string]Rate{"5/1s": {5, time.Second}, "1/2m": {1, 2 * time.Minute}}[value("flow", "")] // 0 calls are no rate
	callers := map[string]map[string]Rate{
		"a=4/1m,b=3/1s": {"a": {4, time.Minute}, "b": {3, time.Second}}, "default=0/1s": {"default": {0, time.Second}},
	}[value("flow.callers", "")]
	f := FlowPolicy{Set: true, Rate: rate, Callers: callers, Mode: o.mode("flow.mode")}
	f.Behavior = Behavior(value("flow.behavior", "reject"))
	f.MaxQueue, _ = time.ParseDuration(value("flow.max-queue", "500ms"))
	f.WarmUp, _ = time.ParseDuration(value("flow.warm-up", "10s"))
	f.ColdFactor, _ = strconv.ParseFloat(value("flow.cold-factor", "3"), 64)
	f.Own = own
	if rate == (Rate{}) && len(callers) != 2 {
		return FlowPolicy{}
	}
	return f
}

func (o oracle) bulkhead() BulkheadPolicy {
	value := func(key, def string) string {
		if text := o.find(key, "method", "service", "side"); text != "" {
			return text
		}
		return def
	}
	number := func(key string) int { n, _ := strconv.Atoi(value(key, "0")); return max(n, 0) }
	duration := func(key, def string) time.Duration { d, _ := time.ParseDuration(value(key, def)); return d }
	b := BulkheadPolicy{Set: true, Max: number("bulkhead"), Queue: number("bulkhead.queue"), MaxWait: duration("bulkhead.max-wait", "1s"), Mode: o.mode("bulkhead.mode")}
	if o.side == 0 {
		b.RunTimeout = duration("bulkhead.run-timeout", "0s")
	}
	if value("bulkhead.group", "none") == "g" {
		b.Group = "g"
	}
	if value("bulkhead", "") == "" && b.RunTimeout == 0 {
		return BulkheadPolicy{}
	}
	return b
}

func (o oracle) overload() OverloadPolicy {
	levels := []string{"method", "service", "side"}
	at := func(key, def string) (string, int) { // the value and how far out it stands
		for i, l := range levels {
			if value := o.find(key, l); value != "" {
				return value, i
			}
		}
		return def, len(levels) + 1
	}
	number := func(key, def string) (n, out int) {
		text, out := at(key, def)
		n, _ = strconv.Atoi(text)
		return n, out
	}
	duration := func(key, def string) (d time.Duration, out int) {
		text, out := at(key, def)
		d, _ = time.ParseDuration(text)
		return d, out
	}
	text, _ := at("overload", "0")
	limit, _ := strconv.Atoi(text)
	if text != "auto" && limit <= 0 {
		return OverloadPolicy{}
	}
	p := OverloadPolicy{Set: true, Mode: o.mode("overload.mode"), Limit: limit, Auto: text == "auto", MaxExpand: 1}
	ratio, _ := at("overload.slow-share", "0.2")
	p.SlowShare, _ = parseShare(ratio)
	p.Calm, _ = duration("overload.calm", "30s")
	p.DumpInterval, _ = duration("overload.dump-interval", "10m")
	slow, slowOut := duration("overload.slow-call", "1s")
	entry, entryOut := duration("overload.entry-timeout", "1m")
	if entry > 0 && entry < slow {
		if slowOut > entryOut { // what stands further out gives way
			slow = entry
		} else {
			entry = slow
		}
	}
	p.SlowCall, p.EntryTimeout = slow, entry
	if p.Auto {
		floor, floorOut := number("overload.floor", "20")
		ceiling, ceilingOut := number("overload.ceiling", "2000")
		if floor > ceiling {
			if floorOut > ceilingOut {
				floor = ceiling
			} else {
				ceiling = floor
			}
		}
		p.Floor, p.Ceiling, p.Limit = floor, ceiling, floor
		p.MaxOverdue, _ = number("overload.max-overdue", strconv.Itoa(ceiling))
	} else {
		p.MaxExpand, _ = number("overload.max-expand", "4")
		p.MaxOverdue, _ = number("overload.max-overdue", text)
	}
	return p
}

func (o oracle) breaker() BreakerPolicy {
	levels := []string{"method", "service", "side"}
	at := func(key string) (string, int) { // the value and how far out it stands
		for i, l := range levels {
			if value := o.find(key, l); value != "" {
				return value, i
			}
		}
		return "", len(levels)
	}
	value := func(key, def string) string {
		if text, _ := at("breaker." + key); text != "" {
			return text
		}
		return def
	}
	number := func(key string, def int) int { n, _ := strconv.Atoi(value(key, strconv.Itoa(def))); return n }
	duration := func(key, def string) time.Duration { d, _ := time.ParseDuration(value(key, def)); return d }
	preset, reach := at("breaker")
	if preset != "off" {
		reach = len(levels) + 1
	}
	strategy := func(key string) float64 {
		text, i := at("breaker." + key)
		if i >= reach {
			return 0
		}
		if text == "" && key == "error-ratio" && (preset == "hystrix" || preset == "standard") {
			return 0.5
		}
		f, _ := strconv.ParseFloat(text, 64)
		return f
	}
	b := BreakerPolicy{ErrorRatio: RatioOf(strategy("error-ratio")), SlowRatio: RatioOf(strategy("slow-ratio")), ConsecutiveErrors: int(strategy("consecutive-errors"))}
	if preset != "hystrix" && preset != "standard" {
		preset = ""
		if b.ErrorRatio == 0 && b.SlowRatio == 0 && b.ConsecutiveErrors == 0 {
			return BreakerPolicy{}
		}
	}
	hystrix := preset == "hystrix"
	b.Set, b.Preset, b.Above, b.Force, b.Mode = true, Preset(preset), hystrix, "none", o.mode("breaker.mode")
	b.SlowCall, b.MinCalls, b.Buckets = duration("slow-call", "1s"), 20, number("buckets", 10)
	b.Window = map[int]time.Duration{10: 10 * time.Second, 3: 10_002 * time.Millisecond, 1000: 10 * time.Second}[b.Buckets]
	b.OpenFor, b.OpenJitter, b.OpenGrowth = duration("open-for", "5s"), 100_000, 1
	b.OpenMax = max(duration("open-max", "5m"), b.OpenFor)
	b.Probes, b.ProbeTimeout = number("probes", 1), 30*time.Second
	b.ProbeSuccesses = min(number("probe-successes", b.Probes), b.Probes)
	if b.SlowRatio > 0 {
		b.ProbeUnder = b.SlowCall + time.Nanosecond
		b.ProbeTimeout = max(b.ProbeTimeout, 2*b.SlowCall)
	}
	if hystrix {
		b.MinCalls, b.OpenJitter, b.ProbeUnder = 21, 0, 250*time.Millisecond
	}
	b.ProbeUnder = duration("probe-under", b.ProbeUnder.String())
	failures, inner := at("breaker.failures")
	ignore, outer := at("breaker.ignore")
	for _, w := range strings.Split(failures, ",") {
		if w != "" && (inner <= outer || !slices.Contains(strings.Split(ignore, ","), w)) {
			b.Failures = append(b.Failures, w)
		}
	}
	for _, w := range strings.Split(ignore, ",") {
		if w != "" && (outer < inner || !slices.Contains(strings.Split(failures, ","), w)) {
			b.Ignore = append(b.Ignore, w)
		}
	}
	if o.side == 1 {
		b.Scope = Scope(value("scope", "instance"))
	}
	return b
}

func (o oracle) fallback() FallbackPolicy {
	name := o.find("fallback", "method", "service", "side")
	if o.side == 0 || name == "" || name == "off" {
		return FallbackPolicy{}
	}
	if o.find("fallback.on", "method", "service", "side") == "breaker" {
		return FallbackPolicy{name, OnBreaker}
	}
	return FallbackPolicy{name, OnBreaker | OnRefusal | OnTimeout | OnFailure}
}

func (o oracle) executes() (shared, own Limit) {
	if o.side == 1 {
		return Limit{}, Limit{}
	}
	weaker := o.mode("executes.mode")
	limit := func(scope string, levels ...string) Limit {
		text := o.find("executes", levels...)
		if text == "" {
			return Limit{}
		}
		n, _ := strconv.Atoi(text)
		if scope == "" {
			scope = "method"
		}
		return Limit{Set: true, Limit: max(n, 0), Scope: Scope(scope), Mode: weaker}
	}
	if o.find("executes.scope", "service", "side") == "service" {
		return limit("service", "service", "side"), limit(o.find("executes.scope", "method"), "method")
	}
	return Limit{}, limit(o.find("executes.scope", "method", "service", "side"), "method", "service", "side")
}

func ExampleView_Resolve() {
	cfg, _, _ := ParseYAML("weir.yaml", []byte("weir: {provider: {executes: 100, services: {greet.GreetService: {methods: {SayHello: {executes: 10}}}}}}"))
	var store Store
	store.Set(FromFile, "file weir.yaml", cfg)
	service := ServiceKey{Interface: "greet.GreetService", Version: "1.0.0"}
	for _, method := range []string{"sayHello", "sayBye"} {
		e := store.View().Resolve(Provider, service, method, nil)
		fmt.Println(method, e.Executes.Limit, e.Settings[0].Level)
	}
	// Output:
	// sayHello 10 method
	// sayBye 100 side
}
