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

package alarms

import (
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/bulkhead"
	"github.com/weir-go/weir/filter/circuitbreaker"
	"github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/filter/overload"
	"github.com/weir-go/weir/filter/tpslimit"
)

// policies tells of a limit what its counts do not: whether it is enforced, and for how
// long calls may wait.
type policies struct {
	runtime *guard.Runtime
	m       map[policyKey]told
	version uint64
	read    time.Duration
	// absent are those that were asked for and are not there. fresh is set once they
	// have been read in this look.
	absent map[policyKey]bool
	fresh  bool
}

type policyKey struct {
	guard, side, service, method string // the case of the method's first letter is folded
}

type told struct {
	mode conf.Mode
	// longest is how long calls wait at most in a flow, group the bulkhead of the method.
	longest time.Duration
	group   string
}

// renewEvery is how often policies are read though nothing is known to have changed.
const renewEvery = 10 * time.Second

// begin begins a look: policies are read again where there may be others.
func (p *policies) begin(now time.Duration) {
	version := p.runtime.Store.Version()
	p.fresh = false
	if p.m != nil && p.version == version && now-p.read < renewEvery {
		return
	}
	p.version, p.read, p.absent = version, now, map[policyKey]bool{}
	p.renew()
}

func (p *policies) renew() {
	p.m, p.fresh = make(map[policyKey]told, len(p.m)), true
	p.runtime.Methods(p.add)
}

func (p *policies) add(m guard.MethodInfo) {
	e := &m.Policy
	set := func(on bool, policy, service, method string, t told) {
		if !on {
			return
		}
		k := policyKey{policy, m.Side.String(), service, conf.MethodKey(method)}
		if old, there := p.m[k]; there {
			if weight(old.mode) > weight(t.mode) {
				t.mode = old.mode
			}
			t.longest = max(t.longest, old.longest)
		}
		p.m[k] = t
	}
	own := func(own bool) string {
		if own {
			return m.Method
		}
		return call.AnyMethod
	}
	set(e.Executes.Set, executelimit.Policy, m.Service, m.Method, told{mode: e.Executes.Mode})
	set(e.SharedExecutes.Set, executelimit.Policy, m.Service, call.AnyMethod, told{mode: e.SharedExecutes.Mode})
	set(e.Actives.Set, activelimit.Policy, m.Service, m.Method, told{mode: e.Actives.Mode})
	set(e.TPS.Set, tpslimit.Policy, m.Service, own(e.TPS.Own), told{mode: e.TPS.Mode})
	set(e.Flow.Set, flowcontrol.Policy, m.Service, own(e.Flow.Own), told{mode: e.Flow.Mode, longest: e.Flow.MaxQueue})
	set(e.Bulkhead.Set, bulkhead.Policy, m.Service, m.Method, told{mode: e.Bulkhead.Mode, group: e.Bulkhead.Group})
	if e.Bulkhead.Group != "" {
		set(e.Bulkhead.Set, bulkhead.Policy, call.AnyMethod, e.Bulkhead.Group, told{mode: e.Bulkhead.Mode})
	}
	set(e.Overload.Set, overload.Policy, m.Service, m.Method, told{mode: e.Overload.Mode})
	set(e.Breaker.Set, circuitbreaker.Policy, m.Service, m.Method, told{mode: e.Breaker.Mode})
}

// weight orders modes: of several the one that does more holds.
func weight(m conf.Mode) int {
	switch m {
	case conf.Off:
		return 0
	case conf.Observe:
		return 1
	}
	return 2
}

func (p *policies) of(policy, side, service, method string) (told, bool) {
	k := policyKey{policy, side, service, conf.MethodKey(method)}
	if _, there := p.m[k]; !there && !p.fresh && !p.absent[k] {
		p.renew() // a chain has come
	}
	t, ok := p.m[k]
	if !ok {
		p.absent[k] = true
	}
	return t, ok
}
