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

package overload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/overload"
)

// A service whose calls take seconds gets what it can do, from the start on as well as
// when it has become so slow.
func TestAutoOfSlowCalls(t *testing.T) {
	for seed := range uint64(8) {
		s := newStation(seed, 5, 1000)
		s.mean = 300 * ms // 100 a second
		s.run(200, 3*time.Minute)
		s.mean = 3 * time.Second // 10 a second
		s.run(20, 10*time.Minute)
		m := s.run(20, 20*time.Minute)
		assert.Greater(t, m.served, 10*1200*3/4, "seed %d: limits %d to %d", seed, m.least, m.most)
	}
	for _, mean := range []time.Duration{300 * ms, time.Second, 3 * time.Second, 10 * time.Second} {
		for seed := range uint64(4) {
			s := newStation(seed, 5, 1000)
			s.mean = mean
			could := float64(s.workers) / mean.Seconds()
			s.run(2*could, 500*mean)
			m := s.run(2*could, 1000*mean)
			assert.Greater(t, float64(m.served), could*1000*mean.Seconds()*3/4, "%v, seed %d: limits %d to %d", mean, seed, m.least, m.most)
			assert.Less(t, m.p99(), 12*mean, "%v, seed %d: limits %d to %d", mean, seed, m.least, m.most)
		}
	}
}

// Where there is nothing to find nothing is measured.
func TestAutoOfOneLimit(t *testing.T) {
	s := newStation(1, 30, 30)
	m := s.run(7500, 2*time.Minute)
	assert.EqualValues(t, 30, m.least)
	assert.EqualValues(t, 30, m.most)
}

// Calls that were refused while too few had ended to judge by them count when enough have.
func TestAutoRemembersRefusals(t *testing.T) {
	a := overload.NewAuto(10, 100, noon)
	now := noon
	end := func(n int) {
		for range n {
			a.Observe(now, 10*ms)
		}
	}
	end(10)
	now += 250 * ms
	assert.EqualValues(t, 10, a.Tick(now, 0, true))
	end(10)
	now += 250 * ms
	assert.EqualValues(t, 20, a.Tick(now, 0, false), "the limit was too low")
}
