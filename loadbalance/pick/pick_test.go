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

package pick_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/loadbalance/pick"
)

const (
	ms   = time.Millisecond
	noon = 12 * time.Hour // a reading of the clock
)

func seeded(seed uint64) func() uint64 { return rand.New(rand.NewPCG(seed, 7)).Uint64 }

var algorithms = map[string]pick.Algorithm{"least active": pick.LeastActive, "shortest response": pick.ShortestResponse, "few choices": pick.FewChoices}

// those that look at all members.
var thorough = map[string]pick.Algorithm{"least active": pick.LeastActive, "shortest response": pick.ShortestResponse}

func weighted(weights ...int64) []pick.Candidate {
	var (
		out   []pick.Candidate
		peers pick.Peers
	)
	for i, w := range weights {
		out = append(out, pick.Candidate{Record: peers.Instance(string(rune('a' + i))).Record("M"), Weight: w})
	}
	return out
}

func same(n int, weight int64) []pick.Candidate {
	weights := make([]int64, n)
	for i := range weights {
		weights[i] = weight
	}
	return weighted(weights...)
}

func busy(c pick.Candidate, n int) {
	for range n {
		c.Begin()
	}
}

func shares(a pick.Algorithm, c []pick.Candidate, n int, chance func() uint64) []int {
	out := make([]int, len(c))
	s := pick.NewSet(c)
	for range n {
		out[a(s, noon, chance())]++
	}
	return out
}

func TestIdleInstances(t *testing.T) { // B1, H5
	for name, a := range algorithms {
		for i, n := range shares(a, same(5, 100), 100_000, seeded(1)) {
			assert.InDelta(t, 20_000, n, 600, "%s %d", name, i)
		}
		for i, n := range shares(a, same(10, 1), 1000, rand.Uint64) {
			assert.Positive(t, n, "%s %d", name, i)
		}
	}
}

// Idle instances of the same speed share the calls by their weights, exactly.
func TestWeightsOfIdleInstances(t *testing.T) { // B2, H9
	for name, a := range algorithms {
		for _, weights := range [][]int64{{1, 9}, {20, 80}, {1, 9, 15}, {100, 1, 100, 50}, {7, 7, 7, 1 << 31}} {
			c := weighted(weights...)
			sum := 0.0
			for _, w := range weights {
				sum += float64(w)
			}
			for _, known := range []bool{false, true} {
				for i := range c {
					if known {
						c[i].Took(20*ms, noon-ms)
					}
				}
				const n = 100_000
				for i, got := range shares(a, c, n, seeded(2)) {
					want := n * float64(weights[i]) / sum
					assert.InDelta(t, want, got, 5*math.Sqrt(want)+1, "%s %v %d", name, weights, i)
				}
			}
		}
	}
}

func TestLeastActive(t *testing.T) { // B2, B3, H6
	c := weighted(1, 9, 6)
	busy(c[2], 1)
	got := shares(pick.LeastActive, c, 10_000, seeded(3))
	assert.Zero(t, got[2])
	assert.InDelta(t, 9, float64(got[1])/float64(got[0]), 1)
	assert.Equal(t, 10_000, got[0]+got[1])

	for name, a := range thorough {
		c = same(5, 100)
		for i := range c {
			busy(c[i], i+1)
		}
		assert.Equal(t, 1000, shares(a, c, 1000, seeded(4))[0], name)
		c = same(3, 100)
		busy(c[0], 5)
		busy(c[1], 3)
		busy(c[2], 1)
		assert.Equal(t, 1000, shares(a, c, 1000, seeded(5))[2], name)
		c = same(3, 100)
		busy(c[0], 5)
		busy(c[1], 1)
		busy(c[2], 1)
		got = shares(a, c, 1000, seeded(6))
		assert.Zero(t, got[0], name)
		assert.InDelta(t, 500, got[1], 80, name)
	}
}

// However busy all are, what runs on each is by its weight, within one call.
func TestWaterLevel(t *testing.T) {
	for _, weights := range [][]int64{{1, 9}, {100, 100, 100}, {20, 80, 1, 100}, {1, 2, 3, 4, 5, 6, 7}} {
		c := weighted(weights...)
		s := pick.NewSet(c)
		r := seeded(7)
		for range 5000 {
			c[pick.LeastActive(s, 0, r())].Begin()
			low, high := math.Inf(1), 0.0
			for i := range c {
				low = min(low, s.Load(i)) // with one more call
				high = max(high, float64(c[i].Inflight()-1)/float64(weights[i]))
			}
			require.Less(t, high, low*(1+1e-9), "%v", weights) // none got a call that another should have had
		}
	}
}

// An instance that has just come has nothing to do, and still gets no more than its share.
func TestOneThatWarmsUp(t *testing.T) {
	for name, a := range algorithms {
		c := weighted(100, 100, 100, 1)
		s := pick.NewSet(c)
		r := seeded(8)
		for i := range c {
			if i < 3 {
				c[i].Took(20*ms, noon-ms)
			}
		}
		for range 300 {
			c[a(s, noon, r())].Begin()
		}
		assert.LessOrEqual(t, c[3].Inflight(), int64(8), name)
	}
}

func TestShortestResponse(t *testing.T) { // R1, R2
	for name, a := range map[string]pick.Algorithm{"shortest response": pick.ShortestResponse} {
		c := weighted(1, 9, 15)
		c[2].Took(5*time.Second, noon)
		busy(c[2], 1)
		assert.Zero(t, shares(a, c, 10_000, seeded(9))[2], name)
		assert.Equal(t, 5*time.Second, c[2].Response(noon))
		c[2].End()
		// Half a minute later nothing is known of anybody.
		s := pick.NewSet(c)
		count := make([]int, 3)
		r := seeded(10)
		for range 10_000 {
			count[a(s, noon+31*time.Second, r())]++
		}
		for i, w := range []float64{1, 9, 15} {
			assert.InDelta(t, 10_000*w/25, count[i], 300, name)
		}
		assert.Zero(t, c[2].Response(noon+31*time.Second))
	}
	// It is well again, and is believed by and by.
	c := weighted(100)
	c[0].Took(5*time.Second, noon)
	for i := range 2000 {
		c[0].Took(ms, noon+time.Duration(i)*20*ms)
	}
	assert.Less(t, c[0].Response(noon+40*time.Second), 100*ms)
}

// What an idle instance gets is by its weight, and twice by its speed.
func TestSpeed(t *testing.T) {
	c := weighted(1, 9, 15)
	for i, d := range []time.Duration{10 * ms, 100 * ms, 5 * time.Second} {
		c[i].Took(d, noon)
	}
	const n = 100_000
	got := shares(pick.ShortestResponse, c, n, seeded(11))
	e := []float64{1 / .01 / .01, 9 / .1 / .1, 15 / 5. / 5.}
	for i := range c {
		want := n * e[i] / (e[0] + e[1] + e[2])
		assert.InDelta(t, want, got[i], 5*math.Sqrt(want)+1)
	}
	c = same(2, 100)
	c[0].Took(5*ms, noon)
	c[1].Took(50*ms, noon)
	for name, a := range map[string]pick.Algorithm{"shortest response": pick.ShortestResponse, "few choices": pick.FewChoices} {
		got := shares(a, c, 10_000, seeded(12))
		assert.Less(t, got[1], 700, name)
		assert.Positive(t, got[1], "%s: it is tried now and then", name)
	}
}

// One that fails fast has little running, and still must not get all calls.
func TestFailures(t *testing.T) {
	for name, a := range algorithms {
		c := same(3, 100)
		s := pick.NewSet(c)
		r := seeded(13)
		count := make([]int, 3)
		now := noon
		type running struct {
			i   int
			end time.Duration
		}
		var calls []running
		for range 20_000 {
			now += ms
			for len(calls) > 0 && calls[0].end <= now {
				i := calls[0].i
				c[i].Took(20*ms, now)
				c[i].Succeeded()
				c[i].End()
				calls = calls[1:]
			}
			i := a(s, now, r())
			count[i]++
			c[i].Begin()
			if i == 0 {
				c[i].Failed(now)
				c[i].End()
				continue
			}
			calls = append(calls, running{i, now + 20*ms})
		}
		assert.Less(t, count[0], 20_000/50, name)
		assert.Positive(t, count[0], name)
		assert.Zero(t, c[0].Inflight())
		assert.Less(t, c[0].Succeeding(now), 0.3)
		assert.InDelta(t, 1, c[0].Succeeding(now+time.Minute), 1e-9, "it is forgotten")
		// It is well again: it is believed after a few calls.
		for range 64 {
			c[0].Succeeded()
		}
		assert.Greater(t, c[0].Succeeding(now), 0.99, name)
	}
}

// Where all fail alike the balance is what it is without failures.
func TestAllFail(t *testing.T) {
	for name, a := range algorithms {
		c := same(4, 100)
		for i := range c {
			for range 3 {
				c[i].Failed(noon)
			}
			busy(c[i], 5)
		}
		busy(c[0], 20)
		assert.Less(t, shares(a, c, 10_000, seeded(14))[0], 700, name)
	}
}

func TestAvoidedAndDrained(t *testing.T) {
	for name, a := range algorithms {
		c := weighted(100, 0, 100)
		c[0].Avoid = true
		busy(c[2], 1000)
		if name != "few choices" { // which may not draw the one that is left
			assert.Equal(t, 100, shares(a, c, 100, seeded(15))[2], name)
		}
		c[2].Avoid = true
		assert.Zero(t, shares(a, c, 1000, seeded(16))[1], name)
		assert.Equal(t, -1, a(pick.NewSet(nil), 0, rand.Uint64()), name)
		assert.Equal(t, 0, a(pick.NewSet(weighted(0)), 0, rand.Uint64()), name)
		assert.Equal(t, 0, a(pick.NewSet(weighted(-5)), 0, rand.Uint64()), name)
		got := shares(a, weighted(0, 0), 1000, seeded(17))
		assert.Positive(t, got[0])
		assert.Positive(t, got[1])
		assert.Zero(t, shares(a, weighted(0, 7), 1000, seeded(18))[0], name)

		c = same(3, 100)
		c[1].Record.Avoid(noon + time.Second)
		assert.Zero(t, shares(a, c, 1000, seeded(19))[1], name)
		c[1].Welcome()
		assert.Positive(t, shares(a, c, 1000, seeded(20))[1], name)
		c[1].Record.Avoid(noon - time.Second)
		assert.Positive(t, shares(a, c, 1000, seeded(21))[1], name)
		for i := range c {
			c[i].Record.Avoid(noon + time.Hour)
		}
		busy(c[0], 5)
		if got := shares(a, c, 1000, seeded(22)); name != "few choices" {
			assert.Zero(t, got[0], name)
		}
	}
}

// Two choices of a set where all but one are to be avoided finds that one.
func TestTheOnlyOneLeft(t *testing.T) {
	c := same(50, 100)
	for i := range c {
		if i != 17 {
			c[i].Record.Avoid(noon + time.Hour)
		}
	}
	assert.Equal(t, 1000, shares(pick.FewChoices, c, 1000, seeded(23))[17])
}

// However many there are, the one with the fewest running calls is chosen, and of equals any.
func TestFewestOfVeryMany(t *testing.T) {
	var peers pick.Peers
	busy := peers.Instance("busy").Record("M")
	busy.Begin()
	for _, n := range []int{1<<16 - 1, 1 << 16, 1<<16 + 1} {
		c := make([]pick.Candidate, n)
		for i := range c {
			c[i] = pick.Candidate{Record: busy, Weight: 7}
		}
		c[0].Record, c[n-1].Record = peers.Instance("first").Record("M"), peers.Instance("last").Record("M")
		s := pick.NewSet(c)
		r, count := seeded(30), map[int]int{}
		for range 40 {
			count[pick.LeastActive(s, 0, r())]++
		}
		assert.Equal(t, 40, count[0]+count[n-1], "%d", n)
		assert.InDelta(t, 20, count[0], 14, "%d", n)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for name, a := range algorithms {
		for _, weights := range [][]int64{{1, 2, 3, 4}, {5, 5, 5}} {
			s := pick.NewSet(weighted(weights...))
			require.Zero(t, testing.AllocsPerRun(100, func() { a(s, noon, rand.Uint64()) }), name)
		}
	}
}

// Whatever runs at the same time, all calls come to an end and are counted.
func TestManyAtOnce(t *testing.T) {
	for name, a := range algorithms {
		c := weighted(1, 100, 100, 0, 7)
		s := pick.NewSet(c)
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				for n := range 2000 {
					now := noon + time.Duration(n)*ms
					r := c[a(s, now, rand.Uint64())].Record
					r.Begin()
					switch (n + g) % 5 {
					case 0:
						r.Failed(now)
					case 1:
						r.Avoid(now + ms)
					case 2:
						r.Overdue(ms, now)
					default:
						r.Took(time.Duration(n)*time.Microsecond, now)
						r.Succeeded()
					}
					r.End()
				}
			})
		}
		wg.Wait()
		var picks int64
		for i := range c {
			assert.Zero(t, c[i].Inflight(), name)
			picks += c[i].Picks()
			assert.False(t, math.IsNaN(c[i].Succeeding(noon)))
			assert.GreaterOrEqual(t, c[i].Succeeding(noon), 0.0)
		}
		assert.EqualValues(t, 16*2000, picks, name)
	}
}

func BenchmarkPick(b *testing.B) {
	for name, a := range algorithms {
		for _, n := range []struct {
			name string
			n    int
		}{{"10", 10}, {"100", 100}, {"1000", 1000}} {
			c := same(n.n, 100)
			for i := range c {
				busy(c[i], i%7)
				c[i].Took(20*ms, noon)
			}
			s := pick.NewSet(c)
			b.Run(name+"/"+n.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					a(s, noon, rand.Uint64())
				}
			})
		}
	}
}
