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
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slots is a service of so many slots behind a Controller, on a clock of its own. Calls come, and
// take a slot, at even intervals; their priorities are drawn.
type slots struct {
	c       *Controller
	now     time.Duration
	service time.Duration
	free    []time.Duration // from when on
	runs    []ending
	waiting []*Waiter
	hang    int // so many of the next calls never end
	hung    []time.Duration

	came, admitted int
}

func newSlots(opts Options, n int, service time.Duration) *slots {
	return &slots{c: NewController(opts, 0), service: service, free: make([]time.Duration, n)}
}

func (s *slots) tell(d Decided) {
	for w := d.Next(); w != nil; w = d.Next() {
		if w.Verdict == Admitted {
			s.begin()
		}
	}
}

func (s *slots) begin() {
	s.admitted++
	if s.hang > 0 {
		s.hang--
		s.hung = append(s.hung, s.now)
		return
	}
	first := 0
	for i, at := range s.free {
		if at < s.free[first] {
			first = i
		}
	}
	s.free[first] = max(s.now, s.free[first]) + s.service
	s.runs = append(s.runs, ending{s.now, s.free[first]}) // in the order of their ends, as all take as long
}

func (s *slots) enter() {
	s.came++
	p := Priority(mix(uint64(s.came))) % Open
	v, told := s.c.Enter(p, s.now)
	s.tell(told)
	if v == Waits {
		w := &Waiter{}
		v, told = s.c.Queue(p, s.now, w)
		s.tell(told)
		if v == Waits {
			s.waiting = append(s.waiting, w)
		}
	}
	if v == Admitted {
		s.begin()
	}
	for len(s.waiting) > 0 && s.waiting[0].Until <= s.now {
		s.c.Expire(s.waiting[0])
		s.waiting = s.waiting[1:]
	}
}

// run goes on for so long, with so many times of what the slots can do, and returns what share of
// what they can do was done.
func (s *slots) run(d time.Duration, load float64) float64 {
	between := time.Duration(float64(s.service) / float64(len(s.free)) / load)
	s.admitted = 0
	for next, until := s.now+between, s.now+d; s.now < until; next += between {
		s.until(next)
		s.enter()
	}
	return float64(s.admitted) * s.service.Seconds() / float64(len(s.free)) / d.Seconds()
}

// until has calls end until then.
func (s *slots) until(then time.Duration) {
	for len(s.runs) > 0 && s.runs[0].at <= then {
		e := s.runs[0]
		s.runs = s.runs[1:]
		s.now = max(s.now, e.at)
		s.tell(s.c.Leave(s.now, s.now-e.began))
	}
	s.now = max(s.now, then)
}

// suspend is time in which nothing runs.
func (s *slots) suspend(d time.Duration) {
	s.now += d
	for i := range s.free {
		s.free[i] += d
	}
	for i := range s.runs {
		s.runs[i].at += d
	}
}

// release ends the calls that hang.
func (s *slots) release() {
	for _, began := range s.hung {
		s.tell(s.c.Leave(s.now, s.now-began))
	}
	s.hung = nil
}

// A process that was suspended took the time of the calls that ran for a latency: the limit
// rose to hundreds, or was not looked at for as long.
func TestRegression_ASuspendedProcess(t *testing.T) {
	for _, pause := range []time.Duration{11 * sec, 50 * sec, time.Hour, 1000 * time.Hour} {
		for _, load := range []float64{0.5, 0.9, 2} {
			s := newSlots(Options{}, 10, 40*ms)
			s.run(60*sec, load)
			limit, best := s.c.State().Limit, s.c.tuner.best
			s.suspend(pause)
			s.run(sec, load)
			require.Equal(t, limit, s.c.State().Limit)
			require.InDelta(t, best, s.c.tuner.best, 0.1*best)
			require.Less(t, s.c.tuner.drain, sec)
			require.Less(t, s.c.tuner.alone, 0.1)
			require.Less(t, s.c.tuner.usual, 0.1)
			done := s.run(30*sec, 2)
			require.Greater(t, done, 0.9, "%v at %v", pause, load)
			require.InDelta(t, 11, s.c.State().Limit, 4)
		}
	}
}

// Where the clock counts from does not matter, and neither does a call that takes less than no time.
func TestCallsOfAnyLength(t *testing.T) {
	for _, now := range []time.Duration{math.MinInt64, -time.Hour, 0, time.Hour} {
		c := NewController(Options{}, now)
		for i, ran := range []time.Duration{0, -1, math.MinInt64, tunerWaits, tunerWaits + 1, math.MaxInt64} {
			c.Enter(0, now)
			c.Leave(now, ran)
			f := c.seen.figures()
			require.EqualValues(t, min(i+1, 4), f.done, "of calls that take longer nothing is learnt")
			require.EqualValues(t, max(0, i-3), f.lateDone)
			require.GreaterOrEqual(t, f.ran, time.Duration(0))
		}
	}
	c := NewController(Options{}, 0)
	c.Enter(0, time.Hour) // which ends a window that nothing is known of
	c.Leave(time.Hour, time.Minute)
	require.EqualValues(t, 0, c.seen.figures().done)
	c.Enter(0, 0) // and the clock was ahead
	c.Enter(0, sec)
	c.Leave(sec, sec)
	require.EqualValues(t, 1, c.seen.figures().done)
}

// Calls that do not end held all places for good, and those that held half of them had the limit
// lowered to as many: nothing was done any more.
func TestRegression_CallsThatNeverEnd(t *testing.T) {
	for _, load := range []float64{0.5, 0.9, 2} {
		for _, n := range []int{3, 8, 16, 30} {
			s := newSlots(Options{}, 10, 40*ms)
			s.run(20*sec, load)
			s.hang = n
			s.run(8*time.Minute, load)
			done := s.run(30*sec, load)
			require.GreaterOrEqual(t, done, 0.85*min(1, load), "%d at %v", n, load)
			require.LessOrEqual(t, s.c.State().Limit, 20+n)

			s.release()
			s.run(sec, load)
			require.Zero(t, s.c.stuck.n, "they have ended")
			s.run(10*sec, load)
			require.LessOrEqual(t, s.c.State().Limit, 20)
			require.GreaterOrEqual(t, s.run(10*sec, load), 0.9*min(1, load))
		}
	}
}

// Where calls are rare all windows are long, and those that never end shut the service for good, too.
func TestRegression_RareCallsThatNeverEnd(t *testing.T) {
	s := newSlots(Options{Limit: 4}, 10, 40*ms)
	s.hang = 4
	for range 100 {
		s.run(15*sec, 40*ms.Seconds()/15/10)
	}
	require.Len(t, s.hung, 4)
	require.GreaterOrEqual(t, s.admitted, 1)
}

// One of a hundred calls never ends: there are more of them all the time, up to what is allowed.
func TestCallsThatNeverEndUpToTheLimit(t *testing.T) {
	s := newSlots(Options{MaxLimit: 100}, 10, 40*ms)
	for range 20 * 60 {
		s.hang = 1
		s.run(sec, 0.9)
		require.LessOrEqual(t, s.c.State().Running, 100)
	}
	require.Greater(t, len(s.hung), 90)
	s = newSlots(Options{Limit: 5, Fixed: true}, 10, 40*ms)
	s.hang = 5
	s.run(10*time.Minute, 1)
	require.Equal(t, 5, s.c.State().Limit, "as it was wished")
}

// Slow calls are no calls that never end.
func TestSlowCallsAreNotStuck(t *testing.T) {
	for _, service := range []time.Duration{ms, 40 * ms, sec, 5 * sec, 20 * sec} {
		for _, n := range []int{1, 10, 40} {
			if float64(n)/service.Seconds() > 300 {
				continue
			}
			for _, load := range []float64{0.3, 0.9, 2} {
				s := newSlots(Options{Limit: 2 * n}, n, service)
				for range 15 {
					s.run(10*sec, load)
					require.Zero(t, s.c.stuck.n, "%d slots of %v at %v", n, service, load)
				}
				s.suspend(time.Minute)
				for range 7 {
					s.run(10*sec, load)
					require.Zero(t, s.c.stuck.n, "%d slots of %v at %v", n, service, load)
				}
			}
		}
	}
}

// Calls that come in bursts seem to hold their places for longer than they do where all windows
// end within them.
func TestBurstsAreNotStuck(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 1))
	for _, burst := range []int{5, 20, 60} {
		for _, service := range []time.Duration{5 * ms, 150 * ms} {
			for _, every := range []time.Duration{100 * ms, 130 * ms, sec} {
				s := newSlots(Options{}, 10, service)
				for n := range int(3 * time.Minute / every) {
					at := time.Duration(n)*every + time.Duration(rnd.IntN(int(ms)))
					for range burst {
						at += time.Duration(rnd.IntN(int(100 * time.Microsecond)))
						s.until(at)
						s.enter()
					}
					require.Zero(t, s.c.stuck.n, "%d of %v each %v", burst, service, every)
				}
			}
		}
	}
}
