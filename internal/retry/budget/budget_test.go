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

package budget

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Once: calls are counted without the budget's lock, so a count may come after a
// larger one. It was taken for calls that had not been, and where the budget was
// full, so that what the larger one had brought was cut off, it ended up in debt:
// with one full instance of two some calls of a burst were refused.
func TestRegression_CountsThatComeLate(t *testing.T) {
	var b Budget
	solvent := func(now time.Duration, calls int64) bool {
		_, ok := b.Ask(Policy{Ratio: 0.1}, Try{Refused: true}, now, calls)
		return ok
	}
	require.True(t, solvent(1, 1))
	require.True(t, solvent(2, 300))
	for _, late := range []int64{50, 1, 299, 0} {
		require.True(t, solvent(3, late), "%d calls", late)
	}
	require.InDelta(t, Burst, b.tokens, 0)
	require.EqualValues(t, 300, b.calls)
}

// Once: the clock jumped back, and until it was where it had been nobody got a try who had no
// calls; a debt was not forgiven.
func TestRegression_AClockThatJumpsBack(t *testing.T) {
	var b Budget
	quiet := Policy{Scope: All}
	_, ok := b.Ask(quiet, Try{}, time.Hour, 0)
	require.True(t, ok)
	for now := time.Second; now < 10*time.Second; now += time.Second {
		_, ok = b.Ask(quiet, Try{}, now, 0)
		require.Equal(t, now > time.Second, ok)
	}
	b.tokens = -Burst
	b.Forgive(Policy{}, 10*time.Second)
	require.InDelta(t, FloorPerSecond, b.tokens, 0)
}

// A ratio that is none is none: one that is no number granted all tries from then on.
func TestRegression_RatiosThatAreNone(t *testing.T) {
	for _, ratio := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		var b Budget
		granted := 0
		for range 100 {
			if _, ok := b.Ask(Policy{Scope: All, Ratio: ratio}, Try{}, 0, 0); ok {
				granted++
			}
		}
		require.Equal(t, 1, granted, "%v", ratio)
		_, ok := b.Ask(Policy{Scope: All, Ratio: ratio}, Try{}, 0, 1)
		require.Equal(t, ratio > 0, ok)
		require.False(t, math.IsNaN(b.tokens))
		_, ok = b.Ask(Policy{Scope: All, Ratio: 0.5}, Try{}, 10*time.Second, 10)
		require.True(t, ok)
	}
}

// What is known to be dry would be denied at the lock, too.
func TestDryIsWhatTheLockSays(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 21))
		var (
			b, slow Budget
			calls   int64
			now     time.Duration
			known   int
			p       = Policy{All, []float64{0, 0.125, 0.5}[rnd.IntN(3)]} // no sum of which is rounded
		)
		for range 3000 {
			now += time.Duration(rnd.IntN(int(30 * time.Millisecond)))
			calls += int64(rnd.IntN(2))
			at, n := now, calls
			switch rnd.IntN(50) {
			case 0:
				n -= rnd.Int64N(20)
			case 1:
				at -= time.Duration(rnd.IntN(int(3 * time.Second)))
			}
			if b.isDry(p, at, n) {
				known++
			}
			slow.dry.calls.Store(0)
			_, ok := b.Ask(p, Try{}, at, n)
			_, want := slow.Ask(p, Try{}, at, n)
			require.Equal(t, want, ok, "seed %d", seed)
		}
		require.NotZero(t, known)
	}
}

// What brings a try other than calls and time is seen at once by those who ask in vain.
func TestADryBudgetThatGetsATry(t *testing.T) {
	var b Budget
	all, full := Policy{All, 0.1}, Try{Refused: true, Full: true}
	ask := func(p Policy) bool {
		_, ok := b.Ask(p, full, 0, 0)
		return ok
	}
	g, ok := b.Ask(Policy{Refusals, 0.1}, full, 0, 0)
	require.True(t, ok)
	require.False(t, ask(all))
	require.False(t, ask(all))
	b.End(g, false)
	require.True(t, ask(all), "one is given back")
	require.False(t, ask(all))
	b.Forgive(Policy{Refusals, 0.1}, 0)
	require.True(t, ask(all), "a debt is forgiven")
	require.False(t, ask(all))
	_, ok = b.Ask(Policy{All, 1}, full, 0, 1)
	require.True(t, ok, "another policy")
}
