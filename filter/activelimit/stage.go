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

package activelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

const (
	// FilterName is the filter's name in a chain.
	FilterName = "activelimit"
	// Policy is the policy's name, and the guard's in a refusal.
	Policy = conf.ActivesKey
)

// leastLeft is what a call must have left after its wait to be worth sending.
const leastLeft = time.Millisecond

// errDeadline is the cause of a refusal after a wait that used up all that the
// call had. Whether the queue's timer or the context's came first is chance.
var errDeadline = fmt.Errorf("%w: %w", concurrency.ErrWaitTimeout, context.DeadlineExceeded)

func set(e conf.Effective) bool { return e.Actives.Set && e.Actives.Mode != conf.Off }

func steps(site guard.Site) []guard.Step {
	l := site.Policy.Actives
	key := Key{
		Reference: site.Reference, Service: site.Service, Method: conf.MethodKey(site.Method), Address: site.Address,
		runtime: site.Runtime(),
	}
	c := claim{guard: site.Guard(), alive: site.Alive(), version: site.Version()}
	if !set(site.Policy) {
		if e := entries.Peek(key); e != nil {
			e.claim(site.Method, c)
		}
		return nil
	}
	c.set, c.limit, c.enforced = true, l.Limit, l.Mode == conf.Enforce
	e := entries.Get(key, func() *entry { return &entry{Queue: concurrency.NewQueue(l.Limit)} })
	e.claim(site.Method, c)
	s := &stage{site: site, entry: e, maxWait: l.Wait, waits: site.Waits(Policy)}
	refusal := func(reason string) *guard.Refusal {
		return site.NewRefusal(call.RejectError{
			Guard:    Policy,
			Resource: call.Resource(site.Service, site.Method),
			Reason:   reason,
			Limit:    int64(l.Limit),
			Observed: int64(l.Limit),
		}, concurrency.ErrLimitReached)
	}
	s.full, s.late, s.cancelled = refusal(call.ReasonConcurrency), refusal(call.ReasonWaitTimeout), refusal(call.ReasonCancelled)
	step := guard.Step{
		Policy: Policy, Rank: guard.RankSlot, Waits: true, PerInstance: true,
		Take: s.take, Release: s.release,
	}
	if l.Wait == 0 {
		step.Look = s.look
	}
	if l.Mode == conf.Observe {
		step.Observe, step.Take, step.Release = true, s.observe, s.releaseObserved
	}
	return []guard.Step{step}
}

// stage is one limit as a plan uses it.
type stage struct {
	site    guard.Site
	entry   *entry
	maxWait time.Duration // negative: as long as the call has
	waits   *guard.Waits

	// full is for calls that may not wait, late and cancelled for those that did.
	full, late, cancelled *guard.Refusal
}

// look refuses a call that may not wait for a slot, before it waits for something else.
func (s *stage) look(c guard.Call) *guard.Refusal {
	if c.Opens || s.room() {
		return nil
	}
	if s.entry.review(); s.room() {
		return nil
	}
	return s.full
}

func (s *stage) room() bool {
	limit := s.entry.Limit()
	return limit == 0 || s.entry.Inflight() < limit
}

func (s *stage) take(c guard.Call) (guard.Permit, *guard.Refusal) {
	if c.Opens {
		return guard.Permit{}, nil // its end would not be seen
	}
	if s.entry.TryAcquire() {
		if s.entry.shared.Load() {
			s.entry.reviewNowAndThen()
		}
		s.waits.None()
		return guard.Permit{Held: true}, nil
	}
	return s.wait(c)
}

// wait is take for a call that found no slot.
func (s *stage) wait(c guard.Call) (guard.Permit, *guard.Refusal) {
	if c.Ctx == nil {
		c.Ctx = context.Background() // dubbo's own invokers do not all look at it
	}
	s.entry.review()
	left := s.site.TimeLeft(c)
	maxWait := left
	if s.maxWait >= 0 {
		maxWait = min(left, s.maxWait)
	}
	began := guard.Now()
	met, err := s.entry.Acquire(c.Ctx, maxWait)
	if err == nil && !met.Queued {
		s.waits.None()
		return guard.Permit{Held: true}, nil
	}
	at := guard.Now()
	waited := at - began
	if !met.Queued {
		waited = 0
	}
	s.note(met.Queued, waited)
	if err == nil && left-waited < leastLeft {
		// The slot came when there was nothing left to do with it.
		met.Running, met.Limit = s.entry.Inflight(), s.entry.Limit()
		s.entry.Release()
		err = concurrency.ErrWaitTimeout
	}
	if err == nil {
		return guard.Permit{Held: true, At: at, Token: uint64(waited)}, nil
	}
	return guard.Permit{}, s.refuse(c.Ctx, met, max(maxWait, 0), waited, left-waited < leastLeft, err)
}

func (s *stage) note(queued bool, waited time.Duration) {
	if queued {
		s.waits.Note(waited)
	} else {
		s.waits.None()
	}
}

// refuse makes the refusal of a call that got no slot. One that has no time left,
// or nobody who waits for it, is not tried elsewhere.
func (s *stage) refuse(ctx context.Context, met concurrency.Wait, maxWait, waited time.Duration, last bool, err error) *guard.Refusal {
	prepared := s.late
	switch {
	case errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, concurrency.ErrWaitTimeout):
		prepared, last = s.cancelled, true
	case last:
		err = errDeadline
	case !met.Queued:
		return s.full // it might not wait, so there is nothing to tell but the limit
	}
	r := prepared.With(call.RejectError{
		Guard:    Policy,
		Resource: prepared.Reject.Resource,
		Reason:   prepared.Reject.Reason,
		Limit:    met.Limit,
		Observed: met.Running,
		Waited:   waited,
		MaxWait:  maxWait,
	}, err)
	r.Last = last
	return r
}

func (s *stage) release(guard.Permit, call.Outcome) { s.entry.Release() }

func (s *stage) observe(c guard.Call) (guard.Permit, *guard.Refusal) {
	if c.Opens {
		return guard.Permit{}, nil
	}
	maxWait := s.maxWait
	if maxWait < 0 {
		maxWait = 1 // it would wait, however long
	}
	verdict := s.entry.Observe(maxWait)
	permit := guard.Permit{Held: true, Token: uint64(verdict)}
	switch verdict {
	case concurrency.WouldWait:
		s.waits.WouldWait()
	case concurrency.WouldRefuse:
		s.waits.None()
		return permit, s.full
	default:
		s.waits.None()
	}
	return permit, nil
}

func (s *stage) releaseObserved(p guard.Permit, _ call.Outcome) {
	s.entry.EndObserved(concurrency.Verdict(p.Token))
}
