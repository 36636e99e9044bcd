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
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/weakmap"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// Key names what shares one bulkhead.
type Key struct {
	Side conf.Side
	// Group is the name of an island, and then all others but Side are empty: it
	// belongs to the process.
	Group string
	// Reference tells a consumer's references apart.
	Reference uint64
	// Service is dubbo's service key. Method is "*" for names that the service does
	// not have; the case of its first letter is folded.
	Service, Method string

	runtime *guard.Runtime
}

func keyOf(site guard.Site) Key {
	if group := site.Policy.Bulkhead.Group; group != "" {
		return Key{Side: site.Side, Group: group, runtime: site.Runtime()}
	}
	return Key{
		Side: site.Side, Reference: site.Reference, Service: site.Service, Method: conf.MethodKey(site.Method),
		runtime: site.Runtime(),
	}
}

// entry is one bulkhead. Plans and running calls own it.
type entry struct {
	*concurrency.Queue
	group string
	side  conf.Side

	// crowd is set while several methods or chains have a claim.
	crowd    atomic.Bool
	reviewed atomic.Int64 // when a call that found no slot last looked

	mu     sync.Mutex
	claims []claim // guarded by mu: one of each member
	method string  // guarded by mu: as the service spells it
}

func newEntry(key Key) *entry {
	return &entry{Queue: concurrency.NewQueue(0), group: key.Group, side: key.Side}
}

// claim is what one method of one chain wants its bulkhead to be.
type claim struct {
	member   *member
	alive    func() bool
	version  uint64 // of the configuration
	method   string
	max      int // 0 is unlimited
	queue    int
	enforced bool
}

// narrower tells whether c lets fewer calls run than o, or as many and fewer wait.
func (c claim) narrower(o claim) bool {
	if c.max != o.max {
		return o.max == 0 || c.max != 0 && c.max < o.max
	}
	return c.queue < o.queue
}

// member is a method of a chain, whichever bulkhead it belongs to. Its plans own it,
// so that the next one finds where the one before was.
type member struct {
	mu      sync.Mutex
	version uint64 // guarded by mu
	entry   *entry // guarded by mu: nil when it has no bulkhead
}

type memberKey struct {
	runtime *guard.Runtime
	guard   uint64
	side    conf.Side
	service string
	method  string
}

func memberKeyOf(site guard.Site) memberKey {
	return memberKey{site.Runtime(), site.Guard(), site.Side, site.Service, conf.MethodKey(site.Method)}
}

var (
	entries weakmap.Map[Key, entry]
	members weakmap.Map[memberKey, member]
)

// move has the member belong to e, with that claim, and to no other any more; nil is
// to none. A plan that took long to make changes nothing. It returns what there is
// to warn of.
func (m *member) move(e *entry, c claim) (warning string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.version < m.version {
		return ""
	}
	m.version = c.version
	if m.entry != nil && m.entry != e {
		m.entry.leave(m)
	}
	if m.entry = e; e == nil {
		return ""
	}
	c.member = m
	return e.claim(c)
}

// claim notes what a member wants and puts in force what holds.
func (e *entry) claim(c claim) (warning string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.method == "" || c.method != conf.MethodKey(c.method) {
		e.method = c.method // a name that is only configured has its first letter folded
	}
	if i := slices.IndexFunc(e.claims, func(o claim) bool { return o.member == c.member }); i >= 0 {
		e.claims[i] = c
	} else {
		e.claims = append(e.claims, c)
	}
	return e.settleLocked()
}

func (e *entry) leave(m *member) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.claims = slices.DeleteFunc(e.claims, func(o claim) bool { return o.member == m })
	_ = e.settleLocked() // one less says nothing new
}

// reviewEvery is how often calls that find no slot look whether all chains are still
// there.
const reviewEvery = time.Second

// review is for a call that finds no slot: a chain that is gone says nothing more, and
// nobody tells of its end. It reports whether it has looked.
func (e *entry) review() bool {
	if !e.crowd.Load() {
		return false
	}
	now, last := int64(guard.Now()), e.reviewed.Load()
	if now-last < int64(reviewEvery) || !e.reviewed.CompareAndSwap(last, now) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.settleLocked()
	return true
}

// settleLocked puts in force the narrowest of what is wanted. The chains of one method
// go by one configuration: there only the newest counts, as those who go by an older one
// have only not been called since. Methods of a group are told of a change at once.
// Those that only observe have no say where others enforce.
func (e *entry) settleLocked() (warning string) {
	e.claims = slices.DeleteFunc(e.claims, func(c claim) bool { return !c.alive() })
	e.crowd.Store(len(e.claims) > 1)
	var newest uint64
	enforced := false
	for _, c := range e.claims {
		newest = max(newest, c.version)
	}
	counts := func(c claim) bool { return e.group != "" || c.version == newest }
	for _, c := range e.claims {
		enforced = enforced || counts(c) && c.enforced
	}
	var best, latest *claim // latest is the narrowest of the newest
	differ := false
	for i := range e.claims {
		c := &e.claims[i]
		if !counts(*c) || c.enforced != enforced {
			continue
		}
		if best == nil || c.narrower(*best) {
			best = c
		}
		if c.version == newest {
			differ = differ || latest != nil && (c.max != latest.max || c.queue != latest.queue)
			latest = c
		}
	}
	if best == nil {
		best = &claim{} // calls that still wait must not wait for nobody
	}
	e.SetPlaces(best.queue)
	e.SetLimit(best.max)
	e.SetOpen(!enforced)
	if !differ || e.group == "" {
		return ""
	}
	return fmt.Sprintf("%s=%s on the %s side: its methods say different things, so the narrowest holds for all: %d may run, %d may wait",
		conf.BulkheadGroupKey, e.group, e.side, best.max, best.queue)
}

// Queues calls f for each bulkhead of a runtime that is in force or still has calls,
// with the method as its service spells it.
func Queues(rt *guard.Runtime, f func(Key, *concurrency.Queue)) {
	rt.Refresh()
	entries.Range(func(k Key, e *entry) bool {
		if k.runtime != rt {
			return true
		}
		e.mu.Lock()
		_ = e.settleLocked()
		if e.group == "" {
			k.Method = e.method
		}
		inForce := len(e.claims) > 0
		e.mu.Unlock()
		if inForce || e.Inflight() > 0 || e.Waiting() > 0 {
			f(k, e.Queue)
		}
		return true
	})
}
