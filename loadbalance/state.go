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
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/loadbalance/pick"
)

// State is what a reference goes by to choose among its providers.
type State struct {
	Service string
	// Reference tells the references of this process apart.
	Reference uint64
	// Balancers are the names of those that have chosen for it, sorted.
	Balancers []string
	// Providers are those that calls were chosen from and that have not left since,
	// sorted by address.
	Providers []ProviderState
}

// ProviderState is one provider of a reference.
type ProviderState struct {
	Address string
	// Weight is what it has now, while it warms up. Where it differs by method it is
	// that of the first method by name.
	Weight int64
	// Inflight are the calls that run, and Picks those that were sent.
	Inflight, Picks int64
	// Score is (Inflight+1)/Weight, what it has to do with one more call; -1 when the
	// weight is 0.
	Score float64
	// Methods are those that were called, sorted.
	Methods []MethodState
}

// MethodState is one method of a provider.
type MethodState struct {
	// Method has its first letter folded.
	Method string
	// Response is the average response time, 0 when it is not known.
	Response time.Duration
	// Succeeding is the share of calls that succeed, 0 to 1.
	Succeeding float64
	// AvoidedFor is for how long it gets calls only where no other is left, 0 for not.
	AvoidedFor time.Duration
}

// States are those of all references of the process that have chosen by one of Weir's
// load balances, sorted.
func States() []State {
	var out []State
	now := guard.Now()
	references.Range(func(_ uint64, r *reference) bool {
		if s := r.state(now); len(s.Providers) > 0 {
			out = append(out, s)
		}
		return true
	})
	slices.SortFunc(out, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Reference, b.Reference))
	})
	return out
}

func (r *reference) state(now time.Duration) State {
	s := State{Service: r.service, Reference: r.ref.ID}
	providers := map[*pick.Instance]ProviderState{}
	r.mu.Lock()
	s.Balancers = slices.Sorted(maps.Keys(r.names))
	for _, method := range slices.Backward(slices.Sorted(maps.Keys(r.methods))) {
		for _, v := range slices.Backward(r.methods[method]) { // of one that is in several, what was used last holds
			set := v.set.Load()
			for i, invoker := range v.invokers {
				if v.facts[i].registry || urlOf(invoker) == nil {
					continue // it is no provider, or dubbo has destroyed it
				}
				providers[set.Member(i).Instance] = ProviderState{Weight: set.Weight(i), Score: set.Load(i)}
			}
		}
	}
	r.mu.Unlock()
	for instance, p := range providers {
		p.Address, p.Inflight, p.Picks = instance.Address, instance.Inflight(), instance.Picks()
		instance.Records(func(m *pick.Record) {
			p.Methods = append(p.Methods, MethodState{
				Method: m.Method, Response: m.Response(now), Succeeding: m.Succeeding(now), AvoidedFor: max(m.AvoidedFor(now), 0),
			})
		})
		slices.SortFunc(p.Methods, func(a, b MethodState) int { return cmp.Compare(a.Method, b.Method) })
		s.Providers = append(s.Providers, p)
	}
	slices.SortFunc(s.Providers, func(a, b ProviderState) int { return cmp.Compare(a.Address, b.Address) })
	return s
}
