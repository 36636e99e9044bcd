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
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/tps"
)

const ms = time.Millisecond

// pause lets the time of a bubble pass.
func pause(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest

// lane is a pacer in a bubble, with what passed.
type lane struct {
	t      *testing.T
	p      *tps.Pacer
	most   time.Duration
	began  time.Time
	mu     sync.Mutex
	passed []time.Duration // guarded by mu
	order  []int           // guarded by mu
	wg     sync.WaitGroup
}

func newLane(t *testing.T, rate int64, interval, most time.Duration, w tps.Warming) *lane {
	t.Helper()
	l := &lane{t: t, most: most, began: time.Now()}
	p, err := tps.NewPacer(tps.Quota{Rate: rate, Interval: interval}, w, l.now)
	require.NoError(t, err)
	l.p = p
	return l
}

func (l *lane) now() time.Duration { return time.Since(l.began) }

// call makes one and returns how long it waited.
func (l *lane) call(ctx context.Context) (time.Duration, error) {
	now := l.now()
	_, err := l.p.Wait(ctx, now, l.most)
	if err == nil {
		l.mu.Lock()
		l.passed = append(l.passed, l.now())
		l.mu.Unlock()
	}
	return l.now() - now, err
}

// queue makes n calls at once, in order, and returns what became of each at its end.
func (l *lane) queue(n int) (waits []time.Duration, refused int) {
	l.t.Helper()
	var mu sync.Mutex
	for i := range n {
		l.wg.Go(func() {
			d, err := l.call(context.Background())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused++
				return
			}
			l.mu.Lock()
			l.order = append(l.order, i)
			l.mu.Unlock()
			waits = append(waits, d)
		})
		synctest.Wait()
	}
	l.wg.Wait()
	slices.Sort(waits)
	return waits, refused
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func steps(from, step time.Duration, n int) (out []time.Duration) {
	for i := range n {
		out = append(out, from+time.Duration(i)*step)
	}
	return out
}

func TestPacer(t *testing.T) {
	bubble(t, "T1 one after another", func(t *testing.T) {
		l := newLane(t, 10, time.Second, 500*ms, tps.Warming{})
		for range 6 {
			_, err := l.call(context.Background())
			require.NoError(t, err)
		}
		require.Equal(t, steps(0, 100*ms, 6), l.passed)
	})
	bubble(t, "T2 ten at once", func(t *testing.T) {
		l := newLane(t, 10, time.Second, 500*ms, tps.Warming{})
		waits, refused := l.queue(10)
		require.Equal(t, steps(0, 100*ms, 6), waits)
		require.Equal(t, 4, refused)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5}, l.order)
	})
	bubble(t, "T4 nobody may wait", func(t *testing.T) {
		l := newLane(t, 50, 10*time.Second, 0, tps.Warming{})
		_, refused := l.queue(11)
		require.Equal(t, 10, refused)
		pause(2010 * ms)
		_, refused = l.queue(2)
		require.Equal(t, 1, refused)
	})
	bubble(t, "T5 twenty singles", func(t *testing.T) {
		l := newLane(t, 50, 10*time.Second, 2*time.Second, tps.Warming{})
		_, refused := l.queue(1)
		require.Zero(t, refused)
		waits, refused := l.queue(20)
		require.Equal(t, steps(200*ms, 200*ms, 10), waits)
		require.Equal(t, 10, refused)
	})
	bubble(t, "T6 many at one moment", func(t *testing.T) {
		l := newLane(t, 1, time.Second, 0, tps.Warming{})
		var passed atomic.Int64
		for range 512 {
			l.wg.Go(func() {
				if _, err := l.call(context.Background()); err == nil {
					passed.Add(1)
				}
			})
		}
		l.wg.Wait()
		require.EqualValues(t, 1, passed.Load())
	})
	bubble(t, "T7 seven singles", func(t *testing.T) {
		l := newLane(t, 1, 500*ms, time.Hour, tps.Warming{})
		waits, _ := l.queue(7)
		require.Equal(t, 3*time.Second, waits[6])
		require.Equal(t, 3*time.Second, l.now())
		waits, _ = l.queue(1)
		require.Equal(t, 500*ms, waits[0])
		pause(6100 * ms) // no slots of a grid: the next begins when it comes
		waits, _ = l.queue(3)
		require.Equal(t, steps(0, 500*ms, 3), waits)
	})
	bubble(t, "H3 two hundred", func(t *testing.T) {
		l := newLane(t, 100, time.Second, time.Second, tps.Warming{})
		waits, refused := l.queue(200)
		require.Equal(t, steps(0, 10*ms, 101), waits)
		require.Equal(t, 99, refused)
	})
}

// What is refused is refused before it waits, and says how long to stay away.
func TestPacerRefusesAtOnce(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newLane(t, 10, time.Second, 250*ms, tps.Warming{})
		for range 3 {
			l.wg.Go(func() { _, _ = l.call(context.Background()) })
		}
		synctest.Wait()
		turn, err := l.p.Wait(context.Background(), l.now(), l.most)
		require.ErrorIs(t, err, tps.ErrWaitTooLong)
		require.ErrorIs(t, err, tps.ErrLimitReached)
		require.Equal(t, 50*ms, turn.RetryAfter)
		require.Zero(t, l.now())
		_, err = l.p.Wait(context.Background(), l.now(), 300*ms) // this one may wait longer
		require.NoError(t, err)
		require.Equal(t, 300*ms, l.now())
		l.wg.Wait()
	})
}

// Whoever gives up leaves the place to those behind.
func TestPacerGivesPlacesBack(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newLane(t, 10, time.Second, time.Hour, tps.Warming{})
		_, err := l.call(context.Background())
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("had enough")
		for i := range 9 {
			l.wg.Go(func() {
				c := context.Background()
				if i%2 == 0 {
					c = ctx
				}
				_, err := l.call(c)
				if i%2 == 0 {
					assert.ErrorIs(t, err, context.Canceled)
					assert.ErrorIs(t, err, why)
					assert.True(t, tps.IsGivenUp(err))
				} else {
					assert.NoError(t, err)
				}
			})
			synctest.Wait()
		}
		require.EqualValues(t, 9, l.p.Stats().Waiting)
		pause(50 * ms)
		cancel(why)
		l.wg.Wait()
		require.Equal(t, steps(0, 100*ms, 5), l.passed)
		_, err = l.call(ctx)
		require.ErrorIs(t, err, why, "done before it waits")
		pause(time.Second)
		_, err = l.call(ctx)
		require.NoError(t, err, "its turn is now, and nobody asks")
	})
	bubble(t, "the only one", func(t *testing.T) {
		l := newLane(t, 10, time.Second, time.Hour, tps.Warming{})
		_, _ = l.call(context.Background())
		ctx, cancel := context.WithTimeout(context.Background(), 10*ms)
		defer cancel()
		_, err := l.call(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, _ = l.call(context.Background())
		require.Equal(t, steps(0, 100*ms, 2), l.passed)
	})
}

func TestPacerTakesTurnsBack(t *testing.T) {
	bubble(t, "nobody waits", func(t *testing.T) {
		l := newLane(t, 10, time.Second, 0, tps.Warming{})
		ticket, ok := l.p.Pass(l.now())
		require.True(t, ok)
		_, ok = l.p.Pass(l.now())
		require.False(t, ok)
		l.p.GiveBack(ticket)
		_, ok = l.p.Pass(l.now())
		require.True(t, ok)
		pause(100 * ms)
		_, ok = l.p.Pass(l.now())
		require.True(t, ok)
		l.p.GiveBack(ticket) // another has passed since
		_, ok = l.p.Pass(l.now())
		require.False(t, ok)
	})
	bubble(t, "others wait", func(t *testing.T) {
		l := newLane(t, 10, time.Second, time.Hour, tps.Warming{})
		turn, err := l.p.Wait(context.Background(), l.now(), l.most)
		require.NoError(t, err)
		for range 2 {
			l.wg.Go(func() { _, _ = l.call(context.Background()) })
		}
		synctest.Wait()
		pause(20 * ms)
		l.p.GiveBack(turn.Ticket)
		l.wg.Wait()
		require.Equal(t, []time.Duration{20 * ms, 120 * ms}, l.passed)
	})
}

// A changed rate holds for those who wait, without a burst or a gap.
func TestPacerChangesItsRate(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newLane(t, 10, time.Second, time.Hour, tps.Warming{})
		for range 8 {
			l.wg.Go(func() { _, _ = l.call(context.Background()) })
		}
		synctest.Wait()
		pause(250 * ms) // at 200 ms the third has passed
		require.NoError(t, l.p.Update(tps.Quota{Rate: 20, Interval: time.Second}, tps.Warming{}))
		pause(125 * ms) // at 250, 300 and 350 three more
		require.NoError(t, l.p.Update(tps.Quota{Rate: 1, Interval: time.Second}, tps.Warming{}))
		l.wg.Wait()
		require.Equal(t, []time.Duration{0, 100 * ms, 200 * ms, 250 * ms, 300 * ms, 350 * ms, 1350 * ms, 2350 * ms}, l.passed)
		require.NoError(t, l.p.Update(tps.Quota{Rate: 4, Interval: time.Second}, tps.Warming{}))
		_, _ = l.call(context.Background())
		require.Equal(t, 2600*ms, l.now())
		require.Error(t, l.p.Update(tps.Quota{}, tps.Warming{}))
		require.Error(t, l.p.Update(tps.Quota{Rate: 1, Interval: time.Second}, tps.Warming{Time: time.Second, Factor: 1}))
		require.EqualValues(t, 4, l.p.Stats().Rate)
	})
}

func TestPacerOpens(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newLane(t, 1, time.Hour, 24*time.Hour, tps.Warming{})
		for range 5 {
			l.wg.Go(func() { _, _ = l.call(context.Background()) })
		}
		synctest.Wait()
		l.p.SetOpen(true)
		l.wg.Wait()
		for range 5 {
			_, err := l.call(context.Background())
			require.NoError(t, err)
		}
		require.Equal(t, steps(0, 0, 10), l.passed)
		l.p.SetOpen(false)
		l.most = 0
		_, err := l.call(context.Background())
		require.ErrorIs(t, err, tps.ErrWaitTooLong)
	})
}

// While it only observes calls take turns that nobody waits for.
func TestPacerObserves(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newLane(t, 10, time.Second, 250*ms, tps.Warming{})
		for i := range 3 {
			wait, err := l.p.Observe(l.now(), l.most)
			require.NoError(t, err)
			require.Equal(t, time.Duration(i)*100*ms, wait)
		}
		_, err := l.p.Observe(l.now(), l.most)
		require.ErrorIs(t, err, tps.ErrWaitTooLong)
	})
}

// Within 1 % from one call in two seconds to 100,000 a second. N2
func TestPacerKeepsItsRate(t *testing.T) {
	for _, q := range []tps.Quota{
		{Rate: 1, Interval: 2 * time.Second}, {Rate: 400, Interval: time.Second}, {Rate: 1001, Interval: time.Second},
		{Rate: 5000, Interval: time.Second}, {Rate: 100_000, Interval: time.Second}, {Rate: 7, Interval: 3 * time.Second},
	} {
		p, err := tps.NewPacer(q, tps.Warming{}, nil)
		require.NoError(t, err)
		// More come than may pass, and some wait.
		tick := max(q.Interval/time.Duration(q.Rate)/3, 1)
		const n = 3000
		passed := 0
		for i := range time.Duration(3 * n) {
			if _, err := p.Observe(time.Hour+i*tick, 20*q.Interval/time.Duration(q.Rate)); err == nil {
				passed++
			}
		}
		took := (3 * n * tick).Seconds() / q.Interval.Seconds() * float64(q.Rate)
		assert.InDelta(t, took+20, passed, took/100, "%v: twenty wait", q)
	}
	p, err := tps.NewPacer(tps.Quota{Rate: 1, Interval: 2 * time.Second}, tps.Warming{}, nil)
	require.NoError(t, err)
	passed := 0
	for i := range time.Duration(20) {
		if _, ok := p.Pass(time.Hour + i*time.Second); ok {
			passed++
		}
	}
	require.Equal(t, 10, passed)
}

// The wall clock does not come into it, and one that goes back a little lets nobody
// pass twice. N3
func TestPacerClockGoesBack(t *testing.T) {
	p, err := tps.NewPacer(tps.Quota{Rate: 10, Interval: time.Second}, tps.Warming{}, nil)
	require.NoError(t, err)
	_, ok := p.Pass(time.Hour)
	require.True(t, ok)
	for _, now := range []time.Duration{time.Hour - 10*time.Minute, 0, time.Hour + 99*ms} {
		_, ok = p.Pass(now)
		require.False(t, ok)
	}
	_, ok = p.Pass(time.Hour + 100*ms)
	require.True(t, ok)
}

// Random calls, cancellations, takings back and changes of the rate: two calls are
// never closer than the rate allows, nobody overtakes, no place is lost.
func TestPacerProperties(t *testing.T) {
	for seed := range uint64(60) {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			l := newLane(t, 100, time.Second, 300*ms, tps.Warming{})
			var mu sync.Mutex
			type grant struct {
				at  time.Duration
				seq int
			}
			var grants []grant
			waits := 0
			for i := range 300 {
				ctx, cancel := context.WithCancel(context.Background())
				if r.IntN(4) == 0 {
					d := time.Duration(r.Int64N(int64(200 * ms)))
					time.AfterFunc(d, cancel)
				}
				l.wg.Go(func() {
					defer cancel()
					turn, err := l.p.Wait(ctx, l.now(), l.most)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						grants = append(grants, grant{l.now(), i})
						if turn.Queued {
							waits++
						}
					}
				})
				synctest.Wait()
				pause(time.Duration(r.Int64N(int64(15 * ms))))
			}
			l.wg.Wait()
			require.Positive(t, waits)
			for i := 1; i < len(grants); i++ {
				require.GreaterOrEqual(t, grants[i].at-grants[i-1].at, 10*ms)
				require.Greater(t, grants[i].seq, grants[i-1].seq)
			}
			require.Zero(t, l.p.Stats().Waiting)
			pause(time.Second)
			_, ok := l.p.Pass(l.now())
			require.True(t, ok, "the way is free again")
		})
	}
}

// In real time: however many come from all sides, no more pass than turns have come.
func TestPacerUnderLoad(t *testing.T) {
	var now atomic.Int64
	p, err := tps.NewPacer(tps.Quota{Rate: 1000, Interval: time.Second}, tps.Warming{}, func() time.Duration { return time.Duration(now.Load()) })
	require.NoError(t, err)
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 2000 {
				if ticket, ok := p.Pass(time.Duration(now.Load())); ok {
					if passed.Add(1)%7 == 0 {
						p.GiveBack(ticket)
					}
				}
				now.Add(int64(10 * time.Microsecond))
			}
		})
	}
	wg.Wait()
	turns := now.Load()/int64(ms) + 1
	assert.LessOrEqual(t, passed.Load()*6/7, turns+1)
	assert.Positive(t, passed.Load())
}
