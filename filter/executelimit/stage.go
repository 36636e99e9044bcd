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

package executelimit

import (
	"sync"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/weakmap"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

const (
	// FilterName is the filter's name in a chain.
	FilterName = "executelimit"
	// Policy is the policy's name, and the guard's in a refusal.
	Policy = conf.ExecutesKey
)

// Key names what shares one limit.
type Key struct {
	// Service is dubbo's service key.
	Service string
	// Method is "*" for names that the service does not have, and where all
	// methods of it share the limit. The case of its first letter is folded.
	Method string
	// Scope tells what shares the limit.
	Scope conf.Scope
	// Protocol is set where each exported protocol counts by itself.
	Protocol string

	runtime *guard.Runtime
}

// entry is what plans and running calls own.
type entry struct {
	concurrency.Limiter

	mu      sync.Mutex
	method  string // guarded by mu: as the service spells it
	version uint64 // guarded by mu: of the configuration that set the limit
}

// set sets the limit unless a newer configuration has: plans are made at the
// first call after a change, and one that is slow must not undo another's.
func (e *entry) set(version uint64, method string, limit int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.method == "" || method != conf.MethodKey(method) {
		e.method = method // a name that is only configured has its first letter folded
	}
	if version >= e.version {
		e.version = version
		e.SetLimit(limit)
	}
}

// limiters finds the limiter of a key.
var limiters weakmap.Map[Key, entry]

// Limiters calls f for each limit of a runtime that is in force or still has
// calls, with the method as its service spells it.
func Limiters(rt *guard.Runtime, f func(Key, *concurrency.Limiter)) {
	now := rt.Refresh()
	limiters.Range(func(k Key, e *entry) bool {
		if k.runtime != rt {
			return true
		}
		e.mu.Lock()
		k.Method = e.method
		inForce := e.version >= now
		e.mu.Unlock()
		if inForce || e.Inflight() > 0 {
			f(k, &e.Limiter)
		}
		return true
	})
}

// steps builds the stage for a site: the method's own limit and the one that it
// shares with others, of which each holds by itself.
func steps(site guard.Site) []guard.Step {
	var out []guard.Step
	if l := site.Policy.SharedExecutes; holds(l) {
		out = append(out, step(site, call.AnyMethod, l))
	}
	if l := site.Policy.Executes; holds(l) {
		out = append(out, step(site, site.Method, l))
	}
	return out
}

func holds(l conf.Limit) bool { return l.Set && l.Mode != conf.Off }

func set(e conf.Effective) bool { return holds(e.SharedExecutes) || holds(e.Executes) }

func step(site guard.Site, method string, l conf.Limit) guard.Step {
	key := Key{Service: site.Service, Method: conf.MethodKey(method), Scope: l.Scope, runtime: site.Runtime()}
	if l.Scope == conf.ScopeProtocol {
		key.Protocol = site.Protocol
	}
	limiter := limiters.Get(key, func() *entry { return &entry{} })
	limiter.set(site.Version(), method, l.Limit)
	s := &stage{limiter: limiter, refusal: site.NewRefusal(call.RejectError{
		Guard:    Policy,
		Resource: call.Resource(site.Service, method),
		Reason:   call.ReasonConcurrency,
		Limit:    int64(l.Limit),
		Observed: int64(l.Limit),
	}, concurrency.ErrLimitReached)}
	if l.Mode == conf.Observe {
		return guard.Step{Policy: Policy, Rank: guard.RankSlot, Observe: true, Take: s.observe, Release: s.releaseObserved}
	}
	return guard.Step{Policy: Policy, Rank: guard.RankSlot, Look: s.look, Take: s.take, Release: s.release}
}

// stage is one limit as a plan uses it.
type stage struct {
	limiter *entry
	refusal *guard.Refusal
}

func (s *stage) look(guard.Call) *guard.Refusal {
	if s.limiter.Full() {
		return s.refusal
	}
	return nil
}

func (s *stage) take(guard.Call) (guard.Permit, *guard.Refusal) {
	if s.limiter.TryAcquire() {
		return guard.Permit{Held: true}, nil
	}
	return guard.Permit{}, s.refusal
}

func (s *stage) release(guard.Permit, call.Outcome) { s.limiter.Release() }

const overLimit = 1 // the Token of a permit of a call that was only observed

func (s *stage) observe(guard.Call) (guard.Permit, *guard.Refusal) {
	if s.limiter.Observe() {
		return guard.Permit{Held: true}, nil
	}
	return guard.Permit{Held: true, Token: overLimit}, s.refusal
}

func (s *stage) releaseObserved(p guard.Permit, _ call.Outcome) {
	if p.Token == overLimit {
		s.limiter.ReleaseOver()
		return
	}
	s.limiter.Release()
}
