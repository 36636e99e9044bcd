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

package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/tps"
)

const (
	// ProviderFilter is the filter's name in a provider's chain.
	ProviderFilter = "flowcontrol"
	// ConsumerFilter is its name in a consumer's.
	ConsumerFilter = "flowcontrol-consumer"
	// Policy is the policy's name, and the guard's in a refusal.
	Policy = conf.FlowKey
)

func set(e conf.Effective) bool { return e.Flow.Set && e.Flow.Mode != conf.Off }

func keyOf(site guard.Site, own bool) Key {
	method := call.AnyMethod
	if own {
		method = site.Method
	}
	return Key{Side: site.Side, Reference: site.Reference, Service: site.Service, Method: conf.MethodKey(method), runtime: site.Runtime()}
}

func steps(site guard.Site) []guard.Step {
	p := site.Policy.Flow
	var out []guard.Step
	used := map[Key]bool{}
	if set(site.Policy) {
		if step, ok := callersStep(site, used); ok {
			out = append(out, step)
		}
		if p.Rate.Calls > 0 {
			if s, err := newStage(site, "", p.Rate, used); err == nil {
				out = append(out, s.step())
			}
		}
	}
	leaveOthers(site, used)
	return out
}

// leaveOthers notes that the method uses no other budget: those who wait there for
// its sake go on where nobody enforces it.
func leaveOthers(site guard.Site, used map[Key]bool) {
	for _, own := range []bool{true, false} {
		key := keyOf(site, own)
		all := entries.Peek(key)
		if all == nil {
			continue
		}
		for _, caller := range append(all.counted(), "") {
			key.Caller = caller
			if used[key] {
				continue
			}
			if e := entries.Peek(key); e != nil {
				e.leave(site.Version(), conf.MethodKey(site.Method))
			}
		}
	}
}

// stage is one budget as a plan uses it.
type stage struct {
	site    guard.Site
	use     *use // owned
	observe bool
	limiter tps.Limiter
	pacer   *tps.Pacer
	most    time.Duration // that a call waits
	// index tells the budgets of callers apart; 0 is for all together.
	index uint32

	refusals *guard.Refusals
	// waited are those of calls that had to wait, by their reasons.
	waited map[string]*guard.Refusal
	waits  *guard.Waits
}

// entryOf finds a budget. It outlives the chains that use it, or a provider that
// comes again would bring a full one.
func entryOf(site guard.Site, key Key) *entry {
	e := entries.Get(key, func() *entry { return &entry{} })
	site.Own(key, e)
	return e
}

func newStage(site guard.Site, caller string, r conf.Rate, used map[Key]bool) (*stage, error) {
	p := site.Policy.Flow
	key := keyOf(site, p.Own)
	if caller != "" {
		entryOf(site, key).counts(caller)
		key.Caller = caller
	}
	used[key] = true
	e := entryOf(site, key)
	method := key.Method
	if p.Own {
		method = site.Method
	}
	limiter, pacer, err := e.set(site.Version(), method, conf.MethodKey(site.Method), p, r)
	if err != nil {
		// Values are checked when they are read; a limit that cannot be made must
		// neither pass silently nor take the service down.
		site.Runtime().ConfigError(fmt.Errorf("service=%s method=%s: flow is not enforced: %w", site.Service, site.Method, err))
		return nil, err
	}
	s := &stage{
		site: site, use: uses.Get(key, func() *use { return &use{e} }), observe: p.Mode == conf.Observe,
		limiter: limiter, pacer: pacer, most: p.MaxQueue,
	}
	reject := call.RejectError{
		Guard: Policy, Resource: call.Resource(site.Service, method), Reason: call.ReasonRate,
		Limit: int64(r.Calls), Observed: int64(r.Calls),
	}
	longest := time.Duration(0) // a turn can be as far off as others have queued for
	if pacer == nil && p.Behavior == conf.BehaviorReject {
		longest = r.Interval
	}
	if pacer != nil {
		reject.MaxWait = p.MaxQueue
		s.waits = site.Waits(Policy)
		s.waited = map[string]*guard.Refusal{}
		for _, reason := range []string{call.ReasonRate, call.ReasonWaitTimeout, call.ReasonCancelled} {
			waited := reject
			waited.Reason = reason
			s.waited[reason] = site.NewRefusal(waited, tps.ErrLimitReached)
		}
	}
	s.refusals = site.NewRefusals(reject, tps.ErrLimitReached, longest)
	return s, nil
}

func (s *stage) step() guard.Step {
	step := guard.Step{
		Policy: Policy, Rank: guard.RankRate, Observe: s.observe,
		Take: s.take, Release: s.release, OnlyDropped: true,
	}
	if s.pacer != nil {
		step.Rank, step.Clock, step.Waits = guard.RankWait, true, !s.observe
		step.Look = s.look
	}
	return step
}

// mostOf is how long a call waits at most: with all that it waits elsewhere no longer
// than it may here, and no longer than it lasts.
func (s *stage) mostOf(c guard.Call) time.Duration {
	return min(s.most-c.Waited, s.site.TimeLeft(c))
}

// look finds a turn that would come too late, before the call waits for another.
func (s *stage) look(c guard.Call) *guard.Refusal {
	now := nowOf(c)
	if s.pacer == nil || s.pacer.Late(now, 0) == 0 {
		return nil
	}
	if late := s.pacer.Late(now, s.mostOf(withContext(c))); late > 0 {
		return s.refusals.After(late)
	}
	return nil
}

func nowOf(c guard.Call) time.Duration {
	if c.Now == 0 {
		return guard.Now()
	}
	return c.Now
}

// withContext is a call with a context: dubbo's own invokers do not all look at it.
func withContext(c guard.Call) guard.Call {
	if c.Ctx == nil {
		c.Ctx = context.Background()
	}
	return c
}

func (s *stage) take(c guard.Call) (guard.Permit, *guard.Refusal) {
	switch {
	case s.pacer == nil:
		// It reads the clock under its lock.
		return s.permit(s.limiter.Allow())
	case s.observe:
		return s.wouldWait(c)
	}
	if ticket, ok := s.pacer.Pass(nowOf(c)); ok {
		s.waits.None()
		return guard.Permit{Held: true, Mark: s.index<<24 | ticket}, nil
	}
	return s.wait(c)
}

func (s *stage) permit(d tps.Decision) (guard.Permit, *guard.Refusal) {
	if !d.Admitted {
		return guard.Permit{At: d.At}, s.refusals.After(d.RetryAfter())
	}
	mark, epoch := d.Ticket()
	return guard.Permit{Held: true, At: d.At, Token: uint64(mark), Mark: s.index<<24 | epoch&(1<<24-1)}, nil
}

// wait is take for a call whose turn is not now.
func (s *stage) wait(c guard.Call) (guard.Permit, *guard.Refusal) {
	c = withContext(c)
	began := nowOf(c)
	turn, err := s.pacer.Wait(c.Ctx, began, s.mostOf(c))
	if !turn.Queued {
		s.waits.None()
		switch {
		case err == nil:
			return guard.Permit{Held: true, Mark: s.index<<24 | turn.Ticket}, nil
		case turn.RetryAfter > 0:
			return guard.Permit{}, s.refusals.After(turn.RetryAfter)
		}
		return guard.Permit{}, s.gaveUp(c, turn, 0, err)
	}
	at := guard.Now()
	waited := at - began
	s.waits.Note(waited)
	if err != nil {
		return guard.Permit{}, s.gaveUp(c, turn, waited, err)
	}
	return guard.Permit{Held: true, At: at, Token: uint64(waited), Mark: s.index<<24 | turn.Ticket}, nil
}

// gaveUp is the refusal of a call that waited in vain: until its context ended, or
// until its turn was moved too far.
func (s *stage) gaveUp(c guard.Call, turn tps.Turn, waited time.Duration, err error) *guard.Refusal {
	reason := call.ReasonRate
	if tps.IsGivenUp(err) {
		reason = call.ReasonCancelled
		if errors.Is(c.Ctx.Err(), context.DeadlineExceeded) {
			reason = call.ReasonWaitTimeout
		}
	}
	prepared := s.waited[reason]
	reject := *prepared.Reject
	reject.Waited, reject.RetryAfter = waited, turn.RetryAfter
	r := prepared.With(reject, err)
	r.Last = reason != call.ReasonRate
	return r
}

func (s *stage) wouldWait(c guard.Call) (guard.Permit, *guard.Refusal) {
	wait, err := s.pacer.Observe(nowOf(c), s.most)
	switch {
	case err != nil:
		s.waits.None()
		return guard.Permit{}, s.refusals.After(0)
	case wait > 0:
		s.waits.WouldWait()
	default:
		s.waits.None()
	}
	return guard.Permit{}, nil
}

// release takes the admission back if the call did not run after all.
func (s *stage) release(p guard.Permit, outcome call.Outcome) {
	if outcome != call.Dropped {
		return
	}
	mark := p.Mark & (1<<24 - 1)
	if s.pacer != nil {
		s.pacer.GiveBack(mark)
		return
	}
	s.limiter.GiveBack(tps.Admission(p.At, int64(p.Token), mark))
}

// callers are the budgets of a provider's callers.
type callers struct {
	site    guard.Site
	byName  map[string]*stage
	unnamed *stage // nil when they have no limit
	stages  []*stage
}

// maxCallers is how many budgets can be told apart to be given back.
const maxCallers = 1<<8 - 1

func callersStep(site guard.Site, used map[Key]bool) (guard.Step, bool) {
	p := site.Policy.Flow
	if site.Side != conf.Provider || len(p.Callers) == 0 {
		return guard.Step{}, false
	}
	c := &callers{site: site, byName: map[string]*stage{}, stages: []*stage{nil}}
	for _, name := range slices.Sorted(maps.Keys(p.Callers)) {
		rate := p.Callers[name]
		if rate.Calls <= 0 {
			c.byName[name] = nil // without a limit
			continue
		}
		s, err := newStage(site, name, rate, used)
		if err != nil {
			continue
		}
		if len(c.stages) <= maxCallers {
			s.index = uint32(len(c.stages))
		}
		c.stages = append(c.stages, s)
		c.byName[name] = s
	}
	c.unnamed = c.byName[conf.DefaultCaller]
	if len(c.stages) == 1 {
		return guard.Step{}, false
	}
	step := c.stages[1].step()
	step.Look = nil // it comes first
	step.Take, step.Release = c.take, c.release
	return step, true
}

func (c *callers) take(g guard.Call) (guard.Permit, *guard.Refusal) {
	s := c.unnamed
	if name, ok := c.site.Caller(g.Inv); ok && name != conf.DefaultCaller {
		if named, ok := c.byName[name]; ok {
			s = named
		}
	}
	if s == nil {
		return guard.Permit{}, nil
	}
	return s.take(g)
}

func (c *callers) release(p guard.Permit, outcome call.Outcome) {
	if i := p.Mark >> 24; i > 0 {
		c.stages[i].release(p, outcome)
	}
}
