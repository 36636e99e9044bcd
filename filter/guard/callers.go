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
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
)

const (
	// callerKey is the attachment in which Weir's consumer tells its application's
	// name, from the first refusal on or where the provider asks, as name@service. dubbo passes attachments on
	// down the call tree by itself: a name that was told to another service is not
	// that of the caller.
	callerKey = "weir-caller"
	// javaCallerKey is the one in which Java Dubbo's consumers tell theirs.
	javaCallerKey = "remote.application"

	// TellCallerKey is the param by which a provider asks its consumers for their
	// application's name from the first call on.
	TellCallerKey = "weir.tell-caller"

	maxCallers = 100
	// Refusals are told apart one by one up to exactCallers; after that one of
	// eachCaller is, and stands for all of them.
	exactCallers = 1024
	eachCaller   = 16

	unknownCaller = "unknown"
	otherCallers  = "other"
)

// CallersKey names what callers were refused by.
type CallersKey struct {
	Service, Guard string
}

// Callers counts the refusals of each caller: of the first hundred, and of all
// others together. It is safe for concurrent use.
type Callers struct {
	byName sync.Map // caller -> *atomic.Int64
	names  atomic.Int64
}

// note counts refusal number n of its limit.
func (c *Callers) note(service string, inv base.Invocation, n int64) {
	weight := int64(1)
	if n > exactCallers {
		// By chance: callers that take turns would else be looked at by turns.
		if rand.Uint32()%eachCaller != 0 {
			return
		}
		weight = eachCaller
	}
	c.counter(callerOf(service, inv)).Add(weight)
}

func (c *Callers) counter(name string) *atomic.Int64 {
	if v, ok := c.byName.Load(name); ok {
		return v.(*atomic.Int64)
	}
	if name != otherCallers && c.names.Add(1) > maxCallers {
		c.names.Add(-1)
		return c.counter(otherCallers)
	}
	v, there := c.byName.LoadOrStore(strings.Clone(name), new(atomic.Int64))
	if there && name != otherCallers {
		c.names.Add(-1)
	}
	return v.(*atomic.Int64)
}

// Range calls f for each caller and the refusals that it got.
func (c *Callers) Range(f func(caller string, refused int64)) {
	c.byName.Range(func(k, v any) bool {
		f(k.(string), v.(*atomic.Int64).Load())
		return true
	})
}

// callerOf is what a call tells of where it comes from. It is not proven.
func callerOf(service string, inv base.Invocation) string {
	if name, ok := callerName(service, inv); ok {
		return name
	}
	if addr, ok := inv.GetAttachment(constant.RemoteAddr); ok {
		if host, _, err := net.SplitHostPort(addr); err == nil && nameable(host) {
			return host
		}
	}
	return unknownCaller
}

// Caller is the name of the application that a provider's call says it comes from:
// that of Weir's consumer or of Java Dubbo's. It is not proven.
func (s Site) Caller(inv base.Invocation) (name string, ok bool) { return callerName(s.Service, inv) }

func callerName(service string, inv base.Invocation) (string, bool) {
	if text, ok := inv.GetAttachment(callerKey); ok {
		// A name may have any sign in it.
		if n := len(text) - len(service) - 1; n > 0 && text[n] == '@' && text[n+1:] == service && nameable(text[:n]) {
			return text[:n], true
		}
	}
	if name, ok := inv.GetAttachment(javaCallerKey); ok && nameable(name) {
		return name, true
	}
	return "", false
}

// Callers calls f for everything that callers were refused by.
func (rt *Runtime) Callers(f func(CallersKey, *Callers)) {
	rt.callers.Range(func(k CallersKey, c *Callers) bool { f(k, c); return true })
}
