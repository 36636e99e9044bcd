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
	"time"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/breaker"
	"github.com/weir-go/weir/loadbalance/pick"
)

// forcedFor is for how long nobody asks one that is held open, if nothing changes.
const forcedFor = 365 * 24 * time.Hour

// balance has the balancer of a reference know of an address's breaker. It goes by the
// state that the breaker is in, not by how it came there: a breaker that is free again
// tells nothing, and what is told side by side may come in any order.
type balance struct {
	mu      sync.Mutex
	breaker *breaker.Breaker // guarded by mu
	// record is what the balancer knows of the address, nil where it is not to go by the
	// breaker. It is written under mu.
	record atomic.Pointer[pick.Record]
}

// join has the balancer go by the breaker of a site, unless that only observes.
func (b *balance) join(site guard.Site, key Key, br *breaker.Breaker, now time.Duration) {
	switch {
	case key.Address == "":
		return
	case site.Policy.Breaker.Mode == conf.Observe:
		b.leave()
		return
	}
	r := site.Record()
	b.mu.Lock()
	b.breaker = br
	b.record.Store(r)
	b.mu.Unlock()
	r.Manage(true)
	if br.Stats(now).State != breaker.Closed { // else it may be avoided for another reason
		b.follow(now, false)
	}
}

// leave has the balancer not go by the breaker any more.
func (b *balance) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.record.Swap(nil); r != nil {
		free(r)
	}
}

// free has a balancer find out by itself when it may go on.
func free(r *pick.Record) {
	if r.Managed() {
		r.Manage(false)
		r.Welcome()
	}
}

// tried has the balancer go on after the end of a call, where that was the one that tried
// the instance: with all of them, or with another probe.
func (b *balance) tried(now time.Duration) {
	if r := b.record.Load(); r != nil && r.Claimed() {
		b.follow(now, true)
	}
}

// follow has the balancer know when calls would only be refused. ended is set when a call
// has ended that may have been a probe.
func (b *balance) follow(now time.Duration, ended bool) {
	if b.record.Load() == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.record.Load()
	if r == nil {
		return
	}
	switch s := b.breaker.Stats(now); {
	case s.State == breaker.Open && s.Force == breaker.ForceOpen:
		r.Avoid(now + forcedFor)
	case s.State == breaker.Open && s.Until > now:
		r.Welcome()
		r.Avoid(s.Until) // and no longer
	case s.State == breaker.HalfOpen && s.Probes > 0 && !ended:
		r.Hold(now)
	case s.State == breaker.Closed:
		r.Welcome()
	default:
		r.Try(now)
	}
}
