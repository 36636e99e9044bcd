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
	"sync"
	"sync/atomic"
	"time"
)

// Options are those of a Controller. Zero values are the defaults.
type Options struct {
	// Limit is how many calls may run at once at the start, 1 to MaxLimit, 16 by default: from a
	// single one it takes minutes to find out that calls of seconds could be many. MinLimit and
	// MaxLimit bound what it is tuned to, 1 and 65536 by default. Places of calls that seem not to
	// end come on top, but for MaxLimit.
	Limit, MinLimit, MaxLimit int
	// Fixed leaves the limit at Limit.
	Fixed bool
	// MaxWait bounds how long a call waits, 100 ms by default. The queue has room for as many
	// calls as the service takes in that time.
	MaxWait time.Duration
	// MaxQueue bounds that room, 4096 by default.
	MaxQueue int
	// Window is how often it looks at what it has seen, 100 ms by default.
	Window time.Duration
	// Delay is the latency of the scheduler from which the limit is lowered, 20 ms
	// by default.
	Delay time.Duration
}

func (o Options) withDefaults() Options {
	def(&o.MinLimit, 1)
	def(&o.MaxLimit, 1<<16)
	def(&o.Limit, 16)
	def(&o.MaxWait, 100*time.Millisecond)
	def(&o.MaxQueue, 1<<12)
	def(&o.Window, 100*time.Millisecond)
	def(&o.Delay, 20*time.Millisecond)
	o.MaxLimit = min(o.MaxLimit, math.MaxInt32) // there are no more bits for it
	o.MaxQueue = min(o.MaxQueue, math.MaxInt32)
	o.MinLimit = min(o.MinLimit, o.MaxLimit)
	o.Limit = max(o.MinLimit, min(o.Limit, o.MaxLimit))
	return o
}

// minQueue is the least room in the queue: a single call that came in the wrong instant is
// no reason to refuse.
const minQueue = 4

// Controller decides about the calls of one service on one instance.
//
// So many calls run as its limit allows. Those over it wait in a queue by their importance: a
// full queue refuses its least important call, be it the one that comes or one that waits.
// So the calls that run are the most important ones of those that came lately, at any load,
// without a level that has to be found first. The limit is tuned to what the service can do. Calls that
// seem never to end do not count for it, as they would shut the service for good.
//
// A call that needs not wait takes no lock, and neither does one that is refused because
// the queue is full of better ones. All methods may be used from several goroutines.
type Controller struct {
	opts Options

	// state is how many calls run, in the low half, and how many wait.
	state      atomic.Uint64
	limit      atomic.Uint32
	bar        atomic.Uint32 // while the queue is full: what is not less than it is refused
	advertised advertised
	window     period
	seen       counts
	came       sample // of calls
	shed       sample // of calls that upstreams have shed

	scheduler reading

	mu       sync.Mutex
	line     line
	room     int
	tuner    tuner
	stuck    stuck
	opener   opener
	lastSeen figures
	lastEnd  time.Duration
}

// NewController makes one whose first window begins at now.
func NewController(opts Options, now time.Duration) *Controller {
	opts = opts.withDefaults()
	c := &Controller{opts: opts, lastEnd: now}
	c.limit.Store(uint32(opts.Limit))
	c.seen.resumed.Store(math.MinInt64)
	c.bar.Store(math.MaxUint32)
	c.advertised.v.Store(uint64(Open))
	c.window.set(opts.Window, now)
	c.tuner = newTuner(opts)
	c.room = c.tuner.room()
	c.opener = newOpener()
	return c
}

const (
	oneRuns  = 1
	oneWaits = 1 << 32
	running  = oneWaits - 1
)

// Enter brings a call at now. Admitted calls run; of one that is Full nothing is kept. One
// that Waits has to be put in the queue, by Queue. Those that are Decided beside it are to be
// told.
func (c *Controller) Enter(p Priority, now time.Duration) (Verdict, Decided) {
	p = min(p, Lowest) // what is less important than all is so by somebody's mistake
	c.came.add(p, 1)
	var told Decided
	if c.window.over(now) {
		told = c.tick(now)
	}
	if c.enter() {
		return Admitted, told
	}
	c.seen.held.Add(1)
	if uint32(p) >= c.bar.Load() {
		c.seen.refused.Add(1)
		return Full, told
	}
	return Waits, told
}

// Queue puts a call in the queue that Enter has said Waits, at the same now. The Waiter's Until, where
// it is set, bounds its wait beside MaxWait; at the end of it the owner calls Expire. One
// that Waits then is among those Decided by a later method, if Expire is not first.
func (c *Controller) Queue(p Priority, now time.Duration, w *Waiter) (Verdict, Decided) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wait(min(p, Lowest), now, w)
}

// enter takes a place without waiting.
func (c *Controller) enter() bool {
	limit := uint64(c.limit.Load())
	for {
		s := c.state.Load()
		if s >= limit { // nobody waits below it, as running calls are the low half
			return false
		}
		if c.state.CompareAndSwap(s, s+oneRuns) {
			return true
		}
	}
}

// wait puts a call in the queue, under the lock.
func (c *Controller) wait(p Priority, now time.Duration, w *Waiter) (v Verdict, told Decided) {
	until := later(now, c.opts.MaxWait)
	if w.Until != 0 {
		until = min(until, w.Until)
	}
	if until <= now {
		c.seen.refused.Add(1)
		return Expired, told
	}
	w.Verdict, w.Until, w.of, w.priority, w.arrived = Waits, until, c, p, now
	if c.line.len() >= c.room {
		c.expire(now, &told)
	}
	if c.line.len() >= c.room {
		least := c.line.peek(worst)
		if least.priority <= p {
			c.seen.refused.Add(1)
			return Full, told
		}
		c.take(least)
		c.seen.refused.Add(1)
		told.add(least, Displaced)
	}
	c.line.push(w)
	c.state.Add(oneWaits)
	// A place may have come free between the look at it and the lock.
	c.admit(now, &told)
	if w.at[best] == 0 && w.Verdict == Admitted {
		return Admitted, without(told, w)
	}
	return Waits, told
}

// without takes a waiter out of those decided: its Enter tells it itself.
func without(told Decided, w *Waiter) Decided {
	var rest Decided
	for x := told.Next(); x != nil; x = told.Next() {
		if x != w {
			rest.add(x, x.Verdict)
		}
	}
	return rest
}

// take takes a waiter out of the queue.
func (c *Controller) take(w *Waiter) {
	c.line.remove(w)
	c.state.Add(^uint64(oneWaits - 1))
}

// full notes which calls need not come to the lock.
func (c *Controller) full() {
	if c.line.len() < c.room {
		c.bar.Store(math.MaxUint32)
		return
	}
	c.bar.Store(uint32(c.line.peek(worst).priority))
}

// expire drops those at the less important end that have waited for too long.
func (c *Controller) expire(now time.Duration, told *Decided) {
	for w := c.line.peek(worst); w != nil && w.Until <= now; w = c.line.peek(worst) {
		c.take(w)
		c.seen.refused.Add(1)
		told.add(w, Expired)
	}
}

// admit lets those run for whom there is a place.
func (c *Controller) admit(now time.Duration, told *Decided) {
	limit := uint64(c.limit.Load())
	for c.line.len() > 0 {
		s := c.state.Load()
		if s&running >= limit {
			break
		}
		w := c.line.peek(best)
		if w.Until <= now {
			c.take(w)
			c.seen.refused.Add(1)
			told.add(w, Expired)
			continue
		}
		if !c.state.CompareAndSwap(s, s+oneRuns-oneWaits) {
			continue
		}
		c.line.remove(w)
		w.Since = now
		c.seen.waited(w.Waited(now))
		told.add(w, Admitted)
	}
	c.full()
}

// Leave ends a call at now that was admitted and has run for so long since then. Its place goes to
// one that waits.
func (c *Controller) Leave(now, ran time.Duration) Decided {
	c.seen.left(now, ran)
	for {
		s := c.state.Load()
		if s >= oneWaits {
			break
		}
		// What never entered has no place to give back: one too few would be taken for
		// as many as can be.
		if s == 0 || c.state.CompareAndSwap(s, s-oneRuns) {
			c.seen.fewest.note(s - min(s, oneRuns))
			return Decided{}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var told Decided
	s := c.state.Load()
	for s&running > 0 && !c.state.CompareAndSwap(s, s-oneRuns) {
		s = c.state.Load()
	}
	c.seen.fewest.note(s&running - min(s&running, oneRuns))
	c.admit(now, &told)
	return told
}

// Expire takes a waiter out whose time is up or whose caller has gone, and tells whether
// it was still in: if not, it has been decided about.
func (c *Controller) Expire(w *Waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.of != c || w.at[best] == 0 {
		return false
	}
	c.take(w)
	c.seen.refused.Add(1)
	w.Verdict = Expired
	c.full()
	return true
}

// Learn counts what an upstream has shed. A Report without a sample is not counted: of calls whose
// priorities are not known it would be those that come that are too many.
func (c *Controller) Learn(r Report) {
	r.parts(func(p Priority, calls uint32) {
		c.seen.shed.Add(int64(calls))
		c.shed.add(p, calls)
	})
}

// Advert is what it tells its upstreams.
func (c *Controller) Advert() Advert {
	cursor, seq := c.advertised.load()
	return Advert{Cursor: Priority(cursor), Seq: seq}
}

// State is what a Controller is at.
type State struct {
	Running, Waiting int
	Limit, Room      int
	// Stuck is how many of those that run seem not to end. The limit is higher by as many.
	Stuck  int
	Cursor Priority
	// Queueing is how long calls waited in the mean in the last window, the scheduler's latency
	// included where that is told.
	Queueing time.Duration
}

// State may be slightly out of step with itself.
func (c *Controller) State() State {
	s := c.state.Load()
	c.mu.Lock()
	room, stuck := c.room, c.stuck.n
	c.mu.Unlock()
	return State{Running: int(s & running), Waiting: int(s >> 32), Limit: int(c.limit.Load()), Room: room, Stuck: stuck, Cursor: Priority(c.advertised.cursor()), Queueing: time.Duration(c.seen.queueing.Load())}
}
