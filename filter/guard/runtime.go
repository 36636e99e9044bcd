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

package guard

import (
	"maps"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/weakmap"
	"github.com/weir-go/weir/rpcstatus"
)

// Runtime is what the guards of a process share: the configuration and the
// registries of what they count. It is safe for concurrent use.
type Runtime struct {
	// Store holds the configuration.
	Store *conf.Store
	// Status finds the figures of a method.
	Status *rpcstatus.Registry

	rejected     weakmap.Map[RejectionKey, Rejections]
	refusalLogs  weakmap.Map[refusalLogKey, refusalLog]
	chains       weakmap.Map[uint64, chain]
	lastChain    atomic.Uint64
	lastGuard    atomic.Uint64
	waits        weakmap.Map[WaitKey, Waits]
	callers      weakmap.Map[CallersKey, Callers]
	fallbacks    weakmap.Map[uint64, Fallbacks]
	fellBack     weakmap.Map[FallbackKey, FallbackCounts]
	configErrors atomic.Int64
	serving      atomic.Bool
	// owned is what is kept for good: the budgets of providers, of which there are
	// as many as exported services and methods.
	owned sync.Map
	// renewing is set while the plans of those who wait are made again.
	renewing atomic.Bool
	follower atomic.Pointer[func(*conf.View)]

	mu       sync.Mutex
	declared map[declaredKey]declaration // guarded by mu
	logged   map[string]struct{}         // guarded by mu
}

type declaredKey struct {
	side              conf.Side
	service, protocol string
}

// NewRuntime returns an empty runtime.
func NewRuntime() *Runtime {
	rt := &Runtime{
		Store:    &conf.Store{},
		Status:   &rpcstatus.Registry{},
		declared: map[declaredKey]declaration{},
		logged:   map[string]struct{}{},
	}
	rt.Store.OnChange(rt.changed)
	return rt
}

// Follow sets the function that is called with the configuration after each of its
// changes, on the goroutine of the change. A second one replaces the first.
func (rt *Runtime) Follow(f func(*conf.View)) { rt.follower.Store(&f) }

func (rt *Runtime) changed() {
	rt.renew()
	if f := rt.follower.Load(); f != nil {
		(*f)(rt.Store.View())
	}
}

// renew makes the plans of methods at which calls may wait again: no other call
// need come by to tell them of a limit that has changed. So it does with those of
// references that balance by what the plans say: they may have said that no call is to
// come by. It returns at once.
func (rt *Runtime) renew() {
	if !rt.serving.Load() || !rt.renewing.CompareAndSwap(false, true) {
		return
	}
	// Not in the goroutine of the change: a plan that is being made may cause one.
	go func() {
		rt.renewing.Store(false)
		rt.chains.Range(func(_ uint64, c *chain) bool {
			if (c.waits.Load() || c.balances()) && c.guard.chain.Load() == c && c.guard.alive() {
				c.guard.refresh(c)
			}
			return true
		})
	}()
}

// Refresh makes the plans of all chains in use that are older than the
// configuration again, as their next call would, and returns the version that
// they have at least.
func (rt *Runtime) Refresh() uint64 {
	version := rt.Store.Version()
	rt.chains.Range(func(_ uint64, c *chain) bool {
		// The Guard may have a newer plan than this one, and that be too old as well.
		c.guard.atLeast(version)
		return true
	})
	return version
}

// process is the runtime of the filters that dubbo makes by name: it gives
// their constructors nothing to tell processes' parts apart by.
var process = NewRuntime()

// Process is the runtime of this process.
func Process() *Runtime { return process }

// declaration is what the params of a service said last on a protocol.
type declaration struct {
	guard   uint64 // the number of the Guard that met them
	params  *conf.Service
	methods []string // those of the service, where it says
}

// Declare notes what the params of a service say that is about to be exported.
func (rt *Runtime) Declare(side conf.Side, service conf.ServiceKey, protocol string, methods []string, params *conf.Service) {
	rt.declare(rt.lastGuard.Load(), side, service.String(), protocol, params)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	key := declaredKey{side, service.String(), protocol}
	d := rt.declared[key]
	d.methods = methods
	rt.declared[key] = d
}

// declare notes params met by a Guard and returns those that hold: of several
// chains of one service and protocol the newest speaks for all, so that a former
// one does not bring its limits back.
func (rt *Runtime) declare(guard uint64, side conf.Side, service, protocol string, params *conf.Service) *conf.Service {
	rt.mu.Lock()
	key := declaredKey{side, service, protocol}
	old, there := rt.declared[key]
	if there && old.guard > guard {
		rt.mu.Unlock()
		return old.params
	}
	rt.declared[key] = declaration{guard, params, old.methods}
	rt.mu.Unlock()
	if there && !reflect.DeepEqual(old.params, params) {
		rt.Store.Touch() // other chains of the service go by it too
	}
	return params
}

func (rt *Runtime) declaredParams(side conf.Side, service, protocol string) *conf.Service {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.declared[declaredKey{side, service, protocol}].params
}

// maxLogged bounds the texts remembered as said.
const maxLogged = 1024

// ConfigError counts and logs a fault met while running, each text once: what is
// wrong in a URL is met again whenever a plan is made.
func (rt *Runtime) ConfigError(err error) {
	rt.once(err.Error(), func(text string) {
		rt.configErrors.Add(1)
		logger.Errorf("[Weir][Config] %s", text)
	})
}

// Warn logs a text once.
func (rt *Runtime) Warn(text string) {
	rt.once(text, func(text string) { logger.Warnf("[Weir][Config] %s", text) })
}

func (rt *Runtime) once(text string, log func(string)) {
	rt.mu.Lock()
	_, said := rt.logged[text]
	if !said && len(rt.logged) < maxLogged {
		rt.logged[text] = struct{}{}
	}
	rt.mu.Unlock()
	if !said {
		log(text)
	}
}

// Serving reports whether some call of a user's service or reference has come by.
func (rt *Runtime) Serving() bool { return rt.serving.Load() }

// Owned is what the runtime keeps under a key for good, and create's result where there
// is nothing yet.
func (rt *Runtime) Owned(key any, create func() any) any {
	if v, ok := rt.owned.Load(key); ok {
		return v
	}
	v, _ := rt.owned.LoadOrStore(key, create())
	return v
}

// ConfigErrors is the number of faults met while running.
func (rt *Runtime) ConfigErrors() int64 { return rt.configErrors.Load() }

func (rt *Runtime) rejections(key RejectionKey) *Rejections {
	return rt.rejected.Get(key, func() *Rejections { return &Rejections{} })
}

// Rejections calls f for every key by which refusals are counted.
func (rt *Runtime) Rejections(f func(RejectionKey, *Rejections)) {
	rt.rejected.Range(func(k RejectionKey, r *Rejections) bool { f(k, r); return true })
}

// MethodInfo is what holds for one method of one chain.
type MethodInfo struct {
	Side      conf.Side
	Service   string
	Protocol  string
	Reference uint64
	Method    string
	Policy    conf.Effective
}

// Methods calls f for every method of every chain that has been called and is
// still in use, and of services that were exported and not called yet.
func (rt *Runtime) Methods(f func(MethodInfo)) {
	called := map[declaredKey]bool{}
	rt.chains.Range(func(_ uint64, c *chain) bool {
		if c.guard.chain.Load() != c || !c.guard.alive() {
			return true // calls under a former plan still run, or of a provider that is gone
		}
		c = c.guard.refresh(c) // a quiet service is told what holds by now, too
		called[declaredKey{c.side, c.serviceKey, c.protocol}] = true
		for _, m := range c.distinct() {
			f(MethodInfo{c.side, c.serviceKey, c.protocol, c.refID(), m.name, m.policy})
		}
		return true
	})
	rt.mu.Lock()
	declared := maps.Clone(rt.declared)
	rt.mu.Unlock()
	view := rt.Store.View()
	for key, d := range declared {
		service, ok := conf.ParseServiceKey(key.service)
		if called[key] || !ok {
			continue
		}
		for _, name := range d.methods {
			f(MethodInfo{Side: key.side, Service: key.service, Protocol: key.protocol, Method: name, Policy: view.Resolve(key.side, service, name, d.params)})
		}
	}
}
