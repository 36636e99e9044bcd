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
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/breaker"
)

// storm is a breaker that many goroutines use at once, on a clock that they move.
type storm struct {
	t      *testing.T
	b      *breaker.Breaker
	clock  atomic.Int64
	probes int64 // the most that the rules allow

	mu     sync.Mutex
	events []breaker.Event
	taken  map[uint32]*atomic.Int64 // places in half-open eras
}

func newStorm(t *testing.T, r breaker.Rules, probes int) *storm {
	t.Helper()
	s := &storm{t: t, probes: int64(probes), taken: map[uint32]*atomic.Int64{}}
	var err error
	s.b, err = breaker.New(r, 0, breaker.WithListener(s.hear))
	require.NoError(t, err)
	return s
}

func (s *storm) hear(e breaker.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *storm) now() time.Duration { return time.Duration(s.clock.Load()) }

func (s *storm) places(era uint32) *atomic.Int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[era] == nil {
		s.taken[era] = new(atomic.Int64)
	}
	return s.taken[era]
}

// permit is one with the place that a probe takes: until it is given back, and for
// good where it came to a result.
type permit struct {
	breaker.Permit
	places *atomic.Int64
}

func (s *storm) allow() (permit, bool) {
	p, v := s.b.Allow(s.now())
	if v != nil {
		assert.NotEqual(s.t, breaker.Closed, v.State)
		return permit{}, false
	}
	if p.Key == 0 {
		return permit{Permit: s.b.Begin(p, s.now())}, true
	}
	places := s.places(p.Era)
	assert.LessOrEqual(s.t, places.Add(1), s.probes, "probes that run or have ended in one era")
	return permit{s.b.Begin(p, s.now()), places}, true
}

func (s *storm) end(p permit, res breaker.Result, elapsed time.Duration) {
	if p.places != nil && (res == breaker.Ignored || res == breaker.Refused) {
		p.places.Add(-1)
	}
	s.b.End(p.Permit, res, elapsed, s.now())
}

func (s *storm) drop(p permit) {
	if p.places != nil {
		p.places.Add(-1)
	}
	s.b.Drop(p.Permit, s.now())
}

// panics runs a call that does, as a filter would.
func (s *storm) panics(p permit) {
	defer func() {
		if recover() != nil {
			s.end(p, breaker.Failure, 0)
		}
	}()
	panic("a call's fault")
}

// call runs one, or leaves it hanging.
func (s *storm) call(r *rand.Rand, hanging []permit) []permit {
	p, ok := s.allow()
	if !ok {
		return hanging
	}
	if r.IntN(4) == 0 {
		runtime.Gosched()
	}
	switch r.IntN(10) {
	case 0:
		s.drop(p)
	case 1:
		s.panics(p)
	case 2, 3:
		return append(hanging, p)
	case 4:
		s.end(p, breaker.Result(r.IntN(5)), 100*ms)
	default:
		s.end(p, breaker.Result(r.IntN(5)), time.Duration(r.IntN(2)))
	}
	return hanging
}

// check is what holds whenever it is read.
func (s *storm) check() {
	st := s.b.Stats(s.now())
	assert.LessOrEqual(s.t, int64(st.Probes+st.Healthy+st.Unhealthy), s.probes)
	assert.GreaterOrEqual(s.t, st.Hung, int64(0))
	assert.LessOrEqual(s.t, st.Slow, st.Calls)
	assert.LessOrEqual(s.t, st.Failures, st.Calls)
	assert.LessOrEqual(s.t, st.Timeouts, st.Failures)
}

// heard checks that the events are all that there were, each where the one before ended.
func (s *storm) heard() (into [breaker.HalfOpen + 1]int64) {
	st := s.b.Stats(s.now())
	s.mu.Lock()
	defer s.mu.Unlock()
	at := breaker.Closed
	for i, e := range s.events {
		require.Equal(s.t, at, e.From, "event %d", i)
		require.False(s.t, e.From == breaker.Closed && e.To == breaker.HalfOpen)
		at = e.To
		into[e.To]++
	}
	assert.Equal(s.t, st.State, at)
	assert.Equal(s.t, st.Entered, into)
	return into
}

func stormRules() breaker.Rules {
	return rules(func(r *breaker.Rules) {
		r.SlowRatio, r.SlowCall, r.MinCalls = breaker.Million*3/4, 20*ms, 8
		r.Width, r.Buckets = 50*ms, 4
		r.OpenFor, r.Probes, r.ProbeSuccesses, r.ProbeTimeout = 10*ms, 5, 2, 40*ms
	})
}

func TestStorm(t *testing.T) {
	for _, manage := range []bool{false, true} {
		s := newStorm(t, stormRules(), 5)
		run(16, func(i int) {
			r := rand.New(rand.NewPCG(rand.Uint64(), 0))
			var hanging []permit
			for range 600 {
				hanging = s.call(r, hanging)
				switch r.IntN(8) {
				case 0:
					s.clock.Add(int64(r.IntN(int(3 * ms))))
				case 1:
					s.check()
				case 2, 3, 4:
					if n := len(hanging); n > 0 {
						s.end(hanging[n-1], breaker.Result(r.IntN(5)), 30*ms)
						hanging = hanging[:n-1]
					}
				}
				if manage && i == 0 && r.IntN(4) == 0 {
					s.manage(r)
				}
			}
			for _, p := range hanging {
				s.drop(p)
			}
		})
		assert.NoError(t, s.b.Update(stormRules(), breaker.Free, s.now()))
		st := s.b.Stats(s.now())
		assert.Zero(t, st.Hung)
		assert.Zero(t, st.Probes)
		into := s.heard()
		assert.NotZero(t, into[breaker.HalfOpen])
		if manage {
			continue
		}
		for _, e := range s.events {
			if e.From == breaker.Open {
				assert.Equal(t, breaker.HalfOpen, e.To)
				into[breaker.Open]--
			}
		}
		if st.State == breaker.Open {
			into[breaker.Open]--
		}
		assert.Zero(t, into[breaker.Open], "one half-open event for each leaving of open")
	}
}

// manage does what somebody at a console does.
func (s *storm) manage(r *rand.Rand) {
	u, force := stormRules(), breaker.Free
	switch r.IntN(9) {
	case 0:
		u.Probes, u.ProbeSuccesses = 1+r.IntN(5), 0
	case 1:
		u.SlowRatio = 0
	case 2:
		u.Width = 70 * ms
	case 3:
		u.MinCalls, u.ErrorCount = 20, 10
	case 4:
		force = breaker.ForceOpen
	case 5:
		force = breaker.ForceClosed
	case 6:
		s.b.Reset(s.now())
		return
	case 7:
		_ = s.b.Probe(s.now())
		return
	}
	assert.NoError(s.t, s.b.Update(u, force, s.now()))
}

// Once everything has ended nothing hangs, however slots were begun meanwhile, and
// whoever hangs is counted.
func TestStormOfHangingCalls(t *testing.T) {
	s := newStorm(t, rules(func(r *breaker.Rules) {
		r.ErrorRatio, r.SlowRatio, r.SlowCall, r.MinCalls = 0, breaker.Million, 7, 1<<40
	}), 1)
	var left atomic.Int64
	for range 3 {
		permits := make(chan permit, 16*300)
		run(16, func(i int) {
			for range 300 {
				p, ok := s.allow()
				assert.True(t, ok)
				s.clock.Add(1)
				if i%4 == 0 {
					permits <- p
					left.Add(1)
				} else {
					s.end(p, breaker.Success, 0)
				}
			}
		})
		s.clock.Add(8)
		assert.Equal(t, left.Load(), s.b.Stats(s.now()).Hung)
		close(permits)
		run(16, func(int) {
			for p := range permits {
				s.clock.Add(1)
				s.check()
				s.drop(p)
				left.Add(-1)
			}
		})
		assert.Zero(t, s.b.Stats(s.now()).Hung)
	}
}

// What began before changes nothing, when it all ends at once with what is new.
func TestStormOfAnEarlierEra(t *testing.T) {
	for range 10 {
		s := newStorm(t, rules(func(r *breaker.Rules) {
			r.ErrorRatio, r.ErrorCount, r.SlowRatio, r.SlowCall = 0, 1, 1, 7
		}), 1)
		var early [16][]permit
		for i := range early {
			for range 20 {
				p, _ := s.allow()
				early[i] = append(early[i], p)
			}
		}
		if rand.IntN(2) == 0 {
			s.b.Reset(s.now())
		} else {
			u := s.b.Rules()
			u.Buckets++
			require.NoError(t, s.b.Update(u, breaker.Free, s.now()))
		}
		s.clock.Add(100) // the early ones are slow, too
		run(16, func(i int) {
			for j, p := range early[i] {
				if n, ok := s.allow(); assert.True(t, ok) {
					s.end(n, breaker.Success, 0)
				}
				if j%3 == 0 {
					s.drop(p)
				} else {
					s.end(p, breaker.Failure, time.Hour)
				}
			}
		})
		st := s.b.Stats(s.now())
		assert.Equal(t, breaker.Closed, st.State)
		assert.EqualValues(t, 16*20, st.Calls)
		assert.Zero(t, st.Failures+st.Slow+st.Hung)
		assert.Empty(t, s.events)
	}
}

// With all calls failing the breaker opens once, and counts no more than have failed.
func TestStormTripsOnce(t *testing.T) {
	for range 20 {
		s := newStorm(t, rules(func(r *breaker.Rules) { r.ErrorRatio, r.ErrorCount = 0, 50 }), 1)
		var failed atomic.Int64
		run(16, func(int) {
			for range 20 {
				if p, ok := s.allow(); ok {
					failed.Add(1)
					s.end(p, breaker.Failure, 0)
				}
			}
		})
		require.Len(t, s.events, 1)
		assert.GreaterOrEqual(t, s.events[0].Failures, int64(50))
		assert.LessOrEqual(t, s.events[0].Failures, failed.Load())
		assert.LessOrEqual(t, failed.Load(), int64(50+16))
	}
}

// hold makes that others wait for the breaker's lock, between what they have seen
// and what they do.
func hold(b *breaker.Breaker) {
	for range 50 {
		b.Stats(0)
	}
}

// Whatever trips as somebody closes the breaker: it is closed then.
func TestStormOfTripsAndResets(t *testing.T) {
	for _, closes := range []func(b *breaker.Breaker, r breaker.Rules){
		func(b *breaker.Breaker, _ breaker.Rules) { b.Reset(1) },
		func(b *breaker.Breaker, r breaker.Rules) { _ = b.Update(r, breaker.ForceClosed, 1) },
	} {
		for n := range 400 {
			r := rules(func(r *breaker.Rules) { r.MinCalls = 1 })
			b, err := breaker.New(r, 0)
			require.NoError(t, err)
			permits := make([]breaker.Permit, 1+n%3)
			for i := range permits {
				permits[i], _ = b.Allow(0)
			}
			run(8, func(i int) {
				switch {
				case i == 0:
					closes(b, r)
				case i <= len(permits):
					b.End(permits[i-1], breaker.Failure, 0, 0)
				default:
					hold(b)
				}
			})
			require.Equal(t, breaker.Closed, b.Stats(0).State)
		}
	}
}

// A probe of one round that ends as the next begins is not taken for one of that.
func TestStormOfRounds(t *testing.T) {
	b, err := breaker.New(rules(func(r *breaker.Rules) { r.MinCalls, r.Probes, r.ProbeSuccesses = 1, 8, 1 }), 0)
	require.NoError(t, err)
	p, _ := b.Allow(0)
	b.End(p, breaker.Failure, 0, 0)
	for range 400 {
		require.NoError(t, b.Probe(0))
		p, v := b.Allow(0)
		require.Nil(t, v)
		other, _ := b.Allow(0)
		run(6, func(i int) {
			switch i {
			case 0:
				_ = b.Probe(0)
				_, _ = b.Allow(0)
				_, _ = b.Allow(0)
			case 1:
				b.End(p, breaker.Failure, 0, 0)
			case 2:
				b.Drop(other, 0)
			default:
				hold(b)
			}
		})
		st := b.Stats(0)
		require.Equal(t, []int{2, 0, 0}, []int{st.Probes, st.Healthy, st.Unhealthy})
	}
}

// Two in a row: the second is open for long, so each probe of the first is taken back.
func TestStormOfTwoBreakers(t *testing.T) {
	trip := func(d time.Duration) *storm {
		s := newStorm(t, rules(func(r *breaker.Rules) { r.MinCalls, r.OpenFor, r.ProbeTimeout = 1, d, time.Hour }), 1)
		p, _ := s.allow()
		s.end(p, breaker.Failure, 0)
		return s
	}
	first, second := trip(ms), trip(2000*time.Second)
	first.clock.Store(int64(100 * ms))
	second.clock.Store(int64(100 * ms))
	var blocks atomic.Int64
	run(100, func(i int) {
		for range 100 {
			p, ok := first.allow()
			if !ok {
				continue
			}
			if i%7 == 0 {
				runtime.Gosched()
			}
			_, ok = second.allow()
			assert.False(t, ok)
			blocks.Add(1)
			first.drop(p)
		}
	})
	assert.NotZero(t, blocks.Load())
	into := first.heard()
	assert.Equal(t, blocks.Load(), into[breaker.HalfOpen])
	assert.Equal(t, blocks.Load(), into[breaker.Open]-1)
	for _, e := range first.events[1:] {
		if e.To == breaker.Open {
			assert.Equal(t, breaker.NotProbed, e.Cause.Reason)
		}
	}
	assert.Len(t, second.events, 1)
}

// A listener may use the breaker, and when it panics or ends its goroutine nobody
// misses more than it did.
func TestStormOfListeners(t *testing.T) {
	var b *breaker.Breaker
	var mu sync.Mutex
	var events []breaker.Event
	var telling, reentered atomic.Int64
	b, err := breaker.New(rules(func(r *breaker.Rules) { r.MinCalls, r.OpenFor = 1, 1 }), 0, breaker.WithListener(func(e breaker.Event) {
		assert.EqualValues(t, 1, telling.Add(1), "one after another")
		defer telling.Add(-1)
		mu.Lock()
		events = append(events, e)
		n := len(events)
		mu.Unlock()
		runtime.Gosched()
		switch n % 5 {
		case 0:
			panic("a listener's fault")
		case 1:
			runtime.Goexit()
		case 2:
			if reentered.Add(1) < 100 {
				_ = b.Probe(e.At)
				b.Reset(e.At)
			}
			b.Stats(e.At)
			_, _ = b.Allow(e.At)
		}
	}))
	require.NoError(t, err)
	for range 20 {
		run(8, func(i int) { // some of them exit on the way
			switch i % 4 {
			case 0:
				b.Reset(2)
			case 1:
				_ = b.Probe(2)
			default:
				for range 2 {
					if p, v := b.Allow(2); v == nil {
						b.End(p, breaker.Failure, 0, 2)
					}
				}
			}
		})
	}
	// What is left is told by a goroutine of its own where that which told has exited.
	told := func() bool {
		mu.Lock()
		defer mu.Unlock()
		var all int64
		for _, n := range b.Stats(2).Entered {
			all += n
		}
		return int64(len(events)) == all
	}
	for !told() || telling.Load() > 0 {
		runtime.Gosched()
	}
	at := breaker.Closed
	for i, e := range events {
		require.Equal(t, at, e.From, "event %d", i)
		at = e.To
	}
	require.Equal(t, b.Stats(2).State, at)
	require.Greater(t, len(events), 20)
}

// A slow listener holds up nobody but the one that it is told by, and what it did
// not hear of for a bound number of events is forgotten, the oldest first.
func TestListenerThatDoesNotComeBack(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var told []breaker.Event
	b, err := breaker.New(rules(func(r *breaker.Rules) { r.MinCalls = 1 }), 0, breaker.WithListener(func(e breaker.Event) {
		if told = append(told, e); len(told) == 1 {
			close(entered)
			<-leave
		}
	}))
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p, _ := b.Allow(0)
		b.End(p, breaker.Failure, 0, 0)
	}()
	<-entered
	for i := range 5000 {
		require.NoError(t, b.Probe(time.Duration(i)))
	}
	close(leave)
	<-done
	require.Len(t, told, 1+1024)
	for i, e := range told[1:] {
		require.EqualValues(t, 5000-1024+i, e.At)
	}
}
