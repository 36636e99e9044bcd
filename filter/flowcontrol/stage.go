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
	if !set(site.Policy) || !p.Own {
		// What the method had of its own is over; what it shares others may use.
		if e := entries.Peek(keyOf(site, true)); e != nil {
			e.unset(site.Version())
		}
	}
	if !set(site.Policy) {
		return nil
	}
	var out []guard.Step
	if step, ok := callersStep(site); ok {
		out = append(out, step)
	}
	if p.Rate.Calls > 0 {
		if s, err := newStage(site, "", p.Rate); err == nil {
			out = append(out, s.step())
		}
	}
	return out
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

	refusals  *guard.Refusals
	cancelled *guard.Refusal
	waits     *guard.Waits
}

func newStage(site guard.Site, caller string, r conf.Rate) (*stage, error) {
	p := site.Policy.Flow
	key := keyOf(site, p.Own)
	key.Caller = caller
	e := entries.Get(key, func() *entry { return &entry{} })
	// A budget outlives the chains that use it, or a provider that comes again
	// would bring a full one.
	site.Own(key, e)
	method := key.Method
	if p.Own {
		method = site.Method
	}
	limiter, pacer, err := e.set(site.Version(), method, p, r)
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
		cancelled := reject
		cancelled.Reason = call.ReasonCancelled
		s.cancelled = site.NewRefusal(cancelled, context.Canceled)
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
	}
	return step
}

func (s *stage) take(c guard.Call) (guard.Permit, *guard.Refusal) {
	switch {
	case s.pacer == nil:
		// It reads the clock under its lock.
		return s.permit(s.limiter.Allow())
	case s.observe:
		return s.wouldWait(c)
	}
	now := c.Now
	if now == 0 {
		now = guard.Now()
	}
	if ticket, ok := s.pacer.Pass(now); ok {
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
	if c.Ctx == nil {
		c.Ctx = context.Background() // dubbo's own invokers do not all look at it
	}
	began := guard.Now()
	turn, err := s.pacer.Wait(c.Ctx, began, min(s.most, s.site.TimeLeft(c)))
	if !turn.Queued {
		s.waits.None()
		switch {
		case err == nil:
			return guard.Permit{Held: true, Mark: s.index<<24 | turn.Ticket}, nil
		case tps.IsGivenUp(err):
			return guard.Permit{}, s.gaveUp(0, err)
		}
		return guard.Permit{}, s.refusals.After(turn.RetryAfter)
	}
	at := guard.Now()
	waited := at - began
	s.waits.Note(waited)
	if err != nil {
		return guard.Permit{}, s.gaveUp(waited, err)
	}
	return guard.Permit{Held: true, At: at, Token: uint64(waited), Mark: s.index<<24 | turn.Ticket}, nil
}

func (s *stage) gaveUp(waited time.Duration, err error) *guard.Refusal {
	reject := *s.cancelled.Reject
	reject.Waited = waited
	r := s.cancelled.With(reject, err)
	r.Last = true
	return r
}

func (s *stage) wouldWait(c guard.Call) (guard.Permit, *guard.Refusal) {
	now := c.Now
	if now == 0 {
		now = guard.Now()
	}
	wait, err := s.pacer.Observe(now, s.most)
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

func callersStep(site guard.Site) (guard.Step, bool) {
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
		s, err := newStage(site, name, rate)
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
