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

package alarm

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var rule = Rule{WarnAt: 0.8, For: 10 * time.Second}

func at(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func TestSteps(t *testing.T) {
	type step struct {
		at    float64
		r     Reading
		want  Level
		told  bool
		since float64
	}
	use := func(u float64) Reading { return Reading{Use: u} }
	for name, steps := range map[string][]step{
		"near after ten seconds without a break": {
			{at: 0, r: use(0.8)}, {at: 9.9, r: use(0.8)},
			{at: 10, r: use(0.8), want: Near, told: true, since: 0}, {at: 11, r: use(0.99), want: Near},
		},
		"a break begins anew": {
			{at: 0, r: use(0.9)}, {at: 5, r: use(0.79)}, {at: 6, r: use(0.9)}, {at: 15, r: use(0.9)},
			{at: 16, r: use(0.9), want: Near, told: true, since: 6},
		},
		"reached at once, and told once": {
			{at: 0, r: use(0)}, {at: 1, r: use(1), want: Reached, told: true, since: 1},
			{at: 2, r: use(1.5), want: Reached}, {at: 50, r: use(1), want: Reached},
		},
		"a refusal is as good as a full limit": {
			{at: 1, r: Reading{Use: 0.1, Hits: 1}, want: Reached, told: true, since: 1},
		},
		"from reached to near, and to calm": {
			{at: 0, r: use(1), want: Reached, told: true}, {at: 1, r: use(0.9), want: Reached}, {at: 10, r: use(0.9), want: Reached},
			{at: 11, r: use(0.75), want: Near, told: true, since: 1},
			{at: 12, r: use(0.74), want: Near}, {at: 30, r: use(0.73), want: Near}, // not below nine tenths
			{at: 31, r: use(0.71), want: Near}, {at: 40, r: use(0.71), want: Near},
			{at: 41, r: use(0), want: Calm, told: true, since: 31},
		},
		"from reached to calm in one": {
			{at: 0, r: use(1), want: Reached, told: true}, {at: 1, r: use(0), want: Reached}, {at: 10, r: use(0), want: Reached},
			{at: 11, r: use(0), want: Calm, told: true, since: 1},
		},
		"a refusal now and then keeps it reached": {
			{at: 0, r: use(1), want: Reached, told: true}, {at: 5, r: Reading{Hits: 1}, want: Reached},
			{at: 10, r: use(0), want: Reached}, {at: 14, r: Reading{Hits: 1}, want: Reached}, {at: 23, r: use(0), want: Reached},
			{at: 33, r: use(0), want: Calm, told: true, since: 23},
		},
		"a clock that jumps back stands still": {
			{at: 100, r: use(0.9)}, {at: 50, r: use(0.9)}, {at: 70, r: use(0.9)},
			{at: 110, r: use(0.9), want: Near, told: true, since: 100},
		},
		"no number is nothing": {
			{at: 0, r: use(math.NaN())}, {at: 10, r: use(-1)}, {at: 20, r: use(math.Inf(-1))},
			{at: 21, r: use(math.Inf(1)), want: Reached, told: true, since: 21},
		},
		"a bound of its own": {
			{at: 0, r: Reading{Use: 0.5, WarnAt: 0.5}}, {at: 10, r: Reading{Use: 0.5, WarnAt: 0.5}, want: Near, told: true, since: 0},
			{at: 11, r: Reading{Use: 0.46, WarnAt: 0.5}, want: Near}, {at: 12, r: Reading{Use: 0.44, WarnAt: 0.5}, want: Near},
			{at: 22, r: Reading{Use: 0.44, WarnAt: 0.5}, want: Calm, told: true, since: 12},
		},
		"one with room beyond it is reached by a refusal": {
			{at: 0, r: Reading{Use: 3, Expands: true}}, {at: 10, r: Reading{Use: 3, Expands: true}, want: Near, told: true, since: 0},
			{at: 11, r: Reading{Use: 3, Expands: true, Hits: 1}, want: Reached, told: true, since: 11},
			{at: 12, r: Reading{Use: 3, Expands: true}, want: Reached}, {at: 22, r: Reading{Use: 3, Expands: true}, want: Near, told: true, since: 12},
			{at: 23, r: Reading{Use: 4}, want: Reached, told: true, since: 23},
		},
		"an average is above for long at once": {
			{at: 0, r: Reading{Use: 0.8, Settled: true}, want: Near, told: true, since: 0},
			{at: 1, r: Reading{Settled: true}, want: Near}, {at: 11, r: Reading{Settled: true}, want: Calm, told: true, since: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var m Machine
			former := Calm
			for i, s := range steps {
				c, told := m.Step(at(s.at), rule, s.r)
				require.Equal(t, s.told, told, "step %d", i)
				require.Equal(t, s.want, m.Level(), "step %d", i)
				if told {
					require.Equal(t, s.want, c.Level, "step %d", i)
					require.Equal(t, former, c.Former, "step %d", i)
					require.Equal(t, at(s.since), c.Since, "step %d", i)
					require.Equal(t, at(s.at), c.At, "step %d", i)
				}
				former = m.Level()
			}
		})
	}
}

func TestAChangeHasAllHitsOfTheLevelBefore(t *testing.T) {
	var m Machine
	c, _ := m.Step(0, rule, Reading{Hits: 3, Observed: 5, Limit: 5, Of: "a"})
	require.Equal(t, int64(3), c.Hits)
	m.Step(at(1), rule, Reading{Hits: 4})
	m.Step(at(2), rule, Reading{Hits: 5})
	m.Step(at(3), rule, Reading{})
	c, ok := m.Step(at(13), rule, Reading{Observed: 1, Limit: 5})
	require.True(t, ok)
	require.Equal(t, int64(9), c.Hits, "those after it was told to be reached")
	require.Equal(t, int64(1), c.Observed)
	m.Step(at(14), rule, Reading{Hits: math.MaxInt64})
	m.Step(at(15), rule, Reading{Hits: math.MaxInt64})
	m.Step(at(16), rule, Reading{Hits: math.MinInt64})
	require.GreaterOrEqual(t, m.hits, int64(0))
}

// What is told has to encode as JSON, and the share of a tiny bound is infinite.
func TestRegression_AUseIsFinite(t *testing.T) {
	for _, use := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64} {
		var m Machine
		c, told := m.Step(0, rule, Reading{Use: use, Hits: 1})
		require.True(t, told)
		_, err := json.Marshal(c.Use)
		require.NoError(t, err)
	}
}

func TestNothingLastsForNoTime(t *testing.T) {
	var m Machine
	for i, u := range []float64{0.8, 0, 1, 0.75, 0} {
		c, ok := m.Step(at(float64(i)), Rule{WarnAt: 0.8}, Reading{Use: u})
		require.True(t, ok, "step %d", i)
		require.Equal(t, []Level{Near, Calm, Reached, Near, Calm}[i], c.Level)
	}
}

func TestLevelsAreText(t *testing.T) {
	text, err := json.Marshal([]Level{Calm, Near, Reached, Levels})
	require.NoError(t, err)
	require.JSONEq(t, `["calm","near","reached","level(3)"]`, string(text))
}

// oracle keeps all readings and looks back through them.
type oracle struct {
	level Level
	times []time.Duration
	all   []Reading
}

// lasting is since when ok holds for all newest readings.
func (o *oracle) lasting(ok func(Reading) bool) (since time.Duration, some bool) {
	for i := len(o.all) - 1; i >= 0 && ok(o.all[i]); i-- {
		since, some = o.times[i], true
	}
	return since, some
}

func (o *oracle) step(now time.Duration, rule Rule, r Reading) (level Level, since time.Duration) {
	if n := len(o.times); n > 0 && now < o.times[n-1] {
		now = o.times[n-1]
	}
	o.times, o.all = append(o.times, now), append(o.all, r)
	warn := func(r Reading) float64 {
		if r.WarnAt > 0 {
			return r.WarnAt
		}
		return rule.WarnAt
	}
	reached := func(r Reading) bool { return r.Use >= 1 && !r.Expands || r.Hits > 0 }
	long := func(ok func(Reading) bool) (time.Duration, bool) {
		since, some := o.lasting(ok)
		return since, some && now-since >= rule.For
	}
	low, lowLong := long(func(r Reading) bool { return !reached(r) && r.Use < warn(r)*calmBelow })
	free, freeLong := long(func(r Reading) bool { return !reached(r) })
	isAbove := func(r Reading) bool { return reached(r) || r.Use >= warn(r) }
	above, aboveLong := long(isAbove)
	switch o.level {
	case Calm:
		if reached(r) {
			o.level, since = Reached, now
		} else if aboveLong || isAbove(r) && r.Settled {
			o.level, since = Near, above
		}
	case Near:
		if reached(r) {
			o.level, since = Reached, now
		} else if lowLong {
			o.level, since = Calm, low
		}
	case Reached:
		if lowLong {
			o.level, since = Calm, low
		} else if freeLong {
			o.level, since = Near, free
		}
	}
	return o.level, since
}

func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 0, 40, 100, 10, 255, 80, 82, 3}, uint8(10), uint8(80))
	f.Add([]byte{1, 85, 1, 85, 1, 85, 12, 100, 1, 0, 11, 0}, uint8(5), uint8(80))
	f.Fuzz(func(t *testing.T, in []byte, lasts, warn uint8) {
		rule := Rule{WarnAt: float64(warn%100+1) / 100, For: time.Duration(lasts%30) * time.Second}
		var m Machine
		var o oracle
		var changes []time.Duration
		now := 50 * time.Second
		for len(in) >= 2 && len(o.all) < 300 {
			now += time.Duration(int8(in[0])%20+5) * time.Second / 2 // also back
			r := Reading{Use: float64(in[1]%128) / 100, Settled: in[0]&64 != 0, Expands: in[0]&32 != 0}
			switch in[1] >> 6 {
			case 2:
				r.WarnAt = 0.5
			case 3:
				r.Hits = int64(in[1] & 1)
			}
			in = in[2:]
			former := o.level
			level, since := o.step(now, rule, r)
			c, told := m.Step(now, rule, r)
			require.Equal(t, level, m.Level())
			require.Equal(t, level != former, told)
			if told {
				require.Equal(t, former, c.Former)
				require.Equal(t, since, c.Since)
				changes = append(changes, c.At)
			}
		}
		seldom(t, rule, changes)
	})
}

// seldom holds that any five changes take rule.For.
func seldom(t *testing.T, rule Rule, changes []time.Duration) {
	for i := 4; i < len(changes); i++ {
		require.GreaterOrEqual(t, changes[i]-changes[i-4], rule.For, "change %d of %v", i, changes)
	}
}

// Whatever the readings, changes are few.
func TestNoReadingsMakeItFlap(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := NewSet[int](3)
		changes := map[int][]time.Duration{}
		levels := map[int]Level{}
		now, levelOf := time.Duration(0), 0.0
		for range 2000 {
			now += time.Duration(rnd.Int64N(int64(3 * time.Second)))
			if rnd.IntN(15) == 0 {
				levelOf = rnd.Float64() * 1.2
			}
			for k := range 4 {
				if rnd.IntN(20) != 0 || seed%2 == 0 {
					s.Read(k, Reading{Use: levelOf + rnd.NormFloat64()*0.2, Hits: int64(rnd.IntN(60) / 59), Settled: rnd.IntN(2) == 0, Expands: rnd.IntN(3) == 0})
				}
			}
			if rnd.IntN(200) == 0 {
				now += at(30) // and nobody reads
			}
			s.End(now, rule, func(k int, c Change) {
				require.NotEqual(t, c.Level, c.Former)
				require.Equal(t, levels[k], c.Former)
				levels[k] = c.Level
				changes[k] = append(changes[k], c.At)
			})
		}
		require.NotEmpty(t, changes)
		for _, c := range changes {
			seldom(t, rule, c)
		}
	}
}
