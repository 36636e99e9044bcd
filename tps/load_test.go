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
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// together calls do in 64 goroutines on 16 threads and returns the decisions that
// admitted a call, in the order of their times.
func together(calls int, do func() Decision) []Decision {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const goroutines = 64
	var (
		wg       sync.WaitGroup
		start    = make(chan struct{})
		admitted [goroutines][]Decision
	)
	for g := range goroutines {
		wg.Go(func() {
			<-start
			for range calls {
				if d := do(); d.Admitted {
					admitted[g] = append(admitted[g], d)
				}
			}
		})
	}
	close(start)
	wg.Wait()
	all := slices.Concat(admitted[:]...)
	slices.SortFunc(all, func(a, b Decision) int { return int(a.At - b.At) })
	return all
}

// virtual is a clock that goes on by a tick with each reading, and lets others
// run between the reading and what is done with it: 63 others may be further by
// then.
type virtual struct {
	now  atomic.Int64
	tick time.Duration
}

func (v *virtual) read() time.Duration {
	now := time.Duration(v.now.Add(int64(v.tick)))
	if (now/v.tick)%7 == 0 {
		runtime.Gosched()
	}
	return now
}

func times(ds []Decision) []time.Duration {
	at := make([]time.Duration, len(ds))
	for i, d := range ds {
		at[i] = d.At
	}
	return at
}

// T3, L5: 50 goroutines of 10,000 calls in Java; 64 of 2,000 here.
func TestConcurrency(t *testing.T) {
	for _, a := range algorithms {
		l := a.must(Quota{Rate: 100, Interval: 100 * time.Second}, func() time.Duration { return 0 })
		assert.Len(t, together(2000, l.Allow), 100, a.name)
		assert.Zero(t, l.Stats(0).Left, a.name)
	}
}

// H2: 64 goroutines at the edge of a window, again and again.
func TestRegression_WindowEdge(t *testing.T) {
	const rate = 5
	l, err := NewFixed(Quota{Rate: rate, Interval: time.Second}, nil)
	require.NoError(t, err)
	now := time.Duration(0)
	for range 100 {
		// The window before is not used up: what is left of it must not pass after its end.
		require.True(t, l.AllowAt(now).Admitted)
		now += time.Second + 1
		require.Len(t, together(3, func() Decision { return l.AllowAt(now) }), rate)
		now += time.Second + 1
	}
}

// The same with two goroutines that meet right at the edge.
func TestTwoAtTheWindowEdge(t *testing.T) {
	const rate, edges, goroutines = 5, 50_000, 2
	l, err := NewFixed(Quota{Rate: rate, Interval: time.Second}, nil)
	require.NoError(t, err)
	var (
		wg         sync.WaitGroup
		edge, here atomic.Int64
		admitted   [edges]atomic.Int64
	)
	for g := range goroutines {
		wg.Go(func() {
			for i := range int64(edges) {
				if here.Add(1) == goroutines*(2*i+1) {
					l.AllowAt(time.Duration(2*i) * (time.Second + 1))
					edge.Add(1)
				}
				for spins := 0; edge.Load() <= i; spins++ {
					if spins > 100 {
						runtime.Gosched()
					}
				}
				for range i % 64 { // both at all distances
					if g == 0 {
						edge.Load()
					}
				}
				for range rate {
					if l.AllowAt(time.Duration(2*i+1) * (time.Second + 1)).Admitted {
						admitted[i].Add(1)
					}
				}
				// Whoever is further begins no window while the other is still here.
				here.Add(1)
				for here.Load() < 2*goroutines*(i+1) {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	for i := range admitted {
		require.EqualValues(t, rate, admitted[i].Load(), "edge %d", i)
	}
}

// Calls come 20 times as fast as the limit lets pass: each reading of the clock
// is one, and goroutines are overtaken between it and the decision.
// Never more than the limit, and not less than 99 % of it.
func TestStarvedBetweenClockAndDecision(t *testing.T) {
	for _, q := range []Quota{
		{Rate: 500, Interval: 20 * ms},
		{Rate: 5000, Interval: 200 * ms},
	} {
		for _, a := range algorithms {
			clock := &virtual{tick: 2 * time.Microsecond}
			l := a.must(q, clock.read)
			admitted := together(8*int(q.Rate)/5, l.Allow)
			elapsed := time.Duration(clock.now.Load())
			due := float64(q.Rate) * float64(elapsed) / float64(q.Interval)
			require.Greater(t, float64(len(admitted)), 0.99*due, "%s %+v", a.name, q)
			switch a.name {
			case "sliding":
				requireNeverMore(t, times(admitted), int(q.Rate), q.Interval)
			case "fixed":
				requireWindows(t, admitted, q, elapsed)
			case "bucket":
				// Each call takes 1; between any two, no more than the burst and what came.
				requireNeverMoreThanBurst(t, times(admitted), q)
			}
		}
	}
}

// requireWindows checks that each window has its calls, and that no more of them
// have begun up to the end than there is time for.
func requireWindows(t *testing.T, ds []Decision, q Quota, end time.Duration) {
	t.Helper()
	calls := map[int64]int64{}
	for _, d := range ds {
		calls[d.value]++
	}
	for number, n := range calls {
		require.LessOrEqual(t, n, q.Rate, "window %d", number)
	}
	require.LessOrEqual(t, len(calls), int(end/q.Interval)+1)
}

// requireNeverMoreThanBurst checks the bucket's rule for all pairs of calls.
func requireNeverMoreThanBurst(t *testing.T, at []time.Duration, q Quota) {
	t.Helper()
	burst := q.Burst
	if burst == 0 {
		burst = q.Rate
	}
	one := float64(q.Interval) / float64(q.Rate)
	// Calls i to j are at most burst + (at[j]-at[i])/one: with excess(i) = i - at[i]/one
	// no excess is higher than an earlier one by more than burst - 1. A unit is up to 2 ns.
	lowest := 0.0
	for i, now := range at {
		excess := float64(i) - float64(now)/one
		if i == 0 || excess < lowest {
			lowest = excess
		}
		if excess-lowest > float64(burst)-1+2/one+1e-6 {
			t.Fatalf("call %d at %v: %v more than came since the lowest", i, now, excess-lowest)
		}
	}
}

// Calls that are refused further down give back what they took, and the limit
// holds for the others.
func TestGiveBackUnderLoad(t *testing.T) {
	q := Quota{Rate: 200, Interval: 20 * ms}
	for _, a := range algorithms {
		clock := &virtual{tick: 4 * time.Microsecond}
		l := a.must(q, clock.read)
		var n atomic.Int64
		kept := together(1000, func() Decision {
			d := l.Allow()
			if d.Admitted && n.Add(1)%3 == 0 {
				runtime.Gosched()
				l.GiveBack(d)
				return Decision{}
			}
			return d
		})
		elapsed := time.Duration(clock.now.Load())
		due := float64(q.Rate) * float64(elapsed) / float64(q.Interval)
		switch a.name {
		case "sliding":
			requireNeverMore(t, times(kept), int(q.Rate), q.Interval)
		case "fixed":
			requireWindows(t, kept, q, elapsed)
		case "bucket":
			requireNeverMoreThanBurst(t, times(kept), q)
		}
		// What a goroutine that is not running holds meanwhile, nobody else can have.
		assert.Greater(t, float64(len(kept)), 0.9*due, a.name)
	}
}

// Updates while calls arrive: what was taken stays taken, and nobody waits for ever.
func TestUpdateUnderLoad(t *testing.T) {
	const rate = 50_000
	for _, a := range algorithms {
		l := a.must(Quota{Rate: rate, Interval: time.Hour}, func() time.Duration { return 0 })
		var n atomic.Int64
		admitted := together(1200, func() Decision {
			if i := n.Add(1); i%20 == 0 {
				if err := l.Update(Quota{Rate: rate, Interval: time.Hour + time.Duration(i)}); err != nil {
					panic(err)
				}
			}
			return l.Allow()
		})
		if a.name == "fixed" {
			continue // each begins anew
		}
		assert.Len(t, admitted, rate, a.name)
	}
}

// On the clock of the machine, as a filter would call it. How many pass is the
// machine's business; more than the limit never do.
func TestRealClock(t *testing.T) {
	q := Quota{Rate: 100, Interval: 5 * ms}
	for _, a := range algorithms {
		clock := monotonic()
		l := a.must(q, clock)
		admitted := together(5000, l.Allow)
		switch a.name {
		case "sliding":
			requireNeverMore(t, times(admitted), int(q.Rate), q.Interval)
		case "fixed":
			requireWindows(t, admitted, q, clock())
		case "bucket":
			requireNeverMoreThanBurst(t, times(admitted), q)
		}
	}
}
