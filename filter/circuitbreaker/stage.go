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

package circuitbreaker

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/breaker"
)

const (
	// ConsumerFilter is the filter's name in a consumer's chain.
	ConsumerFilter = "circuitbreaker"
	// ProviderFilter is its name in a provider's.
	ProviderFilter = "circuitbreaker-provider"
	// Policy is the policy's name, and the guard's in a refusal.
	Policy = conf.BreakerKey
)

// ErrOpen is the cause of a breaker's refusals.
var ErrOpen = errors.New("weir: circuit breaker is open")

func set(e conf.Effective) bool { return e.Breaker.Set && e.Breaker.Mode != conf.Off }

// rulesOf are a policy's for the core.
func rulesOf(p conf.BreakerPolicy) (breaker.Rules, breaker.Force) {
	r := breaker.Rules{
		ErrorRatio: int64(p.ErrorRatio), SlowRatio: int64(p.SlowRatio),
		ErrorCount: int64(p.ErrorCount), ConsecutiveErrors: int64(p.ConsecutiveErrors),
		SlowCall: p.SlowCall, MinCalls: int64(p.MinCalls), Width: p.BucketWidth(), Buckets: p.Buckets, Above: p.Above,
		OpenFor: p.OpenFor, OpenJitter: int64(p.OpenJitter), OpenGrowth: p.OpenGrowth, OpenMax: p.OpenMax,
		Probes: p.Probes, ProbeSuccesses: p.ProbeSuccesses, ProbeUnder: p.ProbeUnder, ProbeTimeout: p.ProbeTimeout,
	}
	if p.MinCallsSet {
		r.MinCallsForCount = r.MinCalls
	}
	switch p.Force {
	case conf.ForceOpen:
		return r, breaker.ForceOpen
	case conf.ForceClosed:
		return r, breaker.ForceClosed
	}
	return r, breaker.Free
}

func steps(site guard.Site) []guard.Step {
	p := site.Policy.Breaker
	key := keyOf(site)
	undo(site, key)
	if !set(site.Policy) {
		return nil
	}
	rules, force := rulesOf(p)
	if site.Streams {
		// How long a stream stays open says nothing of how well it is, and one that has
		// not failed until a probe is overdue is a healthy one.
		rules.SlowRatio, rules.ProbeUnder, rules.Lasting = 0, 0, true
	}
	e := entries.Get(key, func() *entry { return &entry{teller: &teller{key: key}} })
	s := &stage{entry: e, site: site, classes: newClasses(p.Failures, p.Ignore)}
	s.countChanges() // it may change at once
	if err := e.set(site, rules, force); err != nil {
		// Values are checked when they are read; a breaker that cannot be made must
		// neither pass silently nor take the service down.
		site.Runtime().ConfigError(fmt.Errorf("service=%s method=%s: the last good breaker stays in force, if there is one: %w", site.Service, site.Method, err))
		if e.Breaker == nil {
			return nil
		}
	}
	if key.Address == "" {
		site.Own(key, e)
	}
	s.prepare(rules, force)
	step := guard.Step{
		Policy: Policy, Rank: guard.RankBreaker, Observe: p.Mode == conf.Observe, PerInstance: p.Scope == conf.ScopeInstance,
		Take: s.take, Again: s.again, Release: s.release, Ended: s.ended, Untimed: rules.SlowRatio == 0 && rules.ProbeUnder == 0,
	}
	if rules.SlowRatio > 0 {
		step.Clock, step.Take, step.Start = true, s.takeAt, s.start
	}
	return []guard.Step{step}
}

// undo forgets the breakers that the site would have if its policy were another:
// without one, or of the other scope.
func undo(site guard.Site, key Key) {
	shared, own := key, key
	shared.Address, own.Address = "", site.Address
	for _, k := range []Key{shared, own} {
		if k == key && set(site.Policy) {
			continue
		}
		if e := entries.Peek(k); e != nil {
			e.unset(site.Version())
		}
	}
	if site.Address != "" && (key.Address == "" || !set(site.Policy)) {
		free(site.Record()) // the breaker may be gone that had to do with it
	}
}

// stage is one breaker as a plan uses it.
type stage struct {
	entry   *entry // owned
	site    guard.Site
	classes *classes
	// counters keep those of the refusals that may come.
	counters []*guard.Refusal
	changes  *Changes
	// refusals are those of the newest verdict.
	refusals atomic.Pointer[refusals]
}

// refusals are those of one verdict.
type refusals struct {
	verdict *breaker.Verdict
	*guard.Refusals
}

// prepare makes the counters of refusals be there from the beginning.
func (s *stage) prepare(r breaker.Rules, force breaker.Force) {
	reasons := []breaker.Reason{breaker.ProbesFailed, breaker.Probing}
	for reason, there := range map[breaker.Reason]bool{
		breaker.ErrorRatio: r.ErrorRatio > 0, breaker.SlowRatio: r.SlowRatio > 0, breaker.ErrorCount: r.ErrorCount > 0,
		breaker.ConsecutiveErrors: r.ConsecutiveErrors > 0, breaker.Forced: force == breaker.ForceOpen,
	} {
		if there {
			reasons = append(reasons, reason)
		}
	}
	for _, reason := range reasons {
		s.counters = append(s.counters, s.site.NewRefusal(s.reject(breaker.Cause{Reason: reason}), ErrOpen))
	}
}

func (s *stage) countChanges() {
	key := ChangesKey{s.site.Side, s.site.Service, s.site.Method, s.site.Runtime()}
	s.changes = changes.Get(key, func() *Changes { return &Changes{} })
	s.entry.teller.count(s.changes)
}

func (s *stage) reject(c breaker.Cause) call.RejectError {
	return call.RejectError{
		Guard: Policy, Resource: call.Resource(s.site.Service, s.site.Method),
		Reason: c.Reason.String(), Limit: c.Limit, Observed: c.Observed,
	}
}

// A permit of the core is a guard's token.
func pack(p breaker.Permit) uint64 { return uint64(p.Era)<<32 | uint64(p.Key) }

func unpack(token uint64) breaker.Permit {
	return breaker.Permit{Era: uint32(token >> 32), Key: uint32(token)}
}

// take is for breakers that need no time while they are closed.
func (s *stage) take(c guard.Call) (guard.Permit, *guard.Refusal) {
	if p, ok := s.entry.TryClosed(); ok {
		return guard.Permit{Token: pack(p)}, nil
	}
	return s.takeAt(c)
}

func (s *stage) takeAt(c guard.Call) (guard.Permit, *guard.Refusal) {
	now := c.Now
	if now == 0 {
		now = guard.Now()
	}
	p, verdict := s.entry.Allow(now)
	if verdict != nil {
		return guard.Permit{}, s.refusal(verdict, now)
	}
	// Of a probe it must be known that it did not run.
	return guard.Permit{Held: p.Key != 0, Token: pack(p)}, nil
}

// again is for a call that has waited since: the breaker may have opened.
func (s *stage) again(p guard.Permit, c guard.Call) (guard.Permit, *guard.Refusal) {
	now := c.Now
	if now == 0 {
		now = guard.Now()
	}
	renewed, verdict := s.entry.Renew(unpack(p.Token), now)
	if verdict != nil {
		return guard.Permit{}, s.refusal(verdict, now)
	}
	if token := pack(renewed); token != p.Token {
		p = guard.Permit{Held: renewed.Key != 0, Token: token}
	}
	return p, nil
}

func (s *stage) refusal(v *breaker.Verdict, now time.Duration) *guard.Refusal {
	r := s.refusals.Load()
	if r == nil || r.verdict != v {
		r = &refusals{v, s.site.NewRefusals(s.reject(v.Cause), ErrOpen, 0)}
		s.refusals.Store(r)
	}
	return r.After(v.Until - now)
}

// start is for breakers that count calls as slow while they run.
func (s *stage) start(p guard.Permit, now time.Duration) guard.Permit {
	p.Token = pack(s.entry.Begin(unpack(p.Token), now))
	return p
}

func (s *stage) release(p guard.Permit, _ call.Outcome) { s.entry.Drop(unpack(p.Token), guard.Now()) }

func (s *stage) ended(p guard.Permit, o call.Outcome, began, elapsed time.Duration, err error) {
	res := breaker.Success
	if o != call.Success || err != nil {
		res = s.classes.result(o, err)
	}
	if elapsed < 0 {
		began, elapsed = guard.Now(), 0 // nobody has taken the time
	}
	s.entry.End(unpack(p.Token), res, elapsed, began+elapsed)
	s.entry.teller.balance.tried(began + elapsed)
}
