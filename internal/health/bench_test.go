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

package health_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/health"
)

func monitorOf(tb testing.TB, signals ...health.Signal) *health.Monitor {
	tb.Helper()
	m := health.New()
	for _, s := range signals {
		if err := m.Add(s, health.Rule{Limit: 1e12, Smoothing: time.Second}); err != nil {
			tb.Fatal(err)
		}
	}
	return m
}

// BenchmarkSample reads the signals of this machine once a second, as the monitor
// believes: what is read every 5 s or 30 s only is a part of the mean.
func BenchmarkSample(b *testing.B) {
	run := func(name string, signals ...health.Signal) {
		b.Run(name, func(b *testing.B) {
			m := monitorOf(b, signals...)
			at := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				at += time.Second
				m.Sample(at)
			}
		})
	}
	run("all", health.BuiltIn()...)
	for _, s := range health.BuiltIn() {
		run(s.Name(), s)
	}
	run("none")
	run("own", fixed("own", 1))
}

func BenchmarkTight(b *testing.B) {
	for name, limit := range map[string]float64{"calm": 10, "tight": 1} {
		b.Run(name, func(b *testing.B) {
			m := health.New()
			if err := m.Add(fixed("own", 5), health.Rule{Limit: limit}); err != nil {
				b.Fatal(err)
			}
			m.Sample(0)
			b.ReportAllocs()
			for b.Loop() {
				if _, tight := m.Tight(); tight != (limit == 1) {
					b.Fatal(tight)
				}
			}
		})
	}
}

func TestTightAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := monitorOf(t, health.Func("x", func(time.Duration) (float64, bool) { return 1e12, true }))
		m.Sample(0)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			if _, tight := m.Tight(); !tight {
				t.Fatal("calm")
			}
		}))
	})
}

// Between the times when something is looked for anew.
func TestSampleAllocatesNothing(t *testing.T) {
	m := monitorOf(t, health.BuiltIn()...)
	m.Sample(0)
	m.Sample(time.Second)
	at := time.Second
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		at += 20 * time.Millisecond
		m.Sample(at)
	}))
}
