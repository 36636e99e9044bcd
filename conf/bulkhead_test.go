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

func TestBulkhead(t *testing.T) {
	of := func(change func(*BulkheadPolicy)) BulkheadPolicy {
		b := BulkheadPolicy{Set: true, Max: 5, MaxWait: time.Second, Mode: Enforce}
		change(&b)
		return b
	}
	for _, tt := range []struct {
		name   string
		params []string
		want   BulkheadPolicy
	}{
		{"nothing", nil, BulkheadPolicy{}},
		{"a limit", []string{"bulkhead", "5"}, of(func(*BulkheadPolicy) {})},
		{"unlimited", []string{"bulkhead", "0"}, of(func(b *BulkheadPolicy) { b.Max = 0 })},
		{"less than unlimited", []string{"bulkhead", "-3"}, of(func(b *BulkheadPolicy) { b.Max = 0 })},
		{"unlimited for the method", []string{"bulkhead", "5", "methods.m.bulkhead", "0"}, of(func(b *BulkheadPolicy) { b.Max = 0 })},
		{"no limit", []string{"bulkhead.queue", "3", "bulkhead.max-wait", "2s", "bulkhead.group", "g"}, BulkheadPolicy{}},
		{"all of it", []string{"bulkhead", "5", "bulkhead.queue", "3", "bulkhead.max-wait", "2s", "bulkhead.group", "g", "bulkhead.mode", "observe"}, of(func(b *BulkheadPolicy) {
			b.Queue, b.MaxWait, b.Group, b.Mode = 3, 2*time.Second, "g", Observe
		})},
		{"no group for the method", []string{"bulkhead", "5", "bulkhead.group", "g", "methods.m.bulkhead.group", "none"}, of(func(*BulkheadPolicy) {})},
		{"a group for the method", []string{"bulkhead", "5", "bulkhead.group", "none", "methods.m.bulkhead.group", "h"}, of(func(b *BulkheadPolicy) { b.Group = "h" })},
		{"the method's own queue", []string{"bulkhead", "5", "bulkhead.queue", "3", "methods.m.bulkhead.queue", "0", "methods.m.bulkhead.max-wait", "0"}, of(func(b *BulkheadPolicy) { b.MaxWait = 0 })},
	} {
		for _, side := range both {
			assert.Equal(t, tt.want, (&View{}).Resolve(side, exactKey, "M", sideParams(t, side, tt.params...)).Bulkhead, tt.name)
		}
	}
	for _, tt := range []struct {
		name   string
		params []string
		want   BulkheadPolicy
	}{
		{"a time", []string{"bulkhead.run-timeout", "3s"}, of(func(b *BulkheadPolicy) { b.Max, b.RunTimeout = 0, 3*time.Second })},
		{"a time and a limit", []string{"bulkhead.run-timeout", "1", "bulkhead", "5"}, of(func(b *BulkheadPolicy) { b.RunTimeout = time.Millisecond })},
		{"no time", []string{"bulkhead.run-timeout", "0"}, BulkheadPolicy{}},
		{"no time for the method", []string{"bulkhead.run-timeout", "3s", "methods.m.bulkhead.run-timeout", "0"}, BulkheadPolicy{}},
	} {
		assert.Equal(t, tt.want, (&View{}).Resolve(Provider, exactKey, "M", sideParams(t, Provider, tt.params...)).Bulkhead, tt.name)
	}
	v := viewOf(&Config{Mode: Off}, parsed(t, "weir: {consumer: {bulkhead: {max: 5, queue: 2, mode: observe}, services: {a.B: {bulkhead.max-wait: 3s}}}}"), nil)
	assert.Equal(t, BulkheadPolicy{Set: true, Max: 5, Queue: 2, MaxWait: 3 * time.Second, Mode: Off}, v.Resolve(Consumer, exactKey, "m", nil).Bulkhead)
}

func TestBulkheadNotes(t *testing.T) {
	notes := func(side Side, method string, keyValues ...string) []string {
		return (&View{}).Resolve(side, exactKey, method, sideParams(t, side, keyValues...)).Notes()
	}
	for _, tt := range []struct {
		params, want []string
	}{
		{[]string{"bulkhead", "5"}, nil},
		{[]string{"bulkhead", "5", "bulkhead.queue", "3", "bulkhead.max-wait", "2s", "bulkhead.group", "g"}, nil},
		{[]string{"bulkhead", "0", "bulkhead.queue", "3", "bulkhead.group", "g"}, nil},
		{[]string{"bulkhead", "-1", "bulkhead.max-wait", "3"}, nil},
		{[]string{"bulkhead", "5", "bulkhead.queue", "0"}, nil},
		{[]string{"bulkhead.queue", "3", "bulkhead.max-wait", "2s", "bulkhead.group", "g"}, []string{
			"bulkhead.queue=3 has no effect without bulkhead", "bulkhead.max-wait=2s has no effect without bulkhead", "bulkhead.group=g has no effect without bulkhead",
		}},
		{[]string{"bulkhead", "5", "bulkhead.max-wait", "2s"}, []string{"bulkhead.max-wait=2s has no effect with bulkhead.queue=0: nobody waits"}},
		{[]string{"bulkhead", "5", "bulkhead.queue", "0", "bulkhead.max-wait", "2s"}, []string{"bulkhead.max-wait=2s has no effect with bulkhead.queue=0: nobody waits"}},
		{[]string{"bulkhead", "5", "bulkhead.queue", "3", "bulkhead.max-wait", "0"}, []string{"bulkhead.queue=3 has no effect with bulkhead.max-wait=0s: nobody waits"}},
		// The method goes without what its service has.
		{[]string{"bulkhead", "5", "bulkhead.queue", "3", "bulkhead.max-wait", "2s", "methods.m.bulkhead.queue", "0"}, nil},
		{[]string{"bulkhead", "5", "bulkhead.queue", "3", "methods.m.bulkhead.max-wait", "0"}, nil},
	} {
		for _, side := range both {
			assert.Equal(t, tt.want, notes(side, "m", tt.params...), tt.params)
		}
	}
	assert.Equal(t, []string{"bulkhead.mode=off has no effect without bulkhead"}, notes(Consumer, "m", "bulkhead.mode", "off"))
	assert.Equal(t, []string{"bulkhead.mode=off has no effect without bulkhead or bulkhead.run-timeout"}, notes(Provider, "m", "bulkhead.mode", "off"))
	assert.Empty(t, notes(Provider, "m", "bulkhead.mode", "off", "bulkhead.run-timeout", "0"))
	assert.Equal(t, []string{"bulkhead.queue=3 has no effect without bulkhead"}, notes(Provider, "m", "bulkhead.mode", "observe", "bulkhead.run-timeout", "3s", "bulkhead.queue", "3"))
	// What is of use to a method is not told of its service.
	for _, quiet := range [][]string{
		{"bulkhead.queue", "3", "methods.m.bulkhead", "5"}, {"bulkhead.mode", "off", "methods.m.bulkhead.run-timeout", "5s"}, {"bulkhead", "5", "bulkhead.max-wait", "2s", "methods.m.bulkhead.queue", "3"},
	} {
		assert.Empty(t, notes(Provider, "", quiet...), quiet)
	}
	for _, told := range [][]string{
		{"bulkhead.queue", "3", "methods.m.bulkhead", "-1"}, {"bulkhead.mode", "off", "methods.m.bulkhead.run-timeout", "0"}, {"bulkhead", "5", "bulkhead.max-wait", "2s", "methods.m.bulkhead.queue", "0"},
	} {
		assert.Len(t, notes(Provider, "", told...), 1, told)
	}
}

func TestBulkheadInBothForms(t *testing.T) {
	cfg := parsed(t, "weir: {provider: {bulkhead: {max: 5, queue: 3, max-wait: 2s, run-timeout: 500, group: g, mode: off}}}")
	assert.Equal(t, &Bulkhead{Max: Of(5), Queue: Of(3), MaxWait: Of(2 * time.Second), RunTimeout: Of(500 * time.Millisecond), Group: "g", Mode: Off}, cfg.Provider.Bulkhead)
	assert.Equal(t, cfg, parsed(t, "weir: {provider: {bulkhead: 5, bulkhead.queue: 3, bulkhead.max-wait: 2000, bulkhead.run-timeout: 0.5s, bulkhead.group: g, bulkhead.mode: off}}"))
	_, _, faults := ParseYAML("f", []byte("weir: {consumer: {bulkhead: {max: 5, run-timeout: 1s}}}"))
	require.Len(t, faults, 1)
	assert.Contains(t, faults[0].Problem, "is a provider's key and has no effect on a consumer")
	_, faults = (&Config{Consumer: Section{Policies: Policies{Bulkhead: &Bulkhead{RunTimeout: Of(time.Second)}}}}).Checked("code")
	require.Len(t, faults, 1)
	assert.Equal(t, "bulkhead.run-timeout", faults[0].Key)
}

// Protocols share bulkheads, and a method that has its service's value has it all
// the same.
func TestBulkheadDifferences(t *testing.T) {
	differ := func(a, b *Service) []Fault { return Differences(&View{}, Provider, exactKey, "tri", a, "dubbo", b) }
	assert.Empty(t, differ(params(t, "bulkhead", "5"), params(t, "bulkhead", "5", "methods.m.bulkhead", "5")))
	faults := differ(params(t, "bulkhead", "5", "methods.m.bulkhead.group", "g"), params(t, "bulkhead", "6", "methods.m.bulkhead.group", "h"))
	require.Len(t, faults, 2)
	assert.Equal(t, `params side=provider service=g/a.B:1.0 key=bulkhead value="6": protocols share a service's limits, but tri says "5" and dubbo says "6"; allowed: the same for all protocols`, faults[0].String())
	assert.Equal(t, "methods.m.bulkhead.group", faults[1].Param())
}
