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

package retry

import (
	"slices"
	"sync"

	"github.com/weir-go/weir/call"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
)

// stateKey is the attribute of an invocation that holds its call's state. It is
// made on the first refusal.
const stateKey = "weir.refused"

// state is what is known about one logical call. Parallel attempts of the same
// invocation share it.
type state struct {
	mu        sync.Mutex
	refusedBy []string          // guarded by mu: addresses
	last      *call.RejectError // guarded by mu
	finished  bool              // guarded by mu: the caller has its answer
}

// Attempt is one try of a call on one instance. The zero value is that of a
// reference where nothing was ever refused, and does nothing.
type Attempt struct {
	ref      *Reference
	address  string
	begun    uint64
	extra    bool // a try after a refusal, which the budget is answerable for
	reserved bool // a token was taken for it
}

// Policy is what the cluster and the URL say about tries of a call.
type Policy struct {
	// Failover is set when the cluster loops over instances until one answers.
	// Others call each instance for a reason of their own.
	Failover bool
	// Retries are those that the loop has left to begin with.
	Retries int
}

// Begin asks whether an attempt may be sent to address. If not it returns the
// refusal that the call has met before, and the attempt must not be sent.
func (r *Reference) Begin(inv base.Invocation, address string, p Policy) (Attempt, *call.RejectError) {
	if !r.refused.Load() {
		return Attempt{}, nil
	}
	return r.beginSlow(inv, address, p)
}

func (r *Reference) beginSlow(inv base.Invocation, address string, p Policy) (Attempt, *call.RejectError) {
	a := Attempt{ref: r, address: address, begun: r.markSeq.Load()}
	s := stateOf(inv)
	if s == nil {
		return a, nil
	}
	s.mu.Lock()
	refusals, last, finished := len(s.refusedBy), s.last, s.finished
	here := slices.Contains(s.refusedBy, address)
	s.mu.Unlock()
	switch {
	case finished || refusals == 0:
		return a, nil
	case here:
		return a, last
	case !p.Failover:
		return a, nil
	case refusals > 1:
		return a, last
	}
	a.extra = true
	now, calls, ratio := r.now(), r.calls.Sum(), r.getRatio()
	if r.marked(address, now) {
		a.reserved = r.budget.take(now, calls, ratio)
		if !a.reserved {
			return a, last
		}
		return a, nil
	}
	if !r.budget.solvent(now, calls, ratio) {
		return a, last
	}
	return a, nil
}

// Done reports an attempt that was not refused by the instance.
func (a Attempt) Done() {
	if a.ref == nil {
		return
	}
	if a.reserved {
		a.ref.budget.add(1)
	}
	a.ref.served(a.address, a.begun)
}

// Refused reports that the instance at address refused the attempt by itself,
// and tells whether the call may be tried on another instance.
func (r *Reference) Refused(a Attempt, inv base.Invocation, address string, p Policy, e *call.RejectError) (again bool) {
	if a.extra && !a.reserved {
		// It was tried for free and refused: the budget pays, even in debt.
		r.budget.add(-1)
	}
	r.mark(address, e.RetryAfter)
	s := r.makeState(inv)
	s.mu.Lock()
	if !slices.Contains(s.refusedBy, address) {
		s.refusedBy = append(s.refusedBy, address)
	}
	s.last = e
	refusals := len(s.refusedBy)
	s.mu.Unlock()
	r.refused.Store(true)
	return p.Failover && p.Retries > 0 && refusals == 1 && r.getRatio() > 0
}

func stateOf(inv base.Invocation) *state {
	v, ok := inv.GetAttribute(stateKey)
	if !ok {
		return nil
	}
	s, _ := v.(*state)
	return s
}

// makeState returns the invocation's state, a new one when there is none or
// the call that it belonged to is over.
func (r *Reference) makeState(inv base.Invocation) *state {
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	if s := stateOf(inv); s != nil {
		s.mu.Lock()
		finished := s.finished
		s.mu.Unlock()
		if !finished {
			return s
		}
	}
	s := &state{}
	inv.SetAttribute(stateKey, s)
	return s
}

// finish marks the call as over, so that an invocation that its program uses
// again starts without a past.
func finish(inv base.Invocation) {
	if s := stateOf(inv); s != nil {
		s.mu.Lock()
		s.finished = true
		s.mu.Unlock()
	}
}
