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

package breaker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/breaker"
)

const ms = time.Millisecond

// rules are simple ones without jitter: an error ratio of a half from 10 calls on.
func rules(change func(*breaker.Rules)) breaker.Rules {
	r := breaker.Rules{
		ErrorRatio: breaker.Million / 2, MinCalls: 10, Width: time.Second, Buckets: 10,
		OpenFor: 5 * time.Second, Probes: 1, ProbeTimeout: 30 * time.Second,
	}
	if change != nil {
		change(&r)
	}
	return r
}

// bench is a breaker on a clock that stands still until it is moved.
type bench struct {
	t      *testing.T
	b      *breaker.Breaker
	now    time.Duration
	events []string
}

func newBench(t *testing.T, r breaker.Rules) *bench {
	t.Helper()
	s := &bench{t: t, now: 1000 * time.Hour}
	b, err := breaker.New(r, s.now, breaker.WithListener(func(e breaker.Event) {
		s.events = append(s.events, e.To.String())
	}), breaker.WithRandom(func(int64) int64 { return 0 }))
	require.NoError(t, err)
	s.b = b
	return s
}

func (s *bench) state() breaker.State { return s.b.Stats(s.now).State }

// begin admits a call and lets it run.
func (s *bench) begin() breaker.Permit {
	s.t.Helper()
	p, v := s.b.Allow(s.now)
	require.Nil(s.t, v, "refused")
	return s.b.Begin(p, s.now)
}

func (s *bench) refused() breaker.Verdict {
	s.t.Helper()
	_, v := s.b.Allow(s.now)
	require.NotNil(s.t, v, "admitted")
	return *v
}

// call runs one that takes no time of the clock, whatever it says it took.
func (s *bench) call(res breaker.Result, took time.Duration) {
	s.t.Helper()
	s.b.End(s.begin(), res, took, s.now)
}

// calls runs one for each letter: s succeeds, f fails, t times out, i is ignored,
// r is refused by the other side, and a capital one takes a second.
func (s *bench) calls(letters string) {
	s.t.Helper()
	for _, l := range letters {
		took := time.Duration(0)
		if l < 'a' {
			took, l = time.Second, l-'A'+'a'
		}
		s.call(map[rune]breaker.Result{
			's': breaker.Success, 'f': breaker.Failure, 't': breaker.Timeout, 'i': breaker.Ignored, 'r': breaker.Refused,
		}[l], took)
	}
}

func (s *bench) is(want breaker.State) {
	s.t.Helper()
	require.Equal(s.t, want, s.state())
}

func (s *bench) pass(d time.Duration) { s.now += d }

func TestSlowRatio(t *testing.T) {
	r := rules(func(r *breaker.Rules) {
		r.ErrorRatio, r.SlowRatio, r.SlowCall, r.Width, r.Buckets = 0, 800_000, 50*ms, 20*time.Second, 1
	})
	for _, above := range []bool{false, true} {
		r.Above = above
		s := newBench(t, r)
		s.calls("SSSSSSSsss")
		s.is(breaker.Closed)
		s.call(breaker.Success, 50*ms) // that is not slow yet
		s.is(breaker.Closed)
		slow := 0
		for s.state() == breaker.Closed {
			s.calls("S")
			slow++
		}
		// 12 of 16 are 75 %, 13 of 17 76 %: the fast one at the bound counts too.
		total, late := 11+slow, 7+slow
		if above {
			assert.Greater(t, late*10, total*8)
		} else {
			assert.GreaterOrEqual(t, late*10, total*8)
		}
		assert.LessOrEqual(t, (late-1)*10, (total-1)*8)
	}
}

// The bound of a ratio is met at the 15th call, and exceeded at the 16th.
func TestSlowRatioAtItsBound(t *testing.T) {
	for _, tt := range []struct {
		above bool
		more  int
	}{{false, 5}, {true, 6}} {
		s := newBench(t, rules(func(r *breaker.Rules) {
			r.ErrorRatio, r.SlowRatio, r.SlowCall, r.Above = 0, 800_000, 50*ms, tt.above
			r.Width, r.Buckets = 20*time.Second, 1
		}))
		s.calls("SSSSSSSsss")
		for range tt.more - 1 {
			s.calls("S")
			s.is(breaker.Closed)
		}
		s.calls("S")
		s.is(breaker.Open)
		v := s.refused()
		assert.Equal(t, breaker.Cause{Reason: breaker.SlowRatio, Limit: 80, Observed: map[bool]int64{false: 80, true: 81}[tt.above]}, v.Cause)
		s.pass(time.Second)
		s.refused()
		s.pass(4 * time.Second)
		s.calls("S")
		s.is(breaker.Closed) // nobody said what a probe may take
	}
}

func TestSlowProbes(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) {
		r.ErrorRatio, r.SlowRatio, r.SlowCall, r.ProbeUnder, r.MinCalls = 0, breaker.Million, 50*ms, 50*ms+1, 3
	}))
	s.calls("SSS")
	s.is(breaker.Open)
	s.pass(time.Second)
	s.refused()
	s.pass(5 * time.Second)
	s.calls("S")
	s.is(breaker.Open)
	s.pass(time.Second)
	s.refused()
	s.pass(5 * time.Second)
	s.call(breaker.Success, 50*ms)
	s.is(breaker.Closed)
	s.calls("SS")
	s.is(breaker.Closed) // the window is cleared
	assert.Equal(t, []string{"open", "half-open", "open", "half-open", "closed"}, s.events)
}

func TestErrorRatio(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.Width, r.Buckets = 25*time.Second, 1 }))
	s.calls("ffffffsss")
	s.is(breaker.Closed)
	s.calls("f")
	s.is(breaker.Open)
	assert.Equal(t, breaker.Cause{Reason: breaker.ErrorRatio, Limit: 50, Observed: 70}, s.refused().Cause)
	s.pass(2 * time.Second)
	assert.Equal(t, 3*time.Second, s.refused().Until-s.now)
	s.pass(5 * time.Second)
	s.calls("f")
	s.is(breaker.Open)
	assert.Equal(t, breaker.Cause{Reason: breaker.ProbesFailed, Limit: 1, Observed: 0}, s.refused().Cause)
	s.pass(6 * time.Second)
	s.calls("s")
	s.is(breaker.Closed)
	s.calls("f")
	s.is(breaker.Closed)
}

func TestErrorRatioFromTheFirstCall(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.ErrorRatio, r.MinCalls, r.OpenFor = 200_000, 1, 10*time.Second }))
	s.calls("sf")
	s.is(breaker.Open)
	s.refused()
	s.pass(5 * time.Second)
	s.refused()
	s.pass(5 * time.Second)
	s.calls("f")
	s.is(breaker.Open)
	s.refused()
	s.pass(10 * time.Second)
	s.calls("sssssssf")
	s.is(breaker.Closed) // 1 of 7: the probe is not in the window
}

func TestFewCalls(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.MinCalls, r.ErrorCount, r.MinCallsForCount = 5, 1, 5 }))
	s.calls("ffff")
	s.is(breaker.Closed)
	s.calls("t")
	s.is(breaker.Open)
}

// A ratio is met also by a call that succeeds, as soon as there are enough.
func TestASuccessCanTrip(t *testing.T) {
	s := newBench(t, rules(nil))
	s.calls("fffffffff")
	s.is(breaker.Closed)
	s.calls("s")
	s.is(breaker.Open)
}

func TestHystrix(t *testing.T) {
	forty := rules(func(r *breaker.Rules) { r.ErrorRatio, r.MinCalls, r.Above = 400_000, 8, true })
	s := newBench(t, forty)
	s.calls("ssssfttf")
	s.is(breaker.Open)
	s = newBench(t, forty)
	s.calls("sssssfft")
	s.is(breaker.Closed)

	ten := func(letter string) string { return strings.Repeat(letter, 10) }
	more := func(letters string, want breaker.State) {
		t.Helper()
		s := newBench(t, rules(func(r *breaker.Rules) { r.MinCalls, r.Above, r.ProbeUnder = 21, true, 250*ms }))
		s.calls(letters)
		s.is(want)
	}
	more(ten("s")+ten("f"), breaker.Closed)
	more(ten("s")+ten("f")+"s", breaker.Closed)
	more(ten("s")+ten("f")+"rrrriiii", breaker.Closed) // they are no calls
	more(ten("s")+ten("f")+"t", breaker.Open)
	more(ten("s")+ten("f")+"f", breaker.Open)
	more(ten("f")+ten("f"), breaker.Closed) // not more than 20 calls

	s = newBench(t, rules(func(r *breaker.Rules) { r.MinCalls, r.OpenFor, r.ProbeUnder = 1, 200*ms, 250*ms }))
	s.calls("f")
	s.pass(250 * ms)
	p := s.begin()
	s.refused()
	s.pass(250 * ms)
	s.b.End(p, breaker.Success, 250*ms, s.now)
	s.is(breaker.Open)
	s.pass(200 * ms)
	s.call(breaker.Success, 250*ms-1)
	s.is(breaker.Closed)
}

func TestWholeNumbers(t *testing.T) {
	for _, tt := range []struct{ ratio, failed, of int64 }{{570_000, 57, 100}, {290_000, 29, 100}, {50, 1, 20_000}, {333_333, 1, 3}, {145_000, 29, 200}} {
		for _, above := range []bool{false, true} {
			s := newBench(t, rules(func(r *breaker.Rules) { r.ErrorRatio, r.MinCalls, r.Above = tt.ratio, tt.of, above }))
			for i := range tt.of {
				s.call(map[bool]breaker.Result{true: breaker.Failure, false: breaker.Success}[i < tt.failed], 0)
			}
			exact := tt.failed*breaker.Million == tt.ratio*tt.of
			s.is(map[bool]breaker.State{true: breaker.Open, false: breaker.Closed}[!above || !exact])
		}
	}
}

func TestErrorCount(t *testing.T) {
	for _, tt := range []struct {
		above bool
		n     int
	}{{false, 3}, {true, 4}} {
		s := newBench(t, rules(func(r *breaker.Rules) { r.ErrorRatio, r.ErrorCount, r.Above = 0, 3, tt.above }))
		s.calls("sfssft"[:6])
		want := breaker.Open
		if tt.above {
			want = breaker.Closed
		}
		s.is(want)
		if tt.above {
			s.calls("f")
			s.is(breaker.Open)
		}
		assert.Equal(t, breaker.Cause{Reason: breaker.ErrorCount, Limit: 3, Observed: int64(tt.n)}, s.refused().Cause)
	}
}

func TestConsecutiveErrors(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.ErrorRatio, r.ConsecutiveErrors, r.OpenFor = 0, 6, time.Minute }))
	s.calls("fffff")
	s.is(breaker.Closed)
	s.calls("s")
	s.pass(time.Hour) // there is no window
	s.calls("fifrftff")
	s.is(breaker.Open)
	assert.Equal(t, breaker.Cause{Reason: breaker.ConsecutiveErrors, Limit: 6, Observed: 6}, s.refused().Cause)
	s.pass(time.Minute - ms)
	s.refused()
	s.pass(ms)
	s.calls("f")
	s.is(breaker.Open)
	s.pass(time.Minute)
	s.calls("s")
	s.is(breaker.Closed)
}

func TestWindow(t *testing.T) {
	s := newBench(t, rules(nil))
	s.calls("fffffffff")
	s.pass(9999 * ms)
	s.calls("s") // all of them are in the window still
	s.is(breaker.Open)

	s = newBench(t, rules(nil))
	s.calls("fffffffff")
	s.pass(10 * time.Second)
	s.calls("fffffffff") // none is
	s.is(breaker.Closed)
	assert.EqualValues(t, 9, s.b.Stats(s.now).Calls)
	s.pass(100 * time.Hour)
	assert.Zero(t, s.b.Stats(s.now).Calls)
	for range 20 {
		s.pass(time.Second)
		s.calls("s")
	}
	assert.EqualValues(t, 10, s.b.Stats(s.now).Calls)
	s.calls("fffffffff")
	s.is(breaker.Closed)
	s.calls("f") // 10 of 20
	s.is(breaker.Open)
}

// A clock that jumps back counts where it was.
func TestClockGoesBack(t *testing.T) {
	s := newBench(t, rules(nil))
	s.calls("fffff")
	s.pass(-10 * time.Minute)
	s.calls("ffff")
	assert.EqualValues(t, 9, s.b.Stats(s.now).Calls)
	s.calls("f")
	s.is(breaker.Open)
}

func TestRoundsOfProbes(t *testing.T) {
	open := func(probes, need int) *bench {
		s := newBench(t, rules(func(r *breaker.Rules) {
			r.MinCalls, r.Probes, r.ProbeSuccesses, r.ProbeUnder = 1, probes, need, 250*ms
		}))
		s.calls("f")
		s.pass(5 * time.Second)
		return s
	}
	for _, tt := range []struct {
		probes, need int
		letters      string
		want         breaker.State
	}{
		{10, 0, "sssssssss", breaker.HalfOpen}, {10, 0, "ssssssssss", breaker.Closed},
		{2, 0, "s", breaker.HalfOpen}, {2, 0, "sf", breaker.Open},
		{4, 3, "ff", breaker.Open}, {4, 3, "fss", breaker.HalfOpen}, {4, 3, "fsss", breaker.Closed}, {4, 3, "sSS", breaker.Open},
		{5, 3, "sssf"[:3], breaker.Closed},
		{4, 3, "sssif"[:4][:3], breaker.Closed}, {4, 3, "ssif", breaker.HalfOpen}, {4, 3, "iiiissfs", breaker.Closed}, {4, 0, "iiiirrrrssss", breaker.Closed},
		{3, 2, "fsf", breaker.Open}, {3, 3, "ssf", breaker.Open}, {3, 3, "siiiis", breaker.HalfOpen}, {3, 3, "siiiiss", breaker.Closed},
		{3, 1, "ffs", breaker.Closed}, {3, 1, "fff", breaker.Open}, {1, 0, "t", breaker.Open},
		{1, 0, "I", breaker.Open}, // given up because it took long
		{1, 0, "R", breaker.HalfOpen},
	} {
		s := open(tt.probes, tt.need)
		s.calls(tt.letters)
		assert.Equal(t, tt.want, s.state(), "%d of %d: %s", tt.need, tt.probes, tt.letters)
	}
	s := open(4, 0)
	for range 4 {
		s.begin()
	}
	s.refused()
	assert.Equal(t, breaker.Cause{Reason: breaker.Probing, Limit: 4, Observed: 4}, s.refused().Cause)
	require.NoError(t, s.b.Probe(s.now))
	for range 4 {
		s.begin()
	}
	s.refused()
	s = open(3, 0)
	s.calls("ss")
	s.is(breaker.HalfOpen)
	p := s.begin()
	s.refused()
	s.b.End(p, breaker.Success, 0, s.now)
	s.is(breaker.Closed)
}

// What made the breaker open is not counted again as buckets go by. B16
func TestClosedStaysClosed(t *testing.T) {
	s := newBench(t, rules(nil))
	s.calls("ffffffffff")
	s.is(breaker.Open)
	s.pass(5 * time.Second)
	s.calls("s")
	for range 20 {
		s.pass(time.Second)
		s.calls("s")
		s.is(breaker.Closed)
	}
	assert.Zero(t, s.b.Stats(s.now).Failures)
}

func TestClosedCannotBecomeHalfOpen(t *testing.T) {
	s := newBench(t, rules(nil))
	require.ErrorIs(t, s.b.Probe(s.now), breaker.ErrTransition)
	s.is(breaker.Closed)
	assert.Empty(t, s.events)
}

// A probe that a later guard refuses leaves the breaker as if it had not been.
func TestProbeThatDoesNotRun(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.MinCalls = 1 }))
	s.calls("f")
	s.events = nil
	s.pass(5 * time.Second)
	for range 3 {
		p, v := s.b.Allow(s.now)
		require.Nil(t, v)
		s.b.Drop(p, s.now)
		s.is(breaker.Open)
		assert.Equal(t, []string{"half-open", "open"}, s.events)
		s.events = nil
		s.b.Drop(p, s.now) // once more is nothing
		assert.Empty(t, s.events)
	}
	s.calls("s")
	s.is(breaker.Closed)
}

func TestProbeThatDoesNotRunBesideOthers(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.MinCalls, r.Probes = 1, 2 }))
	s.calls("f")
	s.pass(5 * time.Second)
	a, b := s.begin(), s.begin()
	s.b.Drop(a, s.now)
	s.is(breaker.HalfOpen)
	c := s.begin()
	s.refused()
	s.b.End(b, breaker.Success, 0, s.now)
	s.b.Drop(c, s.now)
	s.is(breaker.HalfOpen)
	s.calls("s")
	s.is(breaker.Closed)
}

// A probe that never comes back counts as failed at its deadline.
func TestProbeThatHangs(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.MinCalls = 1 }))
	s.calls("f")
	s.pass(5 * time.Second)
	p := s.begin()
	s.pass(30*time.Second - 1)
	s.refused()
	s.is(breaker.HalfOpen)
	s.pass(1)
	v := s.refused()
	assert.Equal(t, breaker.ProbesFailed, v.Cause.Reason)
	assert.Equal(t, 5*time.Second, v.Until-s.now)
	s.b.End(p, breaker.Success, 35*time.Second, s.now)
	s.is(breaker.Open)
	s.pass(5 * time.Second)
	p = s.begin()
	s.pass(time.Hour) // nobody called meanwhile: it is long since time for the next
	s.calls("s")
	s.is(breaker.Closed)
	s.b.End(p, breaker.Failure, time.Hour, s.now)
	s.is(breaker.Closed)

	s = newBench(t, rules(func(r *breaker.Rules) { r.MinCalls = 1 }))
	s.calls("f")
	s.pass(5 * time.Second)
	p = s.begin()
	s.pass(time.Minute) // late, but nobody has noticed
	s.b.End(p, breaker.Success, time.Minute, s.now)
	s.is(breaker.Closed)
}

// Where calls last as long as they like, one that has not failed by then is healthy.
func TestProbeThatLasts(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.MinCalls, r.Probes, r.Lasting = 1, 2, true }))
	s.calls("f")
	s.pass(5 * time.Second)
	p := s.begin()
	s.pass(time.Second)
	s.begin()
	s.refused()
	s.pass(29 * time.Second)
	s.refused() // one of two
	s.is(breaker.HalfOpen)
	s.b.End(p, breaker.Failure, 30*time.Second, s.now) // too late
	s.is(breaker.HalfOpen)
	s.pass(time.Second)
	s.begin()
	s.is(breaker.Closed)
	assert.Zero(t, s.b.Stats(s.now).Calls)

	s.calls("f")
	s.pass(5 * time.Second)
	p = s.begin()
	s.pass(29 * time.Second)
	s.b.End(p, breaker.Failure, 29*time.Second, s.now)
	s.is(breaker.Open)
}

func TestCancelledProbe(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.MinCalls, r.OpenFor = 1, 500*ms }))
	s.calls("f")
	s.pass(500 * ms)
	p := s.begin()
	s.pass(5 * time.Second)
	s.b.End(p, breaker.Ignored, 5*time.Second, s.now)
	s.is(breaker.HalfOpen)
	s.calls("s")
	s.is(breaker.Closed)
}

// What began in one state changes nothing in the next.
func TestCallsOfAnEarlierState(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.SlowRatio, r.SlowCall = breaker.Million/2, time.Second }))
	var early []breaker.Permit
	for range 100 {
		early = append(early, s.begin())
	}
	end := func(n int, res breaker.Result) {
		for range n {
			s.b.End(early[0], res, time.Hour, s.now)
			early = early[1:]
		}
	}
	s.calls("ffffffffff")
	s.is(breaker.Open)
	end(10, breaker.Success)
	end(10, breaker.Failure)
	s.is(breaker.Open)
	s.pass(5 * time.Second)
	p := s.begin()
	s.is(breaker.HalfOpen)
	end(10, breaker.Success)
	end(10, breaker.Failure)
	s.b.Drop(early[0], s.now)
	s.is(breaker.HalfOpen)
	s.b.End(p, breaker.Success, 0, s.now)
	s.is(breaker.Closed)
	end(10, breaker.Failure)
	s.is(breaker.Closed)
	st := s.b.Stats(s.now)
	assert.Zero(t, st.Calls)
	assert.Zero(t, st.Hung)
	s.b.End(breaker.Permit{}, breaker.Failure, 0, s.now)
	assert.Zero(t, s.b.Stats(s.now).Calls)
}

// Calls that hang trip the breaker before any of them comes back.
func TestCallsThatHang(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.ErrorRatio, r.SlowRatio, r.SlowCall = 0, breaker.Million/2, time.Second }))
	s.calls("ssssssssss")
	var hung []breaker.Permit
	for range 2000 {
		hung = append(hung, s.begin())
	}
	s.pass(time.Second)
	s.begin()
	s.is(breaker.Closed) // none is slow yet
	s.pass(143 * ms)
	v := s.refused()
	assert.Equal(t, breaker.Cause{Reason: breaker.SlowRatio, Limit: 50, Observed: 99}, v.Cause)
	for _, p := range hung {
		s.b.End(p, breaker.Success, time.Minute, s.now)
	}
	s.is(breaker.Open)
}

// A call counts once: while it hangs, and then as slow.
func TestAHangingCallCountsOnce(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.ErrorRatio, r.SlowRatio, r.SlowCall = 0, breaker.Million, time.Second }))
	var hung []breaker.Permit
	for range 9 {
		hung = append(hung, s.begin())
	}
	for i := range 300 {
		s.pass(time.Second)
		s.b.Drop(s.begin(), s.now)
		if i > 1 {
			require.EqualValues(t, 9, s.b.Stats(s.now).Hung)
		}
	}
	for i, p := range hung {
		s.b.End(p, breaker.Ignored, time.Hour, s.now)
		st := s.b.Stats(s.now)
		require.EqualValues(t, 8-i, st.Hung)
		require.EqualValues(t, i+1, st.Calls)
		require.EqualValues(t, i+1, st.Slow)
	}
	s.is(breaker.Closed)
	s.call(breaker.Failure, time.Second+1)
	s.is(breaker.Open)
}

func TestOpenTimeGrows(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) {
		r.MinCalls, r.OpenFor, r.OpenGrowth, r.OpenMax = 1, time.Second, 2, 5*time.Second
	}))
	s.calls("f")
	for _, want := range []time.Duration{1, 2, 4, 5, 5} {
		assert.Equal(t, want*time.Second, s.refused().Until-s.now)
		s.pass(want * time.Second)
		s.calls("f")
	}
	s.pass(5 * time.Second)
	s.calls("s")
	s.calls("f")
	assert.Equal(t, time.Second, s.refused().Until-s.now)
}

func TestJitter(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		b, err := breaker.New(rules(func(r *breaker.Rules) { r.MinCalls, r.OpenJitter = 1, 100_000 }), 0)
		require.NoError(t, err)
		p, _ := b.Allow(0)
		b.End(p, breaker.Failure, 0, 0)
		until := b.Stats(0).Until
		assert.GreaterOrEqual(t, until, 5*time.Second)
		assert.LessOrEqual(t, until, 5500*ms)
		seen[until.Truncate(ms)] = true
	}
	assert.Greater(t, len(seen), 20, "a hundred that open at once do not probe at once")
}

func TestUpdate(t *testing.T) {
	s := newBench(t, rules(nil))
	s.calls("ffffsss")
	early := s.begin()
	update := func(change func(*breaker.Rules)) {
		t.Helper()
		require.NoError(t, s.b.Update(rules(change), breaker.Free, s.now))
	}
	update(nil)
	assert.EqualValues(t, 7, s.b.Stats(s.now).Calls)
	update(func(r *breaker.Rules) { r.MinCalls = 20 })
	assert.EqualValues(t, 7, s.b.Stats(s.now).Calls, "another threshold keeps what was counted")
	s.b.End(early, breaker.Failure, 0, s.now)
	assert.EqualValues(t, 8, s.b.Stats(s.now).Calls)
	require.ErrorIs(t, s.b.Update(rules(func(r *breaker.Rules) { r.Probes = 0 }), breaker.Free, s.now), breaker.ErrRules)
	assert.EqualValues(t, 20, s.b.Rules().MinCalls, "wrong rules change nothing")
	update(func(r *breaker.Rules) { r.MinCalls = 9 })
	s.calls("f")
	s.is(breaker.Open)
	until := s.refused().Until
	update(func(r *breaker.Rules) { r.MinCalls, r.Width = 9, 2*time.Second })
	s.is(breaker.Open)
	assert.Equal(t, until, s.refused().Until)
	s.pass(5 * time.Second)
	p := s.begin()
	update(func(r *breaker.Rules) { r.Probes = 3 })
	s.is(breaker.HalfOpen)
	s.b.End(p, breaker.Success, 0, s.now)
	s.calls("s")
	s.is(breaker.HalfOpen)
	update(func(r *breaker.Rules) { r.Probes = 2 })
	s.is(breaker.Closed) // the two were enough
	s.calls("fff")
	update(func(r *breaker.Rules) { r.Width = 3 * time.Second })
	assert.Zero(t, s.b.Stats(s.now).Calls, "another window is another count")
}

func TestForce(t *testing.T) {
	s := newBench(t, rules(nil))
	force := func(f breaker.Force) {
		t.Helper()
		require.NoError(t, s.b.Update(rules(nil), f, s.now))
	}
	early := s.begin()
	force(breaker.ForceOpen)
	for range 3 {
		assert.Equal(t, breaker.Verdict{State: breaker.Open, Cause: breaker.Cause{Reason: breaker.Forced}}, s.refused())
		s.pass(time.Hour)
	}
	s.b.End(early, breaker.Success, 0, s.now)
	require.NoError(t, s.b.Probe(s.now))
	s.b.Reset(s.now)
	s.refused()
	force(breaker.Free)
	s.is(breaker.Open)
	s.calls("s")
	s.is(breaker.Closed)
	force(breaker.ForceClosed)
	s.calls("ffffffffffffffffffffffffff")
	s.is(breaker.Closed)
	assert.EqualValues(t, 26, s.b.Stats(s.now).Failures)
	force(breaker.Free)
	s.calls("f")
	s.is(breaker.Open)
	force(breaker.ForceClosed)
	s.calls("ff")
	s.is(breaker.Closed)
	force(breaker.ForceOpen)
	s.refused()
	assert.Equal(t, []string{"open", "half-open", "closed", "open", "closed", "open"}, s.events)
}

func TestReset(t *testing.T) {
	s := newBench(t, rules(nil))
	s.calls("fffff")
	s.b.Reset(s.now)
	assert.Zero(t, s.b.Stats(s.now).Calls)
	s.calls("ffffffffff")
	s.is(breaker.Open)
	s.b.Reset(s.now)
	s.is(breaker.Closed)
}

func TestWrongRules(t *testing.T) {
	for i, change := range []func(*breaker.Rules){
		func(r *breaker.Rules) { r.ErrorRatio = -1 }, func(r *breaker.Rules) { r.ErrorRatio = breaker.Million + 1 },
		func(r *breaker.Rules) { r.SlowRatio = -1 }, func(r *breaker.Rules) { r.SlowRatio = 1 },
		func(r *breaker.Rules) { r.ErrorCount = -1 }, func(r *breaker.Rules) { r.ConsecutiveErrors = -1 },
		func(r *breaker.Rules) { r.Width = 0 }, func(r *breaker.Rules) { r.Buckets = 0 }, func(r *breaker.Rules) { r.Width = 1 << 62 },
		func(r *breaker.Rules) { r.OpenFor = 0 }, func(r *breaker.Rules) { r.OpenJitter = -1 }, func(r *breaker.Rules) { r.OpenJitter = breaker.Million + 1 },
		func(r *breaker.Rules) { r.OpenGrowth = 0.5 }, func(r *breaker.Rules) { r.OpenGrowth, r.OpenMax = 2, time.Second },
		func(r *breaker.Rules) { r.Probes = 0 }, func(r *breaker.Rules) { r.Probes = breaker.MaxProbes + 1 }, func(r *breaker.Rules) { r.ProbeSuccesses = 2 },
		func(r *breaker.Rules) { r.ProbeUnder = -1 }, func(r *breaker.Rules) { r.ProbeTimeout = 0 },
	} {
		_, err := breaker.New(rules(change), 0)
		assert.ErrorIs(t, err, breaker.ErrRules, fmt.Sprint(i))
	}
}
