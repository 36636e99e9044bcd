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
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/breaker"
)

// shadow is what a breaker promises, kept the slow way: lists of calls with their
// times instead of buckets, slots and packed words.
//
// When a hanging call becomes known is promised only to a seventh of what is slow.
// There the shadow has what the real one did checked against all that may be, and
// goes on from that.
type shadow struct {
	t      *testing.T
	rules  breaker.Rules
	force  breaker.Force
	jitter bool

	state   breaker.State
	forced  bool
	era     int
	cause   breaker.Cause // of an open or half-open one
	until   time.Duration
	failed  int
	entered [breaker.HalfOpen + 1]int64

	// of a closed one
	ended  []endedCall
	runs   []*modelCall
	streak int64
	// known is when somebody last looked at what hangs, and judged what was known when
	// a call last asked.
	known, judged time.Duration

	// of a half-open one
	leases             []*modelCall
	healthy, unhealthy int

	newest time.Duration // time that there was

	got, want []breaker.Event // got are those that the real one has told of
	same      int             // so many of both have been compared
}

type endedCall struct {
	at     time.Duration
	result breaker.Result
	slow   bool
}

// modelCall is a call that was admitted.
type modelCall struct {
	permit   breaker.Permit
	era      int
	probe    bool
	deadline time.Duration // of a probe
	begun    bool
	at       time.Duration
	used     bool
}

func (s *shadow) counts() bool { return s.rules.SlowRatio > 0 }

func (s *shadow) enter(to breaker.State, ev breaker.Event) {
	ev.From, ev.To = s.state, to
	s.want = append(s.want, ev)
	s.entered[to]++
	s.state, s.forced, s.era = to, false, s.era+1
	s.leases, s.healthy, s.unhealthy = nil, 0, 0
}

func (s *shadow) fresh(now time.Duration) {
	s.ended, s.runs, s.streak = nil, nil, 0
	s.known, s.judged = now, now
}

func (s *shadow) open(cause breaker.Cause, calls, failures, slow int64, failed int, at time.Duration) {
	d := s.rules.OpenFor
	if s.rules.OpenGrowth > 1 {
		grown := float64(d)
		for range failed {
			grown = min(grown*s.rules.OpenGrowth, float64(s.rules.OpenMax))
		}
		d = time.Duration(grown)
	}
	if s.jitter {
		d += time.Duration(int64(d) * s.rules.OpenJitter / breaker.Million)
	}
	s.enter(breaker.Open, breaker.Event{Cause: cause, At: at, OpenFor: d, Calls: calls, Failures: failures, Slow: slow})
	s.cause, s.until, s.failed = cause, at+d, failed
}

func (s *shadow) close(cause breaker.Cause, at time.Duration) {
	s.enter(breaker.Closed, breaker.Event{Cause: cause, At: at})
	s.cause, s.until, s.failed = breaker.Cause{}, 0, 0
	s.fresh(at)
}

func (s *shadow) halfOpen(at time.Duration) {
	s.enter(breaker.HalfOpen, breaker.Event{Cause: s.cause, At: at})
}

// inWindow are the calls that ended in the buckets that now is the last of.
func (s *shadow) inWindow(now time.Duration) []endedCall {
	bucket := func(t time.Duration) int64 {
		from := t - (t%s.rules.Width+s.rules.Width)%s.rules.Width // the multiple before
		return int64(from / s.rules.Width)
	}
	var in []endedCall
	for _, c := range s.ended {
		if bucket(c.at) > bucket(now)-int64(s.rules.Buckets) {
			in = append(in, c)
		}
	}
	return in
}

// sums are the calls, those that failed, were slow, timed out, and were refused.
func (s *shadow) sums(now time.Duration) (calls, failures, slow, timeouts, refused int64) {
	for _, c := range s.inWindow(now) {
		failed := c.result == breaker.Failure || c.result == breaker.Timeout
		switch {
		case c.result == breaker.Refused:
			refused++
		case failed || c.result == breaker.Success || c.slow:
			calls++
			if failed {
				failures++
			}
			if c.result == breaker.Timeout {
				timeouts++
			}
			if c.slow {
				slow++
			}
		}
	}
	return calls, failures, slow, timeouts, refused
}

// hung are how many calls may be known to hang: at most those that are slow now,
// at least those that were a seventh of that ago when somebody last looked.
func (s *shadow) hung(looked time.Duration) (least, most int64) {
	slow := s.rules.SlowCall
	for _, c := range s.runs {
		if s.newest-c.at > slow {
			most++
		}
		if looked-c.at >= slow+slow/7+8 { // what is no whole number is rounded up
			least++
		}
	}
	return least, most
}

func (s *shadow) trips(calls, failures, slow int64) breaker.Cause {
	share := func(n, ratio int64) bool {
		if ratio == 0 || n == 0 || calls < s.rules.MinCalls {
			return false
		}
		c := big.NewRat(n, calls).Cmp(big.NewRat(ratio, breaker.Million))
		return c > 0 || c == 0 && (!s.rules.Above || ratio == breaker.Million)
	}
	many := func(n, limit int64) bool {
		if s.rules.Above {
			return limit > 0 && n > limit
		}
		return limit > 0 && n >= limit
	}
	r := s.rules
	switch {
	case share(failures, r.ErrorRatio):
		return breaker.Cause{Reason: breaker.ErrorRatio, Limit: r.ErrorRatio / 10_000, Observed: failures * 100 / calls}
	case share(slow, r.SlowRatio):
		return breaker.Cause{Reason: breaker.SlowRatio, Limit: r.SlowRatio / 10_000, Observed: slow * 100 / calls}
	case calls >= r.MinCallsForCount && many(failures, r.ErrorCount):
		return breaker.Cause{Reason: breaker.ErrorCount, Limit: r.ErrorCount, Observed: failures}
	case many(s.streak, r.ConsecutiveErrors):
		return breaker.Cause{Reason: breaker.ConsecutiveErrors, Limit: r.ConsecutiveErrors, Observed: s.streak}
	}
	return breaker.Cause{}
}

// judge trips if the real breaker has, provided that it may, and checks that it
// has not to when it has not and must have looked.
func (s *shadow) judge(now, looked time.Duration, must bool) {
	if s.force == breaker.ForceClosed {
		return
	}
	calls, failures, slow, _, _ := s.sums(s.newest)
	var least, most int64
	if s.counts() {
		least, most = s.hung(looked)
	}
	if n := len(s.want); n < len(s.got) && s.got[n].From == breaker.Closed && s.got[n].Cause.Reason != breaker.Forced {
		h := s.got[n].Slow - slow
		require.True(s.t, least <= h && h <= most, "tripped with %d that hang, want %d to %d", h, least, most)
		cause := s.trips(calls+h, failures, slow+h)
		require.NotZero(s.t, cause, "tripped: %+v", s.got[n])
		s.open(cause, calls+h, failures, slow+h, 0, now)
		return
	}
	for h := least; h <= most; h++ {
		if s.trips(calls+h, failures, slow+h) == (breaker.Cause{}) {
			return
		}
	}
	require.False(s.t, must, "did not trip with %d calls, %d failures, %d slow, %d to %d hang", calls, failures, slow, least, most)
}

func (s *shadow) expire(now time.Duration) {
	for s.state == breaker.HalfOpen {
		late := slices.DeleteFunc(slices.Clone(s.leases), func(c *modelCall) bool { return c.deadline > now })
		if len(late) == 0 {
			return
		}
		first := slices.MinFunc(late, func(a, b *modelCall) int { return int(a.deadline - b.deadline) })
		s.take(first)
		s.unhealthy++
		s.decide(first.deadline)
	}
}

// take takes the lease of a probe back, and reports whether there was one.
func (s *shadow) take(c *modelCall) bool {
	had := s.state == breaker.HalfOpen && slices.Contains(s.leases, c)
	s.leases = slices.DeleteFunc(s.leases, func(l *modelCall) bool { return l == c })
	return had
}

func (s *shadow) decide(at time.Duration) {
	need := s.rules.ProbeSuccesses
	if need == 0 {
		need = s.rules.Probes
	}
	switch {
	case s.healthy >= need:
		s.close(breaker.Cause{}, at)
	case s.unhealthy > s.rules.Probes-need:
		s.open(breaker.Cause{Reason: breaker.ProbesFailed, Limit: int64(need), Observed: int64(s.healthy)},
			int64(s.healthy+s.unhealthy), int64(s.unhealthy), 0, s.failed+1, at)
	}
}

// allow is the call that is admitted, or the reason why none is.
func (s *shadow) allow(now time.Duration) (*modelCall, breaker.Verdict) {
	if s.state == breaker.Closed && s.counts() {
		slot := s.rules.SlowCall/7 + 1
		must := now-s.judged >= slot
		if must {
			s.judge(now, now, true)
		} else {
			s.judge(now, s.known, false)
		}
		s.known = max(s.known, now)
		s.judged = s.known
	}
	s.expire(now)
	if s.state == breaker.Open && !s.forced && now >= s.until {
		s.halfOpen(now)
	}
	c := &modelCall{era: s.era}
	switch {
	case s.state == breaker.Closed:
		return c, breaker.Verdict{}
	case s.state == breaker.HalfOpen && s.healthy+s.unhealthy+len(s.leases) < s.rules.Probes:
		c.probe, c.deadline = true, now+s.rules.ProbeTimeout
		s.leases = append(s.leases, c)
		return c, breaker.Verdict{}
	case s.state == breaker.HalfOpen:
		n := int64(s.rules.Probes)
		return nil, breaker.Verdict{State: breaker.HalfOpen, Cause: breaker.Cause{Reason: breaker.Probing, Limit: n, Observed: n}}
	}
	return nil, breaker.Verdict{State: breaker.Open, Cause: s.cause, Until: s.until}
}

func (s *shadow) begin(c *modelCall, now time.Duration) {
	if c.era == s.era && s.state == breaker.Closed && s.counts() && !c.begun {
		c.begun, c.at = true, now
		s.runs = append(s.runs, c)
		s.known = max(s.known, now)
	}
}

func (s *shadow) end(c *modelCall, res breaker.Result, elapsed, now time.Duration) {
	if c.era != s.era {
		return
	}
	if c.probe {
		if !s.take(c) {
			return
		}
		long := s.rules.ProbeUnder > 0 && elapsed >= s.rules.ProbeUnder
		switch {
		case res == breaker.Refused || res == breaker.Ignored && !long:
			return
		case res == breaker.Success && !long:
			s.healthy++
		default:
			s.unhealthy++
		}
		s.decide(now)
		return
	}
	s.runs = slices.DeleteFunc(s.runs, func(r *modelCall) bool { return r == c })
	slow := s.counts() && elapsed > s.rules.SlowCall
	s.ended = append(s.ended, endedCall{s.newest, res, slow})
	switch {
	case res == breaker.Success:
		s.streak = 0
	case (res == breaker.Failure || res == breaker.Timeout) && s.rules.ConsecutiveErrors > 0:
		s.streak++
	}
	if res == breaker.Refused || res == breaker.Ignored && !slow {
		return
	}
	s.judge(now, s.known, true)
}

func (s *shadow) drop(c *modelCall, now time.Duration) {
	if c.era != s.era {
		return
	}
	s.runs = slices.DeleteFunc(s.runs, func(r *modelCall) bool { return r == c })
	if c.probe && s.take(c) && len(s.leases) == 0 && s.healthy+s.unhealthy == 0 {
		s.enter(breaker.Open, breaker.Event{Cause: breaker.Cause{Reason: breaker.NotProbed}, At: now})
	}
}

func (s *shadow) update(r breaker.Rules, force breaker.Force, now time.Duration) {
	old, was := s.rules, s.force
	if r == old && force == was {
		return
	}
	s.rules, s.force = r, force
	slowChanged := (r.SlowRatio > 0) != (old.SlowRatio > 0) || r.SlowRatio > 0 && r.SlowCall != old.SlowCall
	switch {
	case force == breaker.ForceOpen && was != force:
		s.enter(breaker.Open, breaker.Event{Cause: breaker.Cause{Reason: breaker.Forced}, At: now})
		s.forced, s.cause, s.until, s.failed = true, breaker.Cause{Reason: breaker.Forced}, 0, 0
	case force == breaker.ForceClosed && s.state != breaker.Closed:
		s.close(breaker.Cause{Reason: breaker.Forced}, now)
	case s.state == breaker.Closed && (r.Width != old.Width || r.Buckets != old.Buckets || slowChanged):
		s.era++
		s.fresh(now)
	case s.state == breaker.Open && was == breaker.ForceOpen && force == breaker.Free:
		s.forced, s.until = false, now
	case s.state == breaker.HalfOpen:
		s.decide(now)
	}
}

func (s *shadow) reset(now time.Duration) {
	switch {
	case s.force == breaker.ForceOpen:
	case s.state == breaker.Closed:
		s.era++
		s.fresh(now)
	default:
		s.close(breaker.Cause{Reason: breaker.Forced}, now)
	}
}

func (s *shadow) probe(now time.Duration) error {
	if s.state == breaker.Closed {
		return breaker.ErrTransition
	}
	if !s.forced {
		s.halfOpen(now)
	}
	return nil
}

func (s *shadow) stats(now time.Duration) breaker.Stats {
	st := breaker.Stats{State: s.state, Force: s.force, Cause: s.cause, Entered: s.entered}
	switch s.state {
	case breaker.Closed:
		st.Cause = breaker.Cause{}
		st.Calls, st.Failures, st.Slow, st.Timeouts, st.Refused = s.sums(now)
		st.Streak = s.streak
		s.known = max(s.known, now)
	case breaker.Open:
		if !s.forced && s.until > now {
			st.Until = s.until
		}
	case breaker.HalfOpen:
		st.Probes, st.Healthy, st.Unhealthy = len(s.leases), s.healthy, s.unhealthy
	}
	return st
}

// script are the bytes that a run goes by; 0 after their end.
type script []byte

func (s *script) next(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := int((*s)[0])
	*s = (*s)[1:]
	return b % n
}

func choose[T any](s *script, of ...T) T { return of[s.next(len(of))] }

// modelRun drives a breaker and its shadow.
type modelRun struct {
	*shadow
	real   *breaker.Breaker
	script script
	now    time.Duration
	calls  []*modelCall // that run or wait
	used   []*modelCall
	// refusal is the last one, for as long as its address is to stay.
	refusal *breaker.Verdict
}

func modelRules(s *script) breaker.Rules {
	r := breaker.Rules{
		MinCalls: 4, Width: 100 * ms, Buckets: 4, SlowCall: choose(s, 70*ms, 13),
		OpenFor: 300 * ms, Probes: 1, ProbeTimeout: 200 * ms,
	}
	strategy := s.next(32)
	if strategy&1 != 0 {
		r.ErrorRatio = breaker.Million / 2
	}
	if strategy&2 != 0 {
		r.SlowRatio = breaker.Million / 2
	}
	if strategy&4 != 0 {
		r.ErrorCount = 3
	}
	if strategy&8 != 0 {
		r.ConsecutiveErrors = 3
	}
	if strategy&16 != 0 {
		r.Probes, r.ProbeSuccesses = 3, 2
	}
	return r
}

// change changes one of the rules.
func change(s *script, r breaker.Rules) breaker.Rules {
	switch s.next(16) {
	case 0:
		r.ErrorRatio = choose[int64](s, 0, 1, 300_000, 333_333, 570_000, breaker.Million)
	case 1:
		r.SlowRatio = choose[int64](s, 0, 1, 400_000, 666_667, breaker.Million)
	case 2:
		r.ErrorCount = choose[int64](s, 0, 1, 3, 5)
	case 3:
		r.ConsecutiveErrors = choose[int64](s, 0, 1, 3, 5)
	case 4:
		r.SlowCall = choose(s, 70*ms, 1, 6, 7, 13, 100, 100*ms, time.Hour)
	case 5:
		r.MinCalls = choose[int64](s, 0, 1, 3, 6)
	case 6:
		r.MinCallsForCount = choose[int64](s, 0, 1, 4)
	case 7:
		r.Width = choose(s, 100*ms, 1, 33*ms, time.Second)
	case 8:
		r.Buckets = choose(s, 1, 2, 4, 7)
	case 9:
		r.Above = !r.Above
	case 10:
		r.OpenFor = choose(s, 1, 50*ms, 300*ms)
	case 11:
		r.OpenJitter = choose[int64](s, 0, 100_000, breaker.Million)
	case 12:
		r.OpenGrowth, r.OpenMax = choose(s, 0.0, 1, 2, 1.5), choose(s, 300*ms, 700*ms, time.Second)
	case 13:
		r.Probes = choose(s, 1, 2, 3, 5, 0)
		r.ProbeSuccesses = s.next(r.Probes + 2)
	case 14:
		r.ProbeUnder = choose(s, 0, 1, 60*ms)
	case 15:
		r.ProbeTimeout = choose(s, 1, 100*ms, 200*ms, 0)
	}
	return r
}

func runModel(t *testing.T, data []byte) {
	m := &modelRun{shadow: &shadow{t: t}, script: data[:min(len(data), 4096)]}
	m.jitter = m.script.next(2) == 1
	always := m.script.next(2) == 1 // to look at the figures may change what follows
	m.now = choose(&m.script, 0, 1000*time.Hour, -450*ms, 1)
	m.rules = modelRules(&m.script)
	m.newest = m.now
	m.fresh(m.now)
	m.era = 1
	var err error
	m.real, err = breaker.New(m.rules, m.now, breaker.WithListener(func(e breaker.Event) { m.got = append(m.got, e) }),
		breaker.WithRandom(func(n int64) int64 {
			if m.jitter {
				return n - 1
			}
			return 0
		}))
	require.NoError(t, err)
	for len(m.script) > 0 {
		m.step()
		m.sameEvents()
		if always {
			m.look()
		}
	}
	m.rest()
}

func (s *shadow) sameEvents() {
	require.Equal(s.t, s.want[s.same:], s.got[s.same:])
	s.same = len(s.want)
}

// rest ends what runs: nothing hangs then.
func (m *modelRun) rest() {
	for i := 0; len(m.calls) > 0; i++ {
		c := m.pick()
		if i%2 == 0 {
			m.endCall(c, breaker.Ignored, 0)
		} else {
			m.dropCall(c)
		}
		m.sameEvents()
	}
	m.look()
	m.pass(time.Hour)
	m.look()
	st := m.real.Stats(m.now)
	require.Zero(m.t, st.Hung)
	require.Zero(m.t, st.Probes)
	require.Zero(m.t, st.Calls)
}

func (m *modelRun) pass(d time.Duration) {
	m.now += max(d, 0)
	m.newest = m.now
}

// time is now or, as calls that run side by side have it, a little before.
func (m *modelRun) time() time.Duration {
	back := time.Duration(m.script.next(4))
	if back == 3 && (m.now-back)/m.rules.Width == m.now/m.rules.Width && m.now > back {
		return m.now - back
	}
	return m.now
}

// pick takes a call that was admitted.
func (m *modelRun) pick() *modelCall {
	if len(m.calls) == 0 {
		return nil
	}
	return m.calls[m.script.next(len(m.calls))]
}

func (m *modelRun) finish(c *modelCall) {
	c.used = true
	m.used = append(m.used, c)
	m.calls = slices.DeleteFunc(m.calls, func(o *modelCall) bool { return o == c })
}

func (m *modelRun) endCall(c *modelCall, res breaker.Result, elapsed time.Duration) {
	now := m.time()
	m.real.End(c.permit, res, elapsed, now)
	m.end(c, res, elapsed, now)
	m.finish(c)
}

func (m *modelRun) dropCall(c *modelCall) {
	now := m.time()
	m.real.Drop(c.permit, now)
	m.drop(c, now)
	m.finish(c)
}

func (m *modelRun) beginCall(c *modelCall) {
	c.permit = m.real.Begin(c.permit, m.now)
	m.begin(c, m.now)
}

func (m *modelRun) admit() *modelCall {
	now := m.time()
	p, v := m.real.Allow(now)
	c, want := m.allow(now)
	if c == nil {
		require.NotNil(m.t, v, "admitted, want %+v", want)
		require.Equal(m.t, want, *v)
		require.Zero(m.t, p)
		if m.refusal != nil && *m.refusal == *v {
			require.Same(m.t, m.refusal, v)
		}
		m.refusal = v
		return nil
	}
	require.Nil(m.t, v)
	require.NotZero(m.t, p.Era)
	require.Equal(m.t, c.probe, p.Key != 0)
	for _, o := range append(slices.Clone(m.calls), m.used...) {
		require.Equal(m.t, o.era == c.era, o.permit.Era == p.Era)
		require.False(m.t, o.probe && o.permit == p)
	}
	c.permit, m.refusal = p, nil
	m.calls = append(m.calls, c)
	return c
}

func (m *modelRun) look() {
	got := m.real.Stats(m.now)
	want := m.stats(m.now)
	if m.state == breaker.Closed && m.counts() {
		least, most := m.hung(m.now)
		require.True(m.t, least <= got.Hung && got.Hung <= most, "%d hang, want %d to %d", got.Hung, least, most)
		want.Hung = got.Hung
	}
	require.Equal(m.t, want, got)
	require.Equal(m.t, m.rules, m.real.Rules())
	require.Equal(m.t, m.counts(), m.real.CountsSlow())
}

var allResults = []breaker.Result{breaker.Success, breaker.Failure, breaker.Timeout, breaker.Ignored, breaker.Refused}

func (m *modelRun) step() {
	switch s := &m.script; s.next(16) {
	case 0, 1:
		if c := m.admit(); c != nil && s.next(4) > 0 {
			m.beginCall(c)
		}
	case 2, 3, 4:
		if c := m.pick(); c != nil {
			m.endCall(c, choose(s, allResults...), choose(s, 0, m.now-c.at, m.rules.SlowCall, m.rules.SlowCall+1, m.rules.ProbeUnder, m.rules.ProbeUnder-1))
		}
	case 5:
		if c := m.pick(); c != nil {
			m.dropCall(c)
		}
	case 6:
		if c := m.pick(); c != nil {
			m.beginCall(c)
		}
	case 7: // a few calls of one kind
		res, slow := choose(s, allResults...), s.next(3) == 0
		for range s.next(6) {
			c := m.admit()
			if c == nil {
				return
			}
			m.beginCall(c)
			m.sameEvents()
			elapsed := time.Duration(0)
			if slow {
				elapsed = m.rules.SlowCall + 1
			}
			m.endCall(c, res, elapsed)
			m.sameEvents()
		}
	case 8: // what is over changes nothing
		if len(m.used) == 0 {
			m.real.End(breaker.Permit{}, breaker.Failure, time.Hour, m.now)
			m.real.Drop(breaker.Permit{}, m.now)
			return
		}
		c := m.used[s.next(len(m.used))]
		if !c.probe && c.era == m.era {
			return // that would be one more call: who calls has to see to it
		}
		if s.next(2) == 0 {
			m.real.End(c.permit, choose(s, allResults...), time.Hour, m.now)
		} else {
			m.real.Drop(m.real.Begin(c.permit, m.now), m.now)
		}
	case 9, 10, 11:
		m.passSome()
	case 12:
		r, force := change(s, m.rules), m.force
		if s.next(8) == 0 {
			force = choose(s, breaker.Free, breaker.ForceOpen, breaker.ForceClosed)
		}
		m.change(r, force)
	case 13:
		switch s.next(8) {
		case 0:
			m.change(m.rules, choose(s, breaker.Free, breaker.ForceOpen, breaker.ForceClosed))
		case 1:
			m.real.Reset(m.now)
			m.reset(m.now)
			m.refusal = nil
		case 2, 3:
			require.ErrorIs(m.t, m.real.Probe(m.now), m.probe(m.now))
			m.refusal = nil
		default:
			m.change(m.rules, breaker.Free)
		}
	case 14:
		m.look()
	case 15:
		p, ok := m.real.TryClosed()
		require.Equal(m.t, m.state == breaker.Closed && !m.counts(), ok)
		if ok {
			m.calls = append(m.calls, &modelCall{permit: p, era: m.era})
		}
	}
}

func (m *modelRun) change(r breaker.Rules, force breaker.Force) {
	err := m.real.Update(r, force, m.now)
	if r.Probes < 1 || r.ProbeSuccesses > r.Probes || r.ProbeTimeout <= 0 || r.OpenGrowth > 1 && r.OpenMax < r.OpenFor {
		require.ErrorIs(m.t, err, breaker.ErrRules)
		return
	}
	require.NoError(m.t, err)
	m.update(r, force, m.now)
	m.refusal = nil
}

// passSome lets time pass.
func (m *modelRun) passSome() {
	s := &m.script
	switch s.next(10) {
	case 0:
		m.pass(1)
	case 1:
		m.pass(ms)
	case 2: // to the first moment of the next bucket
		d := m.now % m.rules.Width
		m.pass(m.rules.Width - (d+m.rules.Width)%m.rules.Width)
	case 3:
		m.pass(m.rules.Width)
	case 4:
		m.pass(m.rules.Width * time.Duration(m.rules.Buckets))
	case 5:
		m.pass(m.until - m.now - time.Duration(s.next(2)))
	case 6:
		if len(m.leases) > 0 {
			m.pass(m.leases[0].deadline - m.now - time.Duration(s.next(2)))
		}
	case 7:
		m.pass(m.rules.SlowCall + time.Duration(s.next(2)))
	case 8:
		m.pass((m.rules.SlowCall + 6) / 7)
	case 9:
		m.pass(time.Duration(s.next(200)) * ms)
	}
}

// TestModel has the breaker and its shadow do the same at random.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	for i := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, i))
		data := make([]byte, r.IntN(600))
		for j := range data {
			data[j] = byte(r.Uint32())
		}
		if !t.Run("", func(t *testing.T) { runModel(t, data) }) {
			t.Fatalf("seed %d, run %d: %#v", seed, i, data)
		}
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte{})
	for i := range uint64(32) {
		r := rand.New(rand.NewPCG(1, i))
		data := make([]byte, 50+10*i)
		for j := range data {
			data[j] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(runModel)
}
