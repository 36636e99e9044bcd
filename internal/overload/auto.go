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
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/stripe"
)

const (
	// window is how many calls must have ended for a limit to be judged by them.
	window = 20
	// tolerance is by how much calls may take longer than without any waiting before the
	// limit is lowered.
	tolerance = 1.5
	// smooth is the share that a new limit has in what becomes of the old one.
	smooth = 0.2
	// confirmAfter is how old the time without waiting may be while calls are refused,
	// until it is measured again.
	confirmAfter = 20 * time.Second
	// measureAt is the share of the limit that may run while it is measured.
	measureAt = 0.25
	// measureCalls is how many calls it is measured by at least, and measureRounds how
	// many for each that may run: the first that come back are the short ones.
	measureCalls  = 20
	measureRounds = 3
	// measureFor is the longest that it may take, or measureTimes what calls take if that
	// is longer; then leastCalls do.
	measureFor   = 5 * time.Second
	measureTimes = 8
	leastCalls   = 5
	// rest is for how many times as long as it took it is not measured again.
	rest = 6
	// again is how soon it is measured once more when the limit has lost half of what it
	// was, and slower by how much calls must take longer then until it looks for the
	// limit anew.
	again  = 2 * time.Second
	slower = 2
	// few is how many calls must be shorter for three tenths of that to count.
	few = 600
	// longest bounds in seconds what is measured.
	longest = 600
)

// Auto finds out how many calls may run: as many as do not wait for each other much. It
// compares how long calls take with how long they take when few run, as Netflix'
// gradient limit does. What they take when few run is learned while there is room, and
// measured, with a lower limit for a moment, while calls are refused: so a lasting
// overload does not make waiting the measure of itself, and a service that has become
// slower is not held to what it once could do.
type Auto struct {
	// floor and ceiling are what [Auto.SetBounds] said last.
	floor, ceiling atomic.Int64

	count, elapsed *stripe.Counter
	// since is from when on calls must have begun to be measured.
	since atomic.Int64

	// shown is what alone is, for others.
	shown atomic.Int64

	// The rest belongs to Tick.

	limit     float64
	alone     float64 // seconds that a call takes when few run, 0 unknown
	confirmed time.Duration
	met       bool    // calls have waited for each other
	found     float64 // the limit when they first had
	measuring bool
	started   time.Duration // when that began
	deadline  time.Duration
	pause     time.Duration // until it is measured again, at least
	refused   bool          // since calls were judged last
	lastCount int64
	lastTime  int64
}

// NewAuto makes one for limits from floor to ceiling, both at least 1, that begins at floor.
func NewAuto(floor, ceiling int64, now time.Duration) *Auto {
	a := &Auto{confirmed: now, count: stripe.NewCounter(), elapsed: stripe.NewCounter()}
	a.SetBounds(floor, ceiling)
	a.limit = float64(a.floor.Load())
	return a
}

// SetBounds changes the bounds, from the next [Auto.Tick] on. What was found out so far
// stays, as far as they let it. It may be called at any time.
func (a *Auto) SetBounds(floor, ceiling int64) {
	floor = max(floor, 1)
	a.floor.Store(floor)
	a.ceiling.Store(max(ceiling, floor))
}

// Bounds are what SetBounds said last.
func (a *Auto) Bounds() (floor, ceiling int64) { return a.floor.Load(), a.ceiling.Load() }

// Observe takes in a call that was answered, or ran out of time: when it began and how
// long it took. Other failures say nothing of how many may run.
func (a *Auto) Observe(began, elapsed time.Duration) {
	if int64(began) < a.since.Load() {
		return
	}
	a.elapsed.Add(int64(max(elapsed, 1)))
	a.count.Add(1)
}

// Tick is the limit from now on. running is how many calls run, and refused tells whether
// some were refused since the last tick. It is to be called about four times a second, by one
// goroutine at a time.
func (a *Auto) Tick(now time.Duration, running int64, refused bool) int64 {
	defer func() { a.shown.Store(int64(a.alone * float64(time.Second))) }()
	floor, ceiling := float64(a.floor.Load()), float64(a.ceiling.Load())
	a.limit = min(max(a.limit, floor), ceiling)
	count, elapsed := a.count.Sum(), a.elapsed.Sum()
	n, sum := count-a.lastCount, elapsed-a.lastTime
	a.refused = a.refused || refused
	enough := int64(window)
	if a.measuring {
		enough = max(measureCalls, int64(measureRounds*a.atMeasure()))
		if now >= a.deadline {
			enough = leastCalls
		}
		if a.since.Load() == math.MaxInt64 && float64(running) <= a.atMeasure() {
			a.since.Store(int64(now)) // those that waited have left
		}
	}
	if n < enough {
		if a.measuring && now >= a.deadline {
			a.endMeasuring(now) // too few calls for it
		}
		return a.current()
	}
	refused, a.refused = a.refused, false
	a.lastCount, a.lastTime = count, elapsed
	took := float64(sum) / float64(n) / float64(time.Second)
	if a.measuring {
		if took > a.alone*slower {
			a.met = false
		}
		a.alone, a.found = took, min(a.found, a.limit*2)
		a.endMeasuring(now)
		return a.current()
	}
	busy := refused || float64(running) > a.limit/2
	switch {
	case a.alone == 0:
		a.alone, a.confirmed = took, now
	case took < a.alone:
		a.alone += (took - a.alone) * min(0.3, float64(n)/few) // few calls are short by chance
	case !busy:
		a.alone += (took - a.alone) * 0.1
	}
	if !busy {
		a.confirmed = now
		return a.current() // what little runs tells nothing of how many could
	}
	gradient := min(max(tolerance*a.alone/took, 0.5), 1)
	if gradient < 1 && !a.met {
		a.met, a.found = true, a.limit
	}
	next := a.limit + (a.limit*gradient+math.Sqrt(a.limit)-a.limit)*smooth
	if !a.met {
		next = 2 * a.limit // nobody has waited yet: it is far too low
	}
	a.limit = min(max(next, floor), ceiling)
	since := now - a.confirmed
	if refused && floor < ceiling && since >= a.pause && (since >= confirmAfter || since >= again && a.limit < a.found/2) {
		a.measuring, a.started = true, now
		a.deadline = now + max(measureFor, time.Duration(min(took*measureTimes, longest)*float64(time.Second)))
		a.since.Store(math.MaxInt64)
	}
	return a.current()
}

func (a *Auto) endMeasuring(now time.Duration) {
	a.measuring, a.confirmed, a.pause = false, now, rest*(now-a.started)
	a.since.Store(0)
	a.lastCount, a.lastTime = a.count.Sum(), a.elapsed.Sum()
}

func (a *Auto) atMeasure() float64 { return max(a.limit*measureAt, 1) }

func (a *Auto) current() int64 {
	if a.measuring {
		return int64(a.atMeasure())
	}
	return int64(a.limit)
}

// Alone is how long a call takes when few run, 0 when that is not known.
func (a *Auto) Alone() time.Duration { return time.Duration(a.shown.Load()) }
