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
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRateText(t *testing.T) {
	for text, r := range map[string]Rate{
		"200/1s": {200, time.Second}, "30/1m": {30, time.Minute}, "5/1h": {5, time.Hour}, "1/1h30m": {1, 90 * time.Minute}, "1/1m30s": {1, 90 * time.Second},
		"7/10m": {7, 10 * time.Minute}, "7/10h10m": {7, 10*time.Hour + 10*time.Minute}, "7/20h": {7, 20 * time.Hour}, "7/1h0m1s": {7, time.Hour + time.Second},
		"0/500ms": {0, 500 * time.Millisecond}, "0/0s": {}, "9/1m0.5s": {9, time.Minute + 500*time.Millisecond}, "9/24h": {9, 24 * time.Hour},
	} {
		assert.Equal(t, text, r.String())
		if r.Interval == 0 {
			continue
		}
		again, err := parseRate(text)
		require.NoError(t, err, text)
		assert.Equal(t, r, again)
	}
}

// flowOf is what params give for method M of a provider.
func flowOf(t *testing.T, keyValues ...string) FlowPolicy {
	t.Helper()
	return (&View{}).Resolve(Provider, exactKey, "M", sideParams(t, Provider, keyValues...)).Flow
}

func TestFlow(t *testing.T) {
	flow := func(change func(*FlowPolicy)) FlowPolicy {
		f := FlowPolicy{Set: true, Rate: Rate{200, time.Second}, Behavior: BehaviorReject, MaxQueue: 500 * time.Millisecond, WarmUp: 10 * time.Second, ColdFactor: 3, Mode: Enforce}
		change(&f)
		return f
	}
	for _, tt := range []struct {
		name   string
		params []string
		want   FlowPolicy
	}{
		{"nothing", nil, FlowPolicy{}},
		{"a rate", []string{"flow", "200/1s"}, flow(func(*FlowPolicy) {})},
		{"unlimited", []string{"flow", "0/s", "flow.behavior", "queue"}, FlowPolicy{}},
		{"unlimited for the method", []string{"flow", "200/s", "methods.m.flow", "0/s"}, FlowPolicy{}},
		{"no rate", []string{"flow.behavior", "queue", "flow.max-queue", "1s"}, FlowPolicy{}},
		{"all of it", []string{"flow", "200/s", "flow.behavior", "warm-up-queue", "flow.max-queue", "0", "flow.warm-up", "1m", "flow.cold-factor", "1.5", "flow.callers", "b=1/s, a=2/m", "flow.mode", "observe"}, flow(func(f *FlowPolicy) {
			f.Behavior, f.MaxQueue, f.WarmUp, f.ColdFactor, f.Mode = BehaviorWarmUpQueue, 0, time.Minute, 1.5, Observe
			f.Callers = map[string]Rate{"a": {2, time.Minute}, "b": {1, time.Second}}
		})},
		{"callers only", []string{"flow.callers", "a=2/m"}, flow(func(f *FlowPolicy) { f.Rate, f.Callers = Rate{}, map[string]Rate{"a": {2, time.Minute}} })},
		{"a rate of 0 and callers", []string{"flow", "0/s", "flow.callers", "a=2/m"}, flow(func(f *FlowPolicy) { f.Rate, f.Callers = Rate{}, map[string]Rate{"a": {2, time.Minute}} })},
		{"a caller let off the default", []string{"flow.callers", "a=0/s,default=2/m"}, flow(func(f *FlowPolicy) {
			f.Rate, f.Callers = Rate{}, map[string]Rate{"a": {0, time.Second}, DefaultCaller: {2, time.Minute}}
		})},
		{"callers without a limit", []string{"flow.callers", "a=0/s"}, FlowPolicy{}},
		{"the method's callers hold as a whole", []string{"flow", "200/s", "flow.callers", "a=1/s,default=2/s", "methods.m.flow.callers", "b=3/s"}, flow(func(f *FlowPolicy) {
			f.Callers, f.Own = map[string]Rate{"b": {3, time.Second}}, true
		})},
		{"its own rate", []string{"flow", "5/s", "methods.m.flow", "200/s", "flow.behavior", "queue"}, flow(func(f *FlowPolicy) { f.Behavior, f.Own = BehaviorQueue, true })},
		{"its own behavior", []string{"flow", "200/s", "methods.m.flow.behavior", "queue"}, flow(func(f *FlowPolicy) { f.Behavior, f.Own = BehaviorQueue, true })},
		{"its own longest wait", []string{"flow", "200/s", "methods.m.flow.max-queue", "1s"}, flow(func(f *FlowPolicy) { f.MaxQueue, f.Own = time.Second, true })},
		{"its own warm-up", []string{"flow", "200/s", "methods.m.flow.warm-up", "1s"}, flow(func(f *FlowPolicy) { f.WarmUp, f.Own = time.Second, true })},
		{"its own cold factor", []string{"flow", "200/s", "methods.m.flow.cold-factor", "2"}, flow(func(f *FlowPolicy) { f.ColdFactor, f.Own = 2, true })},
		{"its own mode", []string{"flow", "200/s", "methods.m.flow.mode", "off"}, flow(func(f *FlowPolicy) { f.Mode = Off })},
		{"another method's own rate", []string{"flow", "200/s", "methods.n.flow", "1/s"}, flow(func(*FlowPolicy) {})},
	} {
		assert.Equal(t, tt.want, flowOf(t, tt.params...), tt.name)
	}
	// Sources and levels, each key by itself; and the mode for all.
	code := parsed(t, "weir: {mode: observe, provider: {flow: 1/s, services: {a.B: {flow.behavior: queue}}}}")
	file := parsed(t, "weir: {provider: {flow: 2/s, services: {g/a.B:1.0: {flow.max-queue: 1s, methods: {m: {flow: {callers: {x: 5/s}}}}}}}}")
	e := viewOf(code, file, nil).Resolve(Provider, exactKey, "m", nil)
	assert.Equal(t, FlowPolicy{
		Set: true, Rate: Rate{1, time.Second}, Behavior: BehaviorQueue, MaxQueue: time.Second, WarmUp: DefaultWarmUp, ColdFactor: DefaultColdFactor,
		Callers: map[string]Rate{"x": {5, time.Second}}, Mode: Observe, Own: true,
	}, e.Flow)
	assert.Equal(t, "x=5/1s", e.setting(FlowCallersKey).Value)
	assert.False(t, viewOf(code, file, nil).Resolve(Consumer, exactKey, "other", nil).Flow.Own)
}

func TestBehaviors(t *testing.T) {
	for b, want := range map[Behavior][2]bool{"": {}, BehaviorReject: {}, BehaviorQueue: {true, false}, BehaviorWarmUp: {false, true}, BehaviorWarmUpQueue: {true, true}} {
		assert.Equal(t, want, [2]bool{b.Queues(), b.WarmsUp()}, b)
	}
}

func TestFlowNotes(t *testing.T) {
	const without = " has no effect without flow or flow.callers"
	notes := func(method string, keyValues ...string) []string {
		return (&View{}).Resolve(Provider, exactKey, method, sideParams(t, Provider, keyValues...)).Notes()
	}
	for _, tt := range []struct {
		params, want []string
	}{
		{[]string{"flow", "200/s"}, nil},
		{[]string{"flow", "200/s", "flow.behavior", "queue", "flow.max-queue", "5ms"}, nil},
		{[]string{"flow", "200/s", "flow.behavior", "warm-up-queue", "flow.max-queue", "1s", "flow.warm-up", "5s", "flow.cold-factor", "2"}, nil},
		{[]string{"flow", "0/s", "flow.behavior", "queue", "flow.warm-up", "5s"}, nil},
		{[]string{"flow.callers", "a=0/s", "flow.behavior", "queue"}, nil},
		{[]string{"flow.callers", "a=1/h", "flow.behavior", "queue"}, nil},
		{[]string{"flow.behavior", "queue", "flow.max-queue", "1s", "flow.warm-up", "5s", "flow.cold-factor", "2", "flow.mode", "off"}, []string{
			"flow.behavior=queue" + without, "flow.max-queue=1s" + without, "flow.warm-up=5s" + without, "flow.cold-factor=2" + without, "flow.mode=off" + without,
		}},
		{[]string{"flow", "200/s", "flow.max-queue", "1s", "flow.warm-up", "5s", "flow.cold-factor", "2"}, []string{
			"flow.max-queue=1s has no effect with flow.behavior=reject: only queue and warm-up-queue wait",
			"flow.warm-up=5s has no effect with flow.behavior=reject: only warm-up and warm-up-queue start cold",
			"flow.cold-factor=2 has no effect with flow.behavior=reject: only warm-up and warm-up-queue start cold",
		}},
		{[]string{"flow.callers", "a=1/s", "flow.behavior", "warm-up", "flow.max-queue", "1s"}, []string{"flow.max-queue=1s has no effect with flow.behavior=warm-up: only queue and warm-up-queue wait"}},
		{[]string{"flow", "200/s", "flow.behavior", "queue", "flow.max-queue", "0"}, []string{"flow.behavior=queue with flow.max-queue=0s refuses whatever would wait, as reject would, but lets calls through evenly spaced"}},
		{[]string{"flow.callers", "a=1/s", "flow.behavior", "warm-up-queue", "flow.max-queue", "0"}, []string{"flow.behavior=warm-up-queue with flow.max-queue=0s refuses whatever would wait, as warm-up would, but lets calls through evenly spaced"}},
		{[]string{"flow", "200/s", "flow.behavior", "queue", "flow.max-queue", "4999us"}, []string{"flow.max-queue=4.999ms is shorter than the 5ms from one call to the next at flow=200/1s: of calls that come together one goes on and none waits"}},
		{[]string{"flow", "1/2s", "flow.behavior", "warm-up-queue"}, []string{"flow.max-queue=500ms is shorter than the 2s from one call to the next at flow=1/2s: of calls that come together one goes on and none waits"}},
		{[]string{"flow", "2147483647/ms", "flow.behavior", "queue", "flow.max-queue", "1ms"}, nil},
		// The method goes without what its service has, and not without what it has itself.
		{[]string{"flow", "200/s", "flow.behavior", "queue", "flow.max-queue", "1s", "methods.m.flow.behavior", "reject"}, nil},
		{[]string{"flow", "200/s", "flow.behavior", "queue", "methods.m.flow.max-queue", "1s", "methods.m.flow.behavior", "reject"}, []string{"flow.max-queue=1s has no effect with flow.behavior=reject: only queue and warm-up-queue wait"}},
	} {
		assert.Equal(t, tt.want, notes("m", tt.params...), tt.params)
	}
	// What is of use to a method is not told of its service.
	for _, quiet := range [][]string{
		{"flow.behavior", "queue", "methods.m.flow", "5/s"}, {"flow.behavior", "queue", "methods.m.flow.callers", "a=5/s"},
		{"flow", "200/s", "flow.max-queue", "1s", "methods.m.flow.behavior", "queue"}, {"flow", "200/s", "flow.warm-up", "5s", "methods.m.flow.behavior", "warm-up"},
	} {
		assert.Empty(t, notes("", quiet...), quiet)
	}
	assert.Len(t, notes("", "flow.behavior", "queue", "methods.m.flow", "0/s"), 1)
	assert.Len(t, notes("", "flow", "200/s", "flow.max-queue", "1s", "methods.m.flow.behavior", "warm-up"), 1)
	assert.Len(t, notes("", "flow", "200/s", "flow.max-queue", "1s", "methods.m.flow.behavior", "reject"), 1)
	// Those of the method's own say so.
	e := (&View{}).Resolve(Provider, exactKey, "m", sideParams(t, Provider, "methods.m.flow.mode", "off"))
	assert.Equal(t, []string{"method=m flow.mode=off" + without}, e.NotesOf("m"))
}

// A map of callers in the section, and what is wrong with one.
func TestCallersInYAML(t *testing.T) {
	t.Setenv("WEIR_TEST_RATE", "5/m")
	const line = "weir:\n provider:\n  flow.callers:\n   "
	want := map[string]Rate{"app-a": {100, time.Second}, "7": {5, time.Minute}, "größe.x/y:1": {0, time.Hour}}
	for _, doc := range []string{
		line + "{app-a: 100/1s, 7: 5/m, größe.x/y:1: 0/h}",
		line + "{app-a: '${X:100/s}', '7': '${WEIR_TEST_RATE}', größe.x/y:1: 0/h}",
		line + "'app-a=100/1s, 7=${WEIR_TEST_RATE} ,größe.x/y:1=0/h'",
		line + "app-a: 100/1s\n   7: 5/m # a comment\n   größe.x/y:1: 0/1h",
		"weir: {provider: {flow: {callers: {app-a: 100/1s, 7: 5/m, größe.x/y:1: 0/h}}}}",
		"r: &r 100/1s\nb: &b {app-a: 3/s, 7: 5/m}\nweir: {provider: {flow: {callers: {<<: *b, app-a: *r, größe.x/y:1: 0/h}}}}",
	} {
		cfg, _, faults := ParseYAML("f", []byte(doc))
		assert.Empty(t, faults, doc)
		assert.Equal(t, &Flow{Callers: want}, cfg.Provider.Flow, doc)
	}
	long := strings.Repeat("n", 129)
	for value, want := range map[string][]string{
		"{}":                           {`f:4 side=provider key=flow.callers: there are no rates; allowed: ` + allowedRates},
		"''":                           {`f:4 side=provider key=flow.callers: there are no rates; allowed: ` + allowedRates},
		"~":                            {`f:4 side=provider key=flow.callers value="~": allowed: ` + allowedRates},
		"[a]":                          {`f:4 side=provider key=flow.callers: a list where a single value belongs; allowed: ` + allowedRates},
		"{a: 100}":                     {`f:4 side=provider key=flow.callers.a value="100": allowed: ` + allowedRate},
		"{a: ~}":                       {`f:4 side=provider key=flow.callers.a value="~": allowed: ` + allowedRate},
		"{a: {rate: 1/s}}":             {`f:4 side=provider key=flow.callers.a: a map where a single value belongs; allowed: ` + allowedRate},
		"{a: [1/s]}":                   {`f:4 side=provider key=flow.callers.a: a list where a single value belongs; allowed: ` + allowedRate},
		"{a: '${WEIR_TEST_NONE}'}":     {`f:4 side=provider key=flow.callers.a value="${WEIR_TEST_NONE}": environment variable WEIR_TEST_NONE is not set and has no default; allowed: ` + allowedRate},
		"{a: '${WEIR_TEST_NONE:x}'}":   {`f:4 side=provider key=flow.callers.a value="${WEIR_TEST_NONE:x}": with the environment filled in it is "x"; allowed: ` + allowedRate},
		"{'': 1/s}":                    {`f:4 side=provider key=flow.callers: a caller without a name; allowed: ` + allowedCaller},
		"{a b: 1/s}":                   {`f:4 side=provider key=flow.callers value="a b": not a caller; allowed: ` + allowedCaller},
		"{'${A}': 1/s}":                {`f:4 side=provider key=flow.callers value="${A}": not a caller; allowed: ` + allowedCaller},
		"{'a,b': 1/s}":                 {`f:4 side=provider key=flow.callers value="a,b": not a caller; allowed: ` + allowedCaller},
		"{\"a\u00a0\": 1/s}":           {`f:4 side=provider key=flow.callers value="a\u00a0": not a caller; allowed: ` + allowedCaller},
		"{" + long + ": 1/s}":          {`f:4 side=provider key=flow.callers value="` + long + `": not a caller; allowed: ` + allowedCaller},
		"a: 1/s\n   b: 1\n   a: 2/s":   {`f:5 side=provider key=flow.callers.b value="1": allowed: ` + allowedRate, `f:6 side=provider key=a value="2/s": the key stands here twice; allowed: once`},
		"'a=1/s,b'":                    {`f:4 side=provider key=flow.callers value="a=1/s,b": "b" is not a caller=rate; allowed: ` + allowedRates},
		"'a=1/s,a=2/s'":                {`f:4 side=provider key=flow.callers value="a=1/s,a=2/s": a stands here twice; allowed: once`},
		"'a=1/s,=2/s'":                 {`f:4 side=provider key=flow.callers value="a=1/s,=2/s": "" is not a caller; allowed: ` + allowedCaller},
		"'a=1/s,b=${WEIR_TEST_NONE:}'": {`f:4 side=provider key=flow.callers value="a=1/s,b=${WEIR_TEST_NONE:}": "" is not a rate for b; with the environment filled in it is "a=1/s,b="; allowed: ` + allowedRate},
	} {
		cfg, _, faults := ParseYAML("f", []byte(line+value))
		assert.Nil(t, cfg.Provider.Flow, value)
		var got []string
		for _, f := range faults {
			got = append(got, f.String())
		}
		assert.Equal(t, want, got, value)
	}
}

// One that is wrong takes the map and nothing else.
func TestAWrongCallerTakesItsMap(t *testing.T) {
	cfg, _, faults := ParseYAML("f", []byte("weir: {provider: {flow: {rate: 5/s, callers: {a: 1/s, b: x, c: y}}}}"))
	assert.Len(t, faults, 2)
	assert.Equal(t, &Flow{Rate: &Rate{5, time.Second}}, cfg.Provider.Flow)
}

func TestCallersAreNotShared(t *testing.T) {
	mine := map[string]Rate{"a": {1, time.Second}}
	c := Config{Provider: Section{Policies: Policies{Flow: &Flow{Rate: &Rate{5, time.Second}, Callers: mine}}}}
	checked, faults := c.Checked("code")
	require.Empty(t, faults)
	mine["b"] = Rate{2, time.Second}
	c.Provider.Flow.Rate.Calls = 6
	want := map[string]Rate{"a": {1, time.Second}}
	assert.Equal(t, &Flow{Rate: &Rate{5, time.Second}, Callers: want}, checked.Provider.Flow)
	v := viewOf(checked, nil, nil)
	maps.DeleteFunc(v.Resolve(Provider, exactKey, "m", nil).Flow.Callers, func(string, Rate) bool { return true })
	assert.Equal(t, want, v.Resolve(Provider, exactKey, "m", nil).Flow.Callers)
}

func TestFlowConflictsAndDifferences(t *testing.T) {
	a := parsed(t, "weir: {provider: {flow: {rate: 5/s, callers: {a: 1/s}}}}")
	b := parsed(t, "weir: {provider: {flow: {behavior: queue, callers: {a: 1/s, b: 1/s}}}}")
	faults := Conflicts("the file", a, "the section", b)
	require.Len(t, faults, 1)
	assert.Equal(t, `the section side=provider key=flow.callers value="a=1/1s,b=1/1s": the file sets the same key to "a=1/1s"; allowed: one of the two places`, faults[0].String())

	differ := func(a, b *Service) []string {
		var told []string
		for _, f := range Differences(&View{}, Provider, exactKey, "tri", a, "dubbo", b) {
			told = append(told, f.Param()+": "+f.Problem)
		}
		return told
	}
	assert.Empty(t, differ(params(t, "flow", "60/m", "flow.callers", "b=1/s, a=2/s"), params(t, "flow", "60/1m", "flow.callers", "a=2/1s,b=1/1s")), "another text of the same value")
	assert.Equal(t, []string{
		`flow: protocols share a service's limits, but tri says "5/1s" and dubbo says "6/1s"`,
	}, differ(params(t, "flow", "5/s"), params(t, "flow", "6/s")))
	assert.Equal(t, []string{
		`methods.m.flow: protocols share a service's limits, but tri says nothing and dubbo says "5/1s"`,
	}, differ(params(t, "flow", "5/s"), params(t, "flow", "5/s", "methods.m.flow", "5/s")), "a budget of its own is not the one that all share")
	assert.Empty(t, differ(params(t, "flow", "5/s", "flow.mode", "off"), params(t, "flow", "5/s", "flow.mode", "off", "methods.m.flow.mode", "off")))
}
