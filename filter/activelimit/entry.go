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
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/weakmap"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// Key names what shares one limit.
type Key struct {
	// Reference tells the references of this process apart.
	Reference uint64
	// Service is dubbo's service key. Method is "*" for names that the service
	// does not have; the case of its first letter is folded.
	Service, Method string
	// Address is the provider's.
	Address string

	runtime *guard.Runtime
}

// entry is what plans and running calls own.
type entry struct {
	*concurrency.Queue
	// shared is set while more than one chain has a claim.
	shared   atomic.Bool
	reviewed atomic.Int64 // when calls that found a slot last looked

	mu     sync.Mutex
	claims []claim // guarded by mu: one of each chain
	method string  // guarded by mu: as the reference spells it
}

// claim is what one chain wants the limit to be. Of one address a reference may
// have several chains: that of a provider which has registered again, and those
// of several registries.
type claim struct {
	guard    uint64
	alive    func() bool
	version  uint64 // of the configuration
	set      bool   // false when the chain has no such policy
	limit    int
	enforced bool
}

// claim notes what a chain wants and puts in force what holds.
func (e *entry) claim(method string, c claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.method == "" || method != conf.MethodKey(method) {
		e.method = method // a name that is only configured has its first letter folded
	}
	i := slices.IndexFunc(e.claims, func(o claim) bool { return o.guard == c.guard })
	switch {
	case i < 0:
		e.claims = append(e.claims, c)
	case c.version < e.claims[i].version:
		return // a plan that took long to make
	default:
		e.claims[i] = c
	}
	e.settleLocked()
}

// reviewEvery is how often calls that find a slot look whether all chains are
// still there.
const reviewEvery = time.Second

// reviewNowAndThen is for calls that find a slot: what is left may be a lower limit.
func (e *entry) reviewNowAndThen() {
	now, last := int64(guard.Now()), e.reviewed.Load()
	if now-last >= int64(reviewEvery) && e.reviewed.CompareAndSwap(last, now) {
		e.review()
	}
}

// review is for a call that finds no slot: a chain that is gone says nothing
// more, and nobody tells of its end.
func (e *entry) review() {
	if !e.shared.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settleLocked()
}

// settleLocked puts in force what the newest chain that has the policy wants. One
// without it does not take away what another has.
func (e *entry) settleLocked() {
	e.claims = slices.DeleteFunc(e.claims, func(c claim) bool { return !c.alive() })
	e.shared.Store(len(e.claims) > 1)
	var best claim
	for _, c := range e.claims {
		if c.set && (!best.set || c.version > best.version || c.version == best.version && c.guard > best.guard) {
			best = c
		}
	}
	e.SetLimit(best.limit)
	e.SetOpen(!best.enforced)
}

var entries weakmap.Map[Key, entry]

// Queues calls f for each limit of a runtime that is in force or still has
// calls, with the method as its reference spells it.
func Queues(rt *guard.Runtime, f func(Key, *concurrency.Queue)) {
	rt.Refresh()
	entries.Range(func(k Key, e *entry) bool {
		if k.runtime == rt {
			e.mu.Lock()
			k.Method = e.method
			inForce := slices.ContainsFunc(e.claims, func(c claim) bool { return c.set })
			e.mu.Unlock()
			if inForce || e.Inflight() > 0 || e.Waiting() > 0 {
				f(k, e.Queue)
			}
		}
		return true
	})
}
