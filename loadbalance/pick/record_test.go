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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/loadbalance/pick"
)

func TestTroubles(t *testing.T) {
	var peers pick.Peers
	a := peers.Instance("a").Record("M")
	assert.False(t, peers.Troubled())
	a.Succeeded()
	assert.False(t, peers.Troubled())
	a.Failed(noon)
	assert.True(t, peers.Troubled())
	peers.Settle(noon + 29*time.Second)
	assert.True(t, peers.Troubled())
	peers.Settle(noon + pick.Horizon)
	assert.False(t, peers.Troubled())
	a.Avoid(noon + time.Hour)
	peers.Settle(noon + 59*time.Minute)
	assert.True(t, peers.Troubled())
	assert.Equal(t, time.Minute, a.AvoidedFor(noon+59*time.Minute))
	peers.Settle(noon + time.Hour)
	assert.True(t, peers.Troubled(), "those that come now are let in one by one")
	peers.Settle(noon + time.Hour + pick.Horizon)
	assert.False(t, peers.Troubled())
	// Whoever chooses without a clock then goes by what runs alone.
	s := pick.NewSet([]pick.Candidate{{Record: a, Weight: 1}, {Record: peers.Instance("b").Record("M"), Weight: 1}})
	a.Begin()
	for range 100 {
		assert.Equal(t, 1, pick.LeastActive(s, 0, rand.Uint64()))
	}
}

func TestRecords(t *testing.T) {
	var peers pick.Peers
	i := peers.Instance("a")
	assert.Same(t, i, peers.Instance("a"))
	first := i.Record("M")
	assert.Same(t, first, i.Record("M"))
	assert.Same(t, i, i.Record("M").Instance)
	for n := range 10_000 {
		i.Record(string(rune(n)))
	}
	count := 0
	i.Records(func(*pick.Record) { count++ })
	assert.LessOrEqual(t, count, pick.MaxMethods+1)
	assert.Same(t, i.Record("new"), i.Record(pick.OtherMethods))
	r := i.Record("M")
	r.Overdue(time.Second, noon)
	assert.Equal(t, time.Second, r.Response(noon))
	r.Overdue(time.Millisecond, noon)
	assert.Equal(t, time.Second, r.Response(noon), "a call that failed fast makes nobody faster")
	assert.Equal(t, noon, peers.Recent())
}

// When an instance is no longer to be avoided one call tries it, and the others follow
// when that has succeeded.
func TestClaims(t *testing.T) {
	var peers pick.Peers
	r := peers.Instance("a").Record("M")
	assert.True(t, r.Claim(noon))
	r.Avoid(noon + time.Second)
	assert.False(t, r.Claim(noon))
	now := noon + time.Second
	assert.True(t, r.Claim(now))
	assert.True(t, r.Claimed())
	assert.Greater(t, r.AvoidedFor(now), time.Duration(0))
	r.Succeeded()
	assert.False(t, r.Claimed())
	assert.True(t, r.Claim(now))
	assert.True(t, r.Claim(now))

	// One that does not come back keeps the others away for a second.
	r.Avoid(now + time.Second)
	now += 2 * time.Second
	assert.True(t, r.Claim(now))
	now += time.Second
	assert.LessOrEqual(t, r.AvoidedFor(now), time.Duration(1))
	assert.True(t, r.Claim(now+1))

	// Where a circuit breaker manages it a call that succeeds is not enough.
	r.Manage(true)
	r.Hold(now)
	r.Succeeded()
	assert.True(t, r.Claimed())
	r.Try(now)
	assert.True(t, r.Claim(now))
	assert.True(t, r.Claimed())
	r.Welcome()
	assert.False(t, r.Claimed())
	var first atomic.Int64
	for range 100 {
		first.Store(0)
		r.Try(now)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if r.Claim(now) {
					first.Add(1)
				}
			})
		}
		wg.Wait()
		assert.EqualValues(t, 1, first.Load())
	}
}

func TestWarmingWeight(t *testing.T) { // W1, W2
	const warmUp = 600_000 * ms
	for up, want := range map[int64]int64{
		0: 1, 13: 1, 6000: 1, 12_000: 2, 60_000: 10, 300_000: 50, 300_023: 50, 305_999: 50, 306_000: 51, 540_000: 90,
		588_000: 98, 594_000: 99, 600_000: 100, 1_200_000: 100, 1<<31 + 1: 100,
	} {
		assert.Equal(t, want, pick.WarmingWeight(100, time.Duration(up)*ms, warmUp), "%d", up)
	}
	assert.Zero(t, pick.WarmingWeight(0, 0, warmUp))
	assert.EqualValues(t, 1, pick.WarmingWeight(7, -ms, warmUp), "a clock that is a little ahead")
	assert.EqualValues(t, 7, pick.WarmingWeight(7, -warmUp, warmUp), "a clock that is wrong")
	assert.EqualValues(t, 7, pick.WarmingWeight(7, 0, 0))
}

// What runs and what was begun are counted apart, in whatever order calls end.
func TestCounts(t *testing.T) {
	var peers pick.Peers
	i := peers.Instance("a")
	for n := range int64(1000) {
		i.Begin()
		i.Begin()
		i.End()
		assert.Equal(t, n+1, i.Inflight())
		assert.Equal(t, 2*(n+1), i.Picks())
	}
	for range 1000 {
		i.End()
	}
	assert.Zero(t, i.Inflight())
	assert.EqualValues(t, 2000, i.Picks())
}
