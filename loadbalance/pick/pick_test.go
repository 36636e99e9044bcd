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
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/loadbalance/pick"
)

const ms = time.Millisecond

func seeded(seed uint64) pick.Random {
	r := rand.New(rand.NewPCG(seed, 7))
	return r.Int64N
}

type algorithm func([]pick.Candidate, time.Duration, pick.Random) int

var algorithms = map[string]algorithm{"least active": pick.LeastActive, "shortest response": pick.ShortestResponse, "two choices": pick.TwoChoices}

func weighted(weights ...int64) []pick.Candidate {
	var out []pick.Candidate
	for _, w := range weights {
		out = append(out, pick.Candidate{Instance: &pick.Instance{}, Weight: w})
	}
	return out
}

func busy(c pick.Candidate, n int) {
	for range n {
		c.Begin()
	}
}

func shares(a algorithm, c []pick.Candidate, n int, r pick.Random) []int {
	out := make([]int, len(c))
	for range n {
		out[a(c, time.Hour, r)]++
	}
	return out
}

func TestIdleInstances(t *testing.T) { // B1, H5
	for name, a := range algorithms {
		for i, n := range shares(a, weighted(100, 100, 100, 100, 100), 10_000, seeded(1)) {
			assert.InDelta(t, 2000, n, 200, "%s %d", name, i)
		}
		for i, n := range shares(a, weighted(1, 1, 1, 1, 1, 1, 1, 1, 1, 1), 1000, nil) {
			assert.Positive(t, n, "%s %d", name, i)
		}
	}
}

func TestWeights(t *testing.T) { // B2
	c := weighted(1, 9, 6)
	busy(c[2], 60)
	got := shares(pick.LeastActive, c, 10_000, seeded(2))
	// Nothing runs while all is only picked, so the heavier one has always less to do.
	assert.Equal(t, []int{0, 10_000, 0}, got)
	// As calls run and end in turn the shares are those of the weights.
	c = weighted(1, 9)
	r := seeded(3)
	count := make([]int, 2)
	var running []int
	for range 20_000 {
		i := pick.LeastActive(c, time.Hour, r)
		c[i].Begin()
		count[i]++
		running = append(running, i)
		if len(running) > 200 {
			c[running[0]].End(-1, time.Hour, false)
			running = running[1:]
		}
	}
	assert.InDelta(t, 9, float64(count[1])/float64(count[0]), 0.5)
}

func TestLeastActive(t *testing.T) { // B3, H6
	c := weighted(100, 100, 100, 100, 100)
	for i := range c {
		busy(c[i], i+1)
	}
	assert.Equal(t, 1000, shares(pick.LeastActive, c, 1000, seeded(4))[0])
	c = weighted(100, 100, 100)
	busy(c[0], 5)
	busy(c[1], 3)
	busy(c[2], 1)
	assert.Equal(t, 1000, shares(pick.LeastActive, c, 1000, seeded(5))[2])
	c = weighted(100, 100, 100)
	busy(c[0], 5)
	busy(c[1], 1)
	busy(c[2], 1)
	got := shares(pick.LeastActive, c, 1000, seeded(6))
	assert.Zero(t, got[0])
	assert.InDelta(t, 500, got[1], 60)
}

func TestShortestResponse(t *testing.T) { // R1, R2
	c := weighted(1, 9, 15)
	c[2].Begin()
	c[2].End(5*time.Second, time.Hour, false)
	busy(c[2], 1)
	assert.Zero(t, shares(pick.ShortestResponse, c, 10_000, seeded(7))[2])
	assert.Equal(t, 5*time.Second, c[2].Response())
	for range 200 { // it is well again, and is believed by and by
		c[2].Begin()
		c[2].End(ms, time.Hour+time.Minute, false)
	}
	assert.Less(t, c[2].Response(), 20*ms)
}

// One that fails fast has little running, and still must not get all calls.
func TestFailures(t *testing.T) {
	for name, a := range algorithms {
		c := weighted(100, 100, 100)
		r := seeded(8)
		count := make([]int, 3)
		now := time.Hour
		type running struct {
			i   int
			end time.Duration
		}
		var calls []running
		for range 20_000 {
			now += ms
			for len(calls) > 0 && calls[0].end <= now {
				c[calls[0].i].End(20*ms, now, false)
				calls = calls[1:]
			}
			i := a(c, now, r)
			count[i]++
			c[i].Begin()
			if i == 0 {
				c[i].End(0, now, true)
				continue
			}
			calls = append(calls, running{i, now + 20*ms})
		}
		assert.Less(t, count[0], 20_000/7, name)
		assert.Positive(t, count[0], name)
		assert.Zero(t, c[0].Inflight())
		assert.Zero(t, c[0].Failed(now+time.Minute), "it is forgotten")
	}
}

func TestAvoidedAndDrained(t *testing.T) {
	for name, a := range algorithms {
		c := weighted(100, 0, 100)
		c[0].Avoid = true
		busy(c[2], 1000)
		assert.Equal(t, 100, shares(a, c, 100, seeded(9))[2], name)
		c[2].Avoid = true
		got := shares(a, c, 1000, seeded(10))
		assert.Zero(t, got[1], name)
		assert.Equal(t, -1, a(nil, 0, nil), name)
		assert.Equal(t, 0, a(weighted(0), 0, nil), name)
		assert.Equal(t, 0, a(weighted(-5), 0, nil), name)
	}
}

func TestWarmingWeight(t *testing.T) { // W1
	const warmUp = 600_000 * ms
	for up, want := range map[int64]int64{
		0: 1, 13: 1, 6000: 1, 12_000: 2, 60_000: 10, 300_000: 50, 300_023: 50, 305_999: 50, 306_000: 51, 540_000: 90,
		588_000: 98, 594_000: 99, 600_000: 100, 1_200_000: 100, 1<<31 + 1: 100,
	} {
		assert.Equal(t, want, pick.WarmingWeight(100, time.Duration(up)*ms, warmUp), "%d", up)
	}
	assert.Zero(t, pick.WarmingWeight(0, 0, warmUp))
	assert.EqualValues(t, 7, pick.WarmingWeight(7, -ms, warmUp), "a clock that is behind")
	assert.EqualValues(t, 7, pick.WarmingWeight(7, 0, 0))
}

func TestNothingIsAllocated(t *testing.T) {
	c := weighted(1, 2, 3, 4)
	for name, a := range algorithms {
		require.Zero(t, testing.AllocsPerRun(100, func() { a(c, time.Hour, nil) }), name)
	}
}

func BenchmarkPick(b *testing.B) {
	for name, a := range algorithms {
		for _, n := range []int{10, 100, 1000} {
			c := weighted(make([]int64, n)...)
			for i := range c {
				c[i].Weight = 100
				busy(c[i], i%7)
			}
			b.Run(name+"/"+time.Duration(n).String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					a(c, time.Hour, nil)
				}
			})
		}
	}
}
