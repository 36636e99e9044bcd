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

import "time"

// Scheduler tells how late the scheduler lately ran what could run, in the mean or at a
// high percentile: /sched/latencies of runtime/metrics, say. A handler that needs a CPU
// waits there, where a filter does not see it. It is to be told again at least every 20
// windows, as it is believed for no longer.
func (c *Controller) Scheduler(delay time.Duration) { c.scheduler.tell(delay) }

// tick ends a window at now, if none else does, and returns those whom a new limit lets run.
func (c *Controller) tick(now time.Duration) (told Decided) {
	if !c.mu.TryLock() {
		return told // Whoever holds it may be about to; the next call comes by here, too.
	}
	defer c.mu.Unlock()
	if !c.window.over(now) {
		return told
	}
	seen := c.seen.figures()
	seen.came = int64(c.came.n.Load())
	f := seen.since(c.lastSeen)
	f.took = now - c.lastEnd
	c.lastSeen, c.lastEnd = seen, now
	c.window.begin(now)
	if f.took < 0 { // the clock was ahead, and what was seen is of no known time
		c.seen.resumed.Store(int64(now))
		return told
	}

	if f.took > tunerGap {
		c.seen.resumed.Store(int64(now))
	}
	delay := c.scheduler.take(f.took, c.opts.Window)
	c.seen.queueing.Store(int64(f.queueing() + max(0, delay)))
	limit := c.tuner.window(f, delay)
	if stuck := c.stuck.window(f, int(c.state.Load()&running), &c.seen.fewest); !c.opts.Fixed {
		limit = min(limit+stuck, c.opts.MaxLimit)
	}
	c.limit.Store(uint32(limit))
	c.room = c.tuner.room()
	c.trim(&told)
	c.advertised.set(uint32(c.opener.window(f, c.tuner.best, &c.came, &c.shed)))
	c.admit(now, &told)
	return told
}

// trim drops those for whom there is no longer room.
func (c *Controller) trim(told *Decided) {
	for c.line.len() > c.room {
		w := c.line.peek(worst)
		c.take(w)
		c.seen.refused.Add(1)
		told.add(w, Displaced)
	}
}
