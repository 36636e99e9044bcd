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

package dagor

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every other look found no waiting with one call, took two, and found waiting: a service that does one
// thing at a time had two at once for half of the time, and at times four.
func TestRegression_OneCallIsEnough(t *testing.T) {
	for _, service := range []time.Duration{4 * ms, 40 * ms} {
		for _, load := range []float64{1.4, 4} {
			mean := 0.0
			for seed := range uint64(6) {
				m := newModel(1, 1, service, load)
				m.rnd = rand.New(rand.NewPCG(seed, 16))
				m.constant = seed >= 4
				m.run(2 * time.Minute)
				mean += m.mean(time.Minute) / 6
			}
			require.Less(t, mean, 1.3, "%v at %v", service, load)
		}
	}
	// And yet it looks.
	m := newModel(1, 1, 4*ms, 4)
	m.run(5 * time.Minute)
	m.slots, m.free = 10, make([]time.Duration, 10)
	m.run(2 * time.Minute)
	require.InDelta(t, 1.1, m.mean(30*sec)/10, 0.2)
}

// The CPU was others' for a while, and there was little to do: the limit fell to one, and when there was
// more to do most of it was refused for half a minute.
func TestRegression_TheCPUWasOthers(t *testing.T) {
	for _, known := range []time.Duration{0, -1} {
		m := newModel(16, 10, 40*ms, 0.1)
		m.run(20 * sec)
		limit := m.t.limit
		m.delay = 50 * ms
		m.run(10 * sec)
		require.LessOrEqual(t, m.t.limit, 2, "who knows whose it is")
		m.delay = known
		m.run(2 * sec)
		require.Equal(t, limit, m.t.limit)
		m.load, m.came, m.refused = 0.8, 0, 0
		m.run(10 * sec)
		require.Less(t, float64(m.refused), 0.05*float64(m.came))
	}
	// One that is late from a limit on is not led there again and again.
	m := newModel(400, 100, 40*ms, 0.5)
	m.run(20 * sec)
	m.delay = 50 * ms
	m.run(300 * ms)
	m.delay, m.load = 0, 4
	late := 0
	for range 600 {
		m.run(100 * ms)
		if m.delay = 0; m.limits[len(m.limits)-1] > 150 {
			m.delay = 50 * ms
			late++
		}
	}
	require.Less(t, late, 20)
	require.InDelta(t, 1.1, m.mean(10*sec)/100, 0.3)
}
