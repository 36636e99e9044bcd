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
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/health"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// dial is a signal that a test turns.
type dial struct {
	name  string
	value float64
	known bool
	reads int
}

func (d *dial) Name() string { return d.name }

func (d *dial) Read(time.Duration) (float64, bool) {
	d.reads++
	return d.value, d.known
}

func (d *dial) set(v float64) { d.value, d.known = v, true }

func watched(t *testing.T, r health.Rule, names ...string) (*health.Monitor, []*dial) {
	t.Helper()
	m := health.New()
	dials := make([]*dial, len(names))
	for i, name := range names {
		dials[i] = &dial{name: name, known: true}
		require.NoError(t, m.Add(dials[i], r))
	}
	return m, dials
}

func who(m *health.Monitor) string {
	name, tight := m.Tight()
	if tight != (name != "") {
		panic("a name without a signal")
	}
	return name
}

func stateOf(t *testing.T, m *health.Monitor, name string) health.State {
	t.Helper()
	for _, s := range m.States() {
		if s.Name == name {
			return s
		}
	}
	require.Fail(t, "no such signal", name)
	return health.State{}
}

func TestHysteresis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unknown = -1e6
		m, dials := watched(t, health.Rule{Limit: 10, Recover: 6}, "x")
		for i, step := range []struct {
			value float64
			tight bool
			since time.Duration
		}{
			{9.99, false, 0},
			{10, true, 1 * sec}, // at the limit
			{9.99, true, 1 * sec},
			{6, true, 1 * sec}, // not below
			{5.99, false, 4 * sec},
			{9.99, false, 4 * sec},
			{6, false, 4 * sec},
			{1e9, true, 7 * sec},
			{unknown, false, 8 * sec}, // nothing is done about what is not known
			{8, false, 8 * sec},       // and what was before does not count
			{12, true, 10 * sec},
			{-12, false, 11 * sec},
			{unknown, false, 11 * sec},
		} {
			dials[0].value, dials[0].known = step.value, step.value != unknown
			m.Sample(time.Duration(i) * sec)
			s := stateOf(t, m, "x")
			assert.Equal(t, step.tight, s.Tight, "step %d", i)
			assert.Equal(t, step.since, s.Since, "step %d", i)
			assert.Equal(t, step.tight, who(m) == "x", "step %d", i)
			assert.Equal(t, step.value != unknown, s.Known, "step %d", i)
			if s.Known {
				assert.Equal(t, step.value, s.Value, "step %d", i)
			}
			assert.Equal(t, s.Raw, s.Value, "step %d", i)
		}
	})
}

func TestRecoverByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dials := watched(t, health.Rule{Limit: 10}, "x")
		dials[0].set(10)
		m.Sample(0)
		dials[0].set(9)
		m.Sample(sec)
		assert.Equal(t, "x", who(m))
		dials[0].set(8.999)
		m.Sample(2 * sec)
		assert.Empty(t, who(m))
		assert.Equal(t, 9., stateOf(t, m, "x").Recover)
	})
}

func TestSmoothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dials := watched(t, health.Rule{Limit: 10, Recover: 5, Smoothing: 10 * sec}, "x")
		m.Sample(0)
		dials[0].set(12)
		at := time.Duration(0)
		for who(m) == "" {
			at += 100 * ms
			m.Sample(at)
		}
		// 12 of 0: it takes ln(12/2) time constants to come to 10.
		assert.InDelta(t, 10*math.Log(6), at.Seconds(), 0.1)
		s := stateOf(t, m, "x")
		assert.Equal(t, at, s.Since)
		assert.Equal(t, 12., s.Raw)
		assert.Less(t, s.Value, 10.1)

		// However often it is sampled: one sample after a minute is worth 600.
		dials[0].set(0)
		m.Sample(at + 3*sec)
		assert.InDelta(t, s.Value*math.Exp(-.3), stateOf(t, m, "x").Value, 1e-9)
		m.Sample(at) // a clock that jumps back does not move the mean
		m.Sample(at)
		assert.InDelta(t, s.Value*math.Exp(-.3), stateOf(t, m, "x").Value, 1e-9)

		// While it is not known the mean stays, and its age counts.
		dials[0].known = false
		m.Sample(at + 20*sec)
		assert.InDelta(t, s.Value*math.Exp(-.3), stateOf(t, m, "x").Value, 1e-9)
		dials[0].known = true
		m.Sample(at + 40*sec)
		assert.InDelta(t, s.Value*math.Exp(-4.3), stateOf(t, m, "x").Value, 1e-9)
	})
}

func TestTightestIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, d := watched(t, health.Rule{Limit: 10}, "a", "b", "c")
		d[1].set(10)
		m.Sample(0)
		assert.Equal(t, "b", who(m))
		d[0].set(1000)
		d[2].set(1000)
		m.Sample(sec)
		assert.Equal(t, "b", who(m), "it has been so for longest")
		d[1].set(0)
		m.Sample(2 * sec)
		assert.Equal(t, "a", who(m), "of two as long the one that was added first")
		assert.True(t, m.Remove("a"))
		assert.Equal(t, "c", who(m))
		assert.True(t, m.Remove("c"))
		assert.Empty(t, who(m))
		assert.False(t, m.Remove("c"))
		d[2].set(0)
		require.NoError(t, m.Add(d[2], health.Rule{Limit: 10}))
		m.Sample(3 * sec)
		assert.Empty(t, who(m))
		assert.Len(t, m.States(), 2)
	})
}

func TestOff(t *testing.T) {
	for _, off := range []health.Rule{{}, {Limit: -1}, {Recover: 5}, {Limit: 0, Recover: -1, Smoothing: -1}} {
		m, d := watched(t, off, "x")
		d[0].set(1000)
		m.Sample(sec)
		assert.Zero(t, d[0].reads, "it is not read")
		assert.Empty(t, who(m))
		assert.Equal(t, health.State{Name: "x"}, stateOf(t, m, "x"))
	}
	health.New().Sample(0)
}

func TestUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, d := watched(t, health.Rule{Limit: 10, Smoothing: 10 * sec}, "x", "y")
		d[0].set(8)
		m.Sample(10 * sec)
		assert.Empty(t, who(m))
		update := func(r health.Rule) {
			t.Helper()
			require.NoError(t, m.Update("x", r))
		}
		update(health.Rule{Limit: 8, Smoothing: sec})
		assert.Equal(t, "x", who(m), "it holds at once, for the mean that is there")
		assert.Equal(t, 10*sec, stateOf(t, m, "x").Since)
		d[0].set(0)
		m.Sample(11 * sec)
		assert.InDelta(t, 8/math.E, stateOf(t, m, "x").Value, 1e-9, "the mean goes on")
		assert.Empty(t, who(m))
		update(health.Rule{Limit: 2, Recover: 1, Smoothing: sec})
		assert.Equal(t, "x", who(m))
		update(health.Rule{Limit: 4, Recover: 2.5})
		assert.Equal(t, "x", who(m), "between the two it stays what it was")
		update(health.Rule{Limit: 4, Recover: 3})
		assert.Empty(t, who(m))

		update(health.Rule{Limit: 1, Smoothing: time.Hour})
		assert.Equal(t, "x", who(m))
		reads := d[0].reads
		update(health.Rule{})
		assert.Empty(t, who(m), "off at once")
		m.Sample(12 * sec)
		assert.Equal(t, reads, d[0].reads)
		assert.False(t, stateOf(t, m, "x").Known)
		d[0].set(0.5)
		update(health.Rule{Limit: 1, Smoothing: time.Hour})
		m.Sample(13 * sec)
		assert.Equal(t, 0.5, stateOf(t, m, "x").Value, "the mean begins anew")
		assert.Empty(t, who(m))
	})
}

// A signal that was off compares with nothing from before.
func TestBuiltInThatWasOff(t *testing.T) {
	m := health.New()
	require.NoError(t, m.Add(health.SchedLatency(), health.Rule{Limit: 1000}))
	m.Sample(0)
	m.Sample(sec)
	assert.True(t, m.States()[0].Known)
	require.NoError(t, m.Update(health.NameSchedLatency, health.Rule{}))
	require.NoError(t, m.Update(health.NameSchedLatency, health.Rule{Limit: 1000}))
	m.Sample(2 * sec)
	assert.False(t, m.States()[0].Known)
	m.Sample(3 * sec)
	assert.True(t, m.States()[0].Known)
}

func TestErrors(t *testing.T) {
	m, _ := watched(t, health.Rule{Limit: 10}, "x")
	good := health.Rule{Limit: 1}
	assert.ErrorIs(t, m.Add(nil, good), health.ErrSignal)
	assert.ErrorIs(t, m.Add(&dial{}, good), health.ErrSignal)
	err := m.Add(&dial{name: "x"}, good)
	assert.ErrorIs(t, err, health.ErrDuplicate)
	assert.EqualError(t, err, "weir: signal is there already: x")
	assert.ErrorIs(t, m.Update("y", good), health.ErrNotFound)
	inf, nan := math.Inf(1), math.NaN()
	for _, bad := range []health.Rule{
		{Limit: nan}, {Limit: inf}, {Limit: -inf}, {Limit: 1, Recover: 1.1}, {Limit: 1, Recover: -0.1},
		{Limit: 1, Recover: nan}, {Limit: 1, Smoothing: -1}, {Limit: math.MaxFloat64},
	} {
		assert.ErrorIs(t, m.Add(&dial{name: "y"}, bad), health.ErrRule, "%+v", bad)
		assert.ErrorIs(t, m.Update("x", bad), health.ErrRule, "%+v", bad)
	}
	assert.EqualError(t, m.Update("x", health.Rule{Limit: 1, Recover: 2}),
		"x: weir: rule of a signal: recover 2: must be 0 to the limit of 1; 0 is nine tenths of it")
	assert.Len(t, m.States(), 1)
	assert.Equal(t, 10., m.States()[0].Limit)
}

func TestBuiltIn(t *testing.T) {
	m := health.New()
	for _, s := range health.BuiltIn() {
		require.NoError(t, m.Add(s, health.Rule{Limit: 1e12, Smoothing: sec}))
	}
	for i := range 3 {
		m.Sample(time.Duration(i) * sec)
	}
	var names []string
	for _, s := range m.States() {
		names = append(names, s.Name)
		assert.NoError(t, s.Err)
		assert.GreaterOrEqual(t, s.Value, 0., s.Name)
		t.Logf("%-14s known=%-5v %v", s.Name, s.Known, s.Value)
	}
	assert.Equal(t, []string{
		health.NameCPU, health.NameLoadAverage, health.NameMemory, health.NameGoroutines, health.NameThreads,
		health.NameSchedLatency, health.NameRunnable, health.NameGCShare,
	}, names)
	assert.Empty(t, who(m))
}
