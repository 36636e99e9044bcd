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

	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/retry/budget"
)

// stateKey is the attribute of an invocation that holds its call's state. It is
// made on the first refusal.
const stateKey = "weir.refused"

// state is what is known about one logical call. Parallel attempts of the same
// invocation share it.
type state struct {
	mu        sync.Mutex
	refusedBy []string          // guarded by mu: addresses
	sent      int               // guarded by mu: those of them that the call was sent to
	last      *call.RejectError // guarded by mu
	finished  uint64            // guarded by mu: the reference's clock when the caller had its answer, 0 before
}

// Attempt is one try of a call on one instance. It ends with exactly one of
// Served, Done and Reference.Refused. The zero value is that of a reference
// where nothing was ever refused, and does nothing.
type Attempt struct {
	ref     *Reference
	address string
	begun   uint64 // of marks
	clock   uint64 // of calls
	grant   budget.Grant
}

// Known reports whether the attempt is not the zero one.
func (a *Attempt) Known() bool { return a.ref != nil }

// Policy is what the cluster and the URL say about tries of a call.
type Policy struct {
	// Failover is set when the cluster loops over instances until one answers.
	// Others call each instance for a reason of their own.
	Failover bool
	// Retries are those that are configured for the call.
	Retries int
}

// tries reports whether another instance may be tried.
func (p Policy) tries() bool { return p.Failover && p.Retries > 0 }

// Begin asks whether an attempt may be sent to address. If not it returns the
// error that the attempt ends with, and it must not be sent.
func (r *Reference) Begin(inv base.Invocation, address string, p Policy) (Attempt, error) {
	if !r.Refusing() {
		return Attempt{}, nil
	}
	return r.beginSlow(inv, address, p)
}

func (r *Reference) beginSlow(inv base.Invocation, address string, p Policy) (Attempt, error) {
	a := Attempt{ref: r, address: address, begun: r.markSeq.Load(), clock: r.clock.Load()}
	s := stateOf(inv)
	if s == nil {
		return a, nil
	}
	s.mu.Lock()
	refusals, sent, last, finished := len(s.refusedBy), s.sent, s.last, s.finished != 0
	here := slices.Contains(s.refusedBy, address)
	s.mu.Unlock()
	switch {
	case finished || refusals == 0:
		return a, nil
	case here && p.Failover && r.nested() && refusals == 1:
		// The loop of this group has no other instance; that around it may have.
		return a, last
	case here:
		return a, r.Final(last)
	case !p.Failover, sent == 0:
		return a, nil
	case sent > 1:
		return a, r.Final(last)
	}
	now := r.now()
	grant, ok := r.budget.Ask(r.budgetPolicy(), budget.Try{Refused: true, Full: r.marked(address, now)}, now, r.calls.Sum())
	if !ok {
		return a, r.Final(last)
	}
	a.grant = grant
	return a, nil
}

// Past is the error that an attempt at address ends with because it was refused
// there before, nil when it was not. It is for guards besides the one that begins
// the attempt.
func (r *Reference) Past(inv base.Invocation, address string) error {
	s := stateOf(inv)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished != 0 || !slices.Contains(s.refusedBy, address) {
		return nil
	}
	if r.nested() {
		return s.last // the loop of another group may have other instances
	}
	return r.Final(s.last)
}

// Served reports an attempt that the instance admitted and answered.
func (a Attempt) Served() {
	if a.ref == nil {
		return
	}
	a.Done()
	a.ref.served(a.address, a.begun)
}

// Done reports an attempt that the instance did not refuse, of which it is not
// known whether it admitted it: a stream that was opened, a broken connection.
func (a Attempt) Done() {
	if a.ref != nil {
		a.ref.budget.End(a.grant, false)
	}
}

// Refused reports that the instance at address refused the attempt by itself.
// It returns the error that the attempt ends with: one that lets failover try
// another instance, or one that ends it.
func (r *Reference) Refused(a Attempt, inv base.Invocation, address string, p Policy, e *call.RejectError) error {
	r.budget.End(a.grant, true)
	if e.Guard != conf.GroupGuard { // which says whom it is for, not that it is full
		r.mark(address, e.RetryAfter)
	}
	return r.noteRefusal(a, inv, address, p, e, true)
}

// RefusedHere reports that a guard of this side refused the attempt, so that the
// instance at address never got it: it is not held to be full, and the budget,
// which keeps calls from full instances, pays nothing. Failover may go on to
// every instance that it has tries for. It returns what [Reference.Refused] does;
// the attempt ends with Done besides. A cluster that does not loop may come again for
// a reason of its own, such as failback later, and the guard is asked again then.
func (r *Reference) RefusedHere(a Attempt, inv base.Invocation, address string, p Policy, e *call.RejectError) error {
	if !p.tries() || r.getRatio() == 0 {
		return r.Final(e)
	}
	return r.noteRefusal(a, inv, address, p, e, false)
}

// noteRefusal keeps the call from coming to address again, and decides whether
// failover goes on: after one instance that was sent the call and refused it.
func (r *Reference) noteRefusal(a Attempt, inv base.Invocation, address string, p Policy, e *call.RejectError, sent bool) error {
	s := r.makeState(a, inv)
	if s == nil {
		return r.Final(e) // nobody waits for it any more
	}
	s.mu.Lock()
	if !slices.Contains(s.refusedBy, address) {
		s.refusedBy = append(s.refusedBy, address)
	}
	if sent {
		s.sent++
	}
	s.last = e
	// After its last try failover would log an error for each call that is refused
	// everywhere. Around the loop of a group may be that of others.
	more := s.sent <= 1 && (len(s.refusedBy) <= p.Retries || r.nested())
	s.mu.Unlock()
	r.flags.Or(refusing)
	if p.tries() && more && r.getRatio() > 0 {
		return e
	}
	return r.Final(e)
}

func stateOf(inv base.Invocation) *state {
	v, ok := inv.GetAttribute(stateKey)
	if !ok {
		return nil
	}
	s, _ := v.(*state)
	return s
}

// RefusedBy are the addresses that have refused the call so far, nil for none.
func (r *Reference) RefusedBy(inv base.Invocation) []string {
	if !r.Refusing() {
		return nil
	}
	s := stateOf(inv)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished != 0 {
		return nil
	}
	return slices.Clone(s.refusedBy)
}

// makeState returns the state of the attempt's call, a new one when there is
// none or that of a former call. It returns nil for an attempt of a call that is
// over: its invocation may be in use for the next already.
func (r *Reference) makeState(a Attempt, inv base.Invocation) *state {
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	if s := stateOf(inv); s != nil {
		s.mu.Lock()
		finished := s.finished
		s.mu.Unlock()
		switch {
		case finished == 0:
			return s
		case a.clock < finished:
			return nil
		}
	}
	s := &state{}
	inv.SetAttribute(stateKey, s)
	return s
}

// finish marks the call as over, so that an invocation that its program uses
// again starts without a past.
func (r *Reference) finish(inv base.Invocation) {
	s := stateOf(inv)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished == 0 {
		s.finished = r.clock.Add(1)
	}
}
