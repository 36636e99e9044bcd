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

package alarm

import (
	"fmt"
	"math"
	"time"
)

// Level is how near something is to its bound.
type Level uint8

const (
	// Calm is well below it.
	Calm Level = iota
	// Near is at [Rule.WarnAt] or above for a while.
	Near
	// Reached is at the bound, or that somebody was refused for it.
	Reached
	// Levels is their number.
	Levels
)

// String is calm, near or reached.
func (l Level) String() string {
	switch l {
	case Calm:
		return "calm"
	case Near:
		return "near"
	case Reached:
		return "reached"
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// MarshalText has a level encode as its name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a name. Any other text is an error and changes nothing.
func (l *Level) UnmarshalText(text []byte) error {
	for level := range Levels {
		if string(text) == level.String() {
			*l = level
			return nil
		}
	}
	return fmt.Errorf("level is %q, allowed are calm, near and reached", text)
}

// Rule is when to tell.
type Rule struct {
	// WarnAt is the share of the bound from which on it is near.
	WarnAt float64
	// For is how long it has to be so. With 0 every change is told at once, and
	// nothing keeps a figure that trembles from being told each time.
	For time.Duration
}

// calmBelow is the part of WarnAt below which it is calm again.
const calmBelow = 0.9

// Reading is a look at a subject.
type Reading struct {
	// Use is what is used as a share of the bound: 1 is reached. What is no number and
	// what is less than 0 is 0.
	Use float64
	// Hits is how often the bound has refused somebody since the last reading.
	Hits int64
	// Observed is the figure, and Limit the bound, in the subject's own unit. Only Use
	// and Hits decide.
	Observed, Limit int64
	// WarnAt is the subject's own, in place of that of the rule; 0 is none.
	WarnAt float64
	// Settled is set where Use is itself an average over [Rule.For]: being above is
	// then for long at once.
	Settled bool
	// Expands is set where the bound gives way for the time being: then a use of 1 and
	// more is near, and only a hit is that it is reached.
	Expands bool
	// Observing is set where the bound is not enforced, and Hits are those that it
	// would have refused.
	Observing bool
	// Of says which of several the figure is of, where one subject stands for them: an
	// address, a caller.
	Of string
}

// full reports that it is at its bound and that this does not give way.
func (r Reading) full() bool { return r.Use >= 1 && !r.Expands }

// fuller reports whether r is nearer to its bound than o.
func (r Reading) fuller(o Reading) bool {
	if r.full() != o.full() {
		return r.full()
	}
	return r.Use > o.Use
}

// Change is a change of a subject's level.
type Change struct {
	Level, Former Level
	// Reading is the one that made the change; of a subject that is forgotten the last.
	// Its Hits are all since the level was entered that is left.
	Reading
	// Since is when what is told began: that it was above, low or free, or the
	// reading itself that reached the bound.
	Since time.Duration
	// At is when it changed.
	At time.Duration
	// Gone is set when the level is calm because the subject is no more.
	Gone bool
}

// Machine is the state of one subject. The zero value is calm. It is not safe for
// concurrent use.
type Machine struct {
	level Level
	now   time.Duration // of the newest reading
	hits  int64         // since the level was entered

	above, low, free run
}

// run is since when something holds without a break.
type run struct {
	since time.Duration
	on    bool
}

func (r *run) set(on bool, now time.Duration) {
	if on && !r.on {
		r.since = now
	}
	r.on = on
}

func (r *run) lasts(d, now time.Duration) bool { return r.on && now-r.since >= d }

// Level is the current one.
func (m *Machine) Level() Level { return m.level }

// Step takes a reading at a time, and reports whether the level has changed. A time
// before that of the last reading counts as that. Any five changes in a row lie within
// no less than rule.For, as long as that is the same.
//
//   - It is reached at once with a use of 1, where the bound does not expand, or with
//     hits.
//   - It is near once the use has been at WarnAt or above for rule.For: at each reading
//     in that time.
//   - After it was reached it is at most near once it has not been at the bound, and
//     without hits, for as long.
//   - It is calm once the use has been below 0.9 of WarnAt, without hits, for as long.
func (m *Machine) Step(now time.Duration, rule Rule, r Reading) (Change, bool) {
	now = max(now, m.now)
	m.now = now
	use, warn := r.Use, rule.WarnAt
	if !(use > 0) { // NaN as well
		use = 0
	}
	use = min(use, math.MaxFloat64) // infinity does not encode as JSON
	r.Use = use
	if r.WarnAt > 0 {
		warn = r.WarnAt
	}
	r.Hits = max(r.Hits, 0)
	m.hits += min(r.Hits, math.MaxInt64-m.hits)
	reached := r.full() || r.Hits > 0
	m.above.set(reached || use >= warn, now)
	m.low.set(!reached && use < warn*calmBelow, now)
	m.free.set(!reached, now)

	switch {
	case reached:
		return m.enter(Reached, now, now, r)
	case m.level != Calm && m.low.lasts(rule.For, now):
		return m.enter(Calm, now, m.low.since, r)
	case m.level == Reached && m.free.lasts(rule.For, now):
		return m.enter(Near, now, m.free.since, r)
	case m.level == Calm && m.above.on && (r.Settled || m.above.lasts(rule.For, now)):
		return m.enter(Near, now, m.above.since, r)
	}
	return Change{}, false
}

func (m *Machine) enter(l Level, now, since time.Duration, r Reading) (Change, bool) {
	if m.level == l {
		return Change{}, false
	}
	c := Change{Level: l, Former: m.level, Reading: r, Since: since, At: now}
	c.Hits = m.hits
	m.level, m.hits = l, 0
	return c, true
}
