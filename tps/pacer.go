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
	"math/bits"
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
	// last is the turn of the call that passed last, or occupied while others wait.
	// The next may pass when the spacing is over, whatever that has become by then.
	last    atomic.Int64
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
	// idle has turns to use again. It belongs to the pacer because channels and timers
	// of one synctest bubble must not get into another.
	idle sync.Pool
}

const (
	nobodyYet = math.MinInt64 / 2
	occupied  = math.MaxInt64
	never     = math.MaxInt64
	// longest is what spacings are cut to, 36 years, and farthest, 146 years, how far
	// turns are told: so no sum of them and of a reading of the clock overflows.
	longest  = 1 << 60
	farthest = 1 << 62
	// catchUp is how much of what the machine was late the schedule makes good.
	catchUp = 10 * time.Millisecond
)

// NewPacer returns a pacer whose first call passes at once. With a warming other
// than the zero value its rate begins at Rate/Factor and grows while calls come,
// see [WarmUp]. The error is that of [Quota.Validate] or [Warming.Validate].
func NewPacer(q Quota, w Warming, clock Clock) (*Pacer, error) {
	p := &Pacer{clock: clock}
	p.last.Store(nobodyYet)
	p.stepEnds.Store(never)
	if err := p.Update(q, w); err != nil {
		return nil, err
	}
	return p, nil
}

// Update changes the rate. It holds for the next call and for those that wait: the
// time since the last that passed counts, and the order stays. Those whose turn
// would come too late now are refused at once. A pacer that was warm stays so. The error is that of [NewPacer], and nothing changes then.
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
	} else {
		if !was {
			p.stepEnds.Store(0) // the first call begins the first step
		}
		old := p.heat
		p.heat = newHeat(q, w).like(old)
		p.passed.Store(p.heat.counted(p.passed.Load(), old))
		p.spaceLocked(spacingOf(float64(time.Second) / p.heat.now()))
	}
	if p.list.head != nil {
		p.turnAwayLocked()
		p.restLocked(p.clock())
	}
	return nil
}

func spacingOf(ns float64) time.Duration {
	return time.Duration(min(math.Ceil(ns-1e-6), longest))
}

// spaceLocked changes the spacing, for those that wait as well.
func (p *Pacer) spaceLocked(d time.Duration) {
	old := time.Duration(p.spacing.Swap(int64(d)))
	if p.list.head == nil || d == old {
		return
	}
	// A turn that would have been earlier is now: the next are counted from there.
	now := p.clock()
	p.due = max(p.due+d-old, min(p.due, now))
	p.armLocked(now)
}

// turnAwayLocked refuses those whose turn would come too late now. Those behind move
// up.
func (p *Pacer) turnAwayLocked() {
	n := int64(0)
	for w := p.list.head; w != nil; {
		next := w.next
		if late := p.turnLocked(n) - w.until; late > 0 {
			w.late = late
			p.list.remove(w)
			w.granted <- struct{}{}
		} else {
			n++
		}
		w = next
	}
}

// turnLocked is when the turn of the n-th that waits is, from 0.
func (p *Pacer) turnLocked(n int64) time.Duration {
	high, low := bits.Mul64(uint64(n), uint64(p.spacing.Load()))
	if high != 0 || low > farthest {
		low = farthest
	}
	return p.due + time.Duration(low)
}

// Pass lets a call pass if its turn is now, and returns a ticket to give it back
// with. It never waits.
func (p *Pacer) Pass(now time.Duration) (ticket uint32, ok bool) {
	ends := p.stepEnds.Load()
	if int64(now) >= ends {
		p.advance(now)
	}
	for {
		last := p.last.Load()
		if last == occupied || int64(now) < last+p.spacing.Load() {
			return 0, false
		}
		if p.last.CompareAndSwap(last, int64(now)) {
			if ends != never {
				p.passed.Add(1)
			}
			return ticketOf(now), true
		}
	}
}

// noTurn is the ticket of a call that passed without taking a turn.
const noTurn = 0

// ticketOf is what is left of a turn's time to know it by: 24 bits.
func ticketOf(at time.Duration) uint32 { return max(uint32(at)&(1<<24-1), noTurn+1) }

// advance begins the step of now.
func (p *Pacer) advance(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ends := time.Duration(p.stepEnds.Load())
	if now < ends {
		return
	}
	step := p.heat.step
	passed := max(p.passed.Swap(0), 0) // turns of the step before may have been taken back
	if ends == 0 {
		ends = now
	} else {
		p.heat.pass(int64((now-ends)/step)+1, float64(passed))
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
	for p.list.head == nil {
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
	if turn := p.turnLocked(p.list.n); turn > end {
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
	p.list.push(w)
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
	for p.list.head != nil && (p.due <= now || p.open) {
		w := p.list.head
		if p.due <= now { // those who are let go take no turns
			p.due = max(p.due+time.Duration(p.spacing.Load()), now-catchUp)
			w.ticket = ticketOf(p.due - time.Duration(p.spacing.Load()))
			p.passed.Add(1)
		}
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
	if w.queued {
		p.list.remove(w)
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
	if p.list.head == nil {
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

// Late is by how much the turn of a call would come too late that may wait for most:
// 0 if it would not. It takes nothing.
func (p *Pacer) Late(now, most time.Duration) time.Duration {
	last := p.last.Load()
	if last != occupied {
		due := time.Duration(last + p.spacing.Load())
		if now >= due {
			return 0
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open {
		return 0
	}
	return max(p.nextLocked()-until(now, most), 0)
}

// nextLocked is when the turn of a call would be that came now.
func (p *Pacer) nextLocked() time.Duration {
	if p.list.head != nil {
		return p.turnLocked(p.list.n)
	}
	return time.Duration(p.last.Load() + p.spacing.Load())
}

// Observe decides about a call without holding it up: whether it would wait, and
// whether its turn would come too late. One that would pass in the end takes its turn,
// unless others do wait, who are not to wait for it.
func (p *Pacer) Observe(now, most time.Duration) (wait time.Duration, err error) {
	if int64(now) >= p.stepEnds.Load() {
		p.advance(now)
	}
	for {
		last := p.last.Load()
		if last == occupied {
			return p.observeWaiting(now, most)
		}
		turn := max(time.Duration(last+p.spacing.Load()), now)
		if turn > until(now, most) {
			return 0, ErrWaitTooLong
		}
		if p.last.CompareAndSwap(last, int64(turn)) {
			p.passed.Add(1)
			return turn - now, nil
		}
	}
}

func (p *Pacer) observeWaiting(now, most time.Duration) (wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := max(p.nextLocked(), now)
	if turn > until(now, most) {
		return 0, ErrWaitTooLong
	}
	return turn - now, nil
}

// SetOpen lets all pass who wait, and nobody wait from then on, until
// SetOpen(false): for a guard that stops enforcing while calls are on their way here.
// Those who are let go take no turns, and what was only observed is forgotten: who
// comes after SetOpen(false) does not wait for calls that did not.
func (p *Pacer) SetOpen(open bool) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.open
	p.open = open
	if open {
		p.dispatchLocked(now)
		return
	}
	for was {
		last := p.last.Load() // nobody waits where all are let go
		if last <= int64(now) || p.last.CompareAndSwap(last, int64(now)) {
			return
		}
	}
}

// PacerStats is the state of a pacer at some moment.
type PacerStats struct {
	// Quota is what holds, in whole calls, while it warms up.
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
	q := p.quota
	if p.warming != (Warming{}) {
		q = p.heat.quota(q)
	}
	return PacerStats{q, time.Duration(p.spacing.Load()), p.list.n}
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
	until      time.Duration // the end of its wait
	// granted has room for the one value that comes when the wait is over. Before that
	// ticket is set, or late to how much too late the turn would be now.
	granted chan struct{}
	ticket  uint32
	late    time.Duration
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
