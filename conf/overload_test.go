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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOverload(t *testing.T) {
	of := func(change func(*OverloadPolicy)) OverloadPolicy {
		o := OverloadPolicy{
			Set: true, Mode: Enforce, Limit: 200, MaxExpand: 4, SlowCall: time.Second, SlowShare: 200_000, EntryTimeout: time.Minute,
			MaxOverdue: 200, Calm: 30 * time.Second, DumpInterval: 10 * time.Minute,
		}
		change(&o)
		return o
	}
	auto := func(floor, ceiling int) OverloadPolicy {
		return of(func(o *OverloadPolicy) {
			o.Auto, o.Limit, o.MaxExpand, o.Floor, o.Ceiling, o.MaxOverdue = true, floor, 1, floor, ceiling, ceiling
		})
	}
	for _, tt := range []struct {
		name   string
		params []string
		want   OverloadPolicy
	}{
		{"nothing", nil, OverloadPolicy{}},
		{"a limit", []string{"overload", "200"}, of(func(*OverloadPolicy) {})},
		{"unlimited", []string{"overload", "0"}, OverloadPolicy{}},
		{"less than unlimited", []string{"overload", "-3", "overload.calm", "1s"}, OverloadPolicy{}},
		{"unlimited for the method", []string{"overload", "200", "methods.m.overload", "0"}, OverloadPolicy{}},
		{"no limit", []string{"overload.max-expand", "8"}, OverloadPolicy{}},
		{"all of it", []string{
			"overload", "200", "overload.max-expand", "16", "overload.slow-call", "500", "overload.slow-share", "50%", "overload.entry-timeout", "5m",
			"overload.max-overdue", "7", "overload.calm", "0", "overload.dump-interval", "0", "overload.mode", "observe",
		}, of(func(o *OverloadPolicy) {
			o.MaxExpand, o.SlowCall, o.SlowShare, o.EntryTimeout, o.MaxOverdue, o.Calm, o.DumpInterval, o.Mode = 16, 500*time.Millisecond, 500_000, 5*time.Minute, 7, 0, 0, Observe
		})},
		{"auto", []string{"overload", "auto"}, auto(20, 2000)},
		{"auto with bounds", []string{"overload", "auto", "overload.floor", "5", "methods.m.overload.ceiling", "50"}, auto(5, 50)},
		{"auto from more than it goes to", []string{"overload", "auto", "overload.floor", "5000"}, auto(5000, 5000)},
		{"auto to less than it begins with", []string{"overload", "auto", "overload.ceiling", "10"}, auto(10, 10)},
		{"auto, and a limit for the method", []string{"overload", "auto", "overload.floor", "5", "methods.m.overload", "200"}, of(func(*OverloadPolicy) {})},
		{"a limit, and auto for the method", []string{"overload", "200", "methods.m.overload", "auto", "overload.max-expand", "8"}, auto(20, 2000)},
		{"the method knows a better ceiling", []string{"overload", "auto", "overload.floor", "100", "methods.m.overload.ceiling", "50"}, auto(50, 50)},
		{"the method knows a better floor", []string{"overload", "auto", "overload.ceiling", "50", "methods.m.overload.floor", "100"}, auto(100, 100)},
		{"slow late", []string{"overload", "200", "overload.slow-call", "2m"}, of(func(o *OverloadPolicy) { o.SlowCall, o.EntryTimeout = 2*time.Minute, 2*time.Minute })},
		{"aside early", []string{"overload", "200", "overload.entry-timeout", "500ms"}, of(func(o *OverloadPolicy) { o.SlowCall, o.EntryTimeout = 500*time.Millisecond, 500*time.Millisecond })},
		{"the method sets aside early", []string{"overload", "200", "overload.slow-call", "2s", "methods.m.overload.entry-timeout", "1s"}, of(func(o *OverloadPolicy) { o.EntryTimeout = time.Second })},
		{"the method is slow late", []string{"overload", "200", "overload.entry-timeout", "2s", "methods.m.overload.slow-call", "3s"}, of(func(o *OverloadPolicy) { o.SlowCall, o.EntryTimeout = 3*time.Second, 3*time.Second })},
		{"never slow, never aside", []string{"overload", "200", "overload.slow-call", "0", "overload.entry-timeout", "0"}, of(func(o *OverloadPolicy) { o.SlowCall, o.EntryTimeout = 0, 0 })},
		{"never aside", []string{"overload", "200", "overload.slow-call", "1h", "overload.entry-timeout", "0"}, of(func(o *OverloadPolicy) { o.SlowCall, o.EntryTimeout = time.Hour, 0 })},
	} {
		for _, side := range both {
			assert.Equal(t, tt.want, (&View{}).Resolve(side, exactKey, "M", sideParams(t, side, tt.params...)).Overload, tt.name)
		}
	}
	v := viewOf(&Config{Mode: Off}, parsed(t, "weir: {consumer: {overload: {limit: 200, max-expand: 2, mode: observe}, services: {a.B: {overload.calm: 3s}}}}"), nil)
	assert.Equal(t, of(func(o *OverloadPolicy) { o.MaxExpand, o.Calm, o.Mode = 2, 3*time.Second, Off }), v.Resolve(Consumer, exactKey, "m", nil).Overload)
	// A higher source takes auto for a limit and the other way round.
	number, found := &Config{Provider: Section{Policies: Policies{Overload: &Overload{Limit: Of(200)}}}}, &Config{Provider: Section{Policies: Policies{Overload: &Overload{Auto: true}}}}
	assert.Equal(t, auto(20, 2000), viewOf(found, number, nil).Resolve(Provider, exactKey, "m", nil).Overload)
	assert.Equal(t, of(func(*OverloadPolicy) {}), viewOf(number, found, nil).Resolve(Provider, exactKey, "m", nil).Overload)
}

func TestOverloadNotes(t *testing.T) {
	notes := func(side Side, method string, keyValues ...string) []string {
		return (&View{}).Resolve(side, exactKey, method, sideParams(t, side, keyValues...)).Notes()
	}
	const bounds, found = "they are bounds of what auto finds", "a limit that is found out does not expand"
	for _, tt := range []struct {
		params, want []string
	}{
		{[]string{"overload", "200"}, nil},
		{[]string{"overload", "auto"}, nil},
		{[]string{"overload", "auto", "overload.floor", "5", "overload.ceiling", "50", "overload.max-overdue", "5", "overload.dump-interval", "1h"}, nil},
		{[]string{"overload", "200", "overload.max-expand", "8", "overload.slow-share", "0", "overload.calm", "1m", "overload.entry-timeout", "2m", "overload.max-overdue", "0"}, nil},
		{[]string{"overload", "0", "overload.max-expand", "8", "overload.floor", "3"}, nil},
		{[]string{"overload.max-expand", "8", "overload.mode", "off", "overload.calm", "5"}, []string{
			"overload.max-expand=8 has no effect without overload", "overload.calm=5ms has no effect without overload", "overload.mode=off has no effect without overload",
		}},
		{[]string{"overload", "200", "overload.floor", "5", "overload.ceiling", "50"}, []string{
			"overload.floor=5 has no effect with overload=200: " + bounds, "overload.ceiling=50 has no effect with overload=200: " + bounds,
		}},
		{[]string{"overload", "auto", "overload.max-expand", "8"}, []string{"overload.max-expand=8 has no effect with overload=auto: " + found}},
		{[]string{"overload", "auto", "overload.slow-share", "0.5", "overload.calm", "1s"}, []string{
			"overload.slow-share=0.5 has no effect with overload=auto: " + found, "overload.calm=1s has no effect with overload=auto: " + found,
		}},
		{[]string{"overload", "200", "overload.max-expand", "1", "overload.calm", "1s"}, []string{"overload.calm=1s has no effect with overload.max-expand=1: the cap does not expand"}},
		{[]string{"overload", "200", "overload.slow-call", "0"}, nil},
		{[]string{"overload", "200", "overload.slow-call", "0", "overload.slow-share", "0.5", "overload.dump-interval", "1m"}, []string{
			"overload.slow-share=0.5 has no effect with overload.slow-call=0s: no call is slow", "overload.dump-interval=1m0s has no effect with overload.slow-call=0s: no call is slow",
		}},
		{[]string{"overload", "200", "overload.slow-call", "0", "overload.dump-interval", "0"}, nil},
		{[]string{"overload", "200", "overload.entry-timeout", "0", "overload.max-overdue", "5"}, []string{"overload.max-overdue=5 has no effect with overload.entry-timeout=0s: no call is set aside"}},
		// The method goes without what its service has.
		{[]string{"overload", "auto", "overload.floor", "5", "methods.m.overload", "200"}, nil},
		{[]string{"overload", "200", "overload.max-expand", "8", "methods.m.overload", "auto"}, nil},
		{[]string{"overload", "200", "overload.calm", "1s", "methods.m.overload.max-expand", "1"}, nil},
		// Two levels do not agree.
		{[]string{"overload", "auto", "overload.floor", "100", "methods.m.overload.ceiling", "50"}, []string{"overload.floor=100 is taken as 50 beside overload.ceiling=50: a floor is not more than its ceiling"}},
		{[]string{"overload", "auto", "overload.ceiling", "50", "methods.m.overload.floor", "100"}, []string{"overload.ceiling=50 is taken as 100 beside overload.floor=100: a floor is not more than its ceiling"}},
		{[]string{"overload", "200", "overload.slow-call", "2s", "methods.m.overload.entry-timeout", "1s"}, []string{"overload.slow-call=2s is taken as 1s beside overload.entry-timeout=1s: no call is set aside before it is slow"}},
		{[]string{"overload", "200", "overload.entry-timeout", "2s", "methods.m.overload.slow-call", "3s"}, []string{"overload.entry-timeout=2s is taken as 3s beside overload.slow-call=3s: no call is set aside before it is slow"}},
	} {
		for _, side := range both {
			assert.Equal(t, tt.want, notes(side, "m", tt.params...), tt.params)
		}
	}
	// Of one level and two sources the one that is to be the lower gives way.
	v := viewOf(parsed(t, "weir: {provider: {overload.ceiling: 10}}"), parsed(t, "weir: {provider: {overload: auto, overload.floor: 50}}"), nil)
	e := v.Resolve(Provider, exactKey, "m", nil)
	assert.Equal(t, []int{50, 50}, []int{e.Overload.Floor, e.Overload.Ceiling})
	assert.Equal(t, []string{"overload.ceiling=10 is taken as 50 beside overload.floor=50: a floor is not more than its ceiling"}, e.Notes())
	// What is of use to a method is not told of its service.
	for _, quiet := range [][]string{
		{"overload.calm", "3s", "methods.m.overload", "5"}, {"overload.calm", "3s", "methods.m.overload", "auto"}, {"overload", "200", "overload.floor", "5", "methods.m.overload", "auto"},
		{"overload", "auto", "overload.max-expand", "2", "methods.m.overload", "5"}, {"overload", "200", "overload.max-expand", "1", "overload.calm", "3s", "methods.m.overload.max-expand", "2"},
	} {
		assert.Empty(t, notes(Provider, "", quiet...), quiet)
	}
	for _, told := range [][]string{
		{"overload.calm", "3s", "methods.m.overload", "-5"}, {"overload", "200", "overload.floor", "5", "methods.m.overload", "300"},
	} {
		assert.Len(t, notes(Provider, "", told...), 1, told)
	}
}

// Where executes refuses first the cap is never met.
func TestOverloadUnderExecutes(t *testing.T) {
	of := func(keyValues ...string) []string {
		return (&View{}).Resolve(Provider, exactKey, "m", sideParams(t, Provider, keyValues...)).Notes()
	}
	const never = ": executes=100 lets fewer calls run, so the cap neither refuses nor expands"
	assert.Equal(t, []string{"overload=200 is never met" + never}, of("overload", "200", "executes", "100"))
	assert.Equal(t, []string{"overload=200 is never met" + never}, of("overload", "200", "executes", "100", "executes.scope", "service"))
	assert.Equal(t, []string{"overload=200 is never met" + never}, of("methods.m.overload", "200", "executes", "100"))
	assert.Equal(t, []string{"overload.floor=200 is never met" + never}, of("overload", "auto", "overload.floor", "200", "executes", "100"))
	for _, quiet := range [][]string{
		{"overload", "200", "executes", "200"}, {"overload", "200", "executes", "300"}, {"overload", "200", "executes", "0"}, {"overload", "auto", "executes", "100"},
		{"overload", "200", "executes", "100", "executes.mode", "observe"}, {"overload", "200", "executes", "100", "overload.mode", "off"}, {"overload", "0", "executes", "100"},
	} {
		assert.Empty(t, of(quiet...), quiet)
	}
}

// What does not go together at one place is a fault, whichever is read first.
func TestOverloadFits(t *testing.T) {
	fault := func(faults []Fault) string {
		require.Len(t, faults, 1)
		return faults[0].String()
	}
	const floor, entry = `overload.floor=50 is more than overload.ceiling=10; allowed: a floor that is not more than the ceiling`,
		`overload.entry-timeout=1s is shorter than overload.slow-call=2s; allowed: an entry-timeout that is not shorter than slow-call, or 0`
	_, _, faults := ParseYAML("f", []byte("weir:\n  provider:\n    overload:\n      limit: auto\n      floor: 50\n      ceiling: 10\n"))
	assert.Equal(t, `f:6 side=provider key=overload.ceiling value="10": `+floor, fault(faults))
	cfg, _, faults := ParseYAML("f", []byte("weir:\n  provider:\n    overload:\n      ceiling: 10\n      floor: ${F:50}\n"))
	assert.Equal(t, `f:5 side=provider key=overload.floor value="${F:50}": overload.floor=50 is more than overload.ceiling=10; with the environment filled in it is "50"; allowed: a floor that is not more than the ceiling`, fault(faults))
	assert.Equal(t, &Overload{Ceiling: Of(10)}, cfg.Provider.Overload)
	_, _, faults = ParseYAML("f", []byte("weir: {consumer: {services: {a.B: {methods: {m: {overload: {entry-timeout: 1s, slow-call: 2s}}}}}}}"))
	assert.Equal(t, `f:1 side=consumer service=a.B method=m key=overload.slow-call value="2s": `+entry, fault(faults))
	p := ParseParams(Provider, "a.B", map[string]string{"methods.m.overload.entry-timeout": "1s", "methods.m.overload.slow-call": "2s", "overload.slow-call": "3s"})
	assert.Contains(t, fault(p.Faults), entry)
	checked, faults := (&Config{Provider: Section{Policies: Policies{Overload: &Overload{Floor: Of(50), Ceiling: Of(10), Auto: true}}}}).Checked("code")
	assert.Equal(t, `code side=provider key=overload.ceiling value="10": `+floor, fault(faults))
	assert.Equal(t, &Overload{Floor: Of(50), Auto: true}, checked.Provider.Overload)
	for _, right := range []string{
		"overload: {floor: 10, ceiling: 10}", "overload: {floor: 2000}", "overload: {floor: 5000}", "overload: {slow-call: 2s, entry-timeout: 0}", "overload: {slow-call: 0, entry-timeout: 1}", "overload: {slow-call: 2s, entry-timeout: 2s}",
	} {
		parsed(t, "weir: {provider: {"+right+"}}")
	}
}

func TestOverloadInBothForms(t *testing.T) {
	cfg := parsed(t, "weir: {provider: {overload: {limit: 200, max-expand: 8, slow-call: 500ms, slow-share: 30%, entry-timeout: 2m, max-overdue: 5, calm: 1m, floor: 3, ceiling: 9, dump-interval: 1h, mode: off}}}")
	assert.Equal(t, &Overload{
		Limit: Of(200), MaxExpand: Of(8), SlowCall: Of(500 * time.Millisecond), SlowShare: Of(Ratio(300_000)), EntryTimeout: Of(2 * time.Minute), MaxOverdue: Of(5),
		Calm: Of(time.Minute), Floor: Of(3), Ceiling: Of(9), DumpInterval: Of(time.Hour), Mode: Off,
	}, cfg.Provider.Overload)
	assert.Equal(t, cfg, parsed(t, "weir: {provider: {overload: 200, overload.max-expand: 8, overload.slow-call: 500, overload.slow-share: 0.3, overload.entry-timeout: 120000, overload.max-overdue: 5, overload.calm: 60s, overload.floor: 3, overload.ceiling: 9, overload.dump-interval: 60m, overload.mode: off}}"))
	assert.Equal(t, &Overload{Auto: true}, parsed(t, "weir: {consumer: {overload: auto}}").Consumer.Overload)
	assert.Equal(t, &Overload{Auto: true, Floor: Of(5)}, parsed(t, "weir: {consumer: {overload: {limit: auto, floor: 5}}}").Consumer.Overload)
}

func TestOverloadConflictsAndDifferences(t *testing.T) {
	faults := Conflicts("a", parsed(t, "weir: {provider: {overload: auto}}"), "b", parsed(t, "weir: {provider: {overload: 200, overload.calm: 1s}}"))
	require.Len(t, faults, 1)
	assert.Equal(t, `b side=provider key=overload value="200": a sets the same key to "auto"; allowed: one of the two places`, faults[0].String())
	faults = Differences(&View{}, Provider, exactKey, "tri", params(t, "overload", "auto"), "dubbo", params(t, "overload", "200"))
	require.Len(t, faults, 1)
	assert.Equal(t, `params side=provider service=g/a.B:1.0 key=overload value="200": protocols share a service's limits, but tri says "auto" and dubbo says "200"; allowed: the same for all protocols`, faults[0].String())
}
