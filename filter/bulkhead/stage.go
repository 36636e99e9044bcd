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

package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

const (
	// ProviderFilter is the filter's name in a provider's chain.
	ProviderFilter = "bulkhead"
	// ConsumerFilter is its name in a consumer's.
	ConsumerFilter = "bulkhead-consumer"
	// Policy is the policy's name, and the guard's in a refusal.
	Policy = conf.BulkheadKey
)

// rankConsumer puts a consumer's bulkhead behind the wait for a slot of one provider:
// whoever else could use that needs the bulkhead too, but a provider that is slow must
// not fill the bulkhead with calls that wait for it.
const rankConsumer = guard.RankSlot + 50

// leastLeft is what a call must have left after its wait to be worth running.
const leastLeft = time.Millisecond

// errDeadline is the cause of a refusal after a wait that used up all that the
// call had. Whether the queue's timer or the context's came first is chance.
var errDeadline = fmt.Errorf("%w: %w", concurrency.ErrWaitTimeout, context.DeadlineExceeded)

func set(e conf.Effective) bool { return e.Bulkhead.Set && e.Bulkhead.Mode != conf.Off }

func steps(site guard.Site) []guard.Step {
	b := site.Policy.Bulkhead
	if !set(site.Policy) {
		if m := members.Peek(memberKeyOf(site)); m != nil {
			m.move(nil, claim{version: site.Version()})
		}
		return nil
	}
	key := keyOf(site)
	s := &stage{
		site:   site,
		entry:  entries.Get(key, func() *entry { return newEntry(key) }),
		member: members.Get(memberKeyOf(site), func() *member { return &member{} }),
	}
	warning := s.member.move(s.entry, claim{
		alive: site.Alive(), version: site.Version(), method: site.Method,
		max: b.Max, queue: b.Queue, enforced: b.Mode == conf.Enforce,
	})
	if warning != "" {
		site.Runtime().Warn(warning)
	}
	step := guard.Step{Policy: Policy, Rank: guard.RankSlot, Look: s.look, Take: s.takeNow, Release: s.release}
	if b.Queue > 0 || b.Group != "" {
		// In a group the queue may be another's, and what holds changes with others.
		s.maxWait = b.MaxWait
		s.waits = site.Waits(Policy)
		step.Rank, step.Waits, step.Take = guard.RankQueue, true, s.take
	}
	if site.Side == conf.Consumer {
		step.Rank = rankConsumer
	}
	s.full.Store(s.refusal(call.ReasonConcurrency, int64(b.Max)))
	s.late, s.cancelled = s.refusal(call.ReasonWaitTimeout, int64(b.Max)), s.refusal(call.ReasonCancelled, int64(b.Max))
	if b.Mode == conf.Observe {
		step.Observe, step.Take, step.Release = true, s.observe, s.releaseObserved
	}
	return []guard.Step{step}
}

// stage is one bulkhead as a plan uses it.
type stage struct {
	site   guard.Site
	entry  *entry
	member *member // owned
	// maxWait is 0 and waits is nil where nobody waits.
	maxWait time.Duration
	waits   *guard.Waits

	// full is for calls that find neither a slot nor a place; late and cancelled are for
	// those that waited.
	full            atomic.Pointer[guard.Refusal]
	late, cancelled *guard.Refusal
}

func (s *stage) refusal(reason string, limit int64) *guard.Refusal {
	return s.site.NewRefusal(call.RejectError{
		Guard:    Policy,
		Resource: call.Resource(s.site.Service, s.site.Method),
		Reason:   reason,
		Limit:    limit,
		Observed: limit,
	}, concurrency.ErrLimitReached)
}

// refuse is the refusal of a call that may not wait. What others of its group say may
// change the limit without this plan being made again.
func (s *stage) refuse() *guard.Refusal {
	r, limit := s.full.Load(), s.entry.Limit()
	if r.Reject.Limit == limit || limit == 0 {
		return r
	}
	fresh := s.refusal(call.ReasonConcurrency, limit)
	s.full.CompareAndSwap(r, fresh)
	return fresh
}

// look refuses a call for which there is neither a slot nor a place, before it waits
// for something else.
func (s *stage) look(c guard.Call) *guard.Refusal {
	if c.Opens || s.room() || s.entry.review() && s.room() {
		return nil
	}
	return s.refuse()
}

// room tells whether there is a slot, or a place to wait for one.
func (s *stage) room() bool {
	if s.maxWait > 0 {
		return !s.entry.Full()
	}
	limit := s.entry.Limit()
	return limit == 0 || s.entry.Inflight() < limit
}

// takeNow is take where nobody waits.
func (s *stage) takeNow(c guard.Call) (guard.Permit, *guard.Refusal) {
	if c.Opens {
		return guard.Permit{}, nil // its end would not be seen
	}
	if s.entry.TryAcquire() || s.entry.review() && s.entry.TryAcquire() {
		return guard.Permit{Held: true}, nil
	}
	return guard.Permit{}, s.refuse()
}

func (s *stage) take(c guard.Call) (guard.Permit, *guard.Refusal) {
	if c.Opens {
		return guard.Permit{}, nil
	}
	if s.entry.TryAcquire() || s.entry.review() && s.entry.TryAcquire() {
		s.waits.None()
		return guard.Permit{Held: true}, nil
	}
	if s.maxWait <= 0 || s.entry.Full() {
		s.waits.None()
		return guard.Permit{}, s.refuse()
	}
	return s.wait(c)
}

// wait is take for a call that found no slot.
func (s *stage) wait(c guard.Call) (guard.Permit, *guard.Refusal) {
	if c.Ctx == nil {
		c.Ctx = context.Background() // dubbo's own invokers do not all look at it
	}
	left := s.site.TimeLeft(c)
	maxWait := min(left, s.maxWait)
	began := guard.Now()
	met, err := s.entry.Acquire(c.Ctx, maxWait)
	if !met.Queued {
		s.waits.None()
		switch {
		case err == nil:
			return guard.Permit{Held: true}, nil
		case errors.Is(err, concurrency.ErrQueueFull):
			return guard.Permit{}, s.refuse()
		}
		return guard.Permit{}, s.gaveUp(c.Ctx, met, max(maxWait, 0), 0, left < leastLeft, err)
	}
	at := guard.Now()
	waited := at - began
	s.waits.Note(waited)
	if err == nil && left-waited < leastLeft {
		// The slot came when there was nothing left to do with it.
		met.Running, met.Limit = s.entry.Inflight(), s.entry.Limit()
		s.entry.Release()
		err = concurrency.ErrWaitTimeout
	}
	if err == nil {
		return guard.Permit{Held: true, At: at, Token: uint64(waited)}, nil
	}
	return guard.Permit{}, s.gaveUp(c.Ctx, met, maxWait, waited, left-waited < leastLeft, err)
}

// gaveUp makes the refusal of a call whose wait ended without a slot.
func (s *stage) gaveUp(ctx context.Context, met concurrency.Wait, maxWait, waited time.Duration, over bool, err error) *guard.Refusal {
	prepared := s.late
	switch {
	case errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, concurrency.ErrWaitTimeout):
		prepared = s.cancelled
	case over:
		err = errDeadline
	}
	return prepared.With(call.RejectError{
		Guard:    Policy,
		Resource: prepared.Reject.Resource,
		Reason:   prepared.Reject.Reason,
		Limit:    met.Limit,
		Observed: met.Running,
		Waited:   waited,
		MaxWait:  maxWait,
	}, err)
}

func (s *stage) release(guard.Permit, call.Outcome) { s.entry.Release() }

func (s *stage) observe(c guard.Call) (guard.Permit, *guard.Refusal) {
	if c.Opens {
		return guard.Permit{}, nil
	}
	verdict := s.entry.Observe(s.maxWait)
	permit := guard.Permit{Held: true, Token: uint64(verdict)}
	switch {
	case verdict == concurrency.WouldRefuse:
		s.noWait()
		return permit, s.refuse()
	case verdict == concurrency.WouldWait:
		s.waits.WouldWait()
	default:
		s.noWait()
	}
	return permit, nil
}

func (s *stage) noWait() {
	if s.waits != nil {
		s.waits.None()
	}
}

func (s *stage) releaseObserved(p guard.Permit, _ call.Outcome) {
	s.entry.EndObserved(concurrency.Verdict(p.Token))
}
