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

package tps

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var bucket = algorithms[2]

func TestBucketSteps(t *testing.T) {
	for name, c := range map[string]struct {
		quota Quota
		steps []step
	}{
		"evenly, one by one": {Quota{Rate: 8, Interval: 800 * ms, Burst: 1}, []step{
			{at: 0, do: "allow", n: 3, ok: 1, left: 0, wait: 100 * ms},
			{at: 100*ms - 1, do: "allow", n: 1, left: 0, wait: 1},
			{at: 100 * ms, do: "allow", n: 2, ok: 1, left: 0, wait: 100 * ms},
			{at: 250 * ms, do: "allow", n: 2, ok: 1, left: 0, wait: 100 * ms}, // what is not fetched runs over
		}},
		"a burst": {Quota{Rate: 10, Interval: time.Second, Burst: 4}, []step{
			{at: 0, do: "allow", n: 5, ok: 4, left: 0, wait: 100 * ms},
			{at: 250 * ms, do: "allow", n: 5, ok: 2, left: 0, wait: 50 * ms},
			{at: 590 * ms, do: "look", left: 3},
			{at: 10 * time.Second, do: "allow", n: 5, ok: 4, left: 0, wait: 100 * ms},
		}},
		"a burst larger than the rate": {Quota{Rate: 1, Interval: time.Second, Burst: 3}, []step{
			{at: 0, do: "allow", n: 5, ok: 3, left: 0, wait: time.Second},
			{at: 2 * time.Second, do: "allow", n: 5, ok: 2, left: 0, wait: time.Second},
		}},
		"given back until it has been full": {Quota{Rate: 10, Interval: time.Second, Burst: 3}, []step{
			{at: 0, do: "allow", n: 3, ok: 3, left: 0, wait: 100 * ms},
			{at: 0, do: "first", n: 1, left: 1},
			{at: 200 * ms, do: "look", left: 3},
			{at: 250 * ms, do: "first", n: 1, left: 3}, // full anyway
			{at: 250 * ms, do: "allow", n: 9, ok: 3, left: 0, wait: 100 * ms},
			{at: 250 * ms, do: "first", n: 1, left: 0, wait: 100 * ms}, // it had been full: the token had run over
			{at: 250 * ms, do: "first", n: 1, left: 1},
			{at: 250 * ms, do: "first", n: 2, left: 3},
		}},
		"the clock steps back": {Quota{Rate: 10, Interval: time.Second, Burst: 4}, []step{
			{at: 0, do: "allow", n: 3, ok: 3, left: 1},
			{at: 100 * ms, do: "allow", n: 1, ok: 1, left: 1},
			{at: 0, do: "look", left: 1},
			{at: 0, do: "allow", n: 2, ok: 1, left: 0, wait: 200 * ms},
			{at: 10 * time.Second, do: "allow", n: 1, ok: 1, left: 3}, // found it full
			{at: time.Second, do: "look", left: 3},
			{at: 0, do: "allow", n: 4, ok: 3, left: 0, wait: 10*time.Second + 100*ms},
		}},
		"updates": {Quota{Rate: 10, Interval: time.Second}, []step{
			{at: 0, do: "allow", n: 11, ok: 10, left: 0, wait: 100 * ms},
			{at: 50 * ms, do: "quota", q: Quota{Rate: 10, Interval: time.Second, Burst: 10}, left: 0, wait: 50 * ms}, // nothing new
			{at: 50 * ms, do: "quota", q: Quota{Rate: 100, Interval: time.Second}, left: 0, wait: 5 * ms},            // half a token is there
			{at: 55 * ms, do: "allow", n: 2, ok: 1, left: 0, wait: 10 * ms},
			{at: 55 * ms, do: "first", n: 1, left: 0, wait: 10 * ms}, // of the old quota
			{at: 115 * ms, do: "look", left: 6},
			{at: 115 * ms, do: "quota", q: Quota{Rate: 1, Interval: time.Second, Burst: 4}, left: 4},
			{at: 115 * ms, do: "quota", q: Quota{Rate: 1, Interval: time.Second, Burst: 1000}, left: 4},
			{at: 115 * ms, do: "quota", q: Quota{Rate: 1, Interval: time.Hour, Burst: 1000}, left: 4},
			{at: 116 * ms, do: "allow", n: 9, ok: 4, left: 0, wait: time.Hour - ms},
			{at: 116 * ms, do: "quota", q: Quota{Rate: 2_000_000_000, Interval: time.Second, Burst: 2}, left: 0, wait: 1},
			{at: 116*ms + 10, do: "allow", n: 9, ok: 2, left: 0, wait: 1},
			{at: 0, do: "quota", q: Quota{Rate: 10, Interval: time.Second}, left: 0, wait: 216*ms + 10}, // the clock stands
		}},
	} {
		t.Run(name, func(t *testing.T) { run(t, bucket, c.quota, c.steps) })
	}
}

// The production is the exact one, rounded down to a unit that is worth 1 to 2 ns.
func TestBucketProduction(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, q := range []Quota{
		{Rate: 1, Interval: ms},
		{Rate: 1, Interval: 2 * time.Second},
		{Rate: 7, Interval: time.Minute},
		{Rate: 3, Interval: time.Second},
		{Rate: 4097, Interval: time.Second},
		{Rate: 100_000, Interval: time.Second},
		{Rate: 30_000_001, Interval: time.Second},
		{Rate: 999_999_999, Interval: time.Second},
		{Rate: 1_000_000_000, Interval: time.Second},
		{Rate: 1, Interval: MaxInterval},
		{Rate: MaxRate, Interval: MaxInterval},
	} {
		s := newBucketState(q, 5, 0)
		for _, now := range []time.Duration{
			5, 6, 1000, time.Second, 100_000 * time.Second, // 10 billion calls at 100,000 per second
			year, 100 * year, 290 * year,
		} {
			p := s.point(now)
			exact := new(big.Int).Mul(big.NewInt(int64(now-5)), big.NewInt(q.Rate*s.unit))
			exact.Quo(exact, big.NewInt(int64(q.Interval)))
			require.Equal(t, exact.Int64(), p, "%+v at %v", q, now)
			first := s.time(p)
			require.LessOrEqual(t, first, now)
			require.Equal(t, p, s.point(first))
			require.True(t, first == 5 || s.point(first-1) < p)
		}
		one := float64(q.Interval) / float64(q.Rate) / float64(s.unit)
		assert.True(t, one >= 1 && one < 2, "%+v: a unit is worth %v ns", q, one)
	}
}

// A rate of more than one call per nanosecond is taken as that.
func TestBucketBeyondTheClock(t *testing.T) {
	run(t, bucket, Quota{Rate: MaxRate, Interval: ms, Burst: 3}, []step{
		{at: 0, do: "allow", n: 4, ok: 3, left: 0, wait: 1},
		{at: 2, do: "allow", n: 4, ok: 2, left: 0, wait: 1},
	})
}

// Between taking a token and noting the time of it, somebody changes the quota
// with an older reading: no token comes twice.
func TestBucketUpdateWithAnOldReading(t *testing.T) {
	b, err := NewBucket(Quota{Rate: 10, Interval: time.Second, Burst: 1}, nil)
	require.NoError(t, err)
	require.True(t, b.AllowAt(0).Admitted)
	require.True(t, b.AllowAt(100*ms).Admitted)
	b.state.Load().latest.Store(0)
	require.NoError(t, b.UpdateAt(0, Quota{Rate: 20, Interval: time.Second, Burst: 1}))
	assert.Equal(t, 150*ms, b.RetryAfter(0))
	assert.Equal(t, 20*ms, b.RetryAfter(130*ms))
}
