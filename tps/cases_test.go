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
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/tps"
)

// T7, but for its grid: calls that come while others wait, and after a pause.
func TestPacerMeetsCallsAtAllTimes(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		l := newLane(t, 1, 500*ms, time.Hour, tps.Warming{})
		var last atomic.Int64
		at := func(at time.Duration, n int) {
			pause(at - l.now())
			for range n {
				l.wg.Go(func() {
					if waited, err := l.call(context.Background()); err == nil {
						last.Store(int64(waited))
					}
				})
				synctest.Wait()
			}
		}
		var got []time.Duration
		for _, s := range []struct {
			at time.Duration
			n  int
		}{{0, 7}, {800 * ms, 3}, {2300 * ms, 1}, {3500 * ms, 3}} {
			at(s.at, s.n)
			turns := l.p.Stats().Waiting
			got = append(got, l.p.Late(l.now(), 0)-500*ms) // the last's turn is one before the next's
			require.Positive(t, turns)
		}
		require.Equal(t, []time.Duration{3000 * ms, 3700 * ms, 2700 * ms, 3000 * ms}, got)
		at(9100*ms, 3)
		l.wg.Wait()
		require.Equal(t, 1000*ms, time.Duration(last.Load()), "900 on a grid")
		at(11000*ms, 1)
		l.wg.Wait()
		require.Zero(t, last.Load())
	})
}

// N3 of a warm-up.
func TestWarmUpClockGoesBack(t *testing.T) {
	l := newWarmUp(t, 10, time.Second, ten)
	for range 3 {
		require.True(t, l.AllowAt(start).Admitted)
	}
	for _, now := range []time.Duration{start - 10*time.Minute, 0, start + 999*ms} {
		require.False(t, l.AllowAt(now).Admitted)
	}
	require.True(t, l.AllowAt(start+time.Second).Admitted)
	require.Equal(t, 10, seconds(l, start+2*time.Second, 30, 10*ms)[29])
	require.False(t, l.AllowAt(start).Admitted)
	require.Equal(t, 10, seconds(l, start+33*time.Second, 2, 10*ms)[1], "it has not cooled for that")
}

// F10 of a bucket that begins full: Weir has none that begins empty.
func TestABucketOfTwo(t *testing.T) {
	l, err := tps.NewBucket(tps.Quota{Rate: 1, Interval: time.Second, Burst: 2}, nil)
	require.NoError(t, err)
	now := start
	for _, step := range []struct {
		after    time.Duration
		admitted int
	}{{0, 2}, {time.Second, 1}, {2 * time.Second, 2}} {
		now += step.after
		for range step.admitted {
			require.True(t, l.AllowAt(now).Admitted)
		}
		require.False(t, l.AllowAt(now).Admitted)
	}
}

// F11, T6, L2: of 64 who begin together exactly as many pass as may.
func TestAsManyAsMayOfThoseWhoBeginTogether(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	clock := func() time.Duration { return start }
	warmUp, err := tps.NewWarmUp(tps.Quota{Rate: 30, Interval: time.Second}, ten, clock)
	require.NoError(t, err)
	bucket, err := tps.NewBucket(tps.Quota{Rate: 5, Interval: time.Second, Burst: 10}, clock)
	require.NoError(t, err)
	sliding, err := tps.NewSliding(tps.Quota{Rate: 16, Interval: time.Second}, clock)
	require.NoError(t, err)
	pacer, cold := newPacer(t, 10, time.Second, tps.Warming{}), newPacer(t, 10, time.Second, ten)
	for name, tt := range map[string]struct {
		pass func() bool
		want int64
	}{
		"warm-up": {func() bool { return warmUp.Allow().Admitted }, 10},
		"bucket":  {func() bool { return bucket.Allow().Admitted }, 10},
		"sliding": {func() bool { return sliding.Allow().Admitted }, 16},
		"pacer":   {func() bool { _, ok := pacer.Pass(start); return ok }, 1},
		"cold":    {func() bool { _, err := cold.Wait(context.Background(), start, 0); return err == nil }, 1},
		"observed": {func() bool {
			wait, err := newPacer(t, 10, time.Second, tps.Warming{}).Observe(start, 0)
			return err == nil && wait == 0
		}, 64},
	} {
		var admitted atomic.Int64
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for range 64 {
			wg.Go(func() {
				<-begin
				if tt.pass() {
					admitted.Add(1)
				}
			})
		}
		close(begin)
		wg.Wait()
		require.Equal(t, tt.want, admitted.Load(), name)
	}
}

// Of many who come, wait, give up and give back at once nobody is forgotten, and the
// way is free again when all are gone. N5, N10
func TestPacerForgetsNobody(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	began := time.Now()
	p, err := tps.NewPacer(tps.Quota{Rate: 20_000, Interval: time.Second}, tps.Warming{}, func() time.Duration { return time.Since(began) })
	require.NoError(t, err)
	var passed, waited atomic.Int64
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithCancel(context.Background())
				if (g+i)%3 == 0 {
					go cancel()
				}
				turn, err := p.Wait(ctx, time.Since(began), time.Minute)
				cancel()
				if err != nil {
					continue
				}
				if turn.Queued {
					waited.Add(1)
				}
				if i%5 == 0 {
					p.GiveBack(turn.Ticket)
					continue
				}
				passed.Add(1)
				if i%50 == 7 {
					_ = p.Update(tps.Quota{Rate: int64(10_000 + g*1000), Interval: time.Second}, tps.Warming{})
				}
				if i%50 == 11 && g == 0 {
					p.SetOpen(true)
					p.SetOpen(false)
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, waited.Load())
	require.Positive(t, passed.Load())
	require.Zero(t, p.Stats().Waiting)
	_, ok := p.Pass(time.Since(began) + time.Second)
	require.True(t, ok)
}
