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

package group

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group/tag"
	"github.com/weir-go/weir/loadbalance/pick"
)

const (
	// lookEvery is how often it is looked which providers of a group are available.
	lookEvery = time.Second
	// lookers is how many look at a time. dubbo may have to connect to tell, which takes
	// seconds where nobody answers.
	lookers = 32
	// maxDown bounds what is kept of providers that are in no list of late.
	maxDown = 4096
)

// looked is what is known of the providers of one group. It outlives the lists: they may
// change faster than it takes to look.
type looked struct {
	busy atomic.Bool // somebody looks
	// down are the providers that were not available, nil for none. The set is immutable.
	down atomic.Pointer[map[base.Invoker]struct{}]

	mu sync.Mutex // guarded by mu: making sets
}

// remaining is how many of a list's group are available.
type remaining struct {
	until  atomic.Int64 // on the clock of guard.Now: nobody looks at this list before
	count  atomic.Pointer[remainder]
	looked *looked
}

// remainder is a number and the set of providers that are not available, by which it was
// counted.
type remainder struct {
	down *map[base.Invoker]struct{}
	n    int
}

// lookedLocked is what is known of a group by its name.
func (c *consumer) lookedLocked(name string) *looked {
	l := c.looked[name]
	if l == nil {
		l = &looked{}
		c.looked[name] = l
	}
	return l
}

// lookedAt is what is known of the groups of a list.
func (c *consumer) lookedAt(list *tag.List[base.Invoker]) []remaining {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]remaining, list.Groups())
	for i := range out {
		out[i].looked = c.lookedLocked(list.Group(i).Name)
	}
	if len(c.looked) > 2*len(out)+maxGroups { // groups come and go
		clear(c.looked)
		for i := range out {
			c.looked[list.Group(i).Name] = out[i].looked
		}
	}
	return out
}

// availableOf is how many providers of a group were available when it was looked last.
// All are until then.
func (v *view) availableOf(g *tag.Group[base.Invoker]) int {
	r := &v.remaining[g.Index]
	if int64(guard.Now()) >= r.until.Load() && r.looked.busy.CompareAndSwap(false, true) {
		go v.of.look(g.Members, r)
	}
	down := r.looked.down.Load()
	if down == nil {
		return len(g.Members)
	}
	if c := r.count.Load(); c != nil && c.down == down {
		return c.n
	}
	n := 0
	for _, i := range g.Members {
		if _, is := (*down)[i]; !is {
			n++
		}
	}
	r.count.Store(&remainder{down, n})
	return n
}

// look looks at the providers of a group.
func (c *consumer) look(members []base.Invoker, r *remaining) {
	l := r.looked
	defer func() {
		r.until.Store(int64(guard.Now() + lookEvery))
		l.busy.Store(false)
	}()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(lookers, len(members)) {
		wg.Go(func() {
			for at := next.Add(1) - 1; at < int64(len(members)); at = next.Add(1) - 1 {
				c.lookAt(members[at], l)
			}
		})
	}
	wg.Wait()
	l.forget(members)
}

// lookAt looks at one. A provider is available when dubbo says so and nobody of this
// process keeps calls from it, as an open breaker does.
func (c *consumer) lookAt(i base.Invoker, l *looked) {
	defer func() {
		if r := recover(); r != nil {
			logger.Errorf("[Weir][Group] cannot tell which providers are available, service=%s err=%v", c.name, r)
		}
	}()
	l.set(i, !i.IsAvailable() || c.avoided(i))
}

// avoided tells whether the load balances keep calls from a provider.
func (c *consumer) avoided(i base.Invoker) (avoided bool) {
	u := i.GetURL()
	if u == nil {
		return true
	}
	now := guard.Now()
	c.ref.Peers.Instance(u.Location).Records(func(r *pick.Record) {
		avoided = avoided || r.AvoidedFor(now) > 0
	})
	return avoided
}

// set says whether a provider is down. It shows at once: others may take long.
func (l *looked) set(i base.Invoker, down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.known()
	if _, is := old[i]; is == down {
		return
	}
	next := maps.Clone(old)
	switch {
	case !down:
		delete(next, i)
	case next == nil:
		next = map[base.Invoker]struct{}{i: {}}
	default:
		next[i] = struct{}{}
	}
	l.storeLocked(next)
}

// forget drops what was destroyed, and, where there is too much, all but the members.
// Others may be in the lists that routers before leave to other calls.
func (l *looked) forget(members []base.Invoker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.known()
	if len(old) == 0 {
		return
	}
	next := maps.Clone(old)
	maps.DeleteFunc(next, func(i base.Invoker, _ struct{}) bool { return i.GetURL() == nil })
	if len(next) > maxDown {
		clear(next)
		for _, i := range members {
			if _, is := old[i]; is {
				next[i] = struct{}{}
			}
		}
	}
	if len(next) != len(old) {
		l.storeLocked(next)
	}
}

func (l *looked) known() map[base.Invoker]struct{} {
	if p := l.down.Load(); p != nil {
		return *p
	}
	return nil
}

func (l *looked) storeLocked(set map[base.Invoker]struct{}) {
	if len(set) == 0 {
		l.down.Store(nil)
		return
	}
	l.down.Store(&set)
}
