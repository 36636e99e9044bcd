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
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// model is a service of so many slots, in front of which a tuner lets so many calls run as it
// says. It knows no clock: a window is a number of ends of calls.
type model struct {
	t          tuner
	rnd        *rand.Rand
	slots      int
	service    time.Duration // in the mean
	constant   bool          // each call takes the mean
	downstream time.Duration // that each waits for after that, without a slot
	load       float64       // of what saturates; from 2 on the queue is never empty
	sees       bool          // the scheduler's latency tells of the wait for a slot

	now, due time.Duration // due: of the next call where the queue may be empty
	free     []time.Duration
	ends     []ending // a heap
	waiting  int
	delay    time.Duration
	limits   []float64 // of each window

	came, refused int64
}

type ending struct{ began, at time.Duration }

func newModel(limit, slots int, service time.Duration, load float64) *model {
	m := &model{rnd: rand.New(rand.NewPCG(15, uint64(slots))), slots: slots, service: service, load: load, free: make([]time.Duration, slots), delay: -1}
	m.t = newTuner(Options{Limit: limit}.withDefaults())
	return m
}

func (m *model) exp(mean time.Duration) time.Duration {
	return time.Duration(m.rnd.ExpFloat64() * float64(mean))
}

// begin has a call run from now on. It comes to the slot that is free first.
func (m *model) begin(waited *time.Duration) {
	took := m.service
	if !m.constant {
		took = m.exp(m.service)
	}
	first := 0
	for i, at := range m.free {
		if at < m.free[first] {
			first = i
		}
		if at <= m.now {
			first = i
			break
		}
	}
	starts := max(m.now, m.free[first])
	*waited += starts - m.now
	m.free[first] = starts + took
	m.push(ending{m.now, starts + took + m.downstream})
}

func (m *model) push(e ending) {
	h := append(m.ends, e)
	for i := len(h) - 1; i > 0 && h[i].at < h[(i-1)/2].at; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
	m.ends = h
}

func (m *model) pop() ending {
	h := m.ends
	e, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < last && h[c+1].at < h[c].at {
			c++
		}
		if c >= last || h[i].at <= h[c].at {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	m.ends = h
	return e
}

// run goes on for so long.
func (m *model) run(d time.Duration) {
	limit := m.t.limit
	if n := len(m.limits); n > 0 {
		limit = int(m.limits[n-1])
	}
	rate := m.load * float64(m.slots) / m.service.Seconds()
	for until := m.now + d; m.now < until; {
		end := m.now + m.t.opts.Window
		var (
			f       figures
			waited  time.Duration
			begun   int
			between = time.Duration(float64(time.Second) / rate)
		)
		for {
			busy := m.load >= 2
			for ; len(m.ends) < limit && (busy || m.waiting > 0); begun++ {
				m.begin(&waited)
				m.waiting = max(0, m.waiting-1)
			}
			if !busy && m.due == 0 {
				m.due = m.now + m.exp(between)
			}
			next := end
			if !busy {
				next = min(next, m.due)
			}
			if len(m.ends) > 0 && m.ends[0].at <= next {
				e := m.pop()
				m.now = e.at
				f.done++
				f.ran += e.at - e.began
				continue
			}
			m.now = next
			if next == end {
				break
			}
			m.due = 0
			f.came++
			if len(m.ends) < limit {
				m.begin(&waited)
				begun++
				continue
			}
			f.held++
			if m.waiting < m.t.room() {
				m.waiting++
			} else {
				f.refused++
			}
		}
		f.took = m.t.opts.Window
		if m.load >= 2 {
			n := rate * f.took.Seconds()
			f.came = int64(n)
			if m.rnd.Float64() < n-math.Floor(n) {
				f.came++
			}
			f.held = f.came
		}
		if m.sees && begun > 0 {
			m.delay = waited / time.Duration(begun)
		}
		m.came, m.refused = m.came+f.came, m.refused+f.refused
		limit = m.t.window(f, m.delay)
		m.limits = append(m.limits, float64(limit))
	}
}

// mean is that of the limits of the last windows, trials and all.
func (m *model) mean(d time.Duration) float64 {
	last := m.limits[max(0, len(m.limits)-int(d/m.t.opts.Window)):]
	sum := 0.0
	for _, l := range last {
		sum += l
	}
	return sum / float64(len(last))
}

// land has a tuner find the limit of a service, from half to four times of what it should
// be, and returns the least and the greatest mean limit, in slots, of 30 s after so long.
func land(slots int, service, after time.Duration, load float64) (least, most float64) {
	least = math.Inf(1)
	seeds := uint64(3)
	if float64(slots)/service.Seconds() > 1000 {
		seeds = 1
	}
	for seed := range seeds {
		for _, from := range []int{max(1, slots/2), slots, 4 * slots} {
			m := newModel(from, slots, service, load)
			m.rnd = rand.New(rand.NewPCG(seed, 16))
			m.constant = seed == 2
			m.run(after + 30*sec)
			mean := m.mean(30*sec) / float64(slots)
			least, most = min(least, mean), max(most, mean)
		}
	}
	return least, most
}

// Of 200 calls a second it knows enough in half a minute. One slot more than one is too much
// by as much as there is, and it looks there now and then.
func TestLimitLandsWithin30Seconds(t *testing.T) {
	for _, k := range []int{1, 2, 5, 10, 50, 400} {
		for _, service := range []time.Duration{ms, 10 * ms, 40 * ms, 200 * ms} {
			if rate := float64(k) / service.Seconds(); rate < 200 || rate > 5000 {
				continue
			}
			for _, load := range []float64{1.4, 4} {
				least, most := land(k, service, 30*sec, load)
				t.Logf("%d slots of %v at %vx: %.2f to %.2f", k, service, load, least, most)
				require.GreaterOrEqual(t, least, 0.9)
				require.LessOrEqual(t, most, max(1.3, 1+0.8/float64(k)))
			}
		}
	}
}

// Fewer calls differ more by chance, and a trial of slow ones takes long: from 25 a second on it
// takes some minutes. Of fewer nothing is promised but that the limit is no wild one.
func TestLimitOfFewCallsLandsInTime(t *testing.T) {
	for _, test := range []struct {
		slots   int
		service time.Duration
	}{{2, 40 * ms}, {5, 40 * ms}, {5, 200 * ms}, {10, 200 * ms}, {50, 2 * sec}, {400, 2 * sec}} {
		least, most := land(test.slots, test.service, 7*time.Minute, 4)
		t.Logf("%d slots of %v: %.2f to %.2f", test.slots, test.service, least, most)
		require.GreaterOrEqual(t, least, 0.7)
		if test.service < sec {
			require.LessOrEqual(t, most, 1.8)
		} else {
			require.LessOrEqual(t, most, 4.0)
		}
	}
	for _, k := range []int{1, 2, 5} {
		_, most := land(k, 2*sec, 7*time.Minute, 4)
		require.LessOrEqual(t, most, 8.0)
	}
}

// A window in which two calls come tells nothing of the load: a trial goes on.
func TestRegression_TrialsOfFewCalls(t *testing.T) {
	m := newModel(2, 5, 200*ms, 0.7)
	m.run(5 * time.Minute)
	require.NotZero(t, m.t.alone)
	require.Greater(t, m.mean(time.Minute)/5, 0.6)
}

// Calls that all take as long end all at once. Whether twice as many at once bring more does
// not show in a part of that time.
func TestRegression_TrialsOfCallsThatEndAtOnce(t *testing.T) {
	for _, slots := range []int{50, 400} {
		m := newModel(4*slots, slots, 2*sec, 4)
		m.constant = true
		m.run(5 * time.Minute)
		t.Log(slices.Max(m.limits) / float64(slots))
		require.LessOrEqual(t, slices.Max(m.limits), 8*float64(slots), "a trial's")
	}
}

// Half of what it can do is no reason to refuse.
func TestLimitOfAQuietServiceIsNoHindrance(t *testing.T) {
	for _, k := range []int{2, 5, 10, 50} {
		for _, service := range []time.Duration{ms, 10 * ms, 40 * ms, 200 * ms} {
			if rate := float64(k) / service.Seconds(); rate < 200 || rate > 5000 {
				continue
			}
			for _, from := range []int{max(1, k/2), 4 * k} {
				m := newModel(from, k, service, 0.5)
				m.run(30 * sec)
				m.came, m.refused = 0, 0
				m.run(30 * sec)
				require.Less(t, float64(m.refused), 0.05*float64(m.came), "%d slots of %v from %d", k, service, from)
			}
		}
	}
}

// A downstream that gets slow takes no slots: more calls have to run for as many to be done.
func TestLimitFollowsASlowDownstream(t *testing.T) {
	for _, slots := range []int{10, 50} {
		m := newModel(16, slots, 40*ms, 0.8)
		m.run(20 * sec)
		m.downstream = 200 * ms
		m.run(30 * sec)
		m.came, m.refused = 0, 0
		m.run(60 * sec)
		t.Logf("%d slots: limit %.1f, %d of %d refused", slots, m.mean(30*sec), m.refused, m.came)
		require.Less(t, float64(m.refused), 0.03*float64(m.came))
		m.downstream = 0
		m.load = 2
		m.run(60 * sec)
		require.InDelta(t, 1.1, m.mean(30*sec)/float64(slots), 0.25, "and back")
	}
}

// One that itself gets slow has as much to do for as many calls, and more of them at once are no help.
func TestLimitDoesNotFollowASlowService(t *testing.T) {
	for _, slow := range []time.Duration{80 * ms, 240 * ms} {
		m := newModel(50, 50, 40*ms, 0.8)
		m.run(30 * sec)
		m.service = slow
		m.load = 0.8 * float64(slow) / float64(40*ms) // as many calls as before
		m.run(150 * sec)
		t.Logf("%v: %.2f", slow, m.mean(60*sec)/50)
		require.InDelta(t, 1.1, m.mean(60*sec)/50, 0.25)
	}
}

func TestLimitIsLoweredWhileTheSchedulerIsLate(t *testing.T) {
	m := newModel(40, 10, 40*ms, 4)
	m.run(sec)
	m.delay = 100 * ms // 25 of the 40 wait for it, at 250 calls a second
	m.run(100 * ms)
	require.Equal(t, 40, m.t.limit, "for once is by chance")
	m.run(100 * ms)
	require.InDelta(t, 20, m.t.limit, 8, "by Little's law, and not by more than half at once")
	m.run(10 * sec)
	require.LessOrEqual(t, m.t.limit, 2, "it is late at any limit")
	m.delay = 0
	m.run(60 * sec)
	require.InDelta(t, 1.1, m.mean(30*sec)/10, 0.2, "and rises again")

	m = newModel(40, 10, 40*ms, 4)
	m.sees = true
	m.run(60 * sec)
	require.InDelta(t, 1.1, m.mean(30*sec)/10, 0.2)
}

func TestLimitsAreKept(t *testing.T) {
	m := newModel(1, 10, 10*ms, 4)
	m.t = newTuner(Options{Limit: 20, MinLimit: 15, MaxLimit: 30}.withDefaults())
	m.run(30 * sec)
	require.GreaterOrEqual(t, slices.Min(m.limits), 15.0)
	require.LessOrEqual(t, m.mean(10*sec), 20.0, "as few as may be, but for trials")
	m = newModel(1, 50, 10*ms, 4)
	m.t = newTuner(Options{Limit: 20, MinLimit: 15, MaxLimit: 30}.withDefaults())
	m.run(30 * sec)
	require.LessOrEqual(t, slices.Max(m.limits), 30.0)
	require.GreaterOrEqual(t, m.mean(10*sec), 26.0, "as many as may be, but for trials")
	m = newModel(1, 10, 10*ms, 4)
	m.t = newTuner(Options{Limit: 7, Fixed: true}.withDefaults())
	m.delay = sec
	m.run(30 * sec)
	require.Equal(t, 7.0, slices.Min(m.limits))
	require.Equal(t, 7.0, slices.Max(m.limits))
	require.InDelta(t, 700, m.t.best, 70, "and yet it knows what can be done")
}

// An hour in which nobody comes says nothing of what can be done.
func TestLimitAfterAnIdleHour(t *testing.T) {
	for _, warm := range []time.Duration{100 * ms, 30 * sec} {
		m := newModel(20, 10, 40*ms, 2)
		m.run(warm)
		best, limit := m.t.best, m.t.limit
		m.t.window(figures{took: time.Hour, came: 100, held: 90, done: 40, ran: 2 * sec}, -1)
		require.InDelta(t, best, m.t.best, 1)
		require.Equal(t, limit, m.t.limit)
		m.run(60 * sec)
		require.InDelta(t, 250, m.t.best, 40)
		require.InDelta(t, 1.1, m.mean(30*sec)/10, 0.25)
	}
}

// It says a limit whatever it is told.
func TestLimitOfWildFigures(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(17, seed))
		number := func() int64 { return rnd.Int64() >> rnd.IntN(64) }
		opts := Options{Limit: int(number()), MinLimit: int(number()), MaxLimit: int(number()), MaxQueue: int(number()), MaxWait: time.Duration(number()), Window: time.Duration(number())}.withDefaults()
		u := newTuner(opts)
		for range 400 {
			f := figures{took: time.Duration(number()), came: number(), held: number(), refused: number(), done: number(), ran: time.Duration(number())}
			switch rnd.IntN(8) {
			case 0:
				f = figures{took: f.took}
			case 1:
				f.ran = 0
			case 2:
				f.took = 0
			case 3:
				f.took, f.came, f.held, f.done = 100*ms, 1000, 1000, 100
				f.ran = time.Duration(rnd.IntN(int(20 * sec)))
			case 4:
				f.ran = -f.ran
			}
			limit := u.window(f, time.Duration(number())-1)
			require.True(t, limit >= opts.MinLimit && limit <= opts.MaxLimit, "%d of %+v", limit, opts)
			require.True(t, u.limit >= opts.MinLimit && u.limit <= opts.MaxLimit)
			require.True(t, u.room() >= 1 && u.room() <= opts.MaxQueue, "%d", u.room())
			for _, x := range []float64{u.best, u.alone, u.usual} {
				require.False(t, math.IsNaN(x) || math.IsInf(x, 0))
			}
		}
	}
}
