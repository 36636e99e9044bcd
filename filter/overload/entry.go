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

package overload

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/overload"
	"github.com/weir-go/weir/internal/weakmap"
)

// Key names what shares one cap.
type Key struct {
	Side conf.Side
	// Reference tells a consumer's references apart.
	Reference uint64
	// Service is dubbo's service key. Method is "*" for names that the service does not
	// have; the case of its first letter is folded.
	Service, Method string

	runtime *guard.Runtime
}

// entry is what plans and running calls own.
type entry struct {
	*overload.Cap
	teller *teller
	watch  *watch

	auto atomic.Pointer[auto]

	callers names

	// order is held while the cap is set, so that versions come one after another. What
	// changes then is told meanwhile, so those who are told must not need it.
	order sync.Mutex

	mu      sync.Mutex
	version uint64 // guarded by mu: of the configuration that the rules are of
	method  string // guarded by mu: as the service spells it
}

// auto finds out the limit of a cap.
type auto struct {
	*overload.Auto
	refused int64 // what the cap had refused at the last tick
}

var entries weakmap.Map[Key, entry]

// set has the cap go by what a version of the configuration says. An older one than it
// goes by already changes nothing.
func (e *entry) set(site guard.Site, p conf.OverloadPolicy) error {
	e.order.Lock()
	defer e.order.Unlock()
	if !e.join(site) {
		return nil
	}
	now := guard.Now()
	rules := rulesOf(site, p)
	switch a := e.auto.Load(); {
	case !p.Auto:
		e.auto.Store(nil)
	case a == nil:
		a = &auto{Auto: overload.NewAuto(int64(p.Floor), int64(p.Ceiling), now)}
		if e.Cap != nil {
			a.refused = e.Refused()
		}
		e.auto.Store(a)
	default:
		limit := e.Stats(now).Limit // what was found out so far
		if floor, ceiling := a.Bounds(); floor != int64(p.Floor) || ceiling != int64(p.Ceiling) {
			a.SetBounds(int64(p.Floor), int64(p.Ceiling))
			limit = min(max(limit, int64(p.Floor)), int64(p.Ceiling))
		}
		rules.Limit = limit
	}
	e.teller.dumpEvery.Store(int64(p.DumpInterval))
	if e.Cap != nil {
		return e.Update(rules, now)
	}
	c, err := overload.New(rules, e.watch.tight, e.teller.tell, now)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.Cap = c
	e.mu.Unlock()
	return nil
}

// join notes the site. It reports whether the cap is to go by its configuration.
func (e *entry) join(site guard.Site) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.method == "" || site.Method != conf.MethodKey(site.Method) {
		e.method = site.Method // a name that is only configured has its first letter folded
		e.teller.method.Store(&site.Method)
		k := e.teller.key
		e.teller.totals.Store(totals.Get(TotalsKey{k.Side, k.Service, site.Method, k.runtime}, func() *Totals { return &Totals{} }))
	}
	if site.Version() < e.version {
		return false
	}
	e.version = site.Version()
	return true
}

func rulesOf(site guard.Site, p conf.OverloadPolicy) overload.Rules {
	r := overload.Rules{
		Limit: int64(p.Limit), MaxExpand: int64(p.MaxExpand), SlowCall: p.SlowCall, SlowShare: int64(p.SlowShare),
		EntryTimeout: p.EntryTimeout, MaxOverdue: int64(p.MaxOverdue), Calm: p.Calm,
	}
	if p.Auto {
		r.Limit, r.MaxExpand = int64(p.Floor), 1
	}
	if site.Streams {
		// How long a stream stays open says nothing of how well it is.
		r.SlowCall, r.EntryTimeout = 0, 0
	}
	return r
}

// tick is what the cap does by itself, all of it where whole is set.
func (e *entry) tick(now time.Duration, whole bool) {
	if a := e.auto.Load(); a != nil {
		refused := e.Refused()
		e.adapt(a, a.Tick(now, e.Running(), refused != a.refused), now)
		a.refused = refused
	}
	if whole {
		e.Tick(now)
		e.teller.tick(now)
	}
}

// adapt sets a limit that was found out, if the configuration has it so still.
func (e *entry) adapt(a *auto, limit int64, now time.Duration) {
	e.Adjust(limit, now, func() bool {
		_, ceiling := a.Bounds()
		return e.auto.Load() == a && limit <= ceiling
	})
}

// State is a cap as it is now.
type State struct {
	Key
	overload.Stats
	// Auto is set where the limit is found out, and Alone is then how long a call takes
	// when few run.
	Auto  bool
	Alone time.Duration
	// Changes are how often the cap has changed, by reason.
	Changes map[string]int64
}

// Caps calls f for each cap of a runtime that is in force or still has calls.
func Caps(rt *guard.Runtime, f func(State)) {
	version, now := rt.Refresh(), guard.Now()
	entries.Range(func(k Key, e *entry) bool {
		if k.runtime != rt {
			return true
		}
		e.mu.Lock()
		c, inForce := e.Cap, e.version >= version
		k.Method = e.method
		e.mu.Unlock()
		if c == nil {
			return true
		}
		s := State{Key: k, Stats: c.Stats(now), Changes: e.teller.changes()}
		if a := e.auto.Load(); a != nil {
			s.Auto, s.Alone = true, a.Alone()
		}
		if inForce || s.Running > 0 || s.Aside > 0 {
			f(s)
		}
		return true
	})
}

// names keeps the names of callers, so that an entry can point to one.
type names struct {
	byName sync.Map // name -> *string
	count  atomic.Int64
}

// maxNames bounds them; the callers are said to be "other" then.
const maxNames = 100

var otherCallers = "other"

func (n *names) of(name string) *string {
	if p, ok := n.byName.Load(name); ok {
		return p.(*string)
	}
	if n.count.Load() >= maxNames {
		return &otherCallers
	}
	return n.add(strings.Clone(name)) // a call that is over keeps nothing of its own
}

// add is a function of its own, as it has the name on the heap.
func (n *names) add(name string) *string {
	p, there := n.byName.LoadOrStore(name, &name)
	if !there {
		n.count.Add(1)
	}
	return p.(*string)
}
