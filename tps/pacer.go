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
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/fifo"
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
	list  fifo.List[turn, *turn]
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
	if p.list.Head() != nil {
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
	if p.list.Head() == nil || d == old {
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
	for w := p.list.Head(); w != nil; {
		next := w.Next()
		if late := p.turnLocked(n) - w.until; late > 0 {
			w.late = late
			p.list.Remove(w)
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
