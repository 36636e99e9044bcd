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

package overload

import (
	"sync/atomic"
	"time"
)

// toldEach is how many calls that became slow at the same time are told of one by one.
const toldEach = 3

// Tick looks at what runs: it finds the calls that have become slow, and has the cap go
// back a step when that is due. It is to be called about once a second.
func (c *Cap) Tick(now time.Duration) {
	c.tickLocking(now)
	c.tell()
}

func (c *Cap) tickLocking(now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slow := c.findSlowLocked(now)
	running := c.running.Inflight()
	if c.held != 0 && running*10 < c.cap*9 {
		c.held = 0 // calls are let in again
	}
	if c.cap <= c.rules.Limit {
		c.calm = now
		return
	}
	lower := max((c.cap+1)/2, c.rules.Limit)
	if c.health != nil {
		if signal, tight := c.health(); tight {
			c.setLocked(lower, Tight, signal, now)
			return
		}
	}
	switch {
	case c.tooSlowLocked(slow):
		c.setLocked(lower, SlowCalls, "", now)
	case running*4 > lower*3:
		c.calm = now
	case now-c.calm >= c.rules.Calm:
		c.setLocked(lower, Calm, "", now)
	}
}

// findSlowLocked counts the slow calls and tells of those that were not told of.
func (c *Cap) findSlowLocked(now time.Duration) (all slowness) {
	if c.rules.SlowCall == 0 {
		return all
	}
	var fresh int64
	c.entries.each(func(word int64, w *atomic.Int64, caller *atomic.Pointer[string]) bool {
		age := now - began(word)
		if age < c.rules.SlowCall || !all.add(word, age, &c.rules) {
			return true
		}
		by := caller.Load()
		if word&told != 0 || !w.CompareAndSwap(word, word|told) {
			return true
		}
		c.slow.Add(1)
		if fresh++; fresh <= toldEach {
			c.noteLocked(Event{Kind: Slow, At: now, Age: age, Caller: deref(by)})
		}
		return true
	})
	if fresh > toldEach {
		c.moreLocked(Slow, fresh-toldEach)
	}
	return all
}

// Stats are what a cap has counted.
type Stats struct {
	// Limit is N, Cap what holds now, and Highest what it may become.
	Limit, Cap, Highest int64
	// Running are the calls with a slot, Slow those of them that are slow, and Aside those
	// that were set aside and have not ended.
	Running, Slow, Aside int64
	// MaxOverdue is how many may be set aside.
	MaxOverdue int64
	// Oldest is the age of the oldest that runs and was not set aside.
	Oldest time.Duration
	// Overdue are all that were set aside, and Returned those that have ended since.
	Overdue, Returned int64
	// SlowCalls are all that were found to be slow, and Refused those that were refused.
	SlowCalls, Refused int64
}

// Running are the calls with a slot.
func (c *Cap) Running() int64 { return c.running.Inflight() }

// Refused are all that were refused.
func (c *Cap) Refused() int64 { return c.refused.Load() }

// Stats tells what there is now.
func (c *Cap) Stats(now time.Duration) Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{
		Limit: c.rules.Limit, Cap: c.cap, Highest: c.rules.highest(), Running: c.running.Inflight(), Aside: c.aside.Load(), MaxOverdue: c.rules.MaxOverdue,
		Overdue: c.overdue.Load(), Returned: c.returned.Load(), SlowCalls: c.slow.Load(), Refused: c.refused.Load(),
	}
	c.entries.each(func(word int64, _ *atomic.Int64, _ *atomic.Pointer[string]) bool {
		if word < 0 {
			return true
		}
		age := now - began(word)
		s.Oldest = max(s.Oldest, age)
		if c.rules.SlowCall > 0 && age >= c.rules.SlowCall {
			s.Slow++
		}
		return true
	})
	return s
}
