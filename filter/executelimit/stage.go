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
	// Method is "*" where all methods of the service share the limit, or for
	// names that the service does not have. The case of its first letter is folded.
	Method string
	// Protocol is set where each exported protocol counts by itself.
	Protocol string
	// Shared is set for the limit that all methods of the service share.
	Shared bool
}

// entry is what plans and running calls own.
type entry struct {
	concurrency.Limiter
	method string // as the service spells it
}

// limiters finds the limiter of a key.
var limiters weakmap.Map[Key, entry]

// Limiters calls f for each limit that is in force, with the method as its
// service spells it.
func Limiters(f func(Key, *concurrency.Limiter)) {
	limiters.Range(func(k Key, e *entry) bool {
		k.Method = e.method
		f(k, &e.Limiter)
		return true
	})
}

// steps builds the stage for a site: the method's own limit and the one that it
// shares with others, of which each holds by itself.
func steps(site guard.Site) []guard.Step {
	var out []guard.Step
	if l := site.Policy.SharedExecutes; l.Set && l.Mode != conf.Off {
		out = append(out, step(site, Key{Service: site.Service, Method: call.AnyMethod, Shared: true}, l))
	}
	if l := site.Policy.Executes; l.Set && l.Mode != conf.Off {
		key := Key{Service: site.Service, Method: conf.MethodKey(site.Method)}
		if l.Scope == conf.ScopeProtocol {
			key.Protocol = site.Protocol
		}
		out = append(out, step(site, key, l))
	}
	return out
}

func step(site guard.Site, key Key, l conf.Limit) guard.Step {
	method := site.Method
	if key.Shared {
		method = call.AnyMethod
	}
	limiter := limiters.Get(key, func() *entry { return &entry{method: method} })
	limiter.SetLimit(l.Limit)
	s := &stage{limiter: limiter, refusal: site.NewRefusal(call.RejectError{
		Guard:    Policy,
		Resource: call.Resource(site.Service, method),
		Reason:   call.ReasonConcurrency,
		Limit:    int64(l.Limit),
		Observed: int64(l.Limit),
	}, concurrency.ErrLimitReached)}
	return guard.Step{Policy: Policy, Rank: guard.RankSlot, Observe: l.Mode == conf.Observe, Take: s.take, Release: s.release}
}

// stage is one limit as a plan uses it.
type stage struct {
	limiter *entry
	refusal *guard.Refusal
}

func (s *stage) take(guard.Call) (guard.Permit, *guard.Refusal) {
	if s.limiter.TryAcquire() {
		return guard.Permit{Held: true}, nil
	}
	return guard.Permit{}, s.refusal
}

func (s *stage) release(guard.Permit, call.Outcome) { s.limiter.Release() }
