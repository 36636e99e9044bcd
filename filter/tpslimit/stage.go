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

package tpslimit

import (
	"fmt"
	"sync"
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/weakmap"
	"github.com/weir-go/weir/tps"
)

const (
	// ProviderFilter is the filter's name in a provider's chain.
	ProviderFilter = "tpslimit"
	// ConsumerFilter is its name in a consumer's.
	ConsumerFilter = "tpslimit-consumer"
	// Policy is the policy's name, and the guard's in a refusal.
	Policy = conf.TPSKey
)

// Key names what shares one budget.
type Key struct {
	Side conf.Side
	// Reference tells a consumer's references apart.
	Reference uint64
	// Service is dubbo's service key. Method is "*" where the methods of the
	// service share the budget; the case of its first letter is folded.
	Service, Method string

	runtime *guard.Runtime
}

// entry is what plans, and the reference or the process, own.
type entry struct {
	mu sync.Mutex
	// Guarded by mu.
	method    string // as the service spells it
	version   uint64 // of the configuration that set the limit
	algorithm conf.Algorithm
	limiter   tps.Limiter
}

// set makes the limiter that the policy asks for and returns the one in force:
// what a newer configuration has set stays.
func (e *entry) set(version uint64, method string, l conf.RateLimit) (tps.Limiter, error) {
	quota := tps.Quota{Rate: int64(l.Rate), Interval: l.Interval, Burst: int64(l.Burst)}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.method == "" || method != conf.MethodKey(method) {
		e.method = method // a name that is only configured has its first letter folded
	}
	if e.limiter != nil && version < e.version {
		return e.limiter, nil
	}
	if e.limiter != nil && e.algorithm == l.Algorithm {
		if err := e.limiter.Update(quota); err != nil {
			return nil, err
		}
		e.version = version
		return e.limiter, nil
	}
	limiter, err := newLimiter(l.Algorithm, quota)
	if err != nil {
		return nil, err
	}
	e.version, e.algorithm, e.limiter = version, l.Algorithm, limiter
	return limiter, nil
}

func newLimiter(algorithm conf.Algorithm, quota tps.Quota) (tps.Limiter, error) {
	switch algorithm {
	case conf.AlgorithmFixed:
		return tps.NewFixed(quota, guard.Now)
	case conf.AlgorithmBucket:
		return tps.NewBucket(quota, guard.Now)
	case conf.AlgorithmSliding:
		return tps.NewSliding(quota, guard.Now)
	}
	return nil, fmt.Errorf("weir: %s=%q is no algorithm", conf.TPSAlgorithmKey, algorithm)
}

var entries weakmap.Map[Key, entry]

// use is an entry that plans enforce. Only they own it, so that it is gone when
// the limit is.
type use struct{ *entry }

var uses weakmap.Map[Key, use]

// Limiters calls f for each limit of a runtime that is in force, with the method
// as its service spells it.
func Limiters(rt *guard.Runtime, f func(Key, conf.Algorithm, tps.Limiter)) {
	now := rt.Refresh()
	uses.Range(func(k Key, e *use) bool {
		if k.runtime != rt {
			return true
		}
		e.mu.Lock()
		k.Method = e.method
		algorithm, limiter, inForce := e.algorithm, e.limiter, e.version >= now
		e.mu.Unlock()
		if limiter != nil && inForce {
			f(k, algorithm, limiter)
		}
		return true
	})
}

func set(e conf.Effective) bool { return e.TPS.Set && e.TPS.Rate > 0 && e.TPS.Mode != conf.Off }

func steps(site guard.Site) []guard.Step {
	l := site.Policy.TPS
	if !set(site.Policy) {
		return nil
	}
	method := call.AnyMethod
	if l.Own {
		method = site.Method
	}
	key := Key{Side: site.Side, Reference: site.Reference, Service: site.Service, Method: conf.MethodKey(method), runtime: site.Runtime()}
	e := entries.Get(key, func() *entry { return &entry{} })
	// A budget outlives the chains that use it, or a provider that comes again
	// would bring a full one.
	site.Own(key, e)
	limiter, err := e.set(site.Version(), method, l)
	if err != nil {
		// Values are checked when they are read; a limit that cannot be made must
		// neither pass silently nor take the service down.
		site.Runtime().ConfigError(fmt.Errorf("service=%s method=%s: tps is not enforced: %w", site.Service, method, err))
		return nil
	}
	s := &stage{use: uses.Get(key, func() *use { return &use{e} }), limiter: limiter}
	// A window of fixed ends right after the interval.
	s.refusals = site.NewRefusals(call.RejectError{
		Guard:    Policy,
		Resource: call.Resource(site.Service, method),
		Reason:   call.ReasonRate,
		Limit:    int64(l.Rate),
		Observed: int64(l.Rate),
	}, tps.ErrLimitReached, l.Interval+time.Millisecond)
	step := guard.Step{
		Policy: Policy, Rank: guard.RankRate, Observe: l.Mode == conf.Observe,
		Clock: true, Take: s.take, Release: s.release, OnlyDropped: true,
	}
	if sliding, ok := limiter.(*tps.Sliding); ok {
		// It reads the clock under its lock.
		s.sliding = sliding
		step.Clock, step.Take = false, s.takeSliding
	}
	return []guard.Step{step}
}

// stage is one limit as a plan uses it.
type stage struct {
	use     *use // owned
	limiter tps.Limiter
	sliding *tps.Sliding

	refusals *guard.Refusals
}

func (s *stage) take(c guard.Call) (guard.Permit, *guard.Refusal) {
	return s.permit(s.limiter.AllowAt(c.Now))
}

func (s *stage) takeSliding(guard.Call) (guard.Permit, *guard.Refusal) {
	return s.permit(s.sliding.Allow())
}

func (s *stage) permit(d tps.Decision) (guard.Permit, *guard.Refusal) {
	if !d.Admitted {
		return guard.Permit{At: d.At}, s.refusals.After(d.RetryAfter())
	}
	mark, epoch := d.Ticket()
	return guard.Permit{Held: true, At: d.At, Token: uint64(mark), Mark: epoch}, nil
}

// release takes the admission back if the call did not run after all.
func (s *stage) release(p guard.Permit, outcome call.Outcome) {
	if outcome == call.Dropped {
		s.limiter.GiveBack(tps.Admission(p.At, int64(p.Token), p.Mark))
	}
}
