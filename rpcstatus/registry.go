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

package rpcstatus

import (
	"maps"
	"sync"

	"github.com/weir-go/weir/internal/weakmap"
)

// Key names what a [Status] counts.
type Key struct {
	// Side is "provider" or "consumer".
	Side string
	// Reference tells the references of one consumer apart; 0 on a provider.
	Reference uint64
	// Service is dubbo's service key and Method a method of it.
	Service, Method string
	// Address is a provider's, where each is counted by itself.
	Address string
}

// Registry finds the Status of a key. It is safe for concurrent use, and the
// zero value is ready.
//
// It does not own what it finds: an entry lives while a chain or a running call
// holds it and is gone after that, so neither providers that come and go nor
// method names from the network pile up.
type Registry struct {
	m weakmap.Map[Key, Status]

	mu   sync.Mutex
	seen map[Key]Figures    // guarded by mu: by the last look of Sums
	gone map[SumKey]Figures // guarded by mu: of what was seen and is no more
}

// Status returns the one Status of a key.
func (r *Registry) Status(key Key) *Status { return r.m.Get(key, New) }

// Range calls f for each key that is held, in no order, until it returns false.
func (r *Registry) Range(f func(Key, *Status) bool) { r.m.Range(f) }

// Len is the number of keys held.
func (r *Registry) Len() int { return r.m.Len() }

// SumKey names what [Registry.Sums] sums up.
type SumKey struct{ Side, Service, Method string }

// Sums calls f with the figures of each method, over its references. Counts do
// not fall when one of several references goes: what it had at the last look
// stays in the sum.
func (r *Registry) Sums(f func(SumKey, Figures)) {
	for k, figures := range r.sums() {
		f(k, figures)
	}
}

func (r *Registry) sums() map[SumKey]Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen, r.gone = map[Key]Figures{}, map[SumKey]Figures{}
	}
	of := func(k Key) SumKey { return SumKey{k.Side, k.Service, k.Method} }
	now := make(map[Key]Figures, len(r.seen))
	r.Range(func(k Key, s *Status) bool { now[k] = s.Figures(); return true })
	for k, before := range r.seen {
		if before.counted() == 0 {
			continue // nothing is lost with it
		}
		if figures, there := now[k]; !there || figures.counted() < before.counted() {
			before.Inflight = 0
			r.gone[of(k)] = r.gone[of(k)].Plus(before)
		}
	}
	r.seen = now
	sums := maps.Clone(r.gone)
	for k, figures := range now {
		sums[of(k)] = sums[of(k)].Plus(figures)
	}
	return sums
}

// counted is a number that only grows while a [Status] lives.
func (f Figures) counted() int64 {
	n := f.WouldReject
	for _, o := range f.Outcomes {
		n += o
	}
	return n
}

// Service sums up the methods of a service on one side.
func (r *Registry) Service(side, service string) Figures {
	var sum Figures
	r.Range(func(k Key, s *Status) bool {
		if k.Side == side && k.Service == service {
			sum = sum.Plus(s.Figures())
		}
		return true
	})
	return sum
}
