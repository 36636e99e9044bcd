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
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/overload"
)

// station is a service with so many workers and one queue, on a clock of its own. What is
// over the limit is refused.
type station struct {
	auto    *overload.Auto
	workers int
	mean    time.Duration
	rnd     *rand.Rand

	now      time.Duration
	limit    int64
	waiting  []time.Duration // when they came
	running  departures
	refused  bool
	nextTick time.Duration
}

type departure struct{ at, came time.Duration }

type departures []departure

func (d departures) Len() int           { return len(d) }
func (d departures) Less(i, j int) bool { return d[i].at < d[j].at }
func (d departures) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *departures) Push(x any)        { *d = append(*d, x.(departure)) }
func (d *departures) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

func newStation(seed uint64, floor, ceiling int64) *station {
	return &station{
		auto: overload.NewAuto(floor, ceiling, noon), workers: 30, mean: 40 * ms, rnd: rand.New(rand.NewPCG(seed, 3)),
		now: noon, limit: floor, nextTick: noon,
	}
}

func (s *station) start(came time.Duration) {
	heap.Push(&s.running, departure{s.now + time.Duration(s.rnd.ExpFloat64()*float64(s.mean)), came})
}

// measured is what came of a while.
type measured struct {
	offered, served, refused int
	took                     []time.Duration
	least, most              int64 // of the limit
}

func (m *measured) p99() time.Duration {
	slices.Sort(m.took)
	return m.took[len(m.took)*99/100]
}

// run offers rate calls a second by chance for a while.
func (s *station) run(rate float64, d time.Duration) measured {
	m := measured{least: 1 << 60}
	end := s.now + d
	next := s.now + time.Duration(s.rnd.ExpFloat64()/rate*float64(time.Second))
	for {
		at := min(next, s.nextTick)
		if len(s.running) > 0 {
			at = min(at, s.running[0].at)
		}
		if at >= end {
			s.now = end
			return m
		}
		s.now = at
		switch {
		case len(s.running) > 0 && s.running[0].at == at:
			done := heap.Pop(&s.running).(departure)
			s.auto.Observe(done.came, s.now-done.came)
			m.served++
			m.took = append(m.took, s.now-done.came)
			if len(s.waiting) > 0 {
				s.start(s.waiting[0])
				s.waiting = s.waiting[1:]
			}
		case s.nextTick == at:
			s.limit = s.auto.Tick(s.now, s.inflight(), s.refused)
			s.refused = false
			s.nextTick += 250 * ms
			m.least, m.most = min(m.least, s.limit), max(m.most, s.limit)
		default:
			next = s.now + time.Duration(s.rnd.ExpFloat64()/rate*float64(time.Second))
			m.offered++
			if s.inflight() >= s.limit {
				m.refused++
				s.refused = true
				continue
			}
			if len(s.running) < s.workers {
				s.start(s.now)
			} else {
				s.waiting = append(s.waiting, s.now)
			}
		}
	}
}

func (s *station) inflight() int64 { return int64(len(s.running) + len(s.waiting)) }

// seeds are how many runs by chance there are: nothing here runs at the same time as
// anything else, so the race detector has nothing to find.
func seeds() uint64 {
	if raceEnabled {
		return 1
	}
	return 5
}

// Under a lasting overload the limit settles: the capacity of 750 a second is used, and
// nobody waits for long. It neither drifts up nor sheds more and more.
func TestAutoUnderOverload(t *testing.T) {
	for seed := range seeds() {
		for _, times := range []float64{1.2, 2, 4, 10} {
			s := newStation(seed, 10, 10_000)
			s.run(times*750, 20*time.Second)
			for minute := range 5 {
				m := s.run(times*750, time.Minute)
				assert.Greater(t, m.served, 60*750*93/100, "%v times, seed %d, minute %d: %v", times, seed, minute, m.most)
				assert.Less(t, m.p99(), 400*ms, "%v times, seed %d, minute %d: limits %d to %d", times, seed, minute, m.least, m.most)
				assert.LessOrEqual(t, m.most, int64(90), "%v times, seed %d, minute %d", times, seed, minute)
			}
		}
	}
}

// With room there is nothing to refuse, from the first minute on.
func TestAutoWithRoom(t *testing.T) {
	for seed := range seeds() {
		for _, share := range []float64{0.05, 0.3, 0.6, 0.8} {
			s := newStation(seed, 10, 10_000)
			s.run(share*750, 10*time.Second)
			m := s.run(share*750, 5*time.Minute)
			assert.Less(t, float64(m.refused), 0.01*float64(m.offered), "%v, seed %d: limits %d to %d", share, seed, m.least, m.most)
		}
	}
}

// After the overload everything is as before.
func TestAutoRecovers(t *testing.T) {
	for seed := range seeds() {
		s := newStation(seed, 10, 10_000)
		s.run(0.5*750, time.Minute)
		s.run(4*750, 2*time.Minute)
		s.run(0.6*750, 2*time.Second)
		m := s.run(0.6*750, time.Minute)
		assert.Less(t, float64(m.refused), 0.005*float64(m.offered), "seed %d: limits %d to %d", seed, m.least, m.most)
	}
}

// A service that has become three times slower is not shed to nothing: it gets what it
// can do now.
func TestAutoFollowsTheService(t *testing.T) {
	for seed := range seeds() {
		for _, share := range []float64{0.8, 2} {
			s := newStation(seed, 5, 10_000)
			s.run(share*750, time.Minute)
			s.mean *= 3
			s.run(share*250, 2*time.Minute)
			m := s.run(share*250, 2*time.Minute)
			assert.Greater(t, float64(m.served), 0.93*min(share, 1)*250*120, "%v, seed %d: limits %d to %d", share, seed, m.least, m.most)
			s.mean /= 3
			s.run(share*750, time.Minute)
			m = s.run(share*750, time.Minute)
			assert.Greater(t, float64(m.served), 0.93*min(share, 1)*750*60, "%v, seed %d: limits %d to %d", share, seed, m.least, m.most)
		}
	}
}

func TestAutoBounds(t *testing.T) {
	s := newStation(1, 7, 20)
	m := s.run(7500, 2*time.Minute)
	assert.LessOrEqual(t, m.most, int64(20))
	s = newStation(1, 200, 400)
	m = s.run(7500, 2*time.Minute)
	assert.GreaterOrEqual(t, m.most, int64(200))
	a := overload.NewAuto(0, 0, noon)
	assert.EqualValues(t, 1, a.Tick(noon, 0, false))
	assert.Zero(t, a.Alone())
}
