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

// crowd enters so many calls at now, which are let in.
func crowd(t *testing.T, c *Controller, n int, now time.Duration) {
	t.Helper()
	for range n {
		v, _ := c.Enter(0, now)
		require.Equal(t, Admitted, v)
	}
}

// Whoever leaves twice, or without having entered, must not shut a service for ever.
func TestRegression_LeaveWithoutEnterShutsNothing(t *testing.T) {
	c := NewController(Options{Limit: 2, Fixed: true}, 0)
	for range 5 {
		c.Leave(0, 0)
	}
	require.Zero(t, c.State().Running)
	crowd(t, c, 2, 0)
	v, _ := c.Enter(0, 0)
	require.Equal(t, Waits, v, "and the limit is what it was")

	w := &Waiter{}
	v, _ = c.Queue(0, 0, w)
	require.Equal(t, Waits, v)
	told := c.Leave(0, 0)
	require.Same(t, w, told.Next())
	for range 5 {
		c.Leave(0, 0)
	}
	require.Equal(t, State{Limit: 2, Room: c.State().Room, Cursor: Open}, c.State())
}

// What comes over the wire with a priority that is on no scale is the least important, and
// still waits where there is room.
func TestRegression_PrioritiesBeyondTheScale(t *testing.T) {
	for _, p := range []Priority{Open, 1 << 31, math.MaxUint32} {
		c := NewController(Options{Limit: 1, Fixed: true}, 0)
		crowd(t, c, 1, 0)
		v, _ := c.Enter(p, 0)
		require.Equal(t, Waits, v)
		v, _ = c.Queue(p, 0, &Waiter{})
		require.Equal(t, Waits, v)
		for range c.State().Room - 1 {
			v, _ = c.Queue(Lowest, 0, &Waiter{})
			require.Equal(t, Waits, v)
		}
		v, _ = c.Enter(p, 0)
		require.Equal(t, Full, v, "as important as the others")
	}
}

func TestWaitsOfAnyLength(t *testing.T) {
	for _, test := range []struct {
		name       string
		wait       time.Duration
		now, until time.Duration
		verdict    Verdict
		expires    time.Duration
	}{
		{"as good as endless", math.MaxInt64, 5, 0, Waits, math.MaxInt64},
		{"as good as endless, late", math.MaxInt64, math.MaxInt64 - 3, 0, Waits, math.MaxInt64},
		{"of an instant", 1, 5, 0, Waits, 6},
		{"by default", 0, 5, 0, Waits, 5 + 100*ms},
		{"over at once", 0, 5, 5, Expired, 0},
		{"in the past", 0, 5, 4, Expired, 0},
		{"before the origin", 0, 5, -4, Expired, 0},
		{"before the origin, and so is now", 0, -5, -4, Waits, -4},
		{"longer than MaxWait", 7, 5, 100, Waits, 12},
		{"shorter", 7, 5, 10, Waits, 10},
	} {
		c := NewController(Options{Limit: 1, Fixed: true, MaxWait: test.wait}, test.now)
		crowd(t, c, 1, test.now)
		w := &Waiter{Until: test.until}
		v, _ := c.Queue(0, test.now, w)
		require.Equal(t, test.verdict, v, test.name)
		if v == Waits {
			require.Equal(t, test.expires, w.Until, test.name)
			require.True(t, c.Expire(w))
		}
		require.Zero(t, c.State().Waiting)
	}
}

func TestLimitsOfAnySize(t *testing.T) {
	for _, opts := range []Options{
		{Limit: math.MaxInt, MaxLimit: math.MaxInt},
		{Limit: 1 << 32, MaxLimit: 1 << 40, Fixed: true},
		{Limit: -1, MinLimit: math.MaxInt},
		{Limit: math.MinInt, MinLimit: -7, MaxLimit: -7, MaxQueue: -7, MaxWait: -7, Window: -7, Delay: -7},
		{Window: math.MaxInt64},
		{Window: 1, MaxQueue: 1},
		{MinLimit: 9, MaxLimit: 3},
	} {
		c := NewController(opts, sec)
		s := c.State()
		require.GreaterOrEqual(t, s.Limit, 1, "%+v", opts)
		require.GreaterOrEqual(t, s.Room, 1, "%+v", opts)
		if opts.MaxQueue > 0 {
			require.LessOrEqual(t, s.Room, opts.MaxQueue)
		}
		if opts.MaxLimit > 0 {
			require.LessOrEqual(t, s.Limit, opts.MaxLimit)
		}
		crowd(t, c, 1, sec)
		c.Leave(sec, 0)
	}
}

// A hostile or a broken peer says what it likes. The service goes on, and no time after
// the last of it what it said is forgotten.
func TestReportsOfAnyKind(t *testing.T) {
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(5, seed))
		c := NewController(Options{Limit: 4}, 0)
		p := NewPaper(PaperOptions{Window: 100 * ms}, 0)
		now := time.Duration(0)
		for range 1000 {
			r := Report{N: uint8(rnd.Uint32()), Shed: rnd.Uint32()}
			if rnd.IntN(3) == 0 {
				r = Report{N: 255, Shed: math.MaxUint32}
			}
			for i := range r.Sample {
				r.Sample[i] = wild(rnd)
			}
			c.Learn(r)
			p.Learn(r)
			now += time.Duration(rnd.IntN(int(20 * ms)))
			v, _ := c.Enter(wild(rnd), now)
			require.Equal(t, Admitted, v, "there is room")
			c.Leave(now, ms)
			p.Admit(wild(rnd), now)
			for _, a := range []Advert{c.Advert(), p.Advert()} {
				require.LessOrEqual(t, a.Cursor, Open)
			}
		}
		require.Less(t, cap(c.opener.buf), 4*sampleSize)
		for range 20 { // and 2 s later
			now += 100 * ms
			c.Enter(0, now)
			c.Leave(now, ms)
		}
		require.Equal(t, Open, c.Advert().Cursor)
	}
}

// A Report without a sample had those be too many that came: one of a thousand calls shut a service
// that was calm, but for the most important, and it opened in a second and a half.
func TestRegression_ReportsWithoutASample(t *testing.T) {
	s := newSlots(Options{}, 10, 40*ms)
	s.run(20*sec, 2)
	s.run(20*sec, 0.5)
	require.Equal(t, Open, s.c.Advert().Cursor)
	for range 50 {
		s.c.Learn(Report{Shed: 1000})
		s.c.Learn(Report{N: 8})
		s.run(100*ms, 0.5)
		require.Equal(t, Open, s.c.Advert().Cursor)
	}
	s.c.Learn(Report{Shed: math.MaxUint32, N: 3})
	require.EqualValues(t, reportMost, s.c.seen.shed.Load(), "and none counts for more")
	require.EqualValues(t, 3, s.c.shed.n.Load())
	s.c.Learn(Report{Shed: 2, N: 3})
	require.EqualValues(t, reportMost+2, s.c.seen.shed.Load())
	require.EqualValues(t, 5, s.c.shed.n.Load(), "nothing that says nothing takes the place of what does")
}

// Seq tells the later of two Adverts, and there is a new one for each change.
func TestAdvertsOfAController(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 1))
	c := NewController(Options{Limit: 1, Fixed: true, Window: ms}, 0)
	last, changes := c.Advert(), 0
	require.Equal(t, Advert{Cursor: Open}, last)
	for now := time.Duration(0); now < 2*sec; now += 50 * time.Microsecond {
		p := Priority(rnd.Uint32N(uint32(Open)))
		if v, _ := c.Enter(p, now); v == Waits {
			c.Queue(p, now, &Waiter{})
		}
		if rnd.IntN(20) == 0 {
			c.Leave(now, ms)
		}
		a := c.Advert()
		if a.Cursor != last.Cursor {
			changes++
			require.True(t, a.Newer(last))
			require.False(t, last.Newer(a))
		} else {
			require.Equal(t, last, a)
		}
		last = a
	}
	require.NotZero(t, changes)
	require.True(t, Advert{Run: 2}.Newer(Advert{Run: 1, Seq: 9}))
	require.False(t, Advert{Run: 1, Seq: 9}.Newer(Advert{Run: 2}))
	require.False(t, last.Newer(last))
}

// A tick that another call's lock prevents is made up by the next call.
func TestATickIsNotLost(t *testing.T) {
	c := NewController(Options{}, 0)
	c.mu.Lock()
	crowd(t, c, 1, sec)
	require.Zero(t, c.lastEnd)
	c.mu.Unlock()
	c.Leave(sec, 0)
	crowd(t, c, 1, sec)
	require.Equal(t, sec, c.lastEnd)
	c.Leave(sec-ms, 0)
	crowd(t, c, 1, sec-ms) // a goroutine that is behind
	require.Equal(t, sec, c.lastEnd)
}
