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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var fixed = algorithms[0]

func TestFixedSteps(t *testing.T) {
	for name, c := range map[string]struct {
		quota Quota
		steps []step
	}{
		"the window begins with the first call": {Quota{Rate: 2, Interval: 100 * ms}, []step{
			{at: 70 * ms, do: "allow", n: 1, ok: 1, left: 1},
			{at: 170 * ms, do: "allow", n: 2, ok: 1, left: 0, wait: 1}, // at exactly the interval it still holds
			{at: 170*ms + 1, do: "look", left: 2},
			{at: 170*ms + 1, do: "allow", n: 3, ok: 2, left: 0, wait: 100*ms + 1},
			{at: 200 * ms, do: "allow", n: 1, left: 0, wait: 70*ms + 2},
			{at: 271 * ms, do: "allow", n: 3, ok: 2, left: 0, wait: 100*ms + 1},
			{at: 900 * ms, do: "allow", n: 3, ok: 2, left: 0, wait: 100*ms + 1}, // begins there and not on a grid
		}},
		"twice the rate around an edge": {Quota{Rate: 5, Interval: 100 * ms}, []step{
			{at: 0, do: "allow", n: 1, ok: 1, left: 4},
			{at: 99 * ms, do: "allow", n: 9, ok: 4, left: 0, wait: ms + 1},
			{at: 101 * ms, do: "allow", n: 9, ok: 5, left: 0, wait: 100*ms + 1},
		}},
		"given back in its window, not after it": {Quota{Rate: 2, Interval: 100 * ms}, []step{
			{at: 0, do: "allow", n: 2, ok: 2, left: 0, wait: 100*ms + 1},
			{at: 100 * ms, do: "first", n: 1, left: 1},
			{at: 101 * ms, do: "allow", n: 2, ok: 2, left: 0, wait: 100*ms + 1},
			{at: 101 * ms, do: "first", n: 1, left: 0, wait: 100*ms + 1},
			{at: 101 * ms, do: "first", n: 1, left: 1},
		}},
		"updates begin anew": {Quota{Rate: 2, Interval: 100 * ms}, []step{
			{at: 0, do: "allow", n: 3, ok: 2, left: 0, wait: 100*ms + 1},
			{at: 10 * ms, do: "quota", q: Quota{Rate: 2, Interval: 100 * ms, Burst: 7}, left: 0, wait: 90*ms + 1}, // nothing new
			{at: 10 * ms, do: "quota", q: Quota{Rate: 20, Interval: 100 * ms}, left: 20},
			{at: 10 * ms, do: "first", n: 1, left: 20},
			{at: 20 * ms, do: "allow", n: 30, ok: 20, left: 0, wait: 100*ms + 1},
			{at: 20 * ms, do: "first", n: 1, left: 0, wait: 100*ms + 1}, // of the old quota
			{at: 30 * ms, do: "quota", q: Quota{Rate: 1, Interval: 50 * ms}, left: 1},
			{at: 30 * ms, do: "allow", n: 30, ok: 1, left: 0, wait: 50*ms + 1},
			{at: 81 * ms, do: "allow", n: 30, ok: 1, left: 0, wait: 50*ms + 1},
			{at: 90 * ms, do: "quota", q: Quota{Rate: 1, Interval: time.Hour}, left: 1},
		}},
	} {
		t.Run(name, func(t *testing.T) { run(t, fixed, c.quota, c.steps) })
	}
}

// T1 testIsAllowable, with its sleep of 1,100 ms.
func TestStatItemIsAllowable(t *testing.T) {
	l, err := NewFixed(Quota{Rate: 5, Interval: time.Second}, nil)
	require.NoError(t, err)
	require.True(t, l.AllowAt(0).Admitted)
	reset := l.win.Load().start.Load()
	require.True(t, l.AllowAt(1100*ms).Admitted)
	assert.NotEqual(t, reset, l.win.Load().start.Load())
	assert.EqualValues(t, 4, l.Stats(1100*ms).Left)
}

// T2 testAccuracy.
func TestStatItemAccuracy(t *testing.T) {
	run(t, fixed, Quota{Rate: 5, Interval: time.Minute}, []step{
		{do: "allow", n: 5, ok: 5, left: 0, wait: time.Minute + 1},
		{do: "allow", n: 1, ok: 0, left: 0, wait: time.Minute + 1},
	})
}

// H24: one more than the rate passed per window.
func TestRegression_NotOneMorePerWindow(t *testing.T) {
	run(t, fixed, Quota{Rate: 3, Interval: time.Second}, []step{
		{at: 0, do: "allow", n: 10, ok: 3, left: 0, wait: time.Second + 1},
		{at: time.Second + 1, do: "allow", n: 10, ok: 3, left: 0, wait: time.Second + 1},
	})
}

// The number of windows does not fit its bits for ever.
func TestFixedNumberWraps(t *testing.T) {
	l, err := NewFixed(Quota{Rate: 2, Interval: time.Second}, nil)
	require.NoError(t, err)
	const lastWindow = (1<<24 - 1) << usedBits
	l.win.Load().word.Store(lastWindow)
	first := l.AllowAt(1)
	require.True(t, first.Admitted)
	assert.Zero(t, first.value)
	require.True(t, l.AllowAt(1).Admitted)
	require.False(t, l.AllowAt(1).Admitted)
	l.GiveBack(first)
	require.True(t, l.AllowAt(1).Admitted)
	require.False(t, l.AllowAt(1).Admitted)

	l.win.Load().word.Store(lastWindow)
	require.NoError(t, l.Update(Quota{Rate: 1, Interval: time.Second}))
	require.True(t, l.AllowAt(1).Admitted)
	require.False(t, l.AllowAt(1).Admitted)
}

// Two calls see that the window is over, and one of them begins the next.
func TestFixedBeginsAWindowOnce(t *testing.T) {
	l, err := NewFixed(Quota{Rate: 1, Interval: time.Second}, nil)
	require.NoError(t, err)
	w := l.win.Load()
	require.True(t, l.begin(w, time.Second).Admitted)
	assert.False(t, l.begin(w, time.Second).Admitted)
	assert.False(t, l.begin(w, 2*time.Second).Admitted)
	require.NoError(t, l.Update(Quota{Rate: 2, Interval: time.Second}))
	assert.False(t, l.begin(w, time.Hour).Admitted, "of the old quota")
}
