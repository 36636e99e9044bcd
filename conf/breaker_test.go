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
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// standard is a breaker of the defaults with half of the calls failed.
func standard() BreakerPolicy {
	return BreakerPolicy{
		Set: true, Preset: PresetStandard, ErrorRatio: 500_000, SlowCall: time.Second, MinCalls: 20, Window: 10 * time.Second, Buckets: 10,
		OpenFor: 5 * time.Second, OpenJitter: 100_000, OpenGrowth: 1, OpenMax: 5 * time.Minute, Probes: 1, ProbeSuccesses: 1,
		ProbeTimeout: 30 * time.Second, Force: ForceNone, Mode: Enforce,
	}
}

func TestBreaker(t *testing.T) {
	bare := func(change func(*BreakerPolicy)) BreakerPolicy {
		b := standard()
		b.Preset, b.ErrorRatio = "", 0
		change(&b)
		return b
	}
	preset := func(change func(*BreakerPolicy)) BreakerPolicy {
		b := standard()
		change(&b)
		return b
	}
	for _, tt := range []struct {
		name   string
		params []string
		want   BreakerPolicy
	}{
		{"nothing", nil, BreakerPolicy{}},
		{"standard", []string{"breaker", "standard"}, standard()},
		{"hystrix", []string{"breaker", "hystrix"}, preset(func(b *BreakerPolicy) {
			b.Preset, b.MinCalls, b.Above, b.OpenJitter, b.ProbeUnder = PresetHystrix, 21, true, 0, 250*time.Millisecond
		})},
		{"hystrix with values", []string{"breaker", "hystrix", "breaker.min-calls", "5", "breaker.boundary", "at-least", "breaker.open-jitter", "5%", "breaker.probe-under", "1s", "breaker.error-ratio", "0.2"}, preset(func(b *BreakerPolicy) {
			b.Preset, b.MinCalls, b.MinCallsSet, b.OpenJitter, b.ProbeUnder, b.ErrorRatio = PresetHystrix, 5, true, 50_000, time.Second, 200_000
		})},
		{"off", []string{"breaker", "off"}, BreakerPolicy{}},
		{"off and a strategy at one place", []string{"breaker", "off", "breaker.error-ratio", "0.5"}, BreakerPolicy{}},
		{"off for the method", []string{"methods.m.breaker", "off", "breaker.error-ratio", "0.5", "breaker.window", "5s"}, BreakerPolicy{}},
		{"off, and on for the method", []string{"breaker", "off", "methods.m.breaker.consecutive-errors", "5", "breaker.error-ratio", "0.5"}, bare(func(b *BreakerPolicy) { b.ConsecutiveErrors = 5 })},
		{"off, and a preset for the method", []string{"breaker", "off", "methods.m.breaker", "standard"}, standard()},
		{"off under a preset that is none", []string{"breaker", "hystrix", "methods.m.breaker", "off", "methods.m.breaker.error-ratio", "0.5"}, BreakerPolicy{}},
		{"a strategy is off", []string{"breaker.error-ratio", "0"}, BreakerPolicy{}},
		{"a strategy is off for the method", []string{"breaker.error-ratio", "0.5", "methods.m.breaker.error-ratio", "0"}, BreakerPolicy{}},
		{"no strategy", []string{"breaker.window", "5s", "breaker.force", "open"}, BreakerPolicy{}},
		{"a preset without a strategy", []string{"breaker", "standard", "breaker.error-ratio", "0"}, preset(func(b *BreakerPolicy) { b.ErrorRatio = 0 })},
		{"errors", []string{"breaker.error-count", "7"}, bare(func(b *BreakerPolicy) { b.ErrorCount = 7 })},
		{"slow", []string{"breaker.slow-ratio", "0.5"}, bare(func(b *BreakerPolicy) { b.SlowRatio, b.ProbeUnder = 500_000, time.Second+1 })},
		{"very slow", []string{"breaker.slow-ratio", "0.5", "breaker.slow-call", "20s"}, bare(func(b *BreakerPolicy) {
			b.SlowRatio, b.SlowCall, b.ProbeUnder, b.ProbeTimeout = 500_000, 20*time.Second, 20*time.Second+1, 40*time.Second
		})},
		{"slow with values", []string{"breaker.slow-ratio", "0.5", "breaker.slow-call", "20s", "breaker.probe-under", "10s", "breaker.probe-timeout", "15s"}, bare(func(b *BreakerPolicy) {
			b.SlowRatio, b.SlowCall, b.ProbeUnder, b.ProbeTimeout = 500_000, 20*time.Second, 10*time.Second, 15*time.Second
		})},
		{"slow-call alone leaves probes alone", []string{"breaker", "standard", "breaker.slow-call", "20s"}, preset(func(b *BreakerPolicy) { b.SlowCall = 20 * time.Second })},
		{"a window that does not divide", []string{"breaker", "standard", "breaker.buckets", "3"}, preset(func(b *BreakerPolicy) { b.Buckets, b.Window = 3, 10_002*time.Millisecond })},
		{"a window of parts of a millisecond", []string{"breaker", "standard", "breaker.window", "10ms", "breaker.buckets", "1000"}, preset(func(b *BreakerPolicy) { b.Buckets, b.Window = 1000, time.Second })},
		{"a window between milliseconds", []string{"breaker", "standard", "breaker.window", "10.5ms", "breaker.buckets", "1"}, preset(func(b *BreakerPolicy) { b.Buckets, b.Window = 1, 11*time.Millisecond })},
		{"probes", []string{"breaker", "standard", "breaker.probes", "5"}, preset(func(b *BreakerPolicy) { b.Probes, b.ProbeSuccesses = 5, 5 })},
		{"healthy probes", []string{"breaker", "standard", "breaker.probes", "5", "methods.m.breaker.probe-successes", "3"}, preset(func(b *BreakerPolicy) { b.Probes, b.ProbeSuccesses = 5, 3 })},
		{"more healthy probes than probes", []string{"breaker", "standard", "breaker.probe-successes", "5", "methods.m.breaker.probes", "3"}, preset(func(b *BreakerPolicy) { b.Probes, b.ProbeSuccesses = 3, 3 })},
		{"open for long", []string{"breaker", "standard", "breaker.open-for", "10m"}, preset(func(b *BreakerPolicy) { b.OpenFor, b.OpenMax = 10*time.Minute, 10*time.Minute })},
		{"open longer than it may be", []string{"breaker", "standard", "breaker.open-for", "1m", "breaker.open-max", "30s", "breaker.open-growth", "1.5"}, preset(func(b *BreakerPolicy) {
			b.OpenFor, b.OpenMax, b.OpenGrowth = time.Minute, time.Minute, 1.5
		})},
		{"what counts", []string{"breaker", "standard", "breaker.failures", "not_found, com.acme.*", "breaker.ignore", "timeout", "breaker.force", "closed", "breaker.mode", "observe"}, preset(func(b *BreakerPolicy) {
			b.Failures, b.Ignore, b.Force, b.Mode = []string{"not_found", "com.acme.*"}, []string{"timeout"}, ForceClosed, Observe
		})},
		{"the method knows better what is a failure", []string{"breaker", "standard", "breaker.ignore", "not_found,timeout", "methods.m.breaker.failures", "not_found"}, preset(func(b *BreakerPolicy) {
			b.Failures, b.Ignore = []string{"not_found"}, []string{"timeout"}
		})},
		{"the method knows better what to ignore", []string{"breaker", "standard", "methods.m.breaker.ignore", "not_found", "breaker.failures", "not_found"}, preset(func(b *BreakerPolicy) { b.Ignore = []string{"not_found"} })},
	} {
		for _, side := range both {
			want := tt.want
			if side == Consumer && want.Set {
				want.Scope = ScopeInstance
			}
			e := (&View{}).Resolve(side, exactKey, "M", params(t, tt.params...))
			assert.Equal(t, want, e.Breaker, tt.name)
			if want.Set {
				assert.Zero(t, e.Breaker.BucketWidth()%time.Millisecond, tt.name)
			}
		}
	}
	assert.Zero(t, BreakerPolicy{}.BucketWidth())
	// One source at a level tells off, and another one by what to trip.
	off := parsed(t, "weir: {consumer: {breaker: off, services: {a.B: {breaker.scope: service}}}}")
	trips := parsed(t, "weir: {consumer: {breaker: {error-ratio: 0.5}}}")
	assert.False(t, viewOf(off, trips, nil).Resolve(Consumer, exactKey, "m", nil).Breaker.Set)
	assert.False(t, viewOf(trips, off, nil).Resolve(Consumer, exactKey, "m", nil).Breaker.Set)
	of := viewOf(nil, off, nil).Resolve(Consumer, exactKey, "m", params(t, "breaker", "standard")).Breaker
	assert.Equal(t, ScopeService, of.Scope)
	// The mode for all holds too.
	v := viewOf(&Config{Mode: Off}, nil, nil)
	assert.Equal(t, Off, v.Resolve(Consumer, exactKey, "m", params(t, "breaker", "standard", "breaker.mode", "observe")).Breaker.Mode)
}

func TestFallback(t *testing.T) {
	const all = OnBreaker | OnRefusal | OnTimeout | OnFailure
	for _, tt := range []struct {
		params []string
		want   FallbackPolicy
	}{
		{nil, FallbackPolicy{}},
		{[]string{"fallback", "x"}, FallbackPolicy{"x", all}},
		{[]string{"fallback", "x", "fallback.on", "breaker"}, FallbackPolicy{"x", OnBreaker}},
		{[]string{"fallback", "x", "fallback.on", "refused"}, FallbackPolicy{"x", OnRefusal | OnBreaker}},
		{[]string{"fallback", "x", "fallback.on", "timeout,breaker"}, FallbackPolicy{"x", OnTimeout | OnBreaker}},
		{[]string{"fallback", "x", "methods.m.fallback.on", "failure"}, FallbackPolicy{"x", OnFailure | OnTimeout}},
		{[]string{"fallback", "x", "methods.m.fallback", "off"}, FallbackPolicy{}},
		{[]string{"fallback", "off", "methods.m.fallback", "y"}, FallbackPolicy{"y", all}},
		{[]string{"fallback.on", "breaker"}, FallbackPolicy{}},
	} {
		e := (&View{}).Resolve(Consumer, exactKey, "m", sideParams(t, Consumer, tt.params...))
		assert.Equal(t, tt.want, e.Fallback, tt.params)
	}
	assert.True(t, FallbackOn(all).Has(OnTimeout|OnFailure))
	assert.False(t, OnBreaker.Has(OnRefusal))
	assert.Equal(t, FallbackPolicy{}, (&View{}).Resolve(Provider, exactKey, "m", sideParams(t, Consumer, "fallback", "x")).Fallback)
}

// sideParams are params of a side.
func sideParams(t *testing.T, side Side, keyValues ...string) *Service {
	t.Helper()
	in := map[string]string{}
	for i := 0; i < len(keyValues); i += 2 {
		in[keyValues[i]] = keyValues[i+1]
	}
	p := ParseParams(side, "a.B", in)
	require.Empty(t, p.Faults)
	require.Empty(t, p.Warnings)
	return &p.Service
}

func TestBreakerNotes(t *testing.T) {
	const without = " has no effect: nothing trips without one of breaker, breaker.error-ratio, breaker.error-count, breaker.consecutive-errors, breaker.slow-ratio"
	notes := func(method string, keyValues ...string) []string {
		return (&View{}).Resolve(Consumer, exactKey, method, sideParams(t, Consumer, keyValues...)).Notes()
	}
	for _, tt := range []struct {
		params, want []string
	}{
		{[]string{"breaker", "standard"}, nil},
		{[]string{"breaker", "hystrix"}, nil},
		{[]string{"breaker", "off"}, nil},
		{[]string{"breaker", "off", "breaker.window", "5s"}, nil},
		{[]string{"breaker.error-ratio", "0", "breaker.window", "5s", "breaker.slow-call", "5s"}, nil},
		{[]string{"breaker", "standard", "breaker.probe-successes", "5"}, []string{"breaker.probe-successes=5 is taken as 1: breaker.probes=1 lets no more through"}},
		{[]string{"breaker", "standard", "breaker.open-max", "1s"}, []string{"breaker.open-max=1s is taken as 5s: it cannot be less than breaker.open-for"}},
		{[]string{"breaker", "standard", "breaker.open-for", "10m"}, nil},
		{[]string{"breaker", "standard", "breaker.window", "1s", "breaker.buckets", "3"}, []string{"breaker.window=1s is taken as 1.002s: each of the 3 buckets is a whole number of milliseconds, 334ms"}},
		{[]string{"breaker", "standard", "breaker.buckets", "7"}, []string{"breaker.window=10s is taken as 10.003s: each of the 7 buckets is a whole number of milliseconds, 1.429s"}},
		{[]string{"breaker.window", "5s", "breaker.force", "open"}, []string{"breaker.window=5s" + without, "breaker.force=open" + without}},
		{[]string{"breaker", "standard", "breaker.slow-call", "5s"}, []string{"breaker.slow-call=5s has no effect without breaker.slow-ratio"}},
		{[]string{"breaker", "standard", "breaker.slow-call", "5s", "breaker.slow-ratio", "0"}, nil},
		{[]string{"breaker.error-ratio", "1", "breaker.boundary", "above", "breaker.slow-ratio", "100%"}, []string{
			"breaker.error-ratio=1 trips when it is just met, although breaker.boundary is above: nothing is above it",
			"breaker.slow-ratio=1 trips when it is just met, although breaker.boundary is above: nothing is above it",
		}},
		{[]string{"breaker", "hystrix", "breaker.error-ratio", "1"}, []string{"breaker.error-ratio=1 trips when it is just met, although breaker.boundary is above: nothing is above it"}},
		{[]string{"breaker", "hystrix", "breaker.error-ratio", "0"}, []string{"breaker=hystrix never trips: breaker.error-ratio is 0"}},
		{[]string{"breaker", "standard", "breaker.force", "open"}, []string{"breaker.force=open refuses every call until it is taken away"}},
		{[]string{"breaker", "standard", "breaker.force", "open", "breaker.mode", "observe"}, nil},
		{[]string{"breaker", "standard", "breaker.ignore", "not_found,timeout", "methods.m.breaker.failures", "not_found"}, []string{"breaker.ignore=not_found,timeout has no effect for not_found, which stands in breaker.failures=not_found"}},
		{[]string{"breaker", "standard", "breaker.failures", "not_found", "methods.m.breaker.ignore", "not_found"}, []string{"breaker.failures=not_found has no effect for not_found, which stands in breaker.ignore=not_found"}},
		{[]string{"fallback.on", "breaker"}, []string{"fallback.on=breaker has no effect without fallback"}},
		{[]string{"fallback.on", "breaker", "fallback", "off"}, nil},
		{[]string{"methods.m.breaker.window", "5s"}, []string{"breaker.window=5s" + without}},
	} {
		assert.Equal(t, tt.want, notes("m", tt.params...), tt.params)
	}
	// What is of use to a method is not told of its service.
	for _, quiet := range [][]string{
		{"breaker.window", "5s", "methods.m.breaker", "standard"}, {"breaker.slow-call", "5s", "breaker", "standard", "methods.m.breaker.slow-ratio", "0.5"}, {"fallback.on", "breaker", "methods.m.fallback", "x"},
	} {
		assert.Empty(t, notes("", quiet...), quiet)
	}
	assert.NotEmpty(t, notes("", "breaker.window", "5s", "methods.m.breaker", "off"))
	sides := viewOf(nil, parsed(t, "weir: {consumer: {breaker.window: 5s, fallback.on: breaker, services: {c.D: {methods: {m: {breaker: standard, fallback: x}}}}}}"), nil)
	assert.Empty(t, sides.Resolve(Consumer, exactKey, "m", nil).Notes(), "another service has use for it")
	sides = viewOf(nil, parsed(t, "weir: {consumer: {breaker.window: 5s, services: {c.D: {methods: {m: {breaker: off}}}}}}"), nil)
	assert.Equal(t, []string{"breaker.window=5s" + without}, sides.Resolve(Consumer, exactKey, "m", nil).Notes())
	assert.Empty(t, sides.Resolve(Consumer, exactKey, "m", sideParams(t, Consumer, "methods.x.breaker", "hystrix")).Notes())
}

// Notes about settings of a method's own name it, and those about its service are
// the same for all.
func TestNotesOfMethods(t *testing.T) {
	p := sideParams(t, Consumer, "tps", "5", "breaker", "standard", "breaker.open-max", "1s", "methods.m.breaker.probe-successes", "3", "methods.n.tps", "6", "fallback.on", "breaker")
	of := func(method string) []string { return (&View{}).Resolve(Consumer, exactKey, method, p).NotesOf(method) }
	perMinute := func(tps string) string {
		return "tps=" + tps + " has no tps.interval: it means " + tps + " calls per minute, as in Java Dubbo; write tps.interval or tps.rate: 200/1s to say what is meant"
	}
	const short, fallback = "breaker.open-max=1s is taken as 5s: it cannot be less than breaker.open-for", "fallback.on=breaker has no effect without fallback"
	assert.Equal(t, []string{perMinute("5"), short, fallback}, of(""))
	assert.Equal(t, of(""), of("other"))
	assert.Equal(t, []string{perMinute("5"), "method=m breaker.probe-successes=3 is taken as 1: breaker.probes=1 lets no more through", "method=m " + short, fallback}, of("m"))
	assert.Equal(t, []string{"method=n " + perMinute("6"), short, fallback}, of("n"))
}

func TestListsInYAML(t *testing.T) {
	t.Setenv("WEIR_TEST_WORD", "not_found")
	lists := func(doc string) (failures, ignore, on []string, faults []Fault) {
		cfg, _, faults := ParseYAML("f", []byte(doc))
		b, f := or(cfg.Consumer.Breaker), or(cfg.Consumer.Fallback)
		return b.Failures, b.Ignore, f.On, faults
	}
	for _, doc := range []string{
		"weir: {consumer: {breaker: {failures: [timeout, not_found], ignore: com.acme.*}, fallback: {on: [breaker]}}}",
		"weir: {consumer: {breaker: {failures: 'timeout ,  not_found', ignore: ['com.acme.*']}, fallback.on: breaker}}",
		"weir: {consumer: {breaker.failures: [timeout, '${WEIR_TEST_WORD}'], breaker.ignore: '${X:com.acme.*}', fallback.on: ['${Y:breaker}']}}",
		"weir: {consumer: {breaker.failures: 'timeout,${WEIR_TEST_WORD}', breaker.ignore: !!str com.acme.*, fallback.on: !!seq [breaker]}}",
		"w: &w timeout\nl: &l [*w, not_found]\nweir: {consumer: {breaker: {failures: *l, ignore: [com.acme.*]}, fallback: {on: [breaker]}}}",
		"weir:\n  consumer:\n    breaker:\n      failures:\n      - timeout\n      - not_found # a comment\n      ignore: >-\n        com.acme.*\n    fallback:\n      on:\n        - breaker",
	} {
		failures, ignore, on, faults := lists(doc)
		assert.Empty(t, faults, doc)
		assert.Equal(t, []string{"timeout", "not_found"}, failures, doc)
		assert.Equal(t, []string{"com.acme.*"}, ignore, doc)
		assert.Equal(t, []string{"breaker"}, on, doc)
	}
	for value, want := range map[string]string{
		"[]":                              `f:4 side=consumer key=fallback.on: the list is empty; allowed: ` + allowedOn,
		"''":                              `f:4 side=consumer key=fallback.on: the list is empty; allowed: ` + allowedOn,
		"~":                               `f:4 side=consumer key=fallback.on value="~": allowed: ` + allowedOn,
		"{timeout: 1}":                    `f:4 side=consumer key=fallback.on: a map where a single value belongs; allowed: ` + allowedOn,
		"[timeout, [failure]]":            `f:4 side=consumer key=fallback.on: a list where a word belongs; allowed: ` + allowedOn,
		"[timeout, ~]":                    `f:4 side=consumer key=fallback.on value="~": a word of the list is empty; allowed: ` + allowedOn,
		"[timeout, '']":                   `f:4 side=consumer key=fallback.on value="timeout,": a word of the list is empty; allowed: ` + allowedOn,
		"timeout,":                        `f:4 side=consumer key=fallback.on value="timeout,": a word of the list is empty; allowed: ` + allowedOn,
		"'timeout,breaker,timeout'":       `f:4 side=consumer key=fallback.on value="timeout,breaker,timeout": "timeout" stands in the list twice; allowed: once`,
		"[timeout, refuse]":               `f:4 side=consumer key=fallback.on value="timeout,refuse": "refuse" is not a word of this list; allowed: did you mean refused? all: ` + allowedOn,
		"'timeout, everything'":           `f:4 side=consumer key=fallback.on value="timeout, everything": "everything" is not a word of this list; allowed: ` + allowedOn,
		"['timeout,breaker']":             `f:4 side=consumer key=fallback.on value="timeout,breaker": "timeout,breaker" is not a word of this list; allowed: ` + allowedOn,
		"['${WEIR_TEST_NONE}']":           `f:4 side=consumer key=fallback.on value="${WEIR_TEST_NONE}": environment variable WEIR_TEST_NONE is not set and has no default; allowed: ` + allowedOn,
		"timeout,${WEIR_TEST_NONE:never}": `f:4 side=consumer key=fallback.on value="timeout,${WEIR_TEST_NONE:never}": "never" is not a word of this list; with the environment filled in it is "timeout,never"; allowed: ` + allowedOn,
		"\n    - timeout\n    - failures": `f:6 side=consumer key=fallback.on value="timeout,failures": "failures" is not a word of this list; allowed: did you mean failure? all: ` + allowedOn,
	} {
		_, _, on, faults := lists("weir:\n consumer:\n  fallback.on:\n   " + value)
		assert.Nil(t, on, value)
		if assert.Len(t, faults, 1, value) {
			assert.Equal(t, want, faults[0].String(), value)
		}
	}
}

// A word must not stand in both lists of one place, whichever is read first.
func TestFailuresAndIgnoreApart(t *testing.T) {
	fault := func(faults []Fault) string {
		require.Len(t, faults, 1)
		return faults[0].String()
	}
	_, _, faults := ParseYAML("f", []byte("weir:\n  provider:\n    breaker:\n      ignore: [business, timeout]\n      failures:\n        - not_found\n        - timeout\n"))
	assert.Equal(t, `f:7 side=provider key=breaker.failures value="not_found,timeout": "timeout" stands in breaker.ignore too; allowed: in one of the two`, fault(faults))
	p := ParseParams(Provider, "a.B", map[string]string{"methods.m.breaker.failures": "not_found", "methods.m.breaker.ignore": "not_found", "breaker.ignore": "not_found"})
	assert.Equal(t, `params side=provider service=a.B method=m key=breaker.ignore value="not_found": "not_found" stands in breaker.failures too; allowed: in one of the two`, fault(p.Faults))
	assert.Equal(t, []string{"not_found"}, p.Methods["m"].Breaker.Failures)
	c := Config{Provider: Section{Policies: Policies{Breaker: &Breaker{Failures: []string{"com.acme.X"}, Ignore: []string{"timeout", "com.acme.X"}}}}}
	checked, faults := c.Checked("code")
	assert.Equal(t, `code side=provider key=breaker.ignore value="timeout,com.acme.X": "com.acme.X" stands in breaker.failures too; allowed: in one of the two`, fault(faults))
	assert.Nil(t, checked.Provider.Breaker.Ignore)
}

func TestCheckedSharesNoList(t *testing.T) {
	mine := []string{"timeout", "not_found"}
	c := Config{Provider: Section{Policies: Policies{Breaker: &Breaker{Ignore: mine}}}}
	checked, faults := c.Checked("code")
	require.Empty(t, faults)
	mine[0] = "business"
	assert.Equal(t, []string{"timeout", "not_found"}, checked.Provider.Breaker.Ignore)
}

// Each key has one name for its own value in a map.
func TestPlainNames(t *testing.T) {
	cfg := parsed(t, "weir: {consumer: {breaker: {preset: hystrix, window: 5s}, fallback: {name: x, on: [breaker]}, actives: {limit: 3}}}")
	assert.Equal(t, Policies{
		Breaker: &Breaker{Preset: PresetHystrix, Window: Of(5 * time.Second)}, Fallback: &Fallback{Name: "x", On: []string{"breaker"}}, Actives: &Actives{Limit: Of(3)},
	}, cfg.Consumer.Policies)
	short := parsed(t, "weir: {consumer: {breaker: hystrix, breaker.window: 5000, fallback: x, fallback.on: breaker, actives: 3}}")
	assert.Equal(t, cfg, short)
	for doc, want := range map[string]string{
		"breaker: {limit: hystrix}":                      "breaker.limit",
		"breaker: {name: hystrix}":                       "breaker.name",
		"fallback: {limit: x}":                           "fallback.limit",
		"fallback: {preset: x}":                          "fallback.preset",
		"actives: {name: 3}":                             "actives.name",
		"tps: {preset: 3}":                               "tps.preset",
		"breaker.preset: hystrix":                        "breaker.preset",
		"breaker: hystrix\n  breaker: {preset: hystrix}": "breaker",
	} {
		_, _, faults := ParseYAML("f", []byte("weir:\n consumer:\n  "+doc))
		if assert.Len(t, faults, 1, doc) {
			assert.Equal(t, want, faults[0].Key, doc)
		}
	}
	_, _, faults := ParseYAML("f", []byte("weir: {consumer: {breaker: {presets: hystrix}, fallback: {names: x}}}"))
	require.Len(t, faults, 2)
	assert.True(t, strings.HasPrefix(faults[0].Allowed, "did you mean breaker.preset? all: "), faults[0].Allowed)
	assert.Equal(t, "did you mean fallback.name? all: fallback.on, fallback.name", faults[1].Allowed)
}

// What only a consumer has is told as misplaced on a provider.
func TestBreakerMisplaced(t *testing.T) {
	for _, name := range []string{BreakerScopeKey, FallbackKey, FallbackOnKey} {
		p := ParseParams(Provider, "a.B", map[string]string{name: "x"})
		require.Len(t, p.Faults, 1)
		assert.Equal(t, `params side=provider service=a.B key=`+name+` value="x": `+name+` is a consumer's key and has no effect on a provider; allowed: on a consumer`, p.Faults[0].String())
	}
	for _, doc := range []string{"breaker: {scope: service}", "fallback: {name: x}", "fallback: x", "fallback.on: [breaker]"} {
		_, _, faults := ParseYAML("f", []byte("weir: {provider: {services: {a.B: {"+doc+"}}}}"))
		require.Len(t, faults, 1, doc)
		assert.Contains(t, faults[0].Problem, "is a consumer's key and has no effect on a provider")
	}
	_, faults := (&Config{Provider: Section{Policies: Policies{Breaker: &Breaker{Scope: ScopeService}, Fallback: &Fallback{Name: "x", On: []string{"breaker"}}}}}).Checked("code")
	assert.Len(t, faults, 3)
}

func TestBreakerConflictsAndDifferences(t *testing.T) {
	a := parsed(t, "weir: {provider: {breaker: {preset: hystrix, failures: [not_found]}}, consumer: {fallback: x}}")
	b := parsed(t, "weir: {provider: {breaker: {failures: [business], window: 5s}}, consumer: {fallback: {name: y, on: [breaker]}}}")
	var told []string
	for _, f := range Conflicts("the file", a, "the section", b) {
		told = append(told, f.String())
	}
	assert.Equal(t, []string{
		`the section side=provider key=breaker.failures value="business": the file sets the same key to "not_found"; allowed: one of the two places`,
		`the section side=consumer key=fallback value="y": the file sets the same key to "x"; allowed: one of the two places`,
	}, told)

	one := params(t, "breaker.error-ratio", "57%", "breaker.ignore", "timeout, not_found", "methods.m.breaker", "off")
	same := params(t, "breaker.error-ratio", "0.57", "breaker.ignore", "timeout,not_found", "methods.m.breaker", "off")
	assert.Empty(t, Differences(&View{}, Provider, exactKey, "tri", one, "dubbo", same), "another text of the same value")
	other := params(t, "breaker.error-ratio", "0.57", "breaker.ignore", "timeout", "methods.m.breaker", "hystrix")
	told = nil
	for _, f := range Differences(&View{}, Provider, exactKey, "tri", one, "dubbo", other) {
		told = append(told, f.Param()+": "+f.Problem)
		assert.Equal(t, "the same for all protocols", f.Allowed)
	}
	assert.Equal(t, []string{
		`breaker.ignore: protocols share a service's limits, but tri says "timeout,not_found" and dubbo says "timeout"`,
		`methods.m.breaker: protocols share a service's limits, but tri says "off" and dubbo says "hystrix"`,
	}, told)
}

func TestCodeWords(t *testing.T) {
	words := CodeWords()
	assert.Len(t, words, 17)
	words[0] = "changed"
	assert.Equal(t, "canceled", CodeWords()[0])
	for i, w := range slices.Concat(outcomeWords, codeWords) {
		assert.Equal(t, i, slices.Index(failureWords, w), "%s is there once", w)
	}
}
