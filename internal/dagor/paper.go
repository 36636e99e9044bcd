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
	"sync"
	"sync/atomic"
	"time"
)

// The published figures, which are the defaults of a Paper.
const (
	paperWindow   = time.Second
	paperCalls    = 2000
	paperOverload = 20 * time.Millisecond
	paperAlpha    = 0.05
	paperBeta     = 0.01
)

// PaperOptions are those of a Paper. Zero values are the published ones.
type PaperOptions struct {
	// Window is the longest, Calls the number of calls that ends one earlier.
	Window time.Duration
	Calls  int
	// Overload is the mean queueing time of a window above which there is one.
	Overload time.Duration
	// Alpha is the share of the admitted calls that is no longer expected after a window of
	// overload, Beta the share of all that is expected more after another.
	Alpha, Beta float64
	// Businesses is how many business levels are in use, all of them by default. Less
	// important calls count as the least important of them.
	Businesses int
}

// Paper decides as "Overload Control for Scaling WeChat Microservices" (SoCC 2018) has it:
// at the end of each window it moves its cursor over a histogram of the levels that came,
// by 5 % down or 1 % up. It is there to be compared with, and for those who want what
// is published.
//
// A level passes as a whole or not at all. Where one has most of the calls, an overload
// shuts it, and Beta opens it again only where so small a share of the calls is as much as
// the level has: it may stay shut for good.
//
// To the letter it counts the calls that came to it. Once its upstreams shed by its cursor
// it no longer sees what they shed, so that a calm window opens it wholly; Reports
// of what was shed cure that.
type Paper struct {
	opts   PaperOptions
	levels []atomic.Uint32

	advertised    advertised // the first level that does not pass
	calls, passed atomic.Int64
	queueing      queueing
	window        period

	scheduler reading

	mu      sync.Mutex    // held to end a window
	lastEnd time.Duration // guarded by mu
}

// NewPaper makes one that admits everything, whose first window begins at now.
func NewPaper(opts PaperOptions, now time.Duration) *Paper {
	def(&opts.Window, paperWindow)
	def(&opts.Calls, paperCalls)
	def(&opts.Overload, paperOverload)
	def(&opts.Alpha, paperAlpha)
	def(&opts.Beta, paperBeta)
	def(&opts.Businesses, Businesses)
	c := &Paper{opts: opts, lastEnd: now, levels: make([]atomic.Uint32, min(opts.Businesses, Businesses)*Users)}
	c.advertised.v.Store(uint64(len(c.levels)))
	c.window.set(opts.Window, now)
	return c
}

// def sets what is not set.
func def[T int | float64 | time.Duration](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}

func (c *Paper) index(p Priority) uint32 { return min(uint32(p.Level()), uint32(len(c.levels)-1)) }

// Admit decides about a call that came at now.
func (c *Paper) Admit(p Priority, now time.Duration) bool {
	i := c.index(p)
	c.levels[i].Add(1)
	ok := i < c.advertised.cursor()
	if ok {
		c.passed.Add(1)
	}
	if n := c.calls.Add(1); n >= int64(c.opts.Calls) || c.window.over(now) {
		c.end(now)
	}
	return ok
}

// Waited takes how long a call that was admitted waited before it ran: from the stamp that the
// transport gave it on its arrival, where it does, or else in the queue that we own.
func (c *Paper) Waited(d time.Duration) { c.queueing.add(d) }

// Scheduler takes how long the scheduler lately let wait what could run, which no call can tell of
// itself: a part of the queueing time of each. It is to be told again at least every 20 times of
// the longest window, as it is believed for no longer.
func (c *Paper) Scheduler(delay time.Duration) { c.scheduler.tell(delay) }

// Learn counts what an upstream has shed among the calls that came.
func (c *Paper) Learn(r Report) {
	r.parts(func(p Priority, calls uint32) {
		c.levels[c.index(p)].Add(calls)
		c.calls.Add(int64(calls))
	})
}

// Advert is what it would tell its upstreams.
func (c *Paper) Advert() Advert {
	cursor, seq := c.advertised.load()
	if cursor >= uint32(len(c.levels)) {
		return Advert{Cursor: Open, Seq: seq}
	}
	return Advert{Cursor: NewPriority(Level(cursor), 0), Seq: seq}
}

// end ends the window at now.
func (c *Paper) end(now time.Duration) {
	if !c.mu.TryLock() { // somebody else does
		return
	}
	defer c.mu.Unlock()
	n := c.calls.Load()
	if n < int64(c.opts.Calls) && !c.window.over(now) {
		return
	}
	c.calls.Add(-n)
	mean := c.queueing.take() + max(0, c.scheduler.take(max(0, now-c.lastEnd), c.opts.Window))
	c.lastEnd = now
	expected := float64(c.passed.Swap(0))
	if mean > c.opts.Overload {
		expected *= 1 - c.opts.Alpha
	} else {
		expected += c.opts.Beta * float64(n)
	}
	var (
		cursor uint32
		prefix float64
	)
	for i := range c.levels {
		if n := &c.levels[i]; n.Load() != 0 { // most are not in use
			prefix += float64(n.Swap(0))
		}
		if prefix > expected {
			continue // the rest is only emptied
		}
		cursor = uint32(i) + 1
	}
	c.advertised.set(cursor)
	c.window.begin(now)
}
