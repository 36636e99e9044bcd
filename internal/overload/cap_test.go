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

package overload_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/overload"
)

const (
	ms   = time.Millisecond
	noon = 12 * time.Hour // a reading of the clock
)

func rules(limit int64) overload.Rules {
	return overload.Rules{
		Limit: limit, MaxExpand: 4, SlowCall: time.Second, SlowShare: 200_000, EntryTimeout: time.Minute, MaxOverdue: limit, Calm: 30 * time.Second,
	}
}

// machine is one whose health a test sets.
type machine struct{ signal string }

func (m *machine) health() (string, bool) { return m.signal, m.signal != "" }

// fixture is a cap on a clock that the test moves.
type fixture struct {
	*overload.Cap
	machine
	t      *testing.T
	now    time.Duration
	events []overload.Event
	calls  []overload.Permit
}

func newFixture(t *testing.T, r overload.Rules) *fixture {
	t.Helper()
	f := &fixture{t: t, now: noon}
	c, err := overload.New(r, f.health, func(e overload.Event) { f.events = append(f.events, e) }, f.now)
	require.NoError(t, err)
	f.Cap = c
	return f
}

func (f *fixture) enter() *overload.Verdict {
	p, v := f.Enter(f.now, nil)
	if v == nil {
		f.calls = append(f.calls, p)
	}
	return v
}

// offer has n calls come at once, and tells how many were admitted.
func (f *fixture) offer(n int) (admitted int) {
	for range n {
		if f.enter() == nil {
			admitted++
		}
	}
	return admitted
}

func (f *fixture) leaveAll() {
	for _, p := range f.calls {
		f.Leave(p)
	}
	f.calls = nil
}

// pass lets time go by, with a tick every second.
func (f *fixture) pass(d time.Duration) {
	for d > 0 {
		step := min(d, time.Second)
		f.now += step
		d -= step
		f.Tick(f.now)
	}
}

func (f *fixture) stats() overload.Stats { return f.Stats(f.now) }

func (f *fixture) kinds(k overload.Kind) (out []overload.Event) {
	for _, e := range f.events {
		if e.Kind == k {
			out = append(out, e)
		}
	}
	return out
}

// A pile-up of three times the limit after a restart is let through, and later the cap
// is what it was.
func TestPileUp(t *testing.T) {
	f := newFixture(t, rules(10))
	assert.Equal(t, 30, f.offer(30))
	assert.EqualValues(t, 40, f.stats().Cap)
	f.pass(900 * ms) // they take a while, but none is slow
	f.leaveAll()
	changes := f.kinds(overload.Changed)
	require.Len(t, changes, 2)
	assert.Equal(t, overload.Event{Kind: overload.Changed, At: noon, From: 10, To: 20, Reason: overload.Healthy}, changes[0])
	assert.Equal(t, overload.Event{Kind: overload.Changed, At: noon, From: 20, To: 40, Reason: overload.Healthy}, changes[1])
	f.pass(31 * time.Second)
	assert.EqualValues(t, 20, f.stats().Cap, "a step after a calm")
	f.pass(31 * time.Second)
	assert.EqualValues(t, 10, f.stats().Cap)
	f.pass(time.Hour)
	assert.EqualValues(t, 10, f.stats().Cap)
	assert.Len(t, f.kinds(overload.Changed), 4)
	assert.Equal(t, overload.Calm, f.kinds(overload.Changed)[3].Reason)
}

// It takes two seconds, and slow is what takes three.
func TestPileUpOfTwoSeconds(t *testing.T) {
	r := rules(10)
	r.SlowCall = 3 * time.Second
	f := newFixture(t, r)
	for range 20 {
		assert.LessOrEqual(t, f.stats().Running, int64(30))
		n := int(30 - f.stats().Running)
		assert.Equal(t, n, f.offer(n))
		f.pass(100 * ms)
	}
	assert.Zero(t, f.stats().Refused)
}

func TestTheHighestCap(t *testing.T) {
	f := newFixture(t, rules(10))
	assert.Equal(t, 40, f.offer(100))
	v := f.enter()
	require.NotNil(t, v)
	assert.Equal(t, overload.Verdict{Reason: overload.Highest, Cap: 40}, *v)
	assert.Equal(t, "concurrency", v.Reason.String())
	assert.EqualValues(t, 61, f.stats().Refused)
	assert.Len(t, f.kinds(overload.Held), 1, "it is told once")
	f.leaveAll()
	f.pass(time.Second)
	assert.Equal(t, 40, f.offer(100))
	assert.Len(t, f.kinds(overload.Held), 2, "and once more after that was over")

	r := rules(3)
	r.MaxExpand = 1
	f = newFixture(t, r)
	assert.Equal(t, 3, f.offer(10))
	assert.Empty(t, f.kinds(overload.Changed))
}

// When the calls hang, more of them do not help.
func TestMassTimeoutsNeverExpand(t *testing.T) {
	f := newFixture(t, rules(10))
	assert.Equal(t, 10, f.offer(10))
	f.pass(2 * time.Second)
	for range 30 {
		f.offer(5)
		f.pass(time.Second)
	}
	assert.EqualValues(t, 10, f.stats().Cap)
	assert.Len(t, f.kinds(overload.Held), 1)
	assert.Equal(t, overload.SlowCalls, f.kinds(overload.Held)[0].Reason)
	assert.EqualValues(t, 10, f.stats().Slow)
	assert.EqualValues(t, 10, f.stats().SlowCalls)

	// Fewer slow ones than the share allows are no reason.
	f = newFixture(t, rules(10))
	f.offer(1)
	f.pass(2 * time.Second)
	assert.Equal(t, 30, f.offer(30))
}

// A cap that was expanded when the calls began to hang goes back at once.
func TestGoesBackWhenCallsHang(t *testing.T) {
	f := newFixture(t, rules(10))
	f.offer(40)
	f.pass(3 * time.Second)
	assert.EqualValues(t, 10, f.stats().Cap)
	assert.Equal(t, overload.SlowCalls, f.kinds(overload.Changed)[3].Reason)
}

func TestATightMachineNeverExpands(t *testing.T) {
	f := newFixture(t, rules(10))
	f.signal = "cpu"
	assert.Equal(t, 10, f.offer(100))
	assert.Equal(t, []overload.Event{{Kind: overload.Held, At: noon, From: 10, To: 10, Reason: overload.Tight, Signal: "cpu"}}, f.events)
	v := f.enter()
	assert.Equal(t, overload.Verdict{Reason: overload.Tight, Signal: "cpu", Cap: 10}, *v)
	f.signal = ""
	f.now += 500 * ms
	assert.Equal(t, 30, f.offer(100))
	f.signal = "memory"
	f.now += 100 * ms
	f.Tick(f.now)
	assert.EqualValues(t, 20, f.stats().Cap, "an expanded cap goes back while it is tight")
	f.pass(time.Second)
	assert.EqualValues(t, 10, f.stats().Cap)
	f.pass(time.Minute)
	assert.EqualValues(t, 10, f.stats().Cap, "never below its limit")
}

// As many calls as the limit never return. Normal traffic is served within the entry
// timeout, and when they do return every count is right.
func TestCallsThatNeverReturn(t *testing.T) {
	f := newFixture(t, rules(10))
	f.offer(10)
	hung := f.calls
	f.calls = nil
	f.pass(59 * time.Second)
	assert.Zero(t, f.offer(5))
	f.pass(time.Second)
	assert.Equal(t, 5, f.offer(5))
	s := f.stats()
	assert.EqualValues(t, 10, s.Aside)
	assert.EqualValues(t, 10, s.Overdue)
	assert.EqualValues(t, 5, s.Running)
	assert.Len(t, f.kinds(overload.Overdue), 10, "each is told of once")
	assert.Equal(t, time.Minute, f.kinds(overload.Overdue)[0].Age)
	// As many as may have been set aside already, so those that hang now stay.
	f.offer(35)
	f.pass(2 * time.Minute)
	assert.Zero(t, f.offer(1))
	assert.EqualValues(t, 10, f.stats().Aside)
	for _, p := range hung {
		f.Leave(p)
	}
	s = f.stats()
	assert.Zero(t, s.Aside)
	assert.EqualValues(t, 10, s.Returned)
	assert.EqualValues(t, len(f.calls), s.Running, "their slots came back once")
	f.leaveAll()
	assert.Zero(t, f.stats().Running)
	assert.EqualValues(t, 10, f.stats().Returned)
}

func TestSlowCallsAreToldOnce(t *testing.T) {
	f := newFixture(t, rules(100))
	who := "shop"
	for range 20 {
		p, v := f.Enter(f.now, &who)
		require.Nil(t, v)
		f.calls = append(f.calls, p)
	}
	f.pass(900 * ms)
	assert.Empty(t, f.events)
	f.pass(10 * time.Second)
	slow := f.kinds(overload.Slow)
	require.Len(t, slow, 3)
	assert.Equal(t, "shop", slow[0].Caller)
	assert.GreaterOrEqual(t, slow[0].Age, time.Second)
	assert.EqualValues(t, 17, slow[2].More)
	assert.EqualValues(t, 20, f.stats().SlowCalls)
	f.leaveAll()
	// The next ones in their places have not been told of.
	f.offer(2)
	f.pass(2 * time.Second)
	assert.Len(t, f.kinds(overload.Slow), 5)
	assert.Empty(t, f.kinds(overload.Slow)[4].Caller, "nor have they their callers")
}

func TestRulesChange(t *testing.T) {
	f := newFixture(t, rules(10))
	f.offer(40)
	require.NoError(t, f.Update(rules(5), f.now))
	assert.EqualValues(t, 5, f.stats().Cap)
	assert.Equal(t, overload.Configured, f.kinds(overload.Changed)[2].Reason)
	f.now += time.Second
	assert.Zero(t, f.offer(1), "what runs goes on, and nothing comes in until it is below")
	f.leaveAll()
	require.NoError(t, f.Update(rules(50), f.now))
	assert.Equal(t, 200, f.offer(300))
	r := rules(50)
	r.MaxExpand = 2
	require.NoError(t, f.Update(r, f.now))
	assert.EqualValues(t, 50, f.stats().Cap)
	for _, r := range []overload.Rules{{}, {Limit: 1}, {Limit: 1, MaxExpand: 1, SlowShare: -1}, {Limit: 1, MaxExpand: 1, Calm: -1}, {Limit: 1 << 40, MaxExpand: 1}} {
		require.Error(t, f.Update(r, f.now), "%+v", r)
		_, err := overload.New(r, nil, nil, noon)
		require.Error(t, err)
	}
}

func TestWithoutSlownessAndTimeout(t *testing.T) {
	f := newFixture(t, overload.Rules{Limit: 2, MaxExpand: 1})
	f.offer(2)
	f.pass(24 * time.Hour)
	assert.Zero(t, f.offer(1))
	assert.Zero(t, f.stats().Slow)
	assert.Empty(t, f.kinds(overload.Slow))
}

// Listeners may ask the cap, and panic.
func TestListeners(t *testing.T) {
	var c *overload.Cap
	var n atomic.Int64
	c, err := overload.New(rules(1), nil, func(overload.Event) {
		n.Add(1)
		c.Stats(noon)
		p, v := c.Enter(noon, nil)
		if v == nil {
			c.Leave(p)
		}
		panic("no")
	}, noon)
	require.NoError(t, err)
	for range 10 {
		_, _ = c.Enter(noon, nil)
	}
	assert.Positive(t, n.Load())
}

// Whatever comes together: never more run than the highest cap and those set aside, and
// nothing is left over.
func TestStorm(t *testing.T) {
	for _, procs := range []int{2, 16} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			r := rules(5)
			r.EntryTimeout, r.SlowCall, r.Calm = 40*ms, 10*ms, 20*ms
			var clock atomic.Int64
			clock.Store(int64(noon))
			var sick atomic.Bool
			var running, most atomic.Int64
			c, err := overload.New(r, func() (string, bool) { return "cpu", sick.Load() }, func(overload.Event) {}, noon)
			require.NoError(t, err)
			var wg sync.WaitGroup
			who := "caller"
			for g := range 64 {
				wg.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(g), 1))
					for n := range 300 {
						now := time.Duration(clock.Add(int64(ms) / 4))
						p, v := c.Enter(now, &who)
						if v != nil {
							assert.Contains(t, []overload.Reason{overload.Highest, overload.SlowCalls, overload.Tight}, v.Reason)
							continue
						}
						for m := running.Add(1); ; {
							old := most.Load()
							if old >= m || most.CompareAndSwap(old, m) {
								break
							}
						}
						for range rnd.IntN(20) {
							runtime.Gosched()
						}
						if n%20 == 0 {
							sick.Store(rnd.IntN(2) == 0)
						}
						if n%7 == 0 {
							c.Tick(now)
						}
						running.Add(-1)
						c.Leave(p)
					}
				})
			}
			wg.Wait()
			s := c.Stats(time.Duration(clock.Load()))
			assert.Zero(t, s.Running)
			assert.Zero(t, s.Aside)
			assert.Equal(t, s.Overdue, s.Returned)
			assert.LessOrEqual(t, most.Load(), int64(4*5+5))
		}()
	}
}

// All the calls that start at one moment: exactly so many are admitted.
func TestBarrier(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for range 50 {
		c, err := overload.New(rules(7), nil, nil, noon)
		require.NoError(t, err)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 100 {
			wg.Go(func() {
				<-start
				if _, v := c.Enter(noon, nil); v == nil {
					admitted.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
		require.EqualValues(t, 28, admitted.Load())
	}
}

func TestNothingIsAllocated(t *testing.T) {
	c, err := overload.New(rules(4), nil, nil, noon)
	require.NoError(t, err)
	who := "shop"
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		p, _ := c.Enter(noon, &who)
		c.Leave(p)
	}))
	for range 16 {
		_, _ = c.Enter(noon, nil)
	}
	_, v := c.Enter(noon, nil)
	require.NotNil(t, v)
	assert.Zero(t, testing.AllocsPerRun(100, func() { c.Enter(noon, nil) }))
}

func TestAdjust(t *testing.T) {
	r := rules(100)
	r.MaxExpand = 1
	f := newFixture(t, r)
	for _, limit := range []int64{101, 105, 120, 126, 130, 90, 0} {
		f.Adjust(limit, f.now, nil)
		assert.Equal(t, max(limit, 1), f.stats().Cap)
	}
	changes := f.kinds(overload.Changed)
	require.Len(t, changes, 3)
	assert.Equal(t, overload.Event{Kind: overload.Changed, At: noon, From: 100, To: 126, Reason: overload.Adapted}, changes[0])
	assert.EqualValues(t, 90, changes[1].To)
	assert.EqualValues(t, 1, changes[2].To)
	f.Adjust(5, f.now, nil)
	assert.Equal(t, 5, f.offer(10))
}
