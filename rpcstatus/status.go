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

package rpcstatus

import (
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/internal/stripe"
)

// Status counts the calls of one method. It is safe for concurrent use; a call
// writes to one of several stripes, so calls seldom meet.
//
// Every [Status.Begin] is followed by exactly one [Status.End] with what Begin
// returned.
type Status struct {
	cells []cell
	// wouldReject is apart: it is written only by guards that observe.
	wouldReject atomic.Int64
}

// cell is one stripe, padded to two cache lines.
type cell struct {
	started  atomic.Int64
	refused  atomic.Int64 // without having been started
	outcomes [call.OutcomeCount]atomic.Int64
	elapsed  [2]atomic.Int64 // nanoseconds: succeeded, other
	max      [2]atomic.Int64
	// owner keeps the Status reachable from a Token: a registry that holds it
	// weakly must not make a second one while a call runs.
	owner *Status
	_     [16]byte
}

const (
	succeeded = iota
	other
)

// New returns a Status at zero.
func New() *Status {
	s := &Status{cells: make([]cell, stripe.Count)}
	for i := range s.cells {
		s.cells[i].owner = s
	}
	return s
}

// Token ties an End to its Begin. While there is one, its Status is not gone
// from the [Registry].
type Token struct{ c *cell }

// Begin counts a call as running.
func (s *Status) Begin() Token {
	c := &s.cells[stripe.Index()&(len(s.cells)-1)]
	c.started.Add(1)
	return Token{c}
}

// End counts the call as ended. A negative elapsed means that its time was not
// taken. Response times of calls that did not run are not kept.
func (t Token) End(outcome call.Outcome, elapsed time.Duration) {
	t.c.outcomes[outcome].Add(1)
	if elapsed < 0 || !outcome.Ran() {
		return
	}
	class := other
	if outcome == call.Success {
		class = succeeded
	}
	ns := int64(elapsed)
	t.c.elapsed[class].Add(ns)
	for {
		old := t.c.max[class].Load()
		if ns <= old || t.c.max[class].CompareAndSwap(old, ns) {
			return
		}
	}
}

// Reject counts a call that was refused without a Begin.
func (s *Status) Reject() {
	s.cells[stripe.Index()&(len(s.cells)-1)].refused.Add(1)
}

// WouldReject counts a call that a guard in observe mode let pass.
func (s *Status) WouldReject() { s.wouldReject.Add(1) }

// Figures are the counts of a [Status]. Total is of calls that ran, as in Java;
// refused ones are beside it.
type Figures struct {
	// Inflight is the number of calls that run now.
	Inflight int64 `json:"inflight"`
	// Total is the number of calls that ran and ended.
	Total int64 `json:"total"`
	// Outcomes are the calls by how they ended, indexed by call.Outcome.
	Outcomes [call.OutcomeCount]int64 `json:"-"`
	// WouldReject are calls that an observing guard would have refused.
	WouldReject int64 `json:"wouldReject"`
	// Elapsed, SucceededElapsed and FailedElapsed are sums of response times;
	// failed is everything that ran and is no success.
	Elapsed, SucceededElapsed, FailedElapsed time.Duration
	// MaxElapsed and the others are the longest response times.
	MaxElapsed, SucceededMaxElapsed, FailedMaxElapsed time.Duration
}

// Figures reads the counts. While calls run, each stripe is read as it was at
// some moment, the stripes one after another; at rest they agree.
func (s *Status) Figures() Figures {
	var f Figures
	for i := range s.cells {
		c := &s.cells[i]
		started, outcomes := c.read()
		f.Inflight += started
		for o, n := range outcomes {
			f.Outcomes[o] += n
			f.Inflight -= n
			if call.Outcome(o).Ran() {
				f.Total += n
			}
		}
		f.Outcomes[call.Rejected] += c.refused.Load()
		f.SucceededElapsed += time.Duration(c.elapsed[succeeded].Load())
		f.FailedElapsed += time.Duration(c.elapsed[other].Load())
		f.SucceededMaxElapsed = max(f.SucceededMaxElapsed, time.Duration(c.max[succeeded].Load()))
		f.FailedMaxElapsed = max(f.FailedMaxElapsed, time.Duration(c.max[other].Load()))
	}
	f.WouldReject = s.wouldReject.Load()
	f.Elapsed = f.SucceededElapsed + f.FailedElapsed
	f.MaxElapsed = max(f.SucceededMaxElapsed, f.FailedMaxElapsed)
	return f
}

// read is how many calls had been started and had ended at one moment. Ends are
// read first, so that there are never more of them than of starts, and all is
// read again when calls ended meanwhile: a reader that was held up in between
// would count them as running. Where calls end all the time it gives up.
func (c *cell) read() (started int64, outcomes [call.OutcomeCount]int64) {
	for range 16 {
		for o := range outcomes {
			outcomes[o] = c.outcomes[o].Load()
		}
		started = c.started.Load()
		same := true
		for o := range outcomes {
			same = same && c.outcomes[o].Load() == outcomes[o]
		}
		if same {
			break
		}
	}
	return started, outcomes
}

// Plus is the sum of two, the larger of the maxima.
func (f Figures) Plus(g Figures) Figures {
	f.Inflight += g.Inflight
	f.Total += g.Total
	for o := range f.Outcomes {
		f.Outcomes[o] += g.Outcomes[o]
	}
	f.WouldReject += g.WouldReject
	f.Elapsed += g.Elapsed
	f.SucceededElapsed += g.SucceededElapsed
	f.FailedElapsed += g.FailedElapsed
	f.MaxElapsed = max(f.MaxElapsed, g.MaxElapsed)
	f.SucceededMaxElapsed = max(f.SucceededMaxElapsed, g.SucceededMaxElapsed)
	f.FailedMaxElapsed = max(f.FailedMaxElapsed, g.FailedMaxElapsed)
	return f
}

// Succeeded is the number of calls that ended well.
func (f Figures) Succeeded() int64 { return f.Outcomes[call.Success] }

// Failed is the number of calls that ran and did not end well, as Java counts:
// failures, timeouts, forwarded refusals and cancellations.
func (f Figures) Failed() int64 { return f.Total - f.Succeeded() }

// TimedOut is the number of calls that ended after their deadline.
func (f Figures) TimedOut() int64 { return f.Outcomes[call.Timeout] }

// Refused is the number of calls that a guard of this process refused.
func (f Figures) Refused() int64 { return f.Outcomes[call.Rejected] }

// Average is the mean response time of the calls that ran, 0 without any.
func (f Figures) Average() time.Duration { return average(f.Elapsed, f.Total) }

// SucceededAverage is the mean response time of the calls that ended well.
func (f Figures) SucceededAverage() time.Duration { return average(f.SucceededElapsed, f.Succeeded()) }

// FailedAverage is the mean response time of the other calls that ran.
func (f Figures) FailedAverage() time.Duration { return average(f.FailedElapsed, f.Failed()) }

// AverageTPS is Java's figure of that name: calls per whole second of response
// time summed up, and the number of calls while that sum is under a second.
func (f Figures) AverageTPS() int64 {
	if seconds := int64(f.Elapsed / time.Second); seconds >= 1 {
		return f.Total / seconds
	}
	return f.Total
}

func average(sum time.Duration, n int64) time.Duration {
	if n == 0 {
		return 0
	}
	return sum / time.Duration(n)
}
