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
	"sync"
	"sync/atomic"
	"time"
)

// ErrWaitTooLong is the sentinel of a refusal because a call's turn would come
// later than it may wait. It is an [ErrLimitReached] too.
var ErrWaitTooLong error = waitTooLong{}

type waitTooLong struct{}

func (waitTooLong) Error() string { return "weir: the turn would come too late" }
func (waitTooLong) Unwrap() error { return ErrLimitReached }

// Pacer lets calls pass evenly: two of them never closer than Interval/Rate,
// rounded up to a whole nanosecond, so within 1 % up to ten million a second. A call
// that comes early waits for its turn, first come first served; one whose turn
// would come too late is refused at once, before it waits. It is safe for
// concurrent use.
//
// Turns are kept on a schedule: where the machine is late for one, those after it
// follow closer, by 10 ms at most in sum, so that the rate is kept.
//
// While nobody waits there is no lock and nothing is allocated. The zero value is
// not usable.
type Pacer struct {
	clock Clock
	// next is when the next call may pass, or occupied while others wait.
	next    atomic.Int64
	spacing atomic.Int64
	// stepEnds is when the step of the warm-up ends, never without one.
	stepEnds atomic.Int64
	passed   atomic.Int64 // in the step

	_ [32]byte
	// mu guards what follows.
	mu      sync.Mutex
	quota   Quota
	warming Warming // the zero value for none
	heat    heat
	// due is when the turn of the first that waits is; while nobody does it says nothing.
	due   time.Duration
	list  turns
	timer *time.Timer
	open  bool
	idle  sync.Pool
}

const (
	occupied = math.MaxInt64
	never    = math.MaxInt64
	// catchUp is how much of what the machine was late the schedule makes good.
	catchUp = 10 * time.Millisecond
)

// NewPacer returns a pacer whose first call passes at once. With a warming other
// than the zero value its rate begins at Rate/Factor and grows while calls come,
// see [WarmUp]. The error is that of [Quota.Validate] or [Warming.Validate].
func NewPacer(q Quota, w Warming, clock Clock) (*Pacer, error) {
	p := &Pacer{clock: clock}
	p.stepEnds.Store(never)
	if err := p.Update(q, w); err != nil {
		return nil, err
	}
	return p, nil
}

// Update changes the rate. It holds for the next call and for those that wait: the
// time since the last that passed counts, and the order stays. A pacer that was
// warm stays so. The error is that of [NewPacer], and nothing changes then.
func (p *Pacer) Update(q Quota, w Warming) error {
	if err := q.Validate(); err != nil {
		return err
	}
	if w != (Warming{}) {
		if err := w.Validate(); err != nil {
			return err
		}
	}
	q.Burst = 0
	p.mu.Lock()
	defer p.mu.Unlock()
	if q == p.quota && w == p.warming {
		return nil
	}
	was := p.warming != Warming{}
	p.quota, p.warming = q, w
	if w == (Warming{}) {
		p.stepEnds.Store(never)
		p.heat = heat{}
		p.spaceLocked(spacingOf(float64(q.Interval) / float64(q.Rate)))
		return nil
	}
	if !was {
		p.stepEnds.Store(0) // the first call begins the first step
	}
	p.heat = newHeat(q, w).like(p.heat)
	p.spaceLocked(spacingOf(float64(time.Second) / p.heat.now()))
	return nil
}

func spacingOf(ns float64) time.Duration {
	return time.Duration(math.Ceil(ns - 1e-6))
}

// spaceLocked changes the spacing, for those that wait as well.
func (p *Pacer) spaceLocked(d time.Duration) {
	old := time.Duration(p.spacing.Swap(int64(d)))
	if p.list.head != nil {
		// A turn that would have been earlier is now: the next are counted from there.
		now := p.clock()
		p.due = max(p.due+d-old, min(p.due, now))
		p.armLocked(now)
		return
	}
	for old != 0 {
		n := p.next.Load()
		if n == 0 || p.next.CompareAndSwap(n, n+int64(d-old)) {
			return
		}
	}
}

// Pass lets a call pass if its turn is now, and returns a ticket to give it back
// with. It never waits.
func (p *Pacer) Pass(now time.Duration) (ticket uint32, ok bool) {
	ends := p.stepEnds.Load()
	if int64(now) >= ends {
		p.advance(now)
	}
	for {
		n := p.next.Load()
		if int64(now) < n {
			return 0, false
		}
		if p.next.CompareAndSwap(n, int64(now)+p.spacing.Load()) {
			if ends != never {
				p.passed.Add(1)
			}
			return ticketOf(now), true
		}
	}
}

// ticketOf is what is left of a turn's time to know it by: 24 bits.
func ticketOf(at time.Duration) uint32 { return uint32(at) & (1<<24 - 1) }

// advance begins the step of now.
func (p *Pacer) advance(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ends := time.Duration(p.stepEnds.Load())
	if now < ends {
		return
	}
	step := p.heat.step
	if ends == 0 {
		ends = now
	} else {
		p.heat.pass(int64((now-ends)/step)+1, float64(p.passed.Swap(0)))
	}
	p.stepEnds.Store(int64(ends + ((now-ends)/step+1)*step))
	p.spaceLocked(spacingOf(float64(time.Second) / p.heat.now()))
}

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
// [ErrWaitTooLong]. An end of ctx ends the wait with its error and gives the
// place to those behind. The call passes if and only if the error is nil.
func (p *Pacer) Wait(ctx context.Context, now, most time.Duration) (Turn, error) {
	if ticket, ok := p.Pass(now); ok {
		return Turn{Ticket: ticket}, nil
	}
	if err := ctx.Err(); err != nil {
		return Turn{}, &turnEnded{err, context.Cause(ctx)}
	}
	done := ctx.Done()
	w, _ := p.idle.Get().(*turn)
	if w == nil {
		w = &turn{granted: make(chan struct{}, 1)}
	}
	defer p.idle.Put(w)
	if t, queued, err := p.enqueue(w, now, most); !queued {
		return t, err
	}
	select {
	case <-w.granted:
		if err := ctx.Err(); err != nil {
			p.GiveBack(ticketOf(w.at))
			return Turn{Queued: true}, &turnEnded{err, context.Cause(ctx)}
		}
	case <-done:
		p.leave(w)
		return Turn{Queued: true}, &turnEnded{ctx.Err(), context.Cause(ctx)}
	}
	return Turn{Ticket: ticketOf(w.at), Queued: true}, nil
}

// enqueue puts w at the end of those who wait, unless its turn is now or would
// come too late.
func (p *Pacer) enqueue(w *turn, now, most time.Duration) (t Turn, queued bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.list.head == nil {
		if p.open {
			return Turn{}, false, nil
		}
		n := p.next.Load()
		switch late := time.Duration(n) - now - most; {
		case int64(now) >= n:
			if p.next.CompareAndSwap(n, int64(now)+p.spacing.Load()) {
				p.passed.Add(1)
				return Turn{Ticket: ticketOf(now)}, false, nil
			}
		case late > 0:
			return Turn{RetryAfter: late}, false, ErrWaitTooLong
		case p.next.CompareAndSwap(n, occupied):
			p.due = time.Duration(n)
			p.list.push(w)
			p.armLocked(now)
			return Turn{}, true, nil
		}
	}
	if late := p.due + time.Duration(p.list.n*p.spacing.Load()) - now - most; late > 0 {
		return Turn{RetryAfter: late}, false, ErrWaitTooLong
	}
	p.list.push(w)
	return Turn{}, true, nil
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
	for p.list.head != nil && (p.due <= now || p.open) {
		w := p.list.head
		w.at = p.due
		p.due = max(p.due+time.Duration(p.spacing.Load()), now-catchUp)
		p.passed.Add(1)
		p.list.remove(w)
		w.granted <- struct{}{}
	}
	p.restLocked(now)
}

// restLocked goes on with those that wait still, or leaves the way to all.
func (p *Pacer) restLocked(now time.Duration) {
	if p.list.head != nil {
		p.armLocked(now)
		return
	}
	if p.next.Load() == occupied {
		p.next.Store(int64(p.due))
	}
	if p.timer != nil {
		p.timer.Stop()
	}
}

// leave takes w out of those that wait. Its place goes to those behind.
func (p *Pacer) leave(w *turn) {
	p.mu.Lock()
	if w.queued {
		p.list.remove(w)
		p.restLocked(p.clock())
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	<-w.granted
	p.GiveBack(ticketOf(w.at))
}

// GiveBack takes a turn back, as the call did not take place after all: the next
// call may have it if none has passed since. It is called at most once for a ticket.
func (p *Pacer) GiveBack(ticket uint32) {
	spacing := p.spacing.Load()
	if n := p.next.Load(); n != occupied {
		if ticketOf(time.Duration(n-spacing)) == ticket && p.next.CompareAndSwap(n, n-spacing) {
			p.passed.Add(-1)
		}
		return
	}
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list.head != nil && ticketOf(p.due-time.Duration(spacing)) == ticket {
		p.due -= time.Duration(spacing)
		p.passed.Add(-1)
		p.dispatchLocked(now)
	}
}

// Observe decides about a call without holding it up: whether it would wait, and
// whether its turn would come too late. One that would pass in the end takes its turn.
func (p *Pacer) Observe(now, most time.Duration) (wait time.Duration, err error) {
	if int64(now) >= p.stepEnds.Load() {
		p.advance(now)
	}
	for {
		n := p.next.Load()
		if n == occupied {
			return 0, nil // those who wait from before are let go
		}
		wait = max(time.Duration(n)-now, 0)
		if wait > most {
			return 0, ErrWaitTooLong
		}
		if p.next.CompareAndSwap(n, int64(now+wait)+p.spacing.Load()) {
			p.passed.Add(1)
			return wait, nil
		}
	}
}

// SetOpen lets all pass who wait, and nobody wait from then on, until
// SetOpen(false): for a guard that stops enforcing while calls are on their way here.
func (p *Pacer) SetOpen(open bool) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = open
	if open {
		p.dispatchLocked(now)
	}
}

// PacerStats is the state of a pacer at some moment.
type PacerStats struct {
	Quota
	// Spacing is the time between two calls that holds.
	Spacing time.Duration
	// Waiting is the number of calls that wait.
	Waiting int64
}

// Stats reads the state.
func (p *Pacer) Stats() PacerStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PacerStats{p.quota, time.Duration(p.spacing.Load()), p.list.n}
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
	prev, next *turn
	queued     bool
	at         time.Duration // its turn
	granted    chan struct{} // has room for the one value that it gets
}

// turns is a doubly linked list, so that whoever gives up leaves it at once.
type turns struct {
	head, tail *turn
	n          int64
}

func (l *turns) push(w *turn) {
	w.prev, w.queued = l.tail, true
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.n++
}

func (l *turns) remove(w *turn) {
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	l.n--
}
