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

package dagor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// demand is a service that can do so many calls in a window, and upstreams that shed by what
// its opener says.
type demand struct {
	o          opener
	came, shed sample
	rnd        *rand.Rand
	capacity   int // calls in a window
	reports    bool
	priority   func() Priority
	passed     int
}

func newDemand(seed uint64, capacity int, reports bool) *demand {
	d := &demand{o: newOpener(), rnd: rand.New(rand.NewPCG(11, seed)), capacity: capacity, reports: reports}
	d.priority = func() Priority { return Priority(d.rnd.Uint32N(uint32(Open))) }
	return d
}

// window has about so many calls come to the upstreams.
func (d *demand) window(calls float64) Priority {
	n := int(calls + math.Sqrt(calls)*d.rnd.NormFloat64() + 0.5)
	f := figures{took: 100 * ms}
	sheds := &sheds{}
	for range n {
		if p := d.priority(); p < d.o.cursor {
			d.came.add(p, 1)
			f.came++
		} else {
			sheds.add(p)
		}
	}
	if r, ok := sheds.take(); ok && d.reports {
		f.shed = int64(r.Shed)
		for i := range uint32(r.N) {
			d.shed.add(r.Sample[i], (r.Shed+i)/uint32(r.N))
		}
	}
	f.done = min(f.came, int64(d.capacity))
	f.refused = f.came - f.done
	if f.refused > 0 {
		f.held = f.came * 9 / 10
	}
	d.passed = int(f.came)
	return d.o.window(f, float64(d.capacity)*10, &d.came, &d.shed)
}

// steady has so many windows come, and returns how often it was open, how many calls of
// those that can be done passed in the mean, and the least.
func (d *demand) steady(windows int, load float64) (opens int, mean, least float64) {
	least = math.Inf(1)
	for range windows {
		if d.window(load*float64(d.capacity)) == Open {
			opens++
		}
		passed := float64(d.passed) / float64(d.capacity)
		mean += passed / float64(windows)
		least = min(least, passed)
	}
	return opens, mean, least
}

// opensAfter is how many windows of half of what can be done it takes to open.
func (d *demand) opensAfter() int {
	for n := range 1000 {
		if d.window(0.5*float64(d.capacity)) == Open {
			return n
		}
	}
	return 1000
}

// 500 calls in a window are more than the samples remember.
var capacities = []int{30, 75, 500, 2000}

func TestOpenerLetsComeWhatCanBeDoneAndSomeToSpare(t *testing.T) {
	for _, capacity := range capacities {
		for _, load := range []float64{2, 4, 10} {
			d := newDemand(1, capacity, true)
			d.steady(20, load)
			opens, mean, least := d.steady(100, load)
			if load > 2 { // chance may take it to what is wanted for a window
				require.Zero(t, opens, "%d %v", capacity, load)
			}
			require.InDelta(t, openerSpare, mean, 0.15, "%d %v", capacity, load)
			require.Greater(t, least, 0.7, "%d %v", capacity, load)
			require.LessOrEqual(t, d.opensAfter(), 3, "%d %v", capacity, load)
		}
	}
}

// Without reports the calm behind a shut cursor is no sign, and yet it opens when the load is gone.
func TestOpenerWithoutReportsDoesNotSwing(t *testing.T) {
	for _, capacity := range capacities {
		for _, load := range []float64{2, 4, 10} {
			for _, narrow := range []bool{false, true} {
				d := newDemand(2, capacity, false)
				if narrow { // all of one user level at the end of the scale
					d.priority = func() Priority { return Lowest - Priority(d.rnd.Uint32N(1<<taskBits)) }
				}
				d.steady(20, load)
				opens, mean, least := d.steady(300, load)
				require.Zero(t, opens, "%d %v", capacity, load)
				require.InDelta(t, openerSpare, mean, 0.5, "%d %v", capacity, load)
				require.Greater(t, least, 0.5, "%d %v", capacity, load)
				require.LessOrEqual(t, d.opensAfter(), 20, "%d %v", capacity, load)
			}
		}
	}
}

// Of some calls a second little can be told: as many come as can be done, and it opens.
func TestOpenerOfFewCalls(t *testing.T) {
	for _, capacity := range []int{1, 2, 5} {
		for _, reports := range []bool{false, true} {
			d := newDemand(3, capacity, reports)
			d.steady(20, 4)
			_, mean, _ := d.steady(300, 4)
			require.Greater(t, mean, 0.9)
			require.Less(t, mean, 2.6)
			require.LessOrEqual(t, d.opensAfter(), 20)
		}
	}
}

func TestOpenerAtTheEnds(t *testing.T) {
	full := figures{took: 100 * ms, came: 1000, held: 1000, refused: 900, done: 100}
	calm := figures{took: 100 * ms, came: 10, done: 10}
	for _, all := range []Priority{Highest, Lowest, 12345} {
		var came, shed sample
		o := newOpener()
		require.Equal(t, Open, o.window(full, 0, &came, &shed), "nothing is known of what can be done")
		for range 1000 {
			came.add(all, 1)
		}
		require.Equal(t, all, o.window(full, 100, &came, &shed), "they are as important as each other")
		require.Equal(t, all, o.window(figures{}, 100, &came, &shed), "no time has passed")
		n := 0
		for o.window(calm, 100, &came, &shed) != Open {
			n++
		}
		require.LessOrEqual(t, n, 20, "it is not shut for ever")
	}
	var came, shed sample
	came.add(5, 1)
	o := newOpener()
	o.window(full, 100, &came, &shed)
	require.Less(t, o.cursor, Open)
	require.Equal(t, Open, o.window(figures{took: time.Hour, came: 1}, 100, &came, &shed), "after an idle hour")
	o.window(full, 100, &came, &shed)
	require.Less(t, o.cursor, Open)
	require.Equal(t, Open, o.window(calm, 0, &came, &shed))
}

// What it says is a cursor whatever it is told.
func TestOpenerOfWildFigures(t *testing.T) {
	rnd := rand.New(rand.NewPCG(12, 1))
	number := func() int64 { return rnd.Int64() >> rnd.IntN(64) }
	var came, shed sample
	o := newOpener()
	for range 3000 {
		for range rnd.IntN(50) {
			came.add(wild(rnd), 1)
			shed.add(wild(rnd), rnd.Uint32()>>rnd.IntN(32))
		}
		f := figures{took: time.Duration(number()), came: number(), held: number(), refused: number(), shed: number(), done: number()}
		cursor := o.window(f, math.Ldexp(rnd.Float64(), rnd.IntN(200)-100), &came, &shed)
		require.LessOrEqual(t, cursor, Open)
		require.False(t, math.IsNaN(o.demand) || math.IsNaN(o.sum))
	}
}

func TestSampleIsLikeASlice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 1))
	for range 20 {
		var (
			s   sample
			all []uint64
		)
		for range 40 {
			from := len(all)
			for range rnd.IntN(2 * sampleSize / 10) {
				p, w := wild(rnd), rnd.Uint32()
				s.add(p, w)
				all = append(all, uint64(min(p, Lowest))<<entryPriority|uint64(w))
			}
			back := max(0, from-rnd.IntN(2*sampleSize))
			want := all[max(back, len(all)-sampleSize, 0):]
			got := s.since(uint64(back), []uint64{7})
			require.EqualValues(t, 7, got[0], "it appends")
			require.True(t, slices.Equal(want, got[1:]))
			var sum uint64
			for _, v := range want {
				sum += v % (1 << 32)
			}
			require.Equal(t, sum, weight(want))
		}
	}
}

func TestCutIsLikeAPlainOne(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 1))
	for range 2000 {
		var (
			of       []uint64
			by       = map[Priority]float64{} // the whole weight of each
			whole    float64
			marked   = float64(rnd.IntN(5))
			distinct = 1 + rnd.IntN(20)
		)
		for range rnd.IntN(60) {
			p, w, mark := Lowest-Priority(rnd.IntN(distinct)), rnd.Uint32N(9), rnd.Uint64N(2)
			of = append(of, uint64(p)<<entryPriority|mark*entryMark|uint64(w))
			if mark == 1 {
				by[p] += marked * float64(w)
				whole += marked * float64(w)
			} else {
				by[p] += float64(w)
				whole += float64(w)
			}
		}
		passing := float64(rnd.IntN(int(whole) + 2))
		// The greatest cursor that not more than that passes.
		want := Open
		for sum, p := 0.0, Lowest-20; p <= Lowest; p++ {
			if sum += by[p]; sum > passing {
				want = p
				break
			}
		}
		require.Equal(t, want, cut(of, marked, passing))
	}
	require.Equal(t, Open, cut(nil, 1, 0))
	require.Equal(t, Priority(5), cut([]uint64{5<<entryPriority | math.MaxUint32, 5<<entryPriority | math.MaxUint32}, 1, 1<<32))
}
