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
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/overload"
)

// Many that are set aside at once do not keep the change of the cap that follows from
// being told, and those of which there is no event of their own are counted.
func TestChangesAreToldWhateverElseThereIs(t *testing.T) {
	r := rules(1000)
	r.MaxOverdue = 600
	f := newFixture(t, r)
	f.offer(1000)
	r = rules(300)
	r.SlowShare, r.MaxOverdue = overload.Million, 600
	f.now += time.Second / 2
	require.NoError(t, f.Update(r, f.now))
	f.events = nil
	f.now += 10 * time.Minute
	r.SlowCall = 0
	require.NoError(t, f.Update(r, f.now))
	require.Nil(t, f.enter(), "600 are set aside and the cap of 300 expands over the 400 that run")
	assert.EqualValues(t, 600, f.stats().Overdue)
	require.Len(t, f.kinds(overload.Changed), 1)
	assert.EqualValues(t, 600, f.kinds(overload.Changed)[0].To)
	var told int64
	for _, e := range f.kinds(overload.Overdue) {
		told += 1 + e.More
	}
	assert.EqualValues(t, 600, told)
}

// How many more have become slow stands with a slow one, however much there is to tell.
func TestMoreIsOfTheSlow(t *testing.T) {
	var (
		c      *overload.Cap
		events []overload.Event
		once   sync.Once
	)
	r := rules(400)
	r.MaxExpand, r.MaxOverdue = 1, 1000
	fill := func(n int, now time.Duration) {
		for range n {
			_, v := c.Enter(now, nil)
			assert.Nil(t, v)
		}
	}
	c, err := overload.New(r, nil, func(e overload.Event) {
		events = append(events, e)
		once.Do(func() { // while this one is told of
			fill(399, noon+10*time.Minute)
			fill(300, noon+20*time.Minute) // which sets 400 aside
			c.Tick(noon + 21*time.Minute)
		})
	}, noon)
	require.NoError(t, err)
	fill(400, noon)
	fill(1, noon+10*time.Minute) // so does this
	fill(5, noon+22*time.Minute)
	c.Tick(noon + 23*time.Minute)
	var slow int64
	for _, e := range events {
		switch e.Kind {
		case overload.Slow:
			slow += 1 + e.More
		case overload.Changed, overload.Held:
			assert.Zero(t, e.More, "%+v", e)
		}
	}
	assert.EqualValues(t, 306, slow)
	assert.EqualValues(t, 306, c.Stats(noon).SlowCalls)
}

// A listener that panics is told of the rest.
func TestAPanicKeepsNothingBack(t *testing.T) {
	told := 0
	c, err := overload.New(rules(10), nil, func(overload.Event) {
		if told++; told == 1 {
			panic("no")
		}
	}, noon)
	require.NoError(t, err)
	for range 10 {
		_, _ = c.Enter(noon, nil)
	}
	_, _ = c.Enter(noon+time.Hour, nil)
	assert.Equal(t, 10, told)
}

// A reason that comes and goes is told once.
func TestHeldIsToldOnceForEachReason(t *testing.T) {
	f := newFixture(t, rules(10))
	f.offer(10)
	for range 20 { // the cap is met all the time
		f.signal = "cpu"
		f.now += 20 * ms
		require.NotNil(t, f.enter())
		f.signal = ""
		r := rules(10)
		r.MaxExpand = 1
		require.NoError(t, f.Update(r, f.now))
		require.NotNil(t, f.enter())
		require.NoError(t, f.Update(rules(10), f.now))
	}
	held := f.kinds(overload.Held)
	require.Len(t, held, 2)
	assert.Equal(t, overload.Tight, held[0].Reason)
	assert.Equal(t, overload.Highest, held[1].Reason)
}

// A limit that is found out is compared with what was told last, whoever changed it.
func TestAdjustAfterUpdate(t *testing.T) {
	r := rules(200)
	r.MaxExpand = 1
	f := newFixture(t, r)
	r.Limit = 20
	require.NoError(t, f.Update(r, f.now))
	f.Adjust(21, f.now, nil)
	f.Adjust(40, f.now, nil)
	changes := f.kinds(overload.Changed)
	require.Len(t, changes, 2)
	assert.Equal(t, overload.Event{Kind: overload.Changed, At: noon, From: 200, To: 20, Reason: overload.Configured}, changes[0])
	assert.Equal(t, overload.Event{Kind: overload.Changed, At: noon, From: 20, To: 40, Reason: overload.Adapted}, changes[1])
}

// Calls that hang do not look well because the former ones were set aside.
func TestMassTimeoutsDoNotExpandWhenSetAside(t *testing.T) {
	r := rules(10)
	r.MaxOverdue = 25
	f := newFixture(t, r)
	f.offer(10)
	for range 300 {
		f.pass(time.Second)
		f.offer(15)
		require.EqualValues(t, 10, f.stats().Cap)
		require.LessOrEqual(t, f.stats().Running+f.stats().Aside, int64(10+25))
	}
	assert.EqualValues(t, 25, f.stats().Aside)
	assert.Empty(t, f.kinds(overload.Changed))

	// Those that have been aside for long are a leak, with which the rest may be well.
	f = newFixture(t, rules(10))
	f.offer(10)
	f.pass(time.Minute)
	assert.Equal(t, 10, f.offer(15))
	f.calls = f.calls[10:]
	f.leaveAll()
	f.pass(time.Minute)
	assert.Equal(t, 40, f.offer(100))
}

// Rules that change all the time cost no slot.
func TestStormOfRules(t *testing.T) {
	var clock, sequence atomic.Int64
	clock.Store(int64(noon))
	r := rules(5)
	r.EntryTimeout, r.SlowCall, r.Calm = 4*ms, 2*ms, ms
	var changed atomic.Int64
	var well atomic.Bool
	c, err := overload.New(r, func() (string, bool) { return "cpu", !well.Load() && sequence.Add(1)%5 == 0 }, func(e overload.Event) {
		if e.Kind == overload.Changed && e.Reason != overload.Adapted {
			changed.Add(1)
		}
	}, noon)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for n := range 500 {
				now := time.Duration(clock.Add(int64(ms) / 8))
				switch {
				case g == 0:
					u := r
					u.Limit, u.MaxOverdue, u.MaxExpand = int64(1+n%9), int64(n%7), int64(1+n%4)
					u.EntryTimeout *= time.Duration(n % 3)
					assert.NoError(t, c.Update(u, now))
				case g == 1:
					c.Adjust(int64(1+n%13), now, func() bool { return n%2 == 0 })
				case n%11 == 0:
					c.Tick(now)
				}
				p, v := c.Enter(now, nil)
				for range n % 8 {
					runtime.Gosched()
				}
				if v == nil {
					c.Leave(p)
				}
			}
		})
	}
	wg.Wait()
	s := c.Stats(time.Duration(clock.Load()))
	assert.Zero(t, s.Running)
	assert.Zero(t, s.Aside)
	assert.Equal(t, s.Overdue, s.Returned)
	assert.Positive(t, changed.Load())
	well.Store(true)
	require.NoError(t, c.Update(rules(3), noon))
	admitted := 0
	for range 100 {
		if _, v := c.Enter(noon, nil); v == nil {
			admitted++
		}
	}
	assert.Equal(t, 12, admitted)
}
