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

package loadbalance

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/weakmap"
	"github.com/weir-go/weir/loadbalance/pick"
)

const (
	// maxViews bounds the lists of invokers of one method that are kept: routers may
	// give different calls different ones.
	maxViews = 8
	// maxMethods bounds the methods with lists of their own; further ones share theirs.
	maxMethods = pick.MaxMethods
	// reselected is how many invokers dubbo leaves out of a list when it selects again.
	reselected = 3
	// keepEvery is how often such a list is kept all the same: it may be one that a
	// router makes, and come again and again.
	keepEvery = 64
	// maxSwitches is how often lists that look alike are met in turn until all of their
	// elements are compared at every call.
	maxSwitches = 4
	// warmingStep is how often weights of instances that warm up are looked at.
	warmingStep = time.Second
)

// view is a list of invokers, as the balancers see it. dubbo makes the slice anew for
// every call, so a view is known by its elements alone.
type view struct {
	of       *reference
	method   string
	record   string
	invokers []base.Invoker
	facts    []facts
	set      atomic.Pointer[pick.Set]
	parts    int // guarded by of.mu: how many lists were met that have some of the invokers
	// renew is when weights change next, 0 for never.
	renew atomic.Int64
	// switches is how often it was found after another list that looks like it.
	switches atomic.Int32
}

// looksLike is a cheap guess.
func (v *view) looksLike(invokers []base.Invoker, method string) bool {
	return len(v.invokers) == len(invokers) && identical(v.invokers[0], invokers[0]) && v.method == method
}

// mixed tells whether lists that look like it come in turn, so that the guess is not enough.
func (v *view) mixed() bool { return v.switches.Load() >= maxSwitches }

// alternates notes that v was found where another one was expected. While a list changes
// some calls still have the former one; that does not count.
func (v *view) alternates(other *view) {
	if !v.mixed() && !v.stale() && !other.stale() && v.switches.Add(1) >= maxSwitches {
		other.switches.Store(maxSwitches)
	}
}

func (v *view) same(invokers []base.Invoker) bool {
	return slices.EqualFunc(v.invokers, invokers, identical)
}

// sameSomewhere looks at one element by chance, so that a change is found soon even
// where nothing is ever chosen.
func (v *view) sameSomewhere(invokers []base.Invoker, chance uint64) bool {
	// The upper bits of a product depend on all of the number's: what it has decided before
	// leaves this one open.
	mixed, _ := bits.Mul64(chance*0x9E3779B97F4A7C15, uint64(len(invokers)))
	i := int(mixed)
	return identical(v.invokers[i], invokers[i])
}

// has reports whether all of the invokers are in the view, in its order.
func (v *view) has(invokers []base.Invoker) bool {
	at := 0
	for _, invoker := range invokers {
		for at < len(v.invokers) && v.invokers[at] != invoker {
			at++
		}
		if at == len(v.invokers) {
			return false
		}
	}
	return true
}

// noURL is what dubbo's invokers say when they have been destroyed; they share it.
var noURL = base.NewBaseInvoker(nil).GetURL()

// urlOf is the URL of an invoker, nil when dubbo has destroyed it.
func urlOf(invoker base.Invoker) *common.URL {
	if u := invoker.GetURL(); u != noURL {
		return u
	}
	return nil
}

// stale reports whether dubbo has destroyed one of the invokers, so that the list will
// not come again.
func (v *view) stale() bool {
	return slices.ContainsFunc(v.invokers, func(i base.Invoker) bool { return urlOf(i) == nil })
}

// current is what to choose from, with the weights of now.
func (v *view) current() *pick.Set {
	if renew := v.renew.Load(); renew != 0 {
		if now := guard.Now(); int64(now) >= renew && v.renew.CompareAndSwap(renew, int64(now+warmingStep)) {
			v.weigh()
		}
	}
	return v.set.Load()
}

// weigh makes the set anew.
func (v *view) weigh() {
	candidates := make([]pick.Candidate, len(v.facts))
	now, warming := time.Now(), false
	for i := range v.facts {
		f := &v.facts[i]
		candidates[i] = pick.Candidate{Record: f.instance.Record(v.record), Weight: f.weight}
		if !f.started.IsZero() {
			up := now.Sub(f.started)
			candidates[i].Weight = pick.WarmingWeight(f.weight, up, f.warmUp)
			warming = warming || pick.Warming(up, f.warmUp)
		}
	}
	v.set.Store(pick.NewSet(candidates))
	if !warming {
		v.renew.Store(0)
	}
}

// reference is what the balancers keep of a reference.
type reference struct {
	ref     *retry.Reference
	service string

	mu      sync.Mutex
	methods map[string][]*view // guarded by mu: those used last come first
	names   map[string]bool    // guarded by mu: of the balancers
}

type ownerKey struct{}

// references are those that balance, by number.
var references weakmap.Map[uint64, reference]

// referenceOf finds what is kept of the reference that the invokers are of.
func (b *Balancer) referenceOf(invokers []base.Invoker) *reference {
	for _, invoker := range invokers {
		u := urlOf(invoker)
		if u == nil {
			continue
		}
		ref := retry.Of(u)
		if ref == nil {
			continue
		}
		r := ref.Owned(ownerKey{}, func() any {
			return references.Get(ref.ID, func() *reference {
				return &reference{ref: ref, service: serviceOf(u), methods: map[string][]*view{}, names: map[string]bool{}}
			})
		}).(*reference)
		return r
	}
	return unknown()
}

// serviceOf is the service of a provider's URL, or of the reference below a registry's.
func serviceOf(u *common.URL) string {
	for u.SubURL != nil {
		u = u.SubURL
	}
	return guard.ServiceOf(u).String()
}

// unknown is of invokers whose reference Weir has not seen being made. Nobody counts
// their calls, so weights and chance decide.
var unknown = sync.OnceValue(func() *reference {
	guard.Process().Warn("a reference balances by one of Weir's load balances and was made before Weir was imported or without its post-processor; what runs is not counted, so its providers are chosen by weight alone")
	params := conf.ParseParams(conf.Consumer, "", nil).Service
	return &reference{ref: retry.NewReference(&params), methods: map[string][]*view{}, names: map[string]bool{}}
})

// lookup is how a view was found.
type lookup int

const (
	made  lookup = iota // it was not: it is new
	known               // it is of the list
	part                // it has the list's invokers among others: it is that of a call that is selected for once more
)

// find is the view of a list. Its method is "*" where further ones share theirs.
func (b *Balancer) find(invokers []base.Invoker, method string) (*view, lookup) {
	r := b.referenceOf(invokers)
	r.ref.Count(b.timed)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[b.name] = true
	if len(r.methods) >= maxMethods && r.methods[method] == nil {
		method = call.AnyMethod
	}
	views := r.methods[method]
	for i, v := range views {
		if v.same(invokers) {
			copy(views[1:i+1], views[:i])
			views[0] = v
			return v, known
		}
	}
	for _, v := range views {
		more := len(v.invokers) - len(invokers)
		if 0 < more && more <= reselected && v.has(invokers) && !v.stale() {
			if v.parts++; v.parts%keepEvery != 0 {
				return v, part
			}
			break
		}
	}
	views = slices.DeleteFunc(views, (*view).stale)
	b.forget(r, method)
	v := r.look(invokers, method)
	if len(views) < maxViews {
		views = append(views, nil)
	}
	copy(views[1:], views)
	views[0] = v
	r.methods[method] = views
	return v, made
}

// forget lets go of lists that will not come again.
func (b *Balancer) forget(r *reference, method string) {
	for i := range b.recent {
		if v := b.recent[i].Load(); v != nil && v.of == r && v.method == method && v.stale() {
			b.recent[i].CompareAndSwap(v, nil)
		}
	}
}

// look makes the view of a list.
func (r *reference) look(invokers []base.Invoker, method string) *view {
	v := &view{of: r, method: method, record: guard.RecordOf(method), invokers: slices.Clone(invokers), facts: make([]facts, len(invokers))}
	for i, invoker := range invokers {
		v.facts[i] = r.factsOf(invoker, method)
	}
	v.renew.Store(int64(guard.Now() + warmingStep))
	v.weigh()
	return v
}
