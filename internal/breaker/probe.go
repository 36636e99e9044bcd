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

package breaker

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// probing is a round of probes. All but full is guarded by the breaker's lock.
type probing struct {
	// full is until when no probe can begin: as many run as may, and none of them
	// is overdue before. It is before all times when one can.
	full atomic.Int64

	// opened is what the breaker goes back to when no probe has run.
	opened             Verdict
	last               uint32 // key
	leases             []lease
	healthy, unhealthy int
}

// lease is the right of one probe to run. Its result counts until its deadline.
type lease struct {
	key      uint32
	deadline time.Duration
}

func newProbing(opened Verdict) *probing {
	p := &probing{opened: opened}
	p.full.Store(math.MinInt64)
	return p
}

func (p *probing) fullUntil() time.Duration { return time.Duration(p.full.Load()) }

// room is how many probes may begin.
func (p *probing) room(r *Rules) int {
	return r.Probes - p.healthy - p.unhealthy - len(p.leases)
}

func (p *probing) lease(r *Rules, now time.Duration) (key uint32, ok bool) {
	if p.room(r) <= 0 {
		return 0, false
	}
	p.last++
	if p.last == 0 {
		p.last++ // that is none
	}
	p.leases = append(p.leases, lease{p.last, now + r.ProbeTimeout})
	p.settle(r)
	return p.last, true
}

// give takes a lease back. It reports false for one that there is not, or not
// any more.
func (p *probing) give(key uint32) bool {
	i := slices.IndexFunc(p.leases, func(l lease) bool { return l.key == key })
	if i < 0 {
		return false
	}
	p.leases = slices.Delete(p.leases, i, i+1)
	return true
}

// settle says until when the round is full.
func (p *probing) settle(r *Rules) {
	if p.room(r) > 0 || len(p.leases) == 0 {
		p.full.Store(math.MinInt64)
		return
	}
	first := p.leases[0].deadline
	for _, l := range p.leases {
		first = min(first, l.deadline)
	}
	p.full.Store(int64(first))
}

// overdue takes the lease that ran out first, if one has.
func (p *probing) overdue(now time.Duration) (lease, bool) {
	i := -1
	for j, l := range p.leases {
		if l.deadline <= now && (i < 0 || l.deadline < p.leases[i].deadline) {
			i = j
		}
	}
	if i < 0 {
		return lease{}, false
	}
	l := p.leases[i]
	p.leases = slices.Delete(p.leases, i, i+1)
	return l, true
}

// expireLocked counts probes that are overdue as failed, or as healthy where calls
// are lasting, each at its time. It returns the era that holds then.
func (b *Breaker) expireLocked(e *era, now time.Duration) *era {
	for e.state == HalfOpen {
		l, ok := e.probing.overdue(now)
		if !ok {
			e.probing.settle(e.rules)
			return e
		}
		if e.rules.Lasting {
			e.probing.healthy++
		} else {
			e.probing.unhealthy++
		}
		e = b.decideLocked(e, l.deadline)
	}
	return e
}

// decideLocked ends a round of probes once its result is known.
func (b *Breaker) decideLocked(e *era, at time.Duration) *era {
	p, r := e.probing, e.rules
	need := int64(r.need())
	t := totals{calls: int64(p.healthy + p.unhealthy), failures: int64(p.unhealthy)}
	switch {
	case int64(p.healthy) >= need:
		return b.closeLocked(Cause{}, at)
	case int64(r.Probes-p.unhealthy) < need:
		return b.openLocked(Cause{ProbesFailed, need, int64(p.healthy)}, t, e.failed+1, at)
	}
	p.settle(r)
	return e
}

// probed is the end of a probe that ran.
func (b *Breaker) probed(permit Permit, res Result, elapsed, now time.Duration) {
	defer b.events.deliver(b.listener)
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.era.Load()
	if e.number != permit.Era || e.state != HalfOpen {
		return
	}
	// Its own lease is no longer overdue, however late it comes, unless somebody
	// has noticed before.
	if !e.probing.give(permit.Key) {
		return
	}
	long := e.rules.ProbeUnder > 0 && elapsed >= e.rules.ProbeUnder
	switch {
	case res == Refused, res == Ignored && !long:
		e.probing.settle(e.rules)
		return
	case res == Success && !long:
		e.probing.healthy++
	default:
		e.probing.unhealthy++
	}
	b.decideLocked(e, now)
}

// unprobed is the end of a probe that did not run. Where the round has no other
// the breaker is open again, as if there had been none.
func (b *Breaker) unprobed(permit Permit, now time.Duration) {
	defer b.events.deliver(b.listener)
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.era.Load()
	if e.number != permit.Era || e.state != HalfOpen || !e.probing.give(permit.Key) {
		return
	}
	p := e.probing
	if len(p.leases) > 0 || p.healthy+p.unhealthy > 0 {
		p.settle(e.rules)
		return
	}
	b.enterLocked(&era{state: Open, failed: e.failed, verdict: p.opened}, Event{Cause: Cause{Reason: NotProbed}, At: now})
}
