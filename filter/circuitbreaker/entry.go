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
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/breaker"
	"github.com/weir-go/weir/internal/weakmap"
)

// Key names what shares one breaker.
type Key struct {
	Side conf.Side
	// Reference tells a consumer's references apart.
	Reference uint64
	// Service is dubbo's service key. Method is "*" for names that the service does
	// not have; the case of its first letter is folded.
	Service, Method string
	// Address is the provider's, "" where all addresses share a breaker.
	Address string

	runtime *guard.Runtime
}

// entry is what plans own, and the reference or the process where the breaker
// belongs to them.
type entry struct {
	// Breaker is set by the first set, before which no plan has the entry.
	*breaker.Breaker
	teller *teller

	// order is held while the breaker is set or unset, so that versions come one after
	// another. Changes of state are told meanwhile, so those who are told must not need it.
	order   sync.Mutex
	version uint64 // guarded by order: of the configuration that the rules are of

	mu sync.Mutex
	// Guarded by mu.
	method  string // as the service spells it
	inForce bool   // until the policy is taken away
	users   users
}

func keyOf(site guard.Site) Key {
	k := Key{
		Side: site.Side, Reference: site.Reference, Service: site.Service, Method: conf.MethodKey(site.Method), Address: site.Address,
		runtime: site.Runtime(),
	}
	if site.Policy.Breaker.Scope == conf.ScopeService {
		k.Address = ""
	}
	return k
}

// set has the breaker go by what a version of the configuration says. An older
// one than it goes by already changes nothing.
func (e *entry) set(site guard.Site, rules breaker.Rules, force breaker.Force) error {
	e.order.Lock()
	defer e.order.Unlock()
	anew := e.join(site)
	if site.Version() < e.version {
		return nil
	}
	if e.Breaker == nil {
		b, err := breaker.New(rules, guard.Now(), breaker.WithListener(e.teller.tell))
		if err != nil {
			return err
		}
		e.Breaker, anew = b, false
	}
	// The state may stay as it is, and who is to know of it change.
	defer func() { e.teller.balance.join(site, e.teller.key, e.Breaker, guard.Now()) }()
	if err := e.Update(rules, force, guard.Now()); err != nil {
		return err
	}
	if anew {
		// The provider was gone. Calls to it that still run, or the collector, may have
		// kept what was known of it.
		e.Reset(guard.Now())
	}
	e.version = site.Version()
	e.mu.Lock()
	e.inForce = true
	e.mu.Unlock()
	return nil
}

// join notes a chain that uses the breaker. It reports whether that belongs to an
// address whose chains are all gone.
func (e *entry) join(site guard.Site) (anew bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.method == "" || site.Method != conf.MethodKey(site.Method) {
		e.method = site.Method // a name that is only configured has its first letter folded
	}
	e.teller.name(e.method) // what follows may be told
	anew = e.teller.key.Address != "" && !e.users.any()
	e.users.add(site.Guard(), site.Alive())
	return anew
}

// unset forgets what was counted: nobody asks the breaker from this version on.
func (e *entry) unset(version uint64) {
	e.order.Lock()
	defer e.order.Unlock()
	if version <= e.version {
		return
	}
	e.mu.Lock()
	was := e.inForce
	e.inForce = false
	e.mu.Unlock()
	if !was {
		return
	}
	e.version = version
	e.teller.balance.leave()
	_ = e.Update(e.Rules(), breaker.Free, guard.Now()) // its own rules are right
	e.Reset(guard.Now())
}

// used tells whether a chain that is in use goes by the breaker.
func (e *entry) used() (method string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.method, e.inForce && e.users.any()
}

var entries weakmap.Map[Key, entry]

// Breakers calls f for each breaker of a runtime that is in force, with the method
// as its service spells it.
func Breakers(rt *guard.Runtime, f func(Key, breaker.Stats)) {
	rt.Refresh()
	now := guard.Now()
	entries.Range(func(k Key, e *entry) bool {
		if k.runtime != rt {
			return true
		}
		if method, ok := e.used(); ok {
			k.Method = method
			f(k, e.Stats(now))
		}
		return true
	})
}

// Changes count how often breakers of a method entered each state.
type Changes struct {
	entered [breaker.HalfOpen + 1]atomic.Int64
}

// To is how often a state was entered.
func (c *Changes) To(s breaker.State) int64 { return c.entered[s].Load() }

// ChangesKey names whose changes are counted together.
type ChangesKey struct {
	Side            conf.Side
	Service, Method string

	runtime *guard.Runtime
}

var changes weakmap.Map[ChangesKey, Changes]

// AllChanges calls f for the changes of each method of a runtime.
func AllChanges(rt *guard.Runtime, f func(ChangesKey, *Changes)) {
	changes.Range(func(k ChangesKey, c *Changes) bool {
		if k.runtime == rt {
			f(k, c)
		}
		return true
	})
}
