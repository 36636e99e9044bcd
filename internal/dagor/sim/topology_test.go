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

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/dagor"
)

func admitted(h HotSecond) float64 { return float64(h.Admitted) }
func share(h HotSecond) float64    { return h.Passes }

// small has 10 services of 3 instances.
func small(load float64) Topology {
	return Topology{
		Entries: 4, Middles: 3, Leaves: 2, Instances: 3, Lasts: 20 * time.Second, Warm: 8 * time.Second, Seed: 1,
		Load: func(time.Duration) float64 { return load },
	}
}

// conserved looks that all that was begun has come to one end.
func conserved(t *testing.T, s *TopologyStats) {
	t.Helper()
	assert.Zero(t, s.Left, "calls that run or wait, slots and events")
	assert.Equal(t, s.Calls, s.Ended)
	assert.Equal(t, s.BegunTasks, s.EndedTasks)
	assert.Equal(t, s.Sent+s.Sheds+s.Late, s.Calls+s.Again, "each attempt was sent or shed")
	for _, of := range [][]Counts{s.Hot, s.Others} {
		for _, c := range of {
			assert.Equal(t, c.Offered, c.Succeeded+c.Failed)
		}
	}
	var came, in, refused int
	for _, row := range s.Seconds {
		for _, h := range row {
			came, in, refused = came+h.Came, in+h.Admitted, refused+h.Refused
			assert.LessOrEqual(t, h.Limit, 1000)
		}
	}
	// What came in the last second of the tasks, and after it, is in none of the rows.
	assert.InDelta(t, s.HotSent, came, 0.02*float64(s.HotSent)+50)
	assert.InDelta(t, came, in+refused, 1000, "the others wait")
}

func TestTopologyConservesCalls(t *testing.T) {
	for _, load := range []float64{0.3, 1, 2, 8} {
		conserved(t, small(load).Run())
	}
	blind := small(4)
	blind.Blind = true
	s := blind.Run()
	conserved(t, s)
	assert.Zero(t, s.Sheds)
	step := small(0)
	step.Load = func(now time.Duration) float64 {
		return []float64{0.5, 6, 0, 3, 0.5}[int(now.Seconds()/4)%5]
	}
	conserved(t, step.Run())
}

func TestTopologyHasItsServices(t *testing.T) {
	assert.Equal(t, 100, Topology{}.Services())
	assert.Equal(t, 10, small(1).Services())
	assert.InDelta(t, 5000, Topology{}.Saturated(), 1e-9)
	r := newTopology(Topology{})
	require.Len(t, r.services, 100)
	hot := 0
	for i, s := range r.services {
		assert.Equal(t, i, s.index)
		assert.Len(t, s.nodes, 20)
		direct := 0
		for _, c := range s.calls {
			if c == r.hot {
				direct++
			}
		}
		assert.Contains(t, []int{0, 2}, direct, "the hot one is called twice or not")
		hot += direct
	}
	assert.Equal(t, 28, hot)
	for i, e := range r.entries {
		below := 0
		for _, m := range e.calls {
			for _, c := range m.calls {
				if c == r.hot {
					below++
				}
			}
		}
		want := 2
		if i%4 == 3 {
			want = 0
		}
		assert.Equal(t, want, below, "entry %d: a task makes two calls to the hot service, or none", i)
		assert.Equal(t, want > 0, e.hot)
	}
}

func TestTopologyServesWhatItCan(t *testing.T) {
	s := small(0.5).Run()
	assert.Greater(t, s.Success(), 0.999)
	assert.Zero(t, s.HotSheds)
	for _, load := range []float64{2, 4} {
		s := small(load).Run()
		assert.Greater(t, s.Success()*load, 0.85, "%v: of the optimum", load)
		assert.Greater(t, s.Hot[0].Success(), 0.98, "%v: the most important", load)
		for class := range s.Hot {
			assert.Greater(t, s.Others[class].Success(), 0.995, "%v: what needs it not is not touched", load)
			if class > 0 {
				assert.GreaterOrEqual(t, s.Hot[class-1].Success(), s.Hot[class].Success(), "%v", load)
			}
		}
	}
}

func TestTopologyDoesNotSwing(t *testing.T) {
	for _, load := range []float64{2, 8} {
		s := small(load).Run()
		// A Poisson process would have 0.037 from second to second.
		w := s.Whole(admitted, 75)
		assert.InEpsilon(t, 250, w.Mean, 0.1, "%v", load)
		assert.Less(t, w.Variation, 0.08, "%v", load)
		assert.LessOrEqual(t, w.Turns, 5.0, "%v", load) // a turn in 12 s is one trial of the tuner
		// Each instance has its own noise; in common they do not swing.
		c := s.Whole(share, 0.2)
		assert.Less(t, c.Variation, 0.15, "%v", load)
		assert.LessOrEqual(t, c.Turns, 5.0, "%v", load)
	}
}

func TestTopologyRetriesWithinTheBudget(t *testing.T) {
	for _, load := range []float64{1.5, 4, 10} {
		s := small(load).Run()
		assert.LessOrEqual(t, float64(s.Again), 0.1*float64(s.Calls), "%v", load)
	}
	mad := small(4)
	mad.Budget = 3
	s := mad.Run()
	conserved(t, s)
	assert.Greater(t, float64(s.Again), 0.3*float64(s.Calls), "without a budget there are more")
}

func TestTopologyCallersShed(t *testing.T) {
	told, blind := small(10), small(10)
	blind.Blind = true
	a, b := told.Run(), blind.Run()
	assert.Greater(t, a.HotSheds, a.HotSent/4)
	assert.Less(t, float64(a.HotSent), 0.7*float64(b.HotSent))
	assert.Greater(t, a.Success(), 0.9*b.Success(), "and as much succeeds")
}

func TestTopologyComesBack(t *testing.T) {
	step := small(0)
	step.Lasts, step.Warm = 30*time.Second, 18*time.Second // 3 s after the load has gone
	step.Load = func(now time.Duration) float64 {
		if now >= 5*time.Second && now < 15*time.Second {
			return 10
		}
		return 0.5
	}
	s := step.Run()
	conserved(t, s)
	assert.Greater(t, s.Success(), 0.999)
}

func TestTopologyRunsAreTheSame(t *testing.T) {
	run := func(seed uint64) *TopologyStats {
		setup := small(3)
		setup.Seed, setup.Lasts = seed, 10*time.Second
		s := setup.Run()
		s.Topology.Load = nil
		return s
	}
	one := run(1)
	assert.Equal(t, one, run(1))
	assert.NotEqual(t, one.Seconds, run(2).Seconds)
}

func TestPasses(t *testing.T) {
	for cursor, want := range map[dagor.Priority]float64{
		dagor.Highest: 0,
		dagor.NewPriority(dagor.NewLevel(0, 64), 0):     0.05,
		dagor.NewPriority(dagor.NewLevel(1, 0), 0):      0.1,
		dagor.NewPriority(dagor.NewLevel(3, 32), 1<<15): 0.6 + 0.4*32.5/128,
		dagor.NewPriority(dagor.NewLevel(9, 0), 0):      1,
		dagor.Open: 1,
	} {
		assert.InDelta(t, want, passes(cursor), 1e-9, "%v", cursor)
	}
}

func TestTurns(t *testing.T) {
	for _, tt := range []struct {
		of    []float64
		least float64
		want  int
	}{
		{nil, 1, 0},
		{[]float64{1, 2, 3, 4}, 0.5, 0},
		{[]float64{0, 5, 0}, 2, 1},
		{[]float64{0, 5, 0, 5, 0}, 2, 3},
		{[]float64{0, 5, 0, 5, 0}, 6, 0},
		{[]float64{0, 1, 0, 1, 0, 5, 4, 5, 1}, 2, 1},
		{[]float64{9, 6, 3, 4, 3, 9}, 2, 1},
	} {
		assert.Equal(t, tt.want, turns(tt.of, tt.least), "%v by %v", tt.of, tt.least)
	}
}

func TestSwing(t *testing.T) {
	s := &TopologyStats{Topology: Topology{Warm: time.Second}, Seconds: [][]HotSecond{
		{{Admitted: 1000}, {Admitted: 0}},
		{{Admitted: 10}, {Admitted: 30}},
		{{Admitted: 30}, {Admitted: 10}},
		{{Admitted: 10}, {Admitted: 30}},
	}}
	assert.Equal(t, Swing{Mean: 20}, s.Whole(admitted, 5), "they swing against each other")
	each := s.Each(admitted, 5)
	assert.InDelta(t, 20, each.Mean, 1e-9+20.0/6)
	assert.InDelta(t, 20, each.Turns, 1e-9)
	mean, variation := spread([]float64{10, 30})
	assert.InDelta(t, 20, mean, 1e-9)
	assert.InDelta(t, 0.5, variation, 1e-9)
}

func BenchmarkTopology(b *testing.B) {
	calls := 0
	for range b.N {
		setup := small(2)
		calls += setup.Run().Sent
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(calls), "ns/call")
}
