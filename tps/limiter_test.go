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
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// algorithm makes limiters of one kind for tests that hold for all of them.
type algorithm struct {
	name string
	make func(Quota, Clock) (Limiter, error)
}

var algorithms = []algorithm{
	{"fixed", func(q Quota, c Clock) (Limiter, error) { return NewFixed(q, c) }},
	{"sliding", func(q Quota, c Clock) (Limiter, error) { return NewSliding(q, c) }},
	{"bucket", func(q Quota, c Clock) (Limiter, error) { return NewBucket(q, c) }},
}

func (a algorithm) must(q Quota, c Clock) Limiter {
	l, err := a.make(q, c)
	if err != nil {
		panic(err)
	}
	return l
}

const ms = time.Millisecond

func TestQuotaValidate(t *testing.T) {
	for _, q := range []Quota{
		{Rate: 1, Interval: ms},
		{Rate: 1, Interval: 2 * time.Second},
		{Rate: 100_000, Interval: time.Second, Burst: 1},
		{Rate: 1<<31 - 1, Interval: time.Second},
		{Rate: MaxRate, Interval: ms, Burst: MaxRate},
		{Rate: MaxRate, Interval: MaxInterval, Burst: MaxRate},
		{Rate: 1, Interval: MaxInterval, Burst: 70},
	} {
		assert.NoError(t, q.Validate(), "%+v", q)
		for _, a := range algorithms {
			for _, now := range []time.Duration{-1, 0, 1, MaxInterval, 200 * 365 * 24 * time.Hour} {
				l, err := a.make(q, nil)
				require.NoError(t, err)
				assert.True(t, l.AllowAt(now).Admitted, "%s %+v", a.name, q)
			}
		}
	}
	for want, quotas := range map[string][]Quota{
		"weir: rate ": {
			{Rate: 0, Interval: time.Second}, {Rate: -1, Interval: time.Second}, {Rate: MaxRate + 1, Interval: time.Second},
		},
		"weir: interval ": {
			{Rate: 1}, {Rate: 1, Interval: ms - 1}, {Rate: 1, Interval: -time.Second}, {Rate: 1, Interval: MaxInterval + 1},
		},
		"weir: burst ": {
			{Rate: 1, Interval: ms, Burst: -1}, {Rate: MaxRate, Interval: time.Second, Burst: MaxRate + 1},
			{Rate: 1, Interval: MaxInterval, Burst: 80}, {Rate: 1, Interval: time.Minute, Burst: MaxRate},
		},
	} {
		for _, q := range quotas {
			require.ErrorContains(t, q.Validate(), want, "%+v", q)
			for _, a := range algorithms {
				_, err := a.make(q, nil)
				require.ErrorContains(t, err, want, a.name)

				l := a.must(Quota{Rate: 2, Interval: time.Second}, nil)
				require.ErrorContains(t, l.UpdateAt(0, q), want, a.name)
				assert.Equal(t, Quota{2, time.Second, 0}, withoutBurst(l.Stats(0).Quota), "as it was")
			}
		}
	}
}

func withoutBurst(q Quota) Quota {
	q.Burst = 0
	return q
}

// step is one step of a table: what is done at a moment, and how it stands then.
type step struct {
	at   time.Duration
	do   string // allow, back (give back the latest), first (give back the first), quota, look
	n    int64  // calls to allow, or to give back
	ok   int64  // of them admitted
	left int64  // afterwards
	wait time.Duration
	q    Quota // to update to
}

func run(t *testing.T, a algorithm, q Quota, steps []step) {
	t.Helper()
	l := a.must(q, nil)
	var taken []Decision
	for i, s := range steps {
		switch s.do {
		case "allow":
			var ok int64
			for range s.n {
				// What a look says comes true.
				wait := l.RetryAfter(s.at)
				d := l.AllowAt(s.at)
				require.Equal(t, d.RetryAfter(), wait, "%s, step %d", a.name, i)
				require.Equal(t, d.Admitted, wait == 0, "%s, step %d", a.name, i)
				require.GreaterOrEqual(t, d.At, max(s.at, 0), "%s, step %d", a.name, i)
				if d.Admitted {
					ok++
					taken = append(taken, d)
				} else {
					l.GiveBack(d) // nothing to give back
				}
			}
			require.Equal(t, s.ok, ok, "%s, step %d", a.name, i)
		case "back":
			for range s.n {
				l.GiveBack(taken[len(taken)-1])
				taken = taken[:len(taken)-1]
			}
		case "first":
			for range s.n {
				l.GiveBack(taken[0])
				taken = taken[1:]
			}
		case "quota":
			require.NoError(t, l.UpdateAt(s.at, s.q))
			require.Equal(t, withoutBurst(s.q), withoutBurst(l.Stats(s.at).Quota))
		case "look":
		default:
			t.Fatal(s.do)
		}
		st := l.Stats(s.at)
		require.Equal(t, s.left, st.Left, "%s, step %d", a.name, i)
		require.Equal(t, s.wait, st.RetryAfter, "%s, step %d", a.name, i)
	}
}

func TestZeroDecisionRefuses(t *testing.T) {
	var d Decision
	assert.False(t, d.Admitted)
	for _, a := range algorithms {
		l := a.must(Quota{Rate: 1, Interval: time.Second}, nil)
		require.True(t, l.AllowAt(0).Admitted)
		l.GiveBack(d)
		assert.False(t, l.AllowAt(0).Admitted, a.name)
	}
}

// What all algorithms have in common.
func TestSteps(t *testing.T) {
	for _, a := range algorithms {
		run(t, a, Quota{Rate: 3, Interval: 300 * ms}, []step{
			{at: 5000 * ms, do: "look", left: 3},
			{at: 5000 * ms, do: "allow", n: 2, ok: 2, left: 1},
			// The clock steps back, even before its origin, and stands.
			{at: 4000 * ms, do: "look", left: 1},
			{at: -time.Hour, do: "look", left: 1},
			{at: 0, do: "allow", n: 1, ok: 1, left: 0, wait: after(a.name, 5000*ms)},
			{at: 5000 * ms, do: "back", n: 1, left: 1},
			{at: 5000 * ms, do: "back", n: 1, left: 2},
			{at: 5000 * ms, do: "back", n: 1, left: 3},
			{at: 5000 * ms, do: "allow", n: 5, ok: 3, left: 0, wait: after(a.name, 0)},
			{at: 10_000 * ms, do: "allow", n: 4, ok: 3, left: 0, wait: after(a.name, 0)},
			// Long after: as new.
			{at: 200 * 365 * 24 * time.Hour, do: "look", left: 3},
			{at: 200 * 365 * 24 * time.Hour, do: "allow", n: 4, ok: 3, left: 0, wait: after(a.name, 0)},
		})
	}
}

// after is how long 3 per 300 ms takes to admit one more after all at once.
func after(algorithm string, back time.Duration) time.Duration {
	switch algorithm {
	case "fixed":
		return back + 300*ms + 1
	case "bucket":
		return back + 100*ms
	default:
		return back + 300*ms
	}
}

// N9: each method has its own limiter, and one does not touch another.
func TestBudgetsOfTheirOwn(t *testing.T) {
	for _, a := range algorithms {
		two, three := a.must(Quota{Rate: 2, Interval: time.Second}, nil), a.must(Quota{Rate: 3, Interval: time.Second}, nil)
		var of2, of3 int
		for i := range 10 {
			now := time.Duration(i) * ms
			if two.AllowAt(now).Admitted {
				of2++
			}
			if three.AllowAt(now).Admitted {
				of3++
			}
		}
		assert.Equal(t, 2, of2, a.name)
		assert.Equal(t, 3, of3, a.name)
	}
}

// L1, L2, L3: as many as the rate, and the next is refused.
func TestDefaultTPSLimiter(t *testing.T) {
	for _, a := range algorithms {
		for rate := range int64(4) {
			q := Quota{Rate: rate + 1, Interval: time.Second}
			l := a.must(q, func() time.Duration { return 0 })
			for range q.Rate {
				require.True(t, l.Allow().Admitted, a.name)
			}
			require.False(t, l.Allow().Admitted, a.name)
		}
	}
}

// L4: 2 used up, then the rate is 20. Java begins anew; a sliding window still
// counts the 2; a bucket has no token yet, but they come faster.
func TestConfigChange(t *testing.T) {
	for algorithm, want := range map[string]struct {
		atOnce int
		wait   time.Duration
		later  int // in the second after
	}{
		"fixed":   {20, time.Second + 1, 0},
		"sliding": {18, 800 * ms, 2},
		"bucket":  {2, 40 * ms, 19}, // 0.2 of a token at the old rate, and then 2 in 100 ms
	} {
		for _, a := range algorithms {
			if a.name != algorithm {
				continue
			}
			now := time.Duration(0)
			l := a.must(Quota{Rate: 2, Interval: time.Second}, func() time.Duration { return now })
			for range 3 {
				l.Allow()
			}
			now = 100 * ms
			require.NoError(t, l.Update(Quota{Rate: 20, Interval: time.Second}))
			require.NoError(t, l.Update(Quota{Rate: 20, Interval: time.Second}), "the same again changes nothing")
			now = 200 * ms
			n := 0
			for l.Allow().Admitted {
				n++
			}
			assert.Equal(t, want.atOnce, n, a.name)
			assert.InDelta(t, want.wait, l.RetryAfter(now), 10, a.name)
			later := 0
			for ; now < 1150*ms; now += ms {
				if l.Allow().Admitted {
					later++
				}
			}
			assert.Equal(t, want.later, later, a.name)
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	for _, a := range algorithms {
		l := a.must(Quota{Rate: 2, Interval: time.Minute}, monotonic())
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			d := l.Allow()
			l.Allow()
			l.Allow() // refused
			l.RetryAfter(time.Second)
			l.Stats(time.Second)
			l.GiveBack(d)
		}), a.name)
	}
	assert.EqualValues(t, 128, unsafe.Sizeof(window{}), "nobody else's counter in the same cache lines")
	assert.EqualValues(t, 128, unsafe.Sizeof(bucketState{}))
	assert.EqualValues(t, 128, unsafe.Sizeof(Sliding{}))
}
