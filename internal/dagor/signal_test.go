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
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestOverloadFor(t *testing.T) {
	assert.Equal(t, 20*time.Millisecond, OverloadFor(500*time.Millisecond), "as published")
	assert.Equal(t, 20*time.Millisecond, OverloadFor(0))
	assert.Equal(t, 20*time.Millisecond, OverloadFor(-1))
	assert.Equal(t, 120*time.Millisecond, OverloadFor(3*time.Second))
}

func TestQueueing(t *testing.T) {
	var q queueing
	assert.Zero(t, q.take())
	q.add(10 * time.Millisecond)
	q.add(20 * time.Millisecond)
	q.add(-time.Second) // a clock that went back
	assert.Equal(t, 10*time.Millisecond, q.take())
	assert.Zero(t, q.take(), "each window has its own")
}

func TestReadings(t *testing.T) {
	var r reading
	const window = 100 * time.Millisecond
	assert.Negative(t, r.take(window, window), "nobody tells")
	r.tell(time.Second)
	for range believedWindows + 1 {
		assert.Equal(t, time.Second, r.take(window, window))
	}
	assert.Negative(t, r.take(window, window))
	r.tell(-1) // a clock that went back
	assert.Zero(t, r.take(window, window))
	r.tell(time.Second)
	assert.Negative(t, r.take(time.Hour, window), "it may be as old")
	assert.Negative(t, r.take(window, window), "and gets no younger")
	r.tell(math.MaxInt64)
	assert.Equal(t, time.Duration(math.MaxInt64), r.take(0, window))
	assert.Negative(t, r.take(math.MaxInt64, window))
	assert.Negative(t, r.take(math.MaxInt64, window))
	r.tell(7)
	assert.EqualValues(t, 7, r.take(window, window), "until it is told again")
}

// Whoever tells a Paper of the scheduler and then stops, with a high delay, does not shut it for good.
func TestRegression_APaperWhoseSchedulerIsHeardNoMore(t *testing.T) {
	c := NewPaper(PaperOptions{Businesses: 1}, 0)
	now := time.Duration(0)
	load := func(windows int) {
		for range windows * Users {
			now += time.Second / Users
			c.Admit(NewPriority(NewLevel(0, uint8(now*Users/time.Second)), 0), now)
		}
	}
	c.Scheduler(time.Second)
	load(10)
	assert.Less(t, c.Advert().Cursor, NewPriority(NewLevel(0, 100), 0))
	load(400)
	assert.GreaterOrEqual(t, c.Advert().Cursor, NewPriority(NewLevel(0, Users-1), 0))
}

// What was told an hour ago, and then nobody came, says nothing of now.
func TestRegression_ASchedulerOfAnHourAgo(t *testing.T) {
	c := NewController(Options{Limit: 100}, 0)
	c.Scheduler(time.Second)
	for now := time.Hour; now < time.Hour+10*time.Second; now += 10 * time.Millisecond {
		if v, _ := c.Enter(0, now); v == Admitted {
			c.Leave(now, 10*time.Millisecond)
		}
	}
	assert.Equal(t, 100, c.State().Limit)
}

// The scheduler's latency is a part of each call's queueing time: handlers that need a
// CPU wait where no filter sees it.
func TestALateSchedulerIsAnOverload(t *testing.T) {
	c := NewPaper(PaperOptions{Businesses: 1}, 0)
	c.Scheduler(30 * time.Millisecond)
	for i := range Users {
		assert.True(t, c.Admit(NewPriority(NewLevel(0, uint8(i)), 0), 0))
	}
	assert.True(t, c.Admit(0, time.Second), "which ends the window")
	assert.False(t, c.Admit(Lowest, time.Second))
	assert.True(t, c.Admit(0, time.Second))
}

func TestAControllerTellsItsQueueingTime(t *testing.T) {
	c := NewController(Options{Limit: 1, Fixed: true, Window: 100 * time.Millisecond}, 0)
	c.Enter(0, 0)
	c.Enter(0, 0)
	w := new(Waiter)
	c.Queue(0, 0, w)
	told := c.Leave(30*time.Millisecond, 30*time.Millisecond)
	assert.Same(t, w, told.Next())
	c.Leave(40*time.Millisecond, 10*time.Millisecond)
	assert.Zero(t, c.State().Queueing, "the window has not ended")
	c.Enter(0, 100*time.Millisecond)
	assert.Equal(t, 15*time.Millisecond, c.State().Queueing, "one of two waited")
	c.Scheduler(7 * time.Millisecond)
	c.Leave(200*time.Millisecond, 100*time.Millisecond)
	c.Enter(0, 200*time.Millisecond)
	assert.Equal(t, 7*time.Millisecond, c.State().Queueing)
}
