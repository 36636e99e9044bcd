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
	"slices"
	"sync/atomic"
	"time"
)

// counts are what a Controller counts. They only grow.
type counts struct {
	held, refused, shed atomic.Int64 // held: did not get in at once
	done, ran           atomic.Int64
	waitSum             atomic.Int64
	queueing            atomic.Int64 // in the last window
	// Of calls that ran for very long, or from before a time in which the process may have been
	// suspended, no latency is learnt.
	lateDone, lateRan atomic.Int64
	resumed           atomic.Int64 // when that time ended
	fewest            least        // ran at once, as calls left
}

// left counts a call that has run for so long.
func (c *counts) left(now, ran time.Duration) {
	ran = max(0, ran)
	if ran > tunerWaits || int64(now-ran) < c.resumed.Load() {
		c.lateDone.Add(1)
		c.lateRan.Add(int64(ran))
		return
	}
	c.done.Add(1)
	c.ran.Add(int64(ran))
}

func (c *counts) waited(d time.Duration) { c.waitSum.Add(int64(d)) }

// figures are what was counted in some time.
type figures struct {
	took                            time.Duration
	came, held, refused, shed, done int64
	ran                             time.Duration
	waitSum                         time.Duration
	// Of calls that are not among those done, as their time says nothing.
	lateDone int64
	lateRan  time.Duration
}

func (c *counts) figures() figures {
	return figures{
		held: c.held.Load(), refused: c.refused.Load(), shed: c.shed.Load(),
		done: c.done.Load(), ran: time.Duration(c.ran.Load()),
		waitSum:  time.Duration(c.waitSum.Load()),
		lateDone: c.lateDone.Load(), lateRan: time.Duration(c.lateRan.Load()),
	}
}

func (f figures) since(g figures) figures {
	f.came -= g.came
	f.held -= g.held
	f.refused -= g.refused
	f.shed -= g.shed
	f.done -= g.done
	f.ran -= g.ran
	f.waitSum -= g.waitSum
	f.lateDone -= g.lateDone
	f.lateRan -= g.lateRan
	return f
}

func (f figures) plus(g figures) figures {
	return figures{
		took: f.took + g.took, came: f.came + g.came, held: f.held + g.held, refused: f.refused + g.refused, shed: f.shed + g.shed,
		done: f.done + g.done, ran: f.ran + g.ran, waitSum: f.waitSum + g.waitSum,
		lateDone: f.lateDone + g.lateDone, lateRan: f.lateRan + g.lateRan,
	}
}

// rate is how many calls were done in a second.
func (f figures) rate() float64 {
	if f.took <= 0 {
		return 0
	}
	return float64(f.done) / f.took.Seconds()
}

// latency is how long a call ran in the mean, in seconds.
func (f figures) latency() float64 {
	if f.done == 0 {
		return 0
	}
	return f.ran.Seconds() / float64(f.done)
}

// running is how many calls ran in the mean.
func (f figures) running() float64 {
	if f.took <= 0 {
		return 0
	}
	return f.ran.Seconds() / f.took.Seconds()
}

// queueing is how long a call waited in the mean, those that did not wait included.
func (f figures) queueing() time.Duration {
	return f.waitSum / time.Duration(max(1, f.done))
}

// pressed tells whether there was more to do than could be done: half of the calls did not
// get in at once.
func (f figures) pressed() bool { return 2*f.held >= f.came && f.held > 0 }

// sampleSize is how many calls a sample remembers.
const sampleSize = 1 << 11

// A sample's entry is a Priority, a mark for whoever takes entries of several samples, and
// a weight.
const (
	entryPriority = 33
	entryMark     = 1 << 32
	entryWeight   = entryMark - 1
)

// sample has the priorities of the calls that came last, each with a weight.
type sample struct {
	n    atomic.Uint64
	ring [sampleSize]atomic.Uint64
}

func (s *sample) add(p Priority, weight uint32) {
	n := s.n.Add(1) - 1
	s.ring[n%sampleSize].Store(uint64(min(p, Lowest))<<entryPriority | uint64(weight))
}

// since appends those that came after the first n.
func (s *sample) since(n uint64, to []uint64) []uint64 {
	end := s.n.Load()
	if end-n > sampleSize {
		n = end - sampleSize
	}
	for ; n < end; n++ {
		to = append(to, s.ring[n%sampleSize].Load())
	}
	return to
}

// weight is the whole weight of what since has given.
func weight(of []uint64) (sum uint64) {
	for _, v := range of {
		sum += v & entryWeight
	}
	return sum
}

// entry is what one weighs, where what is marked weighs so many times as much as it says.
func entry(v uint64, marked float64) float64 {
	w := float64(v & entryWeight)
	if v&entryMark != 0 {
		w *= marked
	}
	return w
}

// cut sorts a sample and returns the cursor that so much weight of it passes at most.
func cut(of []uint64, marked, passing float64) Priority {
	slices.Sort(of)
	var sum float64
	for _, v := range of {
		if sum += entry(v, marked); sum > passing {
			return Priority(v >> entryPriority)
		}
	}
	return Open
}
