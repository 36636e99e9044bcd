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
	"context"
	"sync"
	"sync/atomic"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/conf"
)

// Names of the umbrella filters.
const (
	ProviderFilter = "weir"
	ConsumerFilter = "weir-consumer"
)

// Guard is the one implementation of dubbo's filter interface. It is safe for
// concurrent use.
type Guard struct {
	runtime *Runtime
	side    conf.Side
	name    string // the filter's
	policy  string // the only one it enforces, "" for all
	number  uint64 // grows with every Guard

	chain atomic.Pointer[chain]
	mu    sync.Mutex // guarded by mu: resolving
}

// New returns the umbrella filter of a side.
func New(rt *Runtime, side conf.Side) *Guard {
	name := ProviderFilter
	if side == conf.Consumer {
		name = ConsumerFilter
	}
	return &Guard{runtime: rt, side: side, name: name, number: rt.lastGuard.Add(1)}
}

// NewAlone returns the filter of one policy under a name of its own.
func NewAlone(rt *Runtime, side conf.Side, name, policy string) *Guard {
	return &Guard{runtime: rt, side: side, name: name, policy: policy, number: rt.lastGuard.Add(1)}
}

// Invoke admits the call, makes it wait or refuses it.
func (g *Guard) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	c := g.chain.Load()
	if c == nil || c.version != g.runtime.Store.Version() || c.url != next.GetURL() {
		if c = g.resolve(next); c == nil {
			return next.Invoke(ctx, inv)
		}
	}
	if c.idle {
		if ref := c.consumer.ref; ref == nil || ref.Quiet() {
			// Nothing to keep and nothing to ask: only a refusal is looked for.
			if c.consumer.tells && c.primary {
				c.tellCaller(inv)
			}
			res := next.Invoke(ctx, inv)
			if res != nil && res.Error() != nil {
				c.look(ctx, inv, res)
			}
			return res
		}
	}
	if g.side == conf.Consumer {
		return c.attempt(ctx, next, inv)
	}
	m := c.lookup(inv)
	switch m.path {
	case 0:
		return m.count(ctx, next, inv)
	case 1:
		return m.single(ctx, next, inv)
	case 2:
		return m.pair(ctx, next, inv)
	case 3:
		return m.trio(ctx, next, inv)
	case pathBounded:
		return m.bounded(ctx, next, inv)
	}
	return m.several(ctx, next, inv)
}

// OnResponse returns its argument: dubbo does not call it after a panic, so
// nothing may depend on it.
func (g *Guard) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}

// resolve makes the plan of the chain that next belongs to. It returns nil
// when there is no telling which that is.
func (g *Guard) resolve(next base.Invoker) *chain {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.chain.Load()
	u := next.GetURL()
	if !usable(u) {
		// A destroyed invoker has no URL any more; its calls still in the chain
		// go by what was known.
		if old == nil || old.version == g.runtime.Store.Version() {
			return old
		}
		u = old.url
	}
	if old != nil && old.url == u && old.version == g.runtime.Store.Version() {
		return old
	}
	return g.replaceLocked(next, u, old)
}

// replaceLocked makes a new plan and puts it in force. Where calls may wait it
// looks again: a change that came meanwhile has not found the new plan.
func (g *Guard) replaceLocked(next base.Invoker, u *common.URL, old *chain) *chain {
	for {
		c := g.compile(next, u, old)
		g.chain.Store(c)
		if !c.waits.Load() || c.version == g.runtime.Store.Version() {
			return c
		}
		old = c
	}
}

func usable(u *common.URL) bool {
	return u != nil && (u.Path != "" || u.Interface() != "")
}

// refresh makes the chain's plan again when the configuration has changed since.
func (g *Guard) refresh(c *chain) *chain {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.chain.Load(); now != c || c.version == g.runtime.Store.Version() {
		return now
	}
	return g.replaceLocked(c.next, c.url, c)
}

// atLeast makes the chain's plan again unless it is of that version or a newer one.
func (g *Guard) atLeast(version uint64) {
	if c := g.chain.Load(); c == nil || c.version >= version {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.chain.Load(); c.version < version && usable(c.next.GetURL()) {
		g.replaceLocked(c.next, c.url, c)
	}
}

// alive reports whether the chain is in use, as far as dubbo lets that be known:
// its invoker has not been destroyed.
func (g *Guard) alive() bool {
	c := g.chain.Load()
	return c == nil || usable(c.next.GetURL())
}
