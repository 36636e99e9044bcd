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

package tps

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/weir-go/weir/internal/fifo"
)

// Turn is how a wait for a turn ended.
type Turn struct {
	// Ticket is to give the turn back with: 24 bits.
	Ticket uint32
	// Queued is whether the call waited.
	Queued bool
	// RetryAfter is, for a call that was refused, how long it would have to stay away
	// for its turn not to be too late.
	RetryAfter time.Duration
}

// Wait lets the call pass when its turn comes, and waits for it no longer than
// most: a call whose turn would be later is refused at once, with an error that is
// [ErrWaitTooLong], and so is one that waits and whose turn an Update moves too far.
// An end of ctx ends the wait with its error and gives the
// place to those behind. The call passes if and only if the error is nil.
func (p *Pacer) Wait(ctx context.Context, now, most time.Duration) (Turn, error) {
	if ticket, ok := p.Pass(now); ok {
		return Turn{Ticket: ticket}, nil
	}
	if err := ctx.Err(); err != nil {
		return Turn{}, &turnEnded{err, context.Cause(ctx)}
	}
	w, t, err := p.enqueue(now, most)
	if w == nil {
		return t, err
	}
	defer p.idle.Put(w)
	select {
	case <-w.granted:
		if err := ctx.Err(); err != nil {
			p.GiveBack(w.ticket)
			return Turn{Queued: true}, &turnEnded{err, context.Cause(ctx)}
		}
		if w.late > 0 {
			return Turn{Queued: true, RetryAfter: w.late}, ErrWaitTooLong
		}
	case <-ctx.Done():
		p.leave(w)
		return Turn{Queued: true}, &turnEnded{ctx.Err(), context.Cause(ctx)}
	}
	return Turn{Ticket: w.ticket, Queued: true}, nil
}

// enqueue puts a call at the end of those who wait, unless its turn is now or would
// come too late.
func (p *Pacer) enqueue(now, most time.Duration) (*turn, Turn, error) {
	end := until(now, most)
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.list.Head() == nil {
		if p.open {
			return nil, Turn{}, nil
		}
		last := p.last.Load()
		due := time.Duration(last + p.spacing.Load())
		switch {
		case now >= due:
			if p.last.CompareAndSwap(last, int64(now)) {
				p.passed.Add(1)
				return nil, Turn{Ticket: ticketOf(now)}, nil
			}
		case due > end:
			return nil, Turn{RetryAfter: due - end}, ErrWaitTooLong
		case p.last.CompareAndSwap(last, occupied):
			p.due = due
			w := p.pushLocked(end)
			p.armLocked(now)
			return w, Turn{}, nil
		}
	}
	if turn := p.turnLocked(p.list.Len()); turn > end {
		return nil, Turn{RetryAfter: turn - end}, ErrWaitTooLong
	}
	return p.pushLocked(end), Turn{}, nil
}

func (p *Pacer) pushLocked(end time.Duration) *turn {
	w, _ := p.idle.Get().(*turn)
	if w == nil {
		w = &turn{granted: make(chan struct{}, 1)}
	}
	w.ticket, w.late, w.until = noTurn, 0, end
	p.list.Push(w)
	return w
}

// until is the end of a wait that begins now. One that has no end goes on further than any turn is told.
func until(now, most time.Duration) time.Duration {
	if most > math.MaxInt64-max(now, 0) {
		return math.MaxInt64
	}
	return now + most
}

// armLocked sets the timer for the first that waits.
func (p *Pacer) armLocked(now time.Duration) {
	d := max(p.due-now, 0)
	if p.timer == nil {
		p.timer = time.AfterFunc(d, p.dispatch)
		return
	}
	p.timer.Reset(d)
}

// dispatch lets those pass whose turn has come.
func (p *Pacer) dispatch() {
	now := p.clock()
	if int64(now) >= p.stepEnds.Load() {
		p.advance(now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dispatchLocked(now)
}

func (p *Pacer) dispatchLocked(now time.Duration) {
	for p.list.Head() != nil && (p.due <= now || p.open) {
		w := p.list.Head()
		if p.due <= now { // those who are let go take no turns
			p.due = max(p.due+time.Duration(p.spacing.Load()), now-catchUp)
			w.ticket = ticketOf(p.due - time.Duration(p.spacing.Load()))
			p.passed.Add(1)
		}
		p.list.Remove(w)
		w.granted <- struct{}{}
	}
	p.restLocked(now)
}

// restLocked goes on with those that wait still, or leaves the way to all.
func (p *Pacer) restLocked(now time.Duration) {
	if p.list.Head() != nil {
		p.armLocked(now)
		return
	}
	if p.last.Load() == occupied {
		p.last.Store(int64(p.due) - p.spacing.Load())
	}
	if p.timer != nil {
		p.timer.Stop()
	}
}

// leave takes w out of those that wait. Its place goes to those behind.
func (p *Pacer) leave(w *turn) {
	p.mu.Lock()
	if w.Queued() {
		p.list.Remove(w)
		p.restLocked(p.clock())
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	<-w.granted
	p.GiveBack(w.ticket)
}

// GiveBack takes a turn back, as the call did not take place after all: the next
// call may have it if none has passed since. It is called at most once for a ticket.
func (p *Pacer) GiveBack(ticket uint32) {
	if ticket == noTurn {
		return
	}
	for {
		last := p.last.Load()
		switch {
		case last == occupied:
			if p.giveBack(ticket) {
				return
			}
		case ticketOf(time.Duration(last)) != ticket:
			return
		case p.last.CompareAndSwap(last, last-p.spacing.Load()):
			p.passed.Add(-1)
			return
		}
	}
}

// giveBack is GiveBack where others wait. It reports false if they did.
func (p *Pacer) giveBack(ticket uint32) bool {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list.Head() == nil {
		return false
	}
	spacing := time.Duration(p.spacing.Load())
	if ticketOf(p.due-spacing) == ticket {
		// The next has the turn from now on, and those behind are counted from there.
		p.due = max(p.due-spacing, min(p.due, now))
		p.passed.Add(-1)
		p.dispatchLocked(now)
	}
	return true
}

// turnEnded is the error of a wait that ended with its context.
type turnEnded struct{ err, cause error }

func (e *turnEnded) Error() string   { return "weir: gave up waiting for a turn: " + e.cause.Error() }
func (e *turnEnded) Unwrap() []error { return []error{e.err, e.cause} }

// IsGivenUp reports whether a wait ended because its context did.
func IsGivenUp(err error) bool {
	var e *turnEnded
	return errors.As(err, &e)
}

// turn is a call that waits.
type turn struct {
	fifo.Links[turn]

	until time.Duration // the end of its wait
	// granted has room for the one value that comes when the wait is over. Before that
	// ticket is set, or late to how much too late the turn would be now.
	granted chan struct{}
	ticket  uint32
	late    time.Duration
}
