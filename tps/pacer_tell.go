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

package tps

import (
	"time"
)

// Late is by how much the turn of a call would come too late that may wait for most:
// 0 if it would not. It takes nothing.
func (p *Pacer) Late(now, most time.Duration) time.Duration {
	last := p.last.Load()
	if last != occupied {
		due := time.Duration(last + p.spacing.Load())
		if now >= due {
			return 0
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open {
		return 0
	}
	return max(p.nextLocked()-until(now, most), 0)
}

// nextLocked is when the turn of a call would be that came now.
func (p *Pacer) nextLocked() time.Duration {
	if p.list.Head() != nil {
		return p.turnLocked(p.list.Len())
	}
	return time.Duration(p.last.Load() + p.spacing.Load())
}

// Observe decides about a call without holding it up: whether it would wait, and
// whether its turn would come too late. One that would pass in the end takes its turn,
// unless others do wait, who are not to wait for it.
func (p *Pacer) Observe(now, most time.Duration) (wait time.Duration, err error) {
	if int64(now) >= p.stepEnds.Load() {
		p.advance(now)
	}
	for {
		last := p.last.Load()
		if last == occupied {
			return p.observeWaiting(now, most)
		}
		turn := max(time.Duration(last+p.spacing.Load()), now)
		if turn > until(now, most) {
			return 0, ErrWaitTooLong
		}
		if p.last.CompareAndSwap(last, int64(turn)) {
			p.passed.Add(1)
			return turn - now, nil
		}
	}
}

func (p *Pacer) observeWaiting(now, most time.Duration) (wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := max(p.nextLocked(), now)
	if turn > until(now, most) {
		return 0, ErrWaitTooLong
	}
	return turn - now, nil
}

// SetOpen lets all pass who wait, and nobody wait from then on, until
// SetOpen(false): for a guard that stops enforcing while calls are on their way here.
// Those who are let go take no turns, and what was only observed is forgotten: who
// comes after SetOpen(false) does not wait for calls that did not.
func (p *Pacer) SetOpen(open bool) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.open
	p.open = open
	if open {
		p.dispatchLocked(now)
		return
	}
	for was {
		last := p.last.Load() // nobody waits where all are let go
		if last <= int64(now) || p.last.CompareAndSwap(last, int64(now)) {
			return
		}
	}
}

// PacerStats is the state of a pacer at some moment.
type PacerStats struct {
	// Quota is what holds, in whole calls, while it warms up.
	Quota
	// Spacing is the time between two calls that holds.
	Spacing time.Duration
	// Waiting is the number of calls that wait.
	Waiting int64
}

// Stats reads the state.
func (p *Pacer) Stats() PacerStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.quota
	if p.warming != (Warming{}) {
		q = p.heat.quota(q)
	}
	return PacerStats{q, time.Duration(p.spacing.Load()), p.list.Len()}
}
