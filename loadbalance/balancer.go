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
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/loadbalance/pick"
)

// Names of the load balances.
const (
	LeastActive      = "weir-leastactive"
	ShortestResponse = "weir-shortestresponse"
	FewChoices       = "weir-p2c"
)

const (
	// slots is how many lists of invokers are found without a lock.
	slots = 1024
	// unavailableFor is how long an instance is avoided that has no connection. dubbo
	// asks it again at every call, which may take as long as connecting does.
	unavailableFor = time.Second
	// maxUnavailable bounds for how many of those one call looks for another.
	maxUnavailable = 3
)

// Balancer is one of Weir's load balances. It implements dubbo's LoadBalance and is
// safe for concurrent use.
type Balancer struct {
	name   string
	choose pick.Algorithm
	// timed is set when response times are needed.
	timed bool
	// all is set when the choice looks at all instances.
	all    bool
	recent [slots]atomic.Pointer[view]
}

func newBalancer(name string) *Balancer {
	switch name {
	case ShortestResponse:
		return &Balancer{name: name, choose: pick.ShortestResponse, timed: true, all: true}
	case FewChoices:
		return &Balancer{name: name, choose: pick.FewChoices, timed: true}
	default:
		return &Balancer{name: name, choose: pick.LeastActive, all: true}
	}
}

// Select chooses the invoker that gets the call, nil when there is none.
func (b *Balancer) Select(invokers []base.Invoker, inv base.Invocation) base.Invoker {
	switch len(invokers) {
	case 0:
		return nil
	case 1:
		return invokers[0]
	}
	method := guard.MethodOf(inv)
	at := place(invokers, method)
	slot := &b.recent[at%slots]
	met := slot.Load()
	if met != nil && met.looksLike(invokers, method) {
		if met.mixed() {
			slot = &b.recent[placeOfAll(at, invokers)%slots]
			if met = slot.Load(); met != nil && met.method == method && met.same(invokers) {
				return b.from(met, invokers, inv, true)
			}
		} else if chosen := b.from(met, invokers, inv, false); chosen != nil {
			return chosen
		}
	}
	v, how := b.find(invokers, method)
	switch how {
	case part:
		return b.among(v, invokers, inv)
	case known:
		if met != nil && met != v && met.looksLike(invokers, method) {
			v.alternates(met)
		}
	}
	if v.method == method {
		slot.Store(v)
	}
	return b.from(v, invokers, inv, true)
}

// from chooses from a view. Unless it is sure that that is of these invokers it looks at
// the chosen one and another, and returns nil when it is not.
func (b *Balancer) from(v *view, invokers []base.Invoker, inv base.Invocation, sure bool) base.Invoker {
	if v.of.ref.Refusing() && v.of.ref.RefusedBy(inv) != nil {
		if !sure && !v.same(invokers) {
			return nil
		}
		return b.among(v, invokers, inv)
	}
	s, chance := v.current(), rand.Uint64()
	i := b.pick(v, s, chance)
	if !sure && (!identical(invokers[i], v.invokers[i]) || !v.sameSomewhere(invokers, chance)) {
		return nil
	}
	if invokers[i].IsAvailable() {
		return invokers[i]
	}
	if !sure && !v.same(invokers) {
		return nil
	}
	return b.available(s, i, invokers)
}

// pick chooses from a set, with the clock that it takes.
func (b *Balancer) pick(v *view, s *pick.Set, chance uint64) int {
	peers := &v.of.ref.Peers
	switch {
	case peers.Troubled():
		now := guard.Now()
		peers.Settle(now)
		return b.pickClaimed(s, now)
	case !b.timed:
		return b.choose(s, 0, chance)
	case b.all:
		return b.choose(s, guard.Now(), chance)
	}
	return b.choose(s, peers.Recent(), chance)
}

// pickClaimed chooses where somebody is, or was, to be avoided. Where all are it takes
// what comes.
func (b *Balancer) pickClaimed(s *pick.Set, now time.Duration) (i int) {
	for range maxUnavailable {
		if i = b.choose(s, now, rand.Uint64()); s.Member(i).Claim(now) {
			break
		}
	}
	return i
}

// available is another one than the chosen, which has no connection. dubbo would look
// for another one, too, but without learning from it.
func (b *Balancer) available(s *pick.Set, i int, invokers []base.Invoker) base.Invoker {
	for range maxUnavailable {
		now := guard.Now()
		s.Member(i).Avoid(now + unavailableFor)
		if i = b.pickClaimed(s, now); invokers[i].IsAvailable() {
			break
		}
	}
	return invokers[i]
}

// scratch is what a choice is made from that is of one call only.
type scratch struct {
	candidates []pick.Candidate
	set        pick.Set
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

// among chooses from the invokers of a list that is not to be kept, or for a call that
// some of them have refused. All of them are in the view.
func (b *Balancer) among(v *view, invokers []base.Invoker, inv base.Invocation) base.Invoker {
	refused := v.of.ref.RefusedBy(inv)
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.candidates = s.candidates[:0]
	from, at := v.current(), 0
	for _, invoker := range invokers {
		for v.invokers[at] != invoker {
			at++
		}
		c := pick.Candidate{Record: from.Member(at), Weight: from.Weight(at)}
		for _, address := range refused {
			c.Avoid = c.Avoid || address == c.Address
		}
		s.candidates = append(s.candidates, c)
	}
	s.set.Reset(s.candidates)
	i := b.pick(v, &s.set, rand.Uint64())
	if invokers[i].IsAvailable() {
		return invokers[i]
	}
	return b.available(&s.set, i, invokers)
}

// place is where a list is looked for first.
func place(invokers []base.Invoker, method string) uint {
	h := uint(len(invokers))*31 + uint(len(method))
	if n := len(method); n > 0 {
		h = h*131 + uint(method[0])*31 + uint(method[n/2])*17 + uint(method[n-1])
	}
	h += uint(wordsOf(invokers[0]).data) >> 4 * 0x9E3779B1
	return h ^ h>>16
}

// placeOfAll is where a list is looked for that others look like.
func placeOfAll(at uint, invokers []base.Invoker) uint {
	for _, invoker := range invokers {
		at = at*31 + uint(wordsOf(invoker).data)>>4
	}
	return at ^ at>>16
}
