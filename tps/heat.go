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
	"fmt"
	"math"
	"time"
)

// Warming is how a limit warms up.
type Warming struct {
	// Time is how long it takes from cold to the full rate while as many calls come
	// as may pass: 1 ms to an hour.
	Time time.Duration
	// Factor is the full rate by the cold one: more than 1, at most 1,000.
	Factor float64
}

// Validate returns an error for the first field that is out of its bounds.
func (w Warming) Validate() error {
	switch {
	case w.Time < time.Millisecond || w.Time > time.Hour:
		return fmt.Errorf("weir: warm-up %v: must be %v to %v", w.Time, time.Millisecond, time.Hour)
	case !(w.Factor > 1 && w.Factor <= 1000):
		return fmt.Errorf("weir: cold factor %v: must be more than 1, and at most 1000", w.Factor)
	}
	return nil
}

// heat is how warm a limit is: the model of Sentinel's WarmUpController, which
// keeps tokens that are taken by calls and come back while few come. Up to a
// warning line of them the limit is warm; above it the time between two calls
// grows with them in a straight line, up to that of the cold rate.
//
// It goes by steps of a second, or of the interval, or of as long as one call takes
// at the cold rate, where that is longer: otherwise a limit of one call a second would
// cool in every second in which none came, and never become warm.
//
// It is guarded by whoever has it.
type heat struct {
	rate, cold    float64 // calls per second
	warning, most float64 // tokens
	slope         float64 // seconds per token
	step          time.Duration
	stored        float64
}

const shortestStep = time.Second

func newHeat(q Quota, w Warming) heat {
	h := heat{rate: float64(q.Rate) / q.Interval.Seconds()}
	h.cold = h.rate / w.Factor
	warm := w.Time.Seconds() * h.rate
	h.warning = warm / (w.Factor - 1)
	h.most = h.warning + 2*warm/(1+w.Factor)
	h.slope = (w.Factor - 1) / h.rate / (h.most - h.warning)
	h.step = max(shortestStep, q.Interval, spacingOf(float64(time.Second)/h.cold))
	h.stored = h.most
	return h
}

// like is h with the warmth of another: what is warm, or cold, is so by either's line.
func (h heat) like(o heat) heat {
	switch {
	case o.most <= 0:
	case o.stored <= o.warning:
		h.stored = h.warning * o.stored / o.warning
	default:
		h.stored = h.warning + (h.most-h.warning)*(o.stored-o.warning)/(o.most-o.warning)
	}
	return h
}

// counted is what calls of the step under way come to at another rate: they passed at
// the old one, and what a step takes back is of the new one.
func (h heat) counted(calls int64, o heat) int64 {
	if o.rate <= 0 {
		return calls
	}
	return int64(math.Round(float64(calls) * h.rate / o.rate))
}

// pass goes on by some steps, in the first of which so many calls have passed and
// in the others none.
func (h *heat) pass(steps int64, calls float64) {
	h.cool(1, calls)
	if steps > 1 {
		h.cool(float64(steps-1), 0)
	}
}

func (h *heat) cool(steps, calls float64) {
	seconds := steps * h.step.Seconds()
	// A whole call more or less in a step is no sign of few calls.
	few := calls < math.Floor(h.cold*seconds+exact)
	// Sentinel's limits never cool from the very line.
	if h.stored <= h.warning || few {
		h.stored = min(h.stored+seconds*h.rate, h.most)
	}
	h.stored = max(h.stored-calls, 0)
}

// exact makes up for a whole number that is not quite one.
const exact = 1e-9

// now is the rate that holds, in calls per second: never 0, never more than the
// full one.
func (h *heat) now() float64 {
	if h.stored <= h.warning {
		return h.rate
	}
	return 1 / ((h.stored-h.warning)*h.slope + 1/h.rate)
}

// quota is what holds in place of q: as many whole calls of its interval as the
// rate allows, or where that is none, one in the time that it takes.
func (h *heat) quota(q Quota) Quota {
	if h.stored <= h.warning {
		return q
	}
	if n := int64(h.now()*q.Interval.Seconds() + exact); n >= 1 {
		q.Rate = min(n, q.Rate)
		return q
	}
	q.Rate, q.Interval = 1, min(max(q.Interval, time.Duration(float64(time.Second)/h.now())), MaxInterval)
	return q
}
