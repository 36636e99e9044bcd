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
	"maps"
	"slices"
	"sync"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/weakmap"
	"github.com/weir-go/weir/tps"
)

// Key names what shares one budget.
type Key struct {
	Side conf.Side
	// Reference tells a consumer's references apart.
	Reference uint64
	// Service is dubbo's service key. Method is "*" where the methods of the
	// service share the budget; the case of its first letter is folded.
	Service, Method string
	// Caller is the application that the budget is for, "" for all together.
	Caller string

	runtime *guard.Runtime
}

// entry is a budget. Plans own it, and the reference or the process.
type entry struct {
	mu sync.Mutex
	// Guarded by mu.
	method   string // as the service spells it
	version  uint64 // of the configuration that set the limit
	behavior conf.Behavior
	limiter  tps.Limiter // of a behavior that refuses
	pacer    *tps.Pacer  // of one that queues
	// users are the methods that have used the budget, and enforcing the number of
	// those that enforce it: while there is none those who wait are let go.
	users     map[string]user
	enforcing int
	// callers are those that have had budgets of their own beside this one.
	callers map[string]bool
}

// user is what a version of the configuration says of a method.
type user struct {
	version  uint64
	enforces bool
}

func quotaOf(r conf.Rate) tps.Quota {
	return tps.Quota{Rate: int64(r.Calls), Interval: r.Interval}
}

func warmingOf(p conf.FlowPolicy) tps.Warming {
	if !p.Behavior.WarmsUp() {
		return tps.Warming{}
	}
	return tps.Warming{Time: p.WarmUp, Factor: p.ColdFactor}
}

// set puts in force what a version of the configuration says, unless a newer one
// has spoken, and returns what is in force; by is the method that it is for. Between behaviors that refuse, and
// between those that queue, what was counted stays where the algorithm is the same.
func (e *entry) set(version uint64, method, by string, p conf.FlowPolicy, r conf.Rate) (tps.Limiter, *tps.Pacer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.method == "" || method != conf.MethodKey(method) {
		e.method = method // a name that is only configured has its first letter folded
	}
	if version >= e.version || e.limiter == nil && e.pacer == nil {
		if err := e.setLocked(p, quotaOf(r)); err != nil {
			return nil, nil, err
		}
		e.version, e.behavior = version, p.Behavior
	}
	e.userLocked(by, user{version, p.Mode == conf.Enforce})
	return e.limiter, e.pacer, nil
}

// userLocked notes what a method does with the budget, unless a newer version of
// the configuration has spoken.
func (e *entry) userLocked(method string, u user) {
	was := e.users[method]
	if u.version < was.version {
		return
	}
	if e.users == nil {
		e.users = map[string]user{}
	}
	e.users[method] = u
	if was.enforces {
		e.enforcing--
	}
	if u.enforces {
		e.enforcing++
	}
	if e.pacer != nil {
		e.pacer.SetOpen(e.enforcing == 0)
	}
}

// leave notes that a method does not use the budget from this version on.
func (e *entry) leave(version uint64, method string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.userLocked(method, user{version, false})
}

// counts notes that a caller has a budget of its own.
func (e *entry) counts(caller string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.callers == nil {
		e.callers = map[string]bool{}
	}
	e.callers[caller] = true
}

// counted are all callers that have had budgets of their own.
func (e *entry) counted() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.callers))
}

func (e *entry) setLocked(p conf.FlowPolicy, q tps.Quota) error {
	w := warmingOf(p)
	if p.Behavior.Queues() {
		if e.pacer != nil {
			return e.pacer.Update(q, w)
		}
		pacer, err := tps.NewPacer(q, w, guard.Now)
		if err != nil {
			return err
		}
		e.pacer, e.limiter = pacer, nil
		return nil
	}
	limiter, err := e.limiterLocked(p.Behavior, q, w)
	if err != nil {
		return err
	}
	if e.pacer != nil {
		e.pacer.SetOpen(true) // those who wait still
	}
	e.limiter, e.pacer = limiter, nil
	return nil
}

func (e *entry) limiterLocked(b conf.Behavior, q tps.Quota, w tps.Warming) (tps.Limiter, error) {
	switch l := e.limiter.(type) {
	case *tps.WarmUp:
		if b == conf.BehaviorWarmUp {
			return l, l.UpdateWarming(q, w)
		}
	case *tps.Sliding:
		if b == conf.BehaviorReject {
			return l, l.Update(q)
		}
	}
	if b == conf.BehaviorWarmUp {
		return tps.NewWarmUp(q, w, guard.Now)
	}
	return tps.NewSliding(q, guard.Now)
}

var entries weakmap.Map[Key, entry]

// use is an entry that plans enforce. Only they own it, so that it is gone when
// the limit is.
type use struct{ *entry }

var uses weakmap.Map[Key, use]

// Flow is the state of one budget.
type Flow struct {
	Key
	Behavior conf.Behavior
	// Quota is the rate that holds now, which may still warm up.
	Quota tps.Quota
	// Used are the calls that count now, and Waiting those that wait.
	Used, Waiting int64
}

// Flows calls f for each budget of a runtime that is in force, with the method as its
// service spells it.
func Flows(rt *guard.Runtime, f func(Flow)) {
	version := rt.Refresh()
	now := guard.Now()
	uses.Range(func(k Key, e *use) bool {
		if k.runtime != rt {
			return true
		}
		e.mu.Lock()
		k.Method = e.method
		behavior, limiter, pacer, inForce := e.behavior, e.limiter, e.pacer, e.version >= version
		e.mu.Unlock()
		switch {
		case !inForce:
		case limiter != nil:
			st := limiter.Stats(now)
			f(Flow{Key: k, Behavior: behavior, Quota: st.Quota, Used: max(st.Rate-st.Left, 0)})
		case pacer != nil:
			st := pacer.Stats()
			f(Flow{Key: k, Behavior: behavior, Quota: st.Quota, Waiting: st.Waiting})
		}
		return true
	})
}
