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

	"github.com/stretchr/testify/require"
)

var tenSeconds = Warming{Time: 10 * time.Second, Factor: 3}

// A limit whose tokens are at the warning line to the last one cools like any other.
func TestHeatCoolsFromTheLine(t *testing.T) {
	h := newHeat(Quota{Rate: 100, Interval: time.Second}, tenSeconds)
	h.stored = h.warning
	h.pass(3600, 0)
	require.Equal(t, h.most, h.stored)
}

// A step that is as long as a call takes at the cold rate is no shorter than that
// for being cut to whole nanoseconds: one in every second of them is less.
func TestHeatStaysColdBelowTheColdRate(t *testing.T) {
	for _, factor := range []float64{1.1, 2.7, 3, 3.3, 7, 9.9, 11, 13, 49, 77.7} {
		h := newHeat(Quota{Rate: 1, Interval: time.Second}, Warming{Time: 100 * time.Second, Factor: factor})
		for range 1000 {
			h.pass(2, 1)
		}
		require.Greater(t, h.stored, h.warning, "%v", factor)
	}
}

// What is warm stays so whatever the time and the factor become, and what is cold
// stays cold.
func TestHeatIsKept(t *testing.T) {
	q := Quota{Rate: 100, Interval: time.Second}
	for _, from := range []float64{1.1, 2, 3, 100} {
		for _, to := range []float64{1.1, 2, 3, 100} {
			old := newHeat(q, Warming{Time: 10 * time.Second, Factor: from})
			next := newHeat(q, Warming{Time: 20 * time.Second, Factor: to})
			require.InDelta(t, next.cold, rateOf(next.like(old)), 1e-6, "%v %v", from, to)
			old.stored = old.warning
			require.InDelta(t, 100.0, rateOf(next.like(old)), 1e-6, "%v %v", from, to)
			old.stored = 0
			require.Zero(t, next.like(old).stored)
		}
	}
}

func rateOf(h heat) float64 { return h.now() }
