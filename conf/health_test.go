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
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHealth(t *testing.T) {
	cpu := SignalRule{Name: "cpu", Limit: 0.9, Recover: 0.81, Smoothing: time.Second}
	memory := SignalRule{Name: "memory", Limit: 0.9, Recover: 0.81}
	for _, tt := range []struct {
		code, file, section string
		want                []SignalRule
	}{
		{"", "", "", []SignalRule{cpu, memory}},
		{"", "cpu: off, memory: 0", "", nil},
		{"", "cpu: off", "", []SignalRule{memory}},
		{"cpu: 0.5", "cpu: off, memory: off", "", []SignalRule{{Name: "cpu", Limit: 0.5, Recover: 0.45, Smoothing: time.Second}}},
		{"cpu: {recover: 0.3}", "cpu: {limit: 0.5, smoothing: 3s}", "cpu: {smoothing: 5s, recover: 0.2}, memory: off", []SignalRule{{Name: "cpu", Limit: 0.5, Recover: 0.3, Smoothing: 3 * time.Second}}},
		{"cpu: 0.2", "cpu: {limit: 0.5, recover: 0.3}, memory: off", "", []SignalRule{{Name: "cpu", Limit: 0.2, Recover: 0.18, Smoothing: time.Second}}},
		{"cpu: {smoothing: 0}", "", "memory: off", []SignalRule{{Name: "cpu", Limit: 0.9, Recover: 0.81}}},
		{"", "goroutines: 20000, sched-latency: {limit: 50, recover: 10ms, smoothing: 5s}, own: {aside: 3, queue: {limit: 100, recover: 50}, none: off, later: {recover: 4}}", "memory: off, cpu: 0, own: {later: 8, queue: {smoothing: 2s}}", []SignalRule{
			{Name: "aside", Limit: 3, Recover: 3 * 0.9, Own: true},
			{Name: "goroutines", Limit: 20000, Recover: 18000},
			{Name: "later", Limit: 8, Recover: 4, Own: true},
			{Name: "queue", Limit: 100, Recover: 50, Smoothing: 2 * time.Second, Own: true},
			{Name: "sched-latency", Limit: 0.05, Recover: 0.01, Smoothing: 5 * time.Second},
		}},
	} {
		of := func(text string) *Config { return parsed(t, "weir: {health: {"+text+"}}") }
		got := viewOf(of(tt.code), of(tt.file), of(tt.section)).Health()
		require.Len(t, got.Signals, len(tt.want), tt)
		for i, want := range tt.want {
			assert.InDelta(t, want.Recover, got.Signals[i].Recover, 1e-12, tt)
			want.Recover = got.Signals[i].Recover
			assert.Equal(t, want, got.Signals[i], tt)
		}
		assert.False(t, got.Ready)
	}
	assert.Len(t, (&View{}).Health().Signals, 2)
	no, yes := &Config{Health: &Health{Ready: Of(false)}}, &Config{Health: &Health{Ready: Of(true)}}
	assert.True(t, viewOf(nil, yes, no).Health().Ready)
	assert.False(t, viewOf(no, yes, nil).Health().Ready)
}

func TestHealthInCode(t *testing.T) {
	mine := map[string]Signal{"cpu": {Limit: Of(0.5), Recover: Of(0.25), Smoothing: Of(time.Second)}, "sched-latency": {Limit: Of(0.05)}, "load": {Limit: Of(2.5)}}
	c := &Config{Health: &Health{Signals: mine, Own: map[string]Signal{"queue": {Limit: Of(1e15)}}, Ready: Of(true)}}
	out, faults := c.Checked("code")
	require.Empty(t, faults)
	assert.Equal(t, c, out)
	*mine["cpu"].Limit = 7
	assert.InDelta(t, 0.5, *out.Health.Signals["cpu"].Limit, 0, "the copy shares nothing")
	for _, tt := range []struct {
		h    Health
		want string
	}{
		{Health{Signals: map[string]Signal{"cpu": {Limit: Of(1.5)}}}, `key=health.cpu value="1.5": allowed: ` + allowedShare + `; 0 and off turn it off`},
		{Health{Signals: map[string]Signal{"cpu": {Limit: Of(-0.5)}}}, `key=health.cpu value="-0.5": allowed: ` + allowedShare + `; 0 and off turn it off`},
		{Health{Signals: map[string]Signal{"gc": {Limit: Of(math.NaN())}}}, `key=health.gc value="NaN": allowed: ` + allowedShare + `; 0 and off turn it off`},
		{Health{Signals: map[string]Signal{"load": {Limit: Of(math.Inf(1))}}}, `key=health.load value="+Inf": allowed: a number from 0 to 10000; 0 and off turn it off`},
		{Health{Signals: map[string]Signal{"threads": {Limit: Of(1.5)}}}, `key=health.threads value="1.5": allowed: a whole number from 0 to 2147483647; 0 and off turn it off`},
		{Health{Signals: map[string]Signal{"sched-latency": {Limit: Of(3601.0)}}}, `key=health.sched-latency value="1h0m1s": allowed: a whole number of milliseconds or a Go duration such as 50ms, from 0 to 1h; 0 and off turn it off`},
		{Health{Signals: map[string]Signal{"sched-latency": {Limit: Of(-1.0)}}}, `key=health.sched-latency value="-1s": allowed: a whole number of milliseconds or a Go duration such as 50ms, from 0 to 1h; 0 and off turn it off`},
		{Health{Signals: map[string]Signal{"sched-latency": {Limit: Of(math.NaN())}}}, `key=health.sched-latency value="NaN": allowed: a whole number of milliseconds or a Go duration such as 50ms, from 0 to 1h; 0 and off turn it off`},
		{Health{Signals: map[string]Signal{"cpu": {Smoothing: Of(-time.Second)}}}, `key=health.cpu.smoothing value="-1s": allowed: a whole number of milliseconds or a Go duration such as 1s, from 0 to 1h; 0 takes each value as it is`},
		{Health{Signals: map[string]Signal{"load": {Limit: Of(1.0), Recover: Of(0.0)}}}, `key=health.load.recover value="0": allowed: a number from 0 to 10000; more than 0 and less than the limit`},
		{Health{Signals: map[string]Signal{"load": {Limit: Of(1.0), Recover: Of(1.0)}}}, `key=health.load.recover value="1": recover=1 is not below limit=1; allowed: more than 0 and less than the limit`},
		{Health{Signals: map[string]Signal{"queue": {Limit: Of(1.0)}}}, `key=health.queue: there is no such signal; allowed: health.cpu, health.memory, health.load, health.goroutines, health.threads, health.sched-latency, health.runnable, health.gc, health.own, health.ready; signals of the program's own stand below health.own`},
		{Health{Own: map[string]Signal{"": {Limit: Of(1.0)}}}, `key=health.own.: a signal without a name; allowed: a name of 1 to 64 letters, digits, dots, underscores and hyphens`},
		{Health{Own: map[string]Signal{"gc": {Limit: Of(1.0)}}}, `key=health.own.gc: this is the name of a signal of Weir's; allowed: another name, or health.gc`},
		{Health{Own: map[string]Signal{"queue": {Limit: Of(2e15)}}}, `key=health.own.queue value="2000000000000000": allowed: a number from 0 to 1000000000000000; 0 and off turn it off`},
	} {
		out, faults := (&Config{Health: &tt.h}).Checked("code")
		require.Len(t, faults, 1, tt.want)
		assert.Equal(t, "code "+tt.want, faults[0].String())
		_, more := out.Checked("code")
		assert.Empty(t, more)
	}
}

func TestAlarmsAndProfiles(t *testing.T) {
	assert.Equal(t, AlarmPolicy{WarnAt: 800_000, For: 10 * time.Second}, (&View{}).Alarms())
	assert.Equal(t, ProfilePolicy{MaxFiles: 20, MaxBytes: 8_388_608}, (&View{}).Profiles())
	file := parsed(t, "weir: {alarms: {warn-at: 90%, for: 500}, profiles: {dir: /p, max-files: 5}}")
	section := parsed(t, "weir: {alarms: {for: 1s}, profiles: {dir: /q, max-bytes: 65536}}")
	assert.Equal(t, AlarmPolicy{WarnAt: 900_000, For: 500 * time.Millisecond}, viewOf(nil, file, section).Alarms())
	assert.Equal(t, ProfilePolicy{"/p", 5, 65536}, viewOf(nil, file, section).Profiles())
	code := &Config{Alarms: &Alarms{WarnAt: Of(Ratio(0))}, Profiles: &Profiles{Dir: Of("")}}
	assert.Equal(t, AlarmPolicy{For: 500 * time.Millisecond}, viewOf(code, file, section).Alarms())
	assert.Equal(t, ProfilePolicy{"", 5, 65536}, viewOf(code, file, section).Profiles(), "code takes the directory back")
	for want, c := range map[string]*Config{
		`key=alarms.warn-at value="1.000001": allowed: ` + allowedStrategy:                               {Alarms: &Alarms{WarnAt: Of(WholeRatio + 1)}},
		`key=alarms.for value="-1s": allowed: ` + allowedWarnFor:                                         {Alarms: &Alarms{For: Of(-time.Second)}},
		`key=profiles.dir value="a\x00": allowed: ` + allowedDir:                                         {Profiles: &Profiles{Dir: Of("a\x00")}},
		`key=profiles.max-files value="0": allowed: ` + allowedShort:                                     {Profiles: &Profiles{MaxFiles: Of(0)}},
		`key=profiles.max-bytes value="1073741825": allowed: ` + allowedBytes:                            {Profiles: &Profiles{MaxBytes: Of(int64(1<<30 + 1))}},
		fmt.Sprintf(`key=profiles.max-bytes value="%d": allowed: `, int64(math.MinInt64)) + allowedBytes: {Profiles: &Profiles{MaxBytes: Of(int64(math.MinInt64))}},
	} {
		out, faults := c.Checked("code")
		require.Len(t, faults, 1, want)
		assert.Equal(t, "code "+want, faults[0].String())
		assert.Equal(t, &Config{}, out)
	}
}
