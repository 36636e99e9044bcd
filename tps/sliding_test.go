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
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var sliding = algorithms[1]

func TestSlidingSteps(t *testing.T) {
	for name, c := range map[string]struct {
		quota Quota
		steps []step
	}{
		// N10: around the edge of a window.
		"never more in any interval": {Quota{Rate: 5, Interval: 100 * ms}, []step{
			{at: 0, do: "allow", n: 1, ok: 1, left: 4},
			{at: 99 * ms, do: "allow", n: 9, ok: 4, left: 0, wait: ms},
			{at: 100*ms - 1, do: "allow", n: 9, ok: 0, left: 0, wait: 1},
			{at: 100 * ms, do: "allow", n: 9, ok: 1, left: 0, wait: 99 * ms},
			{at: 198 * ms, do: "allow", n: 9, ok: 0, left: 0, wait: ms},
			{at: 199 * ms, do: "allow", n: 9, ok: 4, left: 0, wait: ms},
		}},
		"given back": {Quota{Rate: 3, Interval: 100 * ms}, []step{
			{at: 0, do: "allow", n: 1, ok: 1, left: 2},
			{at: 10 * ms, do: "allow", n: 1, ok: 1, left: 1},
			{at: 20 * ms, do: "allow", n: 2, ok: 1, left: 0, wait: 80 * ms},
			{at: 30 * ms, do: "first", n: 1, left: 1},
			{at: 30 * ms, do: "allow", n: 2, ok: 1, left: 0, wait: 80 * ms}, // now the second is the oldest
			{at: 40 * ms, do: "back", n: 1, left: 1},
			{at: 40 * ms, do: "first", n: 1, left: 2},
			{at: 40 * ms, do: "allow", n: 3, ok: 2, left: 0, wait: 80 * ms},
			{at: 120 * ms, do: "look", left: 1},
			{at: 120 * ms, do: "first", n: 1, left: 1}, // out of the interval already
			{at: 120 * ms, do: "allow", n: 2, ok: 1, left: 0, wait: 20 * ms},
			{at: 900 * ms, do: "look", left: 3},
			{at: 900 * ms, do: "first", n: 1, left: 3},
			{at: 900 * ms, do: "allow", n: 4, ok: 3, left: 0, wait: 100 * ms},
			{at: 900 * ms, do: "first", n: 1, left: 0, wait: 100 * ms},
		}},
		"a rate of one": {Quota{Rate: 1, Interval: 2 * time.Second}, []step{
			{at: 0, do: "allow", n: 2, ok: 1, left: 0, wait: 2 * time.Second},
			{at: 0, do: "back", n: 1, left: 1},
			{at: ms, do: "allow", n: 2, ok: 1, left: 0, wait: 2 * time.Second},
			{at: 2*time.Second + ms, do: "allow", n: 2, ok: 1, left: 0, wait: 2 * time.Second},
		}},
		"a higher rate": {Quota{Rate: 2, Interval: 100 * ms}, []step{
			{at: 0, do: "allow", n: 3, ok: 2, left: 0, wait: 100 * ms},
			{at: 10 * ms, do: "quota", q: Quota{Rate: 20, Interval: 100 * ms, Burst: 3}, left: 18},
			{at: 10 * ms, do: "first", n: 1, left: 19},
			{at: 10 * ms, do: "allow", n: 30, ok: 19, left: 0, wait: 90 * ms},
			{at: 100 * ms, do: "allow", n: 30, ok: 1, left: 0, wait: 10 * ms},
		}},
		"a lower rate, and back up": {Quota{Rate: 4, Interval: 100 * ms}, []step{
			{at: 0, do: "allow", n: 2, ok: 2, left: 2},
			{at: 10 * ms, do: "allow", n: 1, ok: 1, left: 1},
			{at: 20 * ms, do: "allow", n: 1, ok: 1, left: 0, wait: 80 * ms},
			{at: 30 * ms, do: "quota", q: Quota{Rate: 2, Interval: 100 * ms}, left: 0, wait: 80 * ms},
			{at: 30 * ms, do: "allow", n: 1, left: 0, wait: 80 * ms},
			{at: 30 * ms, do: "back", n: 1, left: 0, wait: 70 * ms},
			{at: 100 * ms, do: "look", left: 1},
			{at: 30 * ms, do: "quota", q: Quota{Rate: 4, Interval: 100 * ms}, left: 1},
			{at: 30 * ms, do: "allow", n: 2, ok: 1, left: 0, wait: 70 * ms},
			{at: 40 * ms, do: "quota", q: Quota{Rate: 1, Interval: 100 * ms}, left: 0, wait: 90 * ms},
			{at: 130 * ms, do: "allow", n: 2, ok: 1, left: 0, wait: 100 * ms},
			{at: 140 * ms, do: "quota", q: Quota{Rate: 2, Interval: 100 * ms}, left: 1},
		}},
		"another interval": {Quota{Rate: 2, Interval: 100 * ms}, []step{
			{at: 0, do: "allow", n: 3, ok: 2, left: 0, wait: 100 * ms},
			{at: 50 * ms, do: "quota", q: Quota{Rate: 2, Interval: 200 * ms}, left: 0, wait: 150 * ms},
			{at: 50 * ms, do: "quota", q: Quota{Rate: 2, Interval: 40 * ms}, left: 2},
			{at: 50 * ms, do: "quota", q: Quota{Rate: 2, Interval: 60 * ms}, left: 0, wait: 10 * ms},
			{at: 60 * ms, do: "allow", n: 3, ok: 2, left: 0, wait: 60 * ms},
		}},
	} {
		t.Run(name, func(t *testing.T) { run(t, sliding, c.quota, c.steps) })
	}
}

// Above 4,096 calls a note stands for several: exactly the rate from rest, and
// a thousandth less at most when they come one by one.
func TestSlidingBatches(t *testing.T) {
	for _, rate := range []int64{4096, 4097, 5000, 99_999, 200_000} {
		l, err := NewSliding(Quota{Rate: rate, Interval: time.Second}, nil)
		require.NoError(t, err)
		require.Len(t, l.notes, 4096, "whatever the rate")
		now := time.Duration(0)
		for range 3 {
			for range rate {
				require.True(t, l.AllowAt(now).Admitted)
			}
			require.False(t, l.AllowAt(now).Admitted)
			require.False(t, l.AllowAt(now+time.Second-1).Admitted)
			now += time.Hour // at rest: nothing is left of a batch that was begun
			require.True(t, l.AllowAt(now).Admitted)
			now += time.Second
			require.Equal(t, rate, l.Stats(now).Left)
		}

		gap := time.Second / time.Duration(rate)
		for range rate {
			require.True(t, l.AllowAt(now).Admitted)
			now += gap
		}
		for range rate / 100 {
			l.AllowAt(now)
			now += gap
		}
		if rate > maxNotes {
			assert.Less(t, l.len, 2000, "notes are full")
		}
		assert.LessOrEqual(t, l.batch, rate/1000+1)
	}
}

func TestSlidingGiveBackInBatches(t *testing.T) {
	const rate = 10_000 // 10 to a note
	l, err := NewSliding(Quota{Rate: rate, Interval: time.Second}, nil)
	require.NoError(t, err)
	var taken []Decision
	now := time.Duration(0)
	for range rate {
		d := l.AllowAt(now)
		require.True(t, d.Admitted)
		taken = append(taken, d)
		now += 10 * time.Microsecond
	}
	require.EqualValues(t, 0, l.Stats(now).Left)
	// Two of three are given back, late, and as many are admitted at once.
	for i, d := range taken {
		if i%3 != 0 {
			l.GiveBack(d)
		}
	}
	require.EqualValues(t, rate*2/3, l.Stats(now).Left)
	for range rate * 2 / 3 {
		require.True(t, l.AllowAt(now).Admitted)
		now += 10 * time.Microsecond
	}
	require.False(t, l.AllowAt(now-rate*20/3*time.Microsecond).Admitted)
	// Those that stayed leave at their own times, or up to a note later.
	for i := 0; i < rate; i += 3 {
		left := l.Stats(taken[i].At + time.Second).Left
		require.LessOrEqual(t, left, int64(i/3+1))
		require.Greater(t, left, int64(i/3+1)-l.batch)
	}
}

// When nearly all are given back late, notes grow, and the limit holds.
func TestSlidingGiveBackNearlyAll(t *testing.T) {
	const rate = 8192
	l, err := NewSliding(Quota{Rate: rate, Interval: time.Second}, nil)
	require.NoError(t, err)
	var kept, pending []time.Duration
	var queue []Decision
	now := time.Duration(0)
	for i := range 20 * rate {
		now += 10 * time.Microsecond
		d := l.AllowAt(now)
		if !d.Admitted {
			continue
		}
		if i%10 == 0 {
			kept = append(kept, d.At)
		} else {
			queue = append(queue, d)
		}
		if len(queue) > 1000 {
			l.GiveBack(queue[0])
			queue = queue[1:]
		}
	}
	for _, d := range queue {
		pending = append(pending, d.At)
	}
	all := slices.Concat(kept, pending)
	slices.Sort(all)
	requireNeverMore(t, all, rate, time.Second)
	assert.Greater(t, len(kept), rate)
}

// A call that waited for the lock after reading the clock would be noted earlier
// than it passes.
func TestSlidingReadsTheClockUnderItsLock(t *testing.T) {
	var l *Sliding
	now, under := time.Duration(0), 0
	l, err := NewSliding(Quota{Rate: 2, Interval: time.Second}, func() time.Duration {
		if l.mu.TryLock() {
			l.mu.Unlock()
		} else {
			under++
		}
		return now
	})
	require.NoError(t, err)
	l.Allow()
	l.Allow()
	assert.Equal(t, 2, under)
	l.Allow() // refused without the lock
	assert.Equal(t, 2, under)
	now = time.Second
	require.True(t, l.Allow().Admitted)
	assert.Equal(t, 3, under)
}

// requireNeverMore looks at every interval of calls in the order of their times.
func requireNeverMore(t *testing.T, at []time.Duration, rate int, interval time.Duration) {
	t.Helper()
	for i := rate; i < len(at); i++ {
		if at[i]-at[i-rate] < interval {
			t.Fatalf("%d calls in %v, from %v to %v", rate+1, at[i]-at[i-rate], at[i-rate], at[i])
		}
	}
}
