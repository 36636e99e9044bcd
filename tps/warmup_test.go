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
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/tps"
)

var ten = tps.Warming{Time: 10 * time.Second, Factor: 3}

func newWarmUp(t *testing.T, rate int64, interval time.Duration, w tps.Warming) *tps.WarmUp {
	t.Helper()
	l, err := tps.NewWarmUp(tps.Quota{Rate: rate, Interval: interval}, w, nil)
	require.NoError(t, err)
	return l
}

// seconds saturates a limit and counts what it admits in each second.
func seconds(l *tps.WarmUp, from time.Duration, n int, each time.Duration) (out []int) {
	for i := range n {
		admitted := 0
		for at := from + time.Duration(i)*time.Second; at < from+time.Duration(i+1)*time.Second; at += each {
			for l.AllowAt(at).Admitted {
				admitted++
			}
		}
		out = append(out, admitted)
	}
	return out
}

const start = 1000 * time.Hour

// W1 of a cold limit of ten a second: three pass; and all ten once it is warm.
func TestWarmUpFromCold(t *testing.T) {
	l := newWarmUp(t, 10, time.Second, ten)
	require.True(t, l.AllowAt(start).Admitted)
	require.True(t, l.AllowAt(start).Admitted)
	require.True(t, l.AllowAt(start).Admitted)
	require.False(t, l.AllowAt(start).Admitted)
	require.Equal(t, 10, seconds(l, start+time.Second, 30, 10*ms)[29])
}

// W4 and W6.
func TestWarmUpCurve(t *testing.T) {
	l := newWarmUp(t, 100, time.Second, ten)
	require.Equal(t, []int{33, 34, 36, 38, 41, 44, 47, 52, 58, 68, 83, 100, 100, 100}, seconds(l, start, 14, 5*ms))
	// It cools by what would have passed while nobody came, no more.
	now := start + 15*time.Second
	require.Equal(t, []int{79, 100, 100}, seconds(l, now, 3, 5*ms))
	now += 8 * time.Second
	require.Equal(t, []int{33, 35, 37, 39}, seconds(l, now, 4, 5*ms))
	require.Equal(t, []int{33, 34, 36}, seconds(l, now+time.Hour, 3, 5*ms))
}

// What comes slowly, below the cold rate, never makes it warm; above, it does.
func TestWarmUpStaysCold(t *testing.T) {
	l := newWarmUp(t, 100, time.Second, ten)
	for i := range time.Duration(60 * 20) {
		require.True(t, l.AllowAt(start+i*50*ms).Admitted)
	}
	require.Equal(t, 33, seconds(l, start+61*time.Second, 1, 5*ms)[0])
}

// Rates of one or two a second are reached, and no step admits nothing for good.
func TestWarmUpOfSmallRates(t *testing.T) {
	for _, tt := range []struct {
		rate     int64
		interval time.Duration
		cold     int // in the first twenty seconds
	}{{1, time.Second, 15}, {2, time.Second, 29}, {3, time.Second, 45}, {1, 2 * time.Second, 8}, {30, time.Minute, 10}} {
		l := newWarmUp(t, tt.rate, tt.interval, ten)
		all := seconds(l, start, 400, 5*ms)
		sum := func(from, to int) (n int) {
			for _, v := range all[from:to] {
				n += v
			}
			return n
		}
		warm := float64(tt.rate) / tt.interval.Seconds()
		assert.LessOrEqual(t, sum(0, 20), tt.cold, "%v", tt)
		assert.Positive(t, sum(0, 20), "%v", tt)
		assert.InDelta(t, warm*120, sum(280, 400), warm*2, "%v", tt)
	}
}

func TestWarmUpChanges(t *testing.T) {
	l := newWarmUp(t, 100, time.Second, ten)
	require.Equal(t, 100, seconds(l, start, 14, 5*ms)[13])
	require.NoError(t, l.Update(tps.Quota{Rate: 200, Interval: time.Second}))
	require.Equal(t, 200, seconds(l, start+14*time.Second, 2, 5*ms)[1], "a warm one stays warm")
	require.NoError(t, l.UpdateWarming(tps.Quota{Rate: 200, Interval: time.Second}, tps.Warming{Time: 20 * time.Second, Factor: 4}))
	require.Equal(t, 50, seconds(l, start+time.Hour, 1, 5*ms)[0])
	require.Error(t, l.Update(tps.Quota{}))
	require.EqualValues(t, 50, l.Stats(start+time.Hour).Rate)
}

// However calls come: never more than the rate in any interval, never nothing for
// good, and what is taken back is there again.
func TestWarmUpProperties(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		rate, interval := 1+r.Int64N(50), time.Duration(1+r.IntN(3))*time.Second
		l := newWarmUp(t, rate, interval, tps.Warming{Time: time.Duration(1+r.IntN(20)) * time.Second, Factor: 1.5 + 5*r.Float64()})
		var at []time.Duration
		now := start
		for range 5000 {
			now += time.Duration(r.Int64N(int64(60 * ms)))
			if r.IntN(500) == 0 {
				now += time.Duration(r.Int64N(int64(20 * time.Second)))
			}
			d := l.AllowAt(now)
			if !d.Admitted {
				require.Positive(t, d.RetryAfter())
				require.LessOrEqual(t, d.RetryAfter(), max(interval, time.Minute))
				continue
			}
			if r.IntN(20) == 0 {
				l.GiveBack(d)
				continue
			}
			at = append(at, now)
			if n := int64(len(at)); n > rate {
				require.GreaterOrEqual(t, now-at[n-1-rate], interval, fmt.Sprint(seed))
			}
		}
		require.Greater(t, len(at), 20)
	}
}

func TestWrongWarming(t *testing.T) {
	q := tps.Quota{Rate: 1, Interval: time.Second}
	for _, w := range []tps.Warming{{}, {Time: time.Second}, {Time: time.Second, Factor: 1}, {Time: time.Second, Factor: 1001}, {Time: 1, Factor: 3}, {Time: 2 * time.Hour, Factor: 3}} {
		_, err := tps.NewWarmUp(q, w, nil)
		assert.Error(t, err, "%v", w)
	}
	_, err := tps.NewWarmUp(tps.Quota{}, ten, nil)
	assert.Error(t, err)
}

// The spacing itself warms up. W2, W3
func TestPacerWarmsUp(t *testing.T) {
	bubble(t, "from cold", func(t *testing.T) {
		l := newLane(t, 10, time.Second, time.Hour, ten)
		waits, refused := l.queue(150)
		require.Zero(t, refused)
		require.Equal(t, 300*ms, waits[1]-waits[0])
		for i := 2; i < len(waits); i++ {
			require.LessOrEqual(t, waits[i]-waits[i-1], waits[i-1]-waits[i-2], "never slower again")
		}
		require.Equal(t, 100*ms, waits[149]-waits[148])
		// 3.33 of 10 at first, and about T seconds until it is warm.
		warm := 0
		for i := range waits[1:] {
			if waits[i+1]-waits[i] > 100*ms {
				warm = i
			}
		}
		require.InDelta(t, 11, waits[warm].Seconds(), 2)
	})
	bubble(t, "warm", func(t *testing.T) {
		l := newLane(t, 10, time.Second, time.Second, ten)
		for range 30 {
			l.queue(10)
		}
		l.passed = nil
		for range 10 {
			_, err := l.call(t.Context())
			require.NoError(t, err)
		}
		for i := 1; i < 10; i++ {
			require.Equal(t, 100*ms, l.passed[i]-l.passed[i-1])
		}
		l.most = 10 * ms
		pause(100 * ms)
		_, err := l.call(t.Context())
		require.NoError(t, err)
		_, err = l.call(t.Context())
		require.ErrorIs(t, err, tps.ErrWaitTooLong)
	})
}

// A warm limit that is raised late in a step had a second less: what had passed at the
// old rate was held against what the new one lets pass.
func TestRegression_ARaisedRateStaysWarm(t *testing.T) {
	for _, to := range []int64{1000, 5000} {
		l := newWarmUp(t, 500, time.Second, tps.Warming{Time: 4 * time.Second, Factor: 3})
		require.Equal(t, 500, seconds(l, start, 10, 2*ms)[9])
		for at := start + 10*time.Second; at < start+10*time.Second+990*ms; at += 2 * ms {
			l.AllowAt(at)
		}
		require.NoError(t, l.Update(tps.Quota{Rate: to, Interval: time.Second}))
		l.AllowAt(start + 10*time.Second + 995*ms)
		require.InDelta(t, to, seconds(l, start+11*time.Second, 1, ms)[0], 10)

		p, err := tps.NewPacer(tps.Quota{Rate: 500, Interval: time.Second}, tps.Warming{Time: 4 * time.Second, Factor: 3}, nil)
		require.NoError(t, err)
		for at := start; at < start+10*time.Second+990*ms; at += ms / 4 {
			p.Pass(at)
		}
		require.NoError(t, p.Update(tps.Quota{Rate: to, Interval: time.Second}, tps.Warming{Time: 4 * time.Second, Factor: 3}))
		for at := start + 10*time.Second + 990*ms; at < start+11*time.Second; at += ms / 4 {
			p.Pass(at)
		}
		p.Pass(start + 11*time.Second)
		require.Equal(t, time.Second/time.Duration(to), p.Stats().Spacing)
	}
}
