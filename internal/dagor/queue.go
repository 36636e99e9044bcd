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
	"sync/atomic"
	"time"
)

// Verdict is what became of a call at a Controller.
type Verdict uint8

// The verdicts.
const (
	// Waits is none yet: the call is in the queue.
	Waits Verdict = iota
	// Admitted calls run; each of them has to Leave.
	Admitted
	// Full: the queue is full of calls that are as important or more.
	Full
	// Displaced by a more important call when the queue was full.
	Displaced
	// Expired: it waited for as long as it may.
	Expired
)

var verdicts = [...]string{"waits", "admitted", "full", "displaced", "expired"}

func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return "unknown"
}

// Waiter is a place in a Controller's queue. The zero value is ready; it may be used again
// after a Verdict other than Waits.
type Waiter struct {
	// Verdict is for its owner to read when the Controller has handed the Waiter out.
	Verdict Verdict
	// Until, where it is set, is when it expires at the latest. Queue sets it to when it expires.
	Until time.Duration
	// Since is when it was Admitted, for its owner to read then: the place is taken from that time on,
	// whenever a goroutine gets to run.
	Since time.Duration
	// Owner is for its owner to find what a Waiter is part of.
	Owner any

	of       *Controller // whose queue it was put in last
	priority Priority
	arrived  time.Duration
	order    uint64 // of arrival, among equals
	at       [2]int // its places in the two heaps, + 1; 0: not queued
	next     link
	turn     atomic.Uint64 // odd while it is decided about and not taken out of a Decided
}

// link is a Waiter in a Decided, in one of its turns.
type link struct {
	w    *Waiter
	turn uint64
}

// Waited is how long it was in the queue by now.
func (w *Waiter) Waited(now time.Duration) time.Duration { return max(0, now-w.arrived) }

// before tells whether w is served before x: the more important, and of equals the
// one that came first.
func (w *Waiter) before(x *Waiter) bool {
	return w.priority < x.priority || w.priority == x.priority && w.order < x.order
}

// Decided are waiters of which a Controller has decided, for its caller to tell. Each is taken out
// once, whoever has a copy: what is left of a copy is nothing once Next of another was called.
type Decided struct{ first, last link }

// Next takes one out, nil at the end.
func (d *Decided) Next() *Waiter {
	at := d.first
	if at.w == nil || !at.w.turn.CompareAndSwap(at.turn, at.turn+1) {
		d.first = link{}
		return nil
	}
	d.first, at.w.next = at.w.next, link{}
	return at.w
}

func (d *Decided) add(w *Waiter, v Verdict) {
	turn := w.turn.Load()
	turn += 1 + turn&1 // the next odd one
	w.Verdict, w.next = v, link{}
	w.turn.Store(turn)
	at := link{w, turn}
	if d.first.w == nil {
		d.first = at
	} else {
		d.last.w.next = at
	}
	d.last = at
}

// The two ends of a line.
const (
	best = iota
	worst
)

// line is a queue that gives out its most important waiter, and its least important: a
// heap for each end, over the same waiters.
type line struct {
	heaps [2][]*Waiter
	order uint64
}

func (l *line) len() int { return len(l.heaps[best]) }

// peek is the waiter at an end, nil in an empty line.
func (l *line) peek(end int) *Waiter {
	if h := l.heaps[end]; len(h) > 0 {
		return h[0]
	}
	return nil
}

func (l *line) push(w *Waiter) {
	l.order++
	w.order = l.order
	for end := range l.heaps {
		l.heaps[end] = append(l.heaps[end], w)
		i := len(l.heaps[end]) - 1
		w.at[end] = i + 1
		l.up(end, i)
	}
}

// remove takes one out and reports whether it was in.
func (l *line) remove(w *Waiter) bool {
	if w.at[best] == 0 {
		return false
	}
	for end := range l.heaps {
		h, i := l.heaps[end], w.at[end]-1
		last := len(h) - 1
		l.swap(end, i, last)
		h[last] = nil
		l.heaps[end] = h[:last]
		w.at[end] = 0
		if i < last && !l.down(end, i) {
			l.up(end, i)
		}
	}
	return true
}

// above tells whether the waiter at i belongs nearer to the top of a heap than that at j.
func (l *line) above(end, i, j int) bool {
	h := l.heaps[end]
	if end == best {
		return h[i].before(h[j])
	}
	return h[j].before(h[i])
}

func (l *line) swap(end, i, j int) {
	h := l.heaps[end]
	h[i], h[j] = h[j], h[i]
	h[i].at[end], h[j].at[end] = i+1, j+1
}

func (l *line) up(end, i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !l.above(end, i, parent) {
			return
		}
		l.swap(end, i, parent)
		i = parent
	}
}

func (l *line) down(end, i int) (moved bool) {
	for {
		child := 2*i + 1
		n := len(l.heaps[end])
		if child >= n {
			return moved
		}
		if child+1 < n && l.above(end, child+1, child) {
			child++
		}
		if !l.above(end, child, i) {
			return moved
		}
		l.swap(end, i, child)
		i, moved = child, true
	}
}
