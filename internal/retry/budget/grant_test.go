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

package budget_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/retry/budget"
)

const (
	ms    = time.Millisecond
	sec   = time.Second
	start = 1000 * time.Hour
)

var (
	refusals = budget.Policy{Scope: budget.Refusals, Ratio: 0.1}
	all      = budget.Policy{Scope: budget.All, Ratio: 0.1}

	failed      = budget.Try{}
	refused     = budget.Try{Refused: true}
	refusedFull = budget.Try{Refused: true, Full: true}
)

func TestGrants(t *testing.T) {
	type step struct {
		policy budget.Policy
		try    budget.Try
		at     time.Duration
		calls  int64
		ok     bool
		ends   string // refused, served or nothing
	}
	for name, steps := range map[string][]step{
		"a full service": {
			{refusals, refused, 0, 1, true, "refused"}, {refusals, refused, 0, 1, true, "refused"}, // 1.1 to begin with
			{refusals, refused, 0, 1, false, ""}, {refusals, refusedFull, 0, 9, false, ""},
			{refusals, refusedFull, 0, 20, true, "refused"}, // 1.1 + 1.9 - 2
			{refusals, refusedFull, 999 * ms, 20, false, ""}, {refusals, refused, 999 * ms, 20, true, ""},
		},
		"what is served costs nothing": {
			{refusals, refused, 0, 0, true, "served"}, {refusals, refused, 0, 0, true, "served"},
			{refusals, refusedFull, 0, 0, true, "served"}, {refusals, refusedFull, 0, 0, true, "served"},
			{refusals, refusedFull, 0, 0, true, ""}, {refusals, refusedFull, 0, 0, false, ""},
		},
		"what failed is not a budget's for refusals": {
			{refusals, refusedFull, 0, 0, true, "refused"}, {refusals, refusedFull, 0, 0, false, ""},
			{refusals, failed, 0, 0, true, "refused"}, {refusals, failed, 0, 0, true, "served"}, {refusals, budget.Try{Full: true}, 0, 0, true, ""},
			{refusals, refusedFull, 0, 0, false, ""},
		},
		"all": {
			{all, failed, 0, 0, true, "served"}, {all, failed, 0, 0, false, ""}, {all, refused, 0, 9, false, ""},
			{all, refusedFull, 0, 10, true, "served"}, {all, failed, 0, 19, false, ""}, {all, refused, 0, 20, true, "refused"},
			{all, failed, 999 * ms, 20, false, ""}, {all, failed, sec, 20, false, ""}, // more than the floor came of calls
			{all, failed, 2 * sec, 20, true, ""}, {all, failed, 2 * sec, 20, false, ""},
		},
		"from one to the other": {
			{refusals, refused, 0, 0, true, "refused"}, {all, failed, 0, 0, false, ""}, {all, failed, sec, 0, true, "refused"},
			{refusals, failed, sec, 0, true, ""}, {refusals, refused, sec, 0, false, ""},
		},
		"a clock that jumps back": {
			{all, failed, 0, 0, true, ""}, {all, failed, -time.Hour, 0, false, ""}, {all, failed, -time.Hour, 10, true, ""},
			{all, failed, sec - time.Hour, 10, false, ""}, {all, failed, 2*sec - time.Hour, 10, true, ""}, // the floor begins anew
		},
		"a clock that is behind": {
			{all, failed, 0, 0, true, ""}, {all, failed, -9 * sec, 0, false, ""}, {all, failed, 999 * ms, 0, false, ""}, {all, failed, sec, 0, true, ""},
			{all, failed, -9 * sec, 0, false, ""}, {all, failed, -9 * sec, 10, true, ""}, {all, failed, sec, 10, false, ""},
		},
	} {
		var b budget.Budget
		for n, s := range steps {
			g, ok := b.Ask(s.policy, s.try, start+s.at, s.calls)
			require.Equal(t, s.ok, ok, "%s, step %d", name, n)
			if s.ends != "" {
				b.End(g, s.ends == "refused")
			}
		}
	}
}

func TestADebtIsForgivenOnceASecond(t *testing.T) {
	var b budget.Budget
	owe := func() {
		var grants []budget.Grant
		for range 30 {
			g, ok := b.Ask(refusals, refused, start, 0)
			require.True(t, ok)
			grants = append(grants, g)
		}
		for _, g := range grants {
			b.End(g, true)
		}
		_, ok := b.Ask(refusals, refused, start, 0)
		require.False(t, ok)
	}
	b.Forgive(refusals, start) // there is no debt
	owe()
	b.Forgive(all, start)
	_, ok := b.Ask(refusals, refused, start, 0)
	require.False(t, ok, "in scope all there are no debts")
	b.Forgive(refusals, start)
	owe()
	b.Forgive(refusals, start+999*ms)
	_, ok = b.Ask(refusals, refused, start+999*ms, 0)
	require.False(t, ok)
	b.Forgive(refusals, start+sec)
	_, ok = b.Ask(refusals, refusedFull, start+sec, 0)
	require.True(t, ok)
}

// Quiet services get tries too, and quiet times do not save up without a bound.
func TestFloorAndBurst(t *testing.T) {
	var b budget.Budget
	granted := 0
	for at := start; at <= start+100*sec; at += 100 * ms {
		if _, ok := b.Ask(all, failed, at, 0); ok {
			granted++
		}
	}
	assert.Equal(t, 101, granted)
	granted = 0
	for range 1000 {
		if _, ok := b.Ask(all, failed, start+time.Hour, 1_000_000); ok {
			granted++
		}
	}
	assert.Equal(t, int(budget.Burst), granted)
}

// Over any time not more tries are granted than calls and seconds bring and quiet
// times have saved up: in scope all whatever they come to, for refusals those that are
// refused too, and as many as are under way while nobody knows that.
func TestGrantsAreBounded(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		p := all
		if seed%2 == 1 {
			p = refusals
		}
		p.Ratio = []float64{0, 0.01, 0.1, 0.5, 1}[rnd.IntN(5)]
		most := rnd.IntN(5)
		var (
			b          budget.Budget
			calls      int64
			granted    float64
			under      []budget.Grant
			now        = start
			least      float64 // of what was granted beyond what was due, at any time before
			begun      = false
			pace, lull = time.Duration(1 + rnd.Int64N(int64(200*ms))), 1 + rnd.IntN(50)
		)
		for range 1500 {
			switch {
			case rnd.IntN(lull*20) == 0:
				now += time.Duration(rnd.Int64N(int64(20 * sec)))
			default:
				now += time.Duration(rnd.Int64N(int64(pace)))
			}
			calls += int64(rnd.IntN(3) * rnd.IntN(lull))
			beyond := func() float64 {
				return granted - p.Ratio*float64(calls) - budget.FloorPerSecond*(now-start).Seconds()
			}
			if !begun {
				least, begun = beyond(), true
			}
			least = min(least, beyond())
			for range rnd.IntN(4) {
				try := refused
				try.Full = rnd.IntN(2) == 0
				if p.Scope == budget.All {
					try.Refused = rnd.IntN(2) == 0
				}
				g, ok := b.Ask(p, try, now, calls-int64(rnd.IntN(2)))
				if !ok {
					continue
				}
				granted++
				if under = append(under, g); len(under) > most {
					b.End(under[0], p.Scope == budget.Refusals || rnd.IntN(2) == 0)
					under = under[1:]
				}
			}
			bound := budget.Burst + budget.FloorPerSecond + 1e-6
			if p.Scope == budget.Refusals {
				bound += float64(most) + 1
			}
			if got := beyond() - least; got > bound {
				t.Fatalf("seed %d, scope %d, ratio %v: %v too many", seed, p.Scope, p.Ratio, got)
			}
		}
	}
}

// Goroutines that have read the clock may be overtaken by all others, so it runs for no longer than
// a budget takes for such a delay, and not for a clock that went back.
func TestStorm(t *testing.T) {
	const step, most = ms / 10, 2 // 1.6 s in all
	var b budget.Budget
	var calls, granted, clock atomic.Int64
	clock.Store(int64(start))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 2000 {
				now := time.Duration(clock.Add(int64(step)))
				g, ok := b.Ask(all, budget.Try{Refused: n%2 == 0}, now, calls.Add(1))
				if ok {
					granted.Add(1)
					b.End(g, n%3 == 0)
				}
				b.Forgive(all, now)
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, float64(granted.Load()), 0.1*16_000+budget.FloorPerSecond*(most+1)+budget.Burst)
	assert.GreaterOrEqual(t, float64(granted.Load()), 0.1*16_000-budget.Burst)
}

func BenchmarkBudget(b *testing.B) {
	for name, tt := range map[string]struct {
		policy budget.Policy
		try    budget.Try
		each   int64 // calls that come between
	}{
		"granted": {all, failed, 10}, "denied": {all, failed, 0}, "free": {refusals, refused, 10}, "not-asked": {refusals, failed, 0},
	} {
		b.Run(name, func(b *testing.B) {
			var bu budget.Budget
			calls := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				calls += tt.each
				if g, ok := bu.Ask(tt.policy, tt.try, start, calls); ok {
					bu.End(g, false)
				}
			}
		})
	}
}

// BenchmarkBudgetParallel is what calls pay that fail all together.
func BenchmarkBudgetParallel(b *testing.B) {
	var bu budget.Budget
	b.RunParallel(func(pb *testing.PB) {
		for calls := int64(0); pb.Next(); calls++ {
			bu.Ask(all, failed, start, calls)
		}
	})
}
