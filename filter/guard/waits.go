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

package guard

import (
	"sort"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/stripe"
)

// WaitKey names what calls wait for.
type WaitKey struct {
	Side, Service, Method, Guard string
}

// WaitBounds are the upper bounds of the classes that [Waits] sorts waits into.
// The first class has the calls that did not wait.
var WaitBounds = [...]time.Duration{
	0, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Waits counts how long calls waited at a guard, however the wait ended. It is
// safe for concurrent use.
type Waits struct {
	none      *stripe.Counter
	classes   [len(WaitBounds) + 1]atomic.Int64 // the first is not used
	sum       atomic.Int64
	wouldWait atomic.Int64
}

// Waits finds the counts of a policy at this site. The caller owns them.
func (s Site) Waits(policy string) *Waits {
	key := WaitKey{Side: s.Side.String(), Service: s.Service, Method: s.Method, Guard: policy}
	return s.runtime.waits.Get(key, func() *Waits { return &Waits{none: stripe.NewCounter()} })
}

// None counts a call that did not have to wait.
func (w *Waits) None() { w.none.Add(1) }

// Note counts a wait.
func (w *Waits) Note(d time.Duration) {
	d = max(d, 1)
	class := sort.Search(len(WaitBounds), func(i int) bool { return d <= WaitBounds[i] })
	w.classes[class].Add(1)
	w.sum.Add(int64(d))
}

// WouldWait counts a call that was only observed and would have waited.
func (w *Waits) WouldWait() { w.wouldWait.Add(1) }

// WaitFigures are the counts at one moment.
type WaitFigures struct {
	// Counts are the waits of each class of [WaitBounds], and those over the last.
	Counts [len(WaitBounds) + 1]int64
	// Sum is that of all waits.
	Sum time.Duration
	// WouldWait are the calls that were only observed and would have waited.
	WouldWait int64
}

// Figures reads the counts.
func (w *Waits) Figures() WaitFigures {
	f := WaitFigures{Sum: time.Duration(w.sum.Load()), WouldWait: w.wouldWait.Load()}
	for i := range f.Counts {
		f.Counts[i] = w.classes[i].Load()
	}
	f.Counts[0] = w.none.Sum()
	return f
}

// Waits calls f for everything that calls may wait for.
func (rt *Runtime) Waits(f func(WaitKey, *Waits)) {
	rt.waits.Range(func(k WaitKey, w *Waits) bool { f(k, w); return true })
}
