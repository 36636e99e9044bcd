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
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/breaker"
)

func hangs(change func(*breaker.Rules)) breaker.Rules {
	return rules(func(r *breaker.Rules) {
		r.ErrorRatio, r.SlowRatio, r.SlowCall = 0, breaker.Million/2, 70*ms
		if change != nil {
			change(r)
		}
	})
}

// Somebody reads the figures, or a call that has waited begins, at the start of
// each slot. The next call took it that what hangs had been looked at already, and
// the breaker never tripped.
func TestRegression_HungCallsAreJudgedWhoeverLookedFirst(t *testing.T) {
	for _, look := range []func(s *bench, waits breaker.Permit){
		func(s *bench, _ breaker.Permit) { s.b.Stats(s.now) },
		func(s *bench, waits breaker.Permit) { s.b.Begin(waits, s.now) },
	} {
		s := newBench(t, hangs(nil))
		var waits []breaker.Permit
		for range 20 {
			p, _ := s.b.Allow(s.now)
			waits = append(waits, p)
		}
		for range 10 {
			s.begin()
		}
		for _, p := range waits[:9] {
			s.pass(10 * ms)
			look(s, p)
		}
		s.refused()
	}
}

// Slots are of 10 ms here: calls are known to be slow when the eighth of them begins,
// and the first call that comes then is refused.
func TestHungCallsAreJudgedInTime(t *testing.T) {
	for _, last := range []time.Duration{60 * ms, 70 * ms, 79 * ms} {
		s := newBench(t, hangs(nil))
		for range 10 {
			s.begin()
		}
		s.pass(last)
		s.b.Drop(s.begin(), s.now)
		s.pass(80*ms - last)
		s.refused()
	}
}

// Nine calls hang and the tenth succeeds: that was not looked at before the next slot.
func TestRegression_SuccessThatMakesEnoughCalls(t *testing.T) {
	s := newBench(t, hangs(nil))
	for range 9 {
		s.begin()
	}
	s.pass(80 * ms)
	s.calls("s")
	s.is(breaker.Open)
}

// A call that was slow was counted as slow before it was counted as a call, so that
// another one saw more slow calls than there were: one trips at all of them though
// not all are, and the share of none divided by zero.
func TestRegression_NoCallIsSlowBeforeItIsOne(t *testing.T) {
	for range 20 {
		b, err := breaker.New(hangs(func(r *breaker.Rules) { r.SlowRatio, r.MinCalls = breaker.Million, 0 }), 0)
		require.NoError(t, err)
		p, _ := b.Allow(0)
		b.End(p, breaker.Success, 0, 0) // so that never all are slow
		run(8, func(int) {
			for range 200 {
				if p, v := b.Allow(0); v == nil {
					b.End(p, breaker.Success, time.Second, 0)
				}
			}
		})
		require.Equal(t, breaker.Closed, b.Stats(0).State)
	}
}

func TestRegression_ShareOfNone(t *testing.T) {
	var now atomic.Int64
	b, err := breaker.New(hangs(func(r *breaker.Rules) { r.MinCalls, r.Width, r.OpenFor = 0, 2, 1 }), 0)
	require.NoError(t, err)
	var panics atomic.Int64
	run(8, func(i int) {
		defer func() {
			if recover() != nil {
				panics.Add(1)
			}
		}()
		for range 2000 {
			at := time.Duration(now.Add(int64(10 * ms)))
			if p, v := b.Allow(at); v == nil {
				b.End(p, breaker.Success, time.Duration(i%2)*time.Second, at)
			}
			if i == 0 {
				b.Reset(at)
			}
		}
	})
	assert.Zero(t, panics.Load())
}

// Times are counted from any origin, so they may be below zero: no probe was let
// through then, a breaker that was open on demand stayed open, and the bucket
// around zero was of twice the width.
func TestRegression_TimesBelowZero(t *testing.T) {
	s := newBench(t, rules(func(r *breaker.Rules) { r.Probes = 2 }))
	s.b.Reset(-time.Hour) // begins to count anew
	s.now = -time.Hour
	require.NoError(t, s.b.Update(rules(nil), breaker.ForceOpen, s.now))
	s.refused()
	require.NoError(t, s.b.Update(rules(nil), breaker.Free, s.now))
	s.calls("i")
	s.is(breaker.HalfOpen)
	s.calls("s")
	s.is(breaker.Closed)

	s = newBench(t, rules(func(r *breaker.Rules) { r.Buckets = 1 }))
	s.b.Reset(-ms)
	s.now = -ms
	s.calls("fffff")
	s.pass(ms)
	assert.Zero(t, s.b.Stats(s.now).Calls)
}

// Somebody who means for ever writes the longest time that there is. Added to now
// it was long ago: the breaker did not stay open, probes were overdue at once, and
// slots were of less than no time.
func TestRegression_TimesWithoutEnd(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	for _, change := range []func(*breaker.Rules){
		func(r *breaker.Rules) { r.OpenFor = forever },
		func(r *breaker.Rules) { r.OpenGrowth, r.OpenMax = 2, forever },
		func(r *breaker.Rules) { r.ProbeTimeout = forever },
		func(r *breaker.Rules) { r.SlowRatio, r.SlowCall = breaker.Million/2, forever },
	} {
		_, err := breaker.New(rules(change), 0)
		require.ErrorIs(t, err, breaker.ErrRules)
	}
	const most = math.MaxInt64 / 4
	s := newBench(t, rules(func(r *breaker.Rules) {
		r.MinCalls, r.OpenFor, r.OpenJitter, r.ProbeTimeout, r.SlowRatio, r.SlowCall = 1, most, breaker.Million, most, breaker.Million, most
	}))
	s.pass(100 * 24 * time.Hour)
	s.calls("f")
	s.pass(365 * 24 * time.Hour)
	s.refused()
	require.NoError(t, s.b.Probe(s.now))
	s.begin()
	s.pass(365 * 24 * time.Hour)
	s.refused()
	s.is(breaker.HalfOpen)
}

// run has n goroutines begin f at once, and waits for them. One that exits counts too.
func run(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			ready.Done()
			<-begin
			f(i)
		}()
	}
	ready.Wait()
	close(begin)
	done.Wait()
}
