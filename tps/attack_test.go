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

package tps_test

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/tps"
)

// stay is how long a call would have to stay away to pass at once.
func stay(p *tps.Pacer, now time.Duration) time.Duration {
	turn, err := p.Wait(context.Background(), now, 0)
	if err == nil {
		return 0
	}
	return turn.RetryAfter
}

func newPacer(t *testing.T, rate int64, interval time.Duration, w tps.Warming) *tps.Pacer {
	t.Helper()
	p, err := tps.NewPacer(tps.Quota{Rate: rate, Interval: interval}, w, func() time.Duration { return start })
	require.NoError(t, err)
	return p
}

// Those who were let go have not taken the turns of those who come when it enforces again.
func TestPacerClosesWithoutAGap(t *testing.T) {
	bubble(t, "after letting go those who waited", func(t *testing.T) {
		l := newLane(t, 1, time.Hour, 24*time.Hour, tps.Warming{})
		for range 9 {
			l.wg.Go(func() { _, _ = l.call(context.Background()) })
		}
		synctest.Wait()
		l.p.SetOpen(true)
		l.wg.Wait()
		l.p.SetOpen(false)
		require.LessOrEqual(t, stay(l.p, l.now()), time.Hour)
		require.Positive(t, stay(l.p, l.now()), "nor does anybody pass too early")
	})
	bubble(t, "after observing", func(t *testing.T) {
		l := newLane(t, 1, time.Hour, 24*time.Hour, tps.Warming{})
		l.p.SetOpen(true)
		for range 9 {
			_, err := l.p.Observe(l.now(), l.most)
			require.NoError(t, err)
		}
		l.p.SetOpen(false)
		require.LessOrEqual(t, stay(l.p, l.now()), time.Hour)
		require.Positive(t, stay(l.p, l.now()))
	})
}

// A rate that changes while calls pass leaves no gap that is longer than the spacing.
func TestPacerChangesItsRateWhileCallsPass(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	p := newPacer(t, 1000, time.Second, tps.Warming{})
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !over.Load() {
			assert.NoError(t, p.Update(tps.Quota{Rate: 1, Interval: time.Hour}, tps.Warming{}))
			assert.NoError(t, p.Update(tps.Quota{Rate: 1000, Interval: time.Second}, tps.Warming{}))
		}
	})
	for i := range time.Duration(100_000) {
		_, ok := p.Pass(start + i*time.Hour)
		if !assert.True(t, ok) {
			break
		}
	}
	over.Store(true)
	wg.Wait()
}

// A turn that is taken back as another comes to wait goes to that one.
func TestPacerTakesBackAsOthersCome(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for range 20_000 {
		p := newPacer(t, 1, time.Hour, tps.Warming{})
		ticket, ok := p.Pass(start)
		require.True(t, ok)
		var ready atomic.Int64
		together := func() {
			for ready.Add(1); ready.Load() < 2; {
				runtime.Gosched()
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { together(); p.GiveBack(ticket) })
		wg.Go(func() {
			together()
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := p.Wait(ctx, start, 2*time.Hour)
			assert.NoError(t, err)
		})
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}

// A rate that becomes lower while calls wait makes none of them wait longer than it
// may: those whose turn would come too late now learn so at once.
func TestPacerRefusesThoseWhoseTurnMovesTooFar(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newLane(t, 10, time.Second, 500*ms, tps.Warming{})
		_, err := l.call(context.Background())
		require.NoError(t, err)
		l.wg.Go(func() {
			_, err := l.p.Wait(context.Background(), l.now(), time.Hour)
			assert.NoError(t, err)
			assert.Equal(t, 2*time.Second, l.now())
		})
		synctest.Wait()
		for range 4 {
			l.wg.Go(func() {
				turn, err := l.p.Wait(context.Background(), l.now(), l.most)
				assert.ErrorIs(t, err, tps.ErrWaitTooLong)
				assert.True(t, turn.Queued)
				assert.Positive(t, turn.RetryAfter)
				assert.Equal(t, 50*ms, l.now())
			})
		}
		l.wg.Go(func() {
			pause(ms)
			_, err := l.p.Wait(context.Background(), l.now(), time.Hour)
			assert.NoError(t, err)
			assert.Equal(t, 4*time.Second, l.now(), "it moves up")
		})
		pause(50 * ms)
		require.NoError(t, l.p.Update(tps.Quota{Rate: 1, Interval: 2 * time.Second}, tps.Warming{}))
		l.wg.Wait()
	})
}

// What passed before there was a warm-up has warmed nothing up.
func TestPacerBeginsColdWhereItWasNone(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newLane(t, 1000, time.Second, time.Hour, tps.Warming{})
		l.queue(2000)
		require.NoError(t, l.p.Update(tps.Quota{Rate: 10, Interval: time.Second}, ten))
		pause(time.Second)
		_, err := l.call(context.Background())
		require.NoError(t, err)
		pause(1500 * ms)
		_, err = l.call(context.Background())
		require.NoError(t, err)
		require.GreaterOrEqual(t, l.p.Stats().Spacing, 290*ms)
	})
}

// Turns that are taken back in the step after the one in which they were taken make
// it no colder than cold.
func TestPacerIsNeverColderThanCold(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newLane(t, 1000, time.Second, time.Hour, ten)
		for range 10 {
			ticket, ok := l.p.Pass(l.now())
			require.True(t, ok)
			pause(2 * time.Second)
			l.p.GiveBack(ticket) // the step is over
			require.LessOrEqual(t, l.p.Stats().Spacing, 3*ms)
			_, ok = l.p.Pass(l.now())
			require.True(t, ok)
			pause(time.Second)
		}
		w, err := tps.NewWarmUp(tps.Quota{Rate: 100, Interval: time.Second}, ten, nil)
		require.NoError(t, err)
		var given []tps.Decision
		for range 33 {
			given = append(given, w.AllowAt(start))
		}
		w.AllowAt(start + 900*ms)
		require.True(t, w.AllowAt(start+1001*ms).Admitted)
		for _, d := range given {
			w.GiveBack(d)
		}
		require.Equal(t, 33, seconds(w, start+2001*ms, 1, 5*ms)[0])
	})
}

// Intervals, factors and waits without end overflow nothing.
func TestPacerOfExtremes(t *testing.T) {
	for _, w := range []tps.Warming{{}, {Time: time.Hour, Factor: 1000}} {
		bubble(t, "", func(t *testing.T) {
			l := newLane(t, 1, tps.MaxInterval, math.MaxInt64, w)
			l.began = l.began.Add(-start)
			_, ok := l.p.Pass(l.now())
			require.True(t, ok)
			_, ok = l.p.Pass(l.now())
			require.False(t, ok)
			_, ok = l.p.Pass(l.now() + tps.MaxInterval - 1)
			require.False(t, ok)
			require.Positive(t, l.p.Stats().Spacing)
			require.Positive(t, stay(l.p, l.now()))
			ctx, cancel := context.WithCancel(context.Background())
			var refused atomic.Int64
			for range 400 { // some of which come in more than the clock can tell
				l.wg.Go(func() {
					if _, err := l.call(ctx); err != nil && !tps.IsGivenUp(err) {
						refused.Add(1)
					}
				})
				synctest.Wait()
			}
			require.LessOrEqual(t, stay(l.p, l.now()), time.Duration(math.MaxInt64))
			require.Positive(t, stay(l.p, l.now()))
			cancel()
			l.wg.Wait()
			require.LessOrEqual(t, refused.Load(), int64(400))
		})
	}
	bubble(t, "a timer that is late", func(t *testing.T) {
		var jump atomic.Int64
		l := newLane(t, 1000, time.Second, math.MaxInt64, tps.Warming{})
		p, err := tps.NewPacer(tps.Quota{Rate: 1000, Interval: time.Second}, tps.Warming{}, func() time.Duration { return l.now() + time.Duration(jump.Load()) })
		require.NoError(t, err)
		_, ok := p.Pass(0)
		require.True(t, ok)
		l.wg.Go(func() { _, err := p.Wait(context.Background(), 0, math.MaxInt64); assert.NoError(t, err) })
		synctest.Wait()
		jump.Store(int64(time.Second))
		_, err = p.Wait(context.Background(), time.Second, math.MaxInt64)
		require.NoError(t, err)
		l.wg.Wait()
	})
}

// A limit that many meet at the moment at which it has become cold lets in no more
// of them than a cold one. N5
func TestWarmUpThatHasCooledMeetsMany(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for range 200 {
		var now atomic.Int64
		now.Store(int64(start))
		l, err := tps.NewWarmUp(tps.Quota{Rate: 100, Interval: time.Second}, ten, func() time.Duration { return time.Duration(now.Load()) })
		require.NoError(t, err)
		seconds(l, start, 14, 5*ms)
		require.EqualValues(t, 100, l.Stats(start+14*time.Second).Rate)
		now.Store(int64(start + time.Hour))
		var wg sync.WaitGroup
		var admitted atomic.Int64
		begin := make(chan struct{})
		for range 64 {
			wg.Go(func() {
				<-begin
				if l.Allow().Admitted {
					admitted.Add(1)
				}
			})
		}
		close(begin)
		wg.Wait()
		require.EqualValues(t, 33, admitted.Load())
	}
}

// In any interval no more than the rate, also where one note stands for many calls
// and the rate passes the limit at which it does.
func TestWarmUpOfLargeRates(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 9))
		const rate = 9000
		l := newWarmUp(t, rate, time.Second, tps.Warming{Time: 5 * time.Second, Factor: 3})
		var at []time.Duration
		full := 0
		for now := start; now < start+14*time.Second; now += time.Duration(r.Int64N(int64(100 * time.Microsecond))) {
			d := l.AllowAt(now)
			if !d.Admitted {
				continue
			}
			if r.IntN(50) == 0 {
				l.GiveBack(d)
				continue
			}
			at = append(at, now)
			if n := len(at); n > rate {
				require.GreaterOrEqual(t, now-at[n-1-rate], time.Second)
			}
			if now > start+12*time.Second && now <= start+13*time.Second {
				full++
			}
		}
		require.Greater(t, full, rate*97/100, "and it reaches its rate")
	}
}

// The steps of a warm-up move turns a little. Nobody who waits is refused for that.
func TestPacerRefusesNobodyForCoolingALittle(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newLane(t, 10, time.Second, time.Second, ten)
		var passed atomic.Int64
		for range 6000 { // ten minutes, in most of which there are more than may wait
			l.wg.Go(func() {
				turn, err := l.p.Wait(context.Background(), l.now(), l.most)
				if err == nil {
					passed.Add(1)
				} else {
					assert.False(t, turn.Queued)
				}
			})
			pause(60 * ms)
			if l.now()%(20*time.Second) < 60*ms {
				pause(700 * ms)
			}
		}
		l.wg.Wait()
		require.Greater(t, passed.Load(), int64(3000))
	})
}
