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
	"math"
	"sync/atomic"
	"time"
)

// overloadShare is the part of a call's timeout that the published 20 ms are of its 500 ms.
const overloadShare = 0.04

// OverloadFor is the mean queueing time above which a service whose callers wait so long is
// overloaded: 4 % of it, as published for 500 ms. Without a timeout it is the published 20 ms.
func OverloadFor(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return paperOverload
	}
	return time.Duration(overloadShare * float64(timeout))
}

// believedWindows is for how many windows a reading of the scheduler is believed: one who tells no
// more must not hold a limit down or a level shut.
const believedWindows = 20

// reading is what was told last of the scheduler's latency.
type reading struct {
	delay   atomic.Int64 // + 1; 0: not known
	heard   atomic.Bool  // since the last window
	unheard time.Duration
}

func (r *reading) tell(delay time.Duration) {
	r.delay.Store(int64(max(0, delay)) + 1)
	r.heard.Store(true)
}

// take is what was told, negative when nothing was lately, at the end of a window that took so
// long and should have taken less. One caller at a time.
func (r *reading) take(took, window time.Duration) time.Duration {
	switch heard := r.heard.Swap(false); {
	case took/believedWindows > window: // it may be as old as that
		r.unheard = math.MaxInt64
	case heard:
		r.unheard = 0
	case r.unheard < math.MaxInt64-took:
		r.unheard += took
	}
	if r.unheard/believedWindows > window {
		return -1
	}
	return time.Duration(r.delay.Load() - 1)
}

// queueing is the mean time that calls waited before they ran, in a window. Response times
// are no measure of that: they rise, too, when a service that is called is slow.
type queueing struct{ n, sum atomic.Int64 }

func (q *queueing) add(d time.Duration) {
	q.n.Add(1)
	q.sum.Add(int64(max(0, d)))
}

// take ends a window.
func (q *queueing) take() (mean time.Duration) {
	n, sum := q.n.Swap(0), q.sum.Swap(0)
	if n > 0 {
		mean = time.Duration(sum / n)
	}
	return mean
}
