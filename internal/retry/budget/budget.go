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

// Package budget bounds the tries that calls get besides their first: retries are most
// where there is least to spare, and each of them is load.
//
// It is a core below the edge that meets dubbo-go, so that a simulator can run it too. It
// is not in rpcstatus, which is public and counts what runs, nor with the algorithms
// of a guard, as it refuses no call.
package budget

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// FloorPerSecond is what a budget gains at least, so that a service with
	// few calls gets tries too.
	FloorPerSecond = 1.0
	// Burst bounds what quiet times save up, and what a burst of free tries
	// that were refused can owe.
	Burst = 10.0

	// backwards is how far a clock may be behind: a goroutine that read it and then had to wait is.
	// A clock that jumps back further has the floor begin anew.
	backwards = 10 * time.Second
)

// Scope says which tries a budget is for.
type Scope uint8

// Scopes.
const (
	// Refusals are tries after one that was refused. Those on an instance that has not
	// refused lately are free unless they are refused as well; those that turn out not to
	// be refused cost nothing.
	Refusals Scope = iota
	// All are all tries besides a call's first, whatever the reason for them and
	// whatever they come to: each costs one.
	All
)

// Policy is what a budget goes by. It may be another each time.
type Policy struct {
	Scope Scope
	// Ratio is what the budget gains for a call.
	Ratio float64
}

// Try is one besides the first of its call.
type Try struct {
	// Refused tells that the one before was refused, and did not fail otherwise.
	Refused bool
	// Full tells that the instance that would get it has refused lately.
	Full bool
}

// Grant is what a try was granted. It is a value; the zero Grant is that of a try that the
// budget is not answerable for. One End follows.
type Grant struct{ kind kind }

type kind uint8

const (
	nothing  kind = iota
	free          // to be paid if it is refused
	reserved      // paid, to be given back if it is not refused
	spent         // paid
)

// Budget counts the tries that may be granted. It gains [Policy.Ratio] per call, or one
// per second where that is more, and saves up to Burst of them. So the tries that scope All
// grants in any time are at most
//
//	ratio * calls + FloorPerSecond * (time + 1 s) + Burst
//
// as the seconds of the floor do not begin with that time. The zero Budget is ready, and
// begins with one. Who asks in vain in scope All takes no lock, for up to a second, which does not
// change what is granted. It is safe for concurrent use; it is asked only when a call is to be
// tried again.
type Budget struct {
	mu     sync.Mutex
	tokens float64 // guarded by mu; negative when free tries were refused
	calls  int64   // guarded by mu: calls seen at the last refill
	begun  bool    // guarded by mu
	// The running second, for the floor: when it began and what it has gained.
	second time.Duration // guarded by mu
	gained float64       // guarded by mu
	// forgiven is when a debt was last forgiven.
	forgiven time.Duration // guarded by mu

	// dry tells what a budget without a try needs for one, so that the many who ask in vain
	// while everything fails do not meet at the lock. It is set with mu held. Its parts may be of
	// different times: none of them then says more than the others allow.
	dry struct {
		calls atomic.Int64 // at fewer calls there is none
		until atomic.Int64 // before that, for up to a second
		ratio atomic.Uint64
	}
}

// Ask asks for a try, when so many calls have begun, this one among them.
func (b *Budget) Ask(p Policy, t Try, now time.Duration, calls int64) (Grant, bool) {
	if p.Scope != All && !t.Refused {
		return Grant{}, true
	}
	if p.Scope == All && b.isDry(p, now, calls) {
		return Grant{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refillLocked(now, calls, p.Ratio)
	switch {
	case p.Scope != All && !t.Full && b.tokens > 0:
		return Grant{free}, true
	case p.Scope != All && !t.Full:
		return Grant{}, false
	case b.tokens < 1:
		b.dryLocked(p)
		return Grant{}, false
	}
	b.tokens--
	if p.Scope == All {
		return Grant{spent}, true
	}
	return Grant{reserved}, true
}

// isDry tells whether it is known that there is no try.
func (b *Budget) isDry(p Policy, now time.Duration, calls int64) bool {
	left := b.dry.until.Load() - int64(now)
	return 0 < left && left <= int64(time.Second) && calls < b.dry.calls.Load() && math.Float64bits(p.Ratio) == b.dry.ratio.Load()
}

// dryLocked notes what is needed for one.
func (b *Budget) dryLocked(p Policy) {
	more := int64(math.MaxInt64 / 2)
	if p.Ratio > 0 {
		more = int64(min(math.Floor((1-b.tokens)/p.Ratio), math.MaxInt64/2)) // or one call less than that
	}
	b.dry.ratio.Store(math.Float64bits(p.Ratio))
	b.dry.until.Store(int64(b.second + time.Second))
	b.dry.calls.Store(b.calls + more)
}

// End is told whether a try that was granted was refused by the instance that got it.
func (b *Budget) End(g Grant, refused bool) {
	switch {
	case g.kind == free && refused:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tokens = max(b.tokens-1, -Burst) // it pays, even in debt
	case g.kind == reserved && !refused:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tokens = min(b.tokens+1, Burst)
		b.dry.calls.Store(0)
	}
}

// Forgive takes a debt back, once per second at most: an instance that was full
// has served a call, so the next try is likely to be served as well. There are no
// debts in scope All.
func (b *Budget) Forgive(p Policy, now time.Duration) {
	if p.Scope == All {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun && b.tokens < FloorPerSecond && now-b.forgiven >= time.Second {
		b.tokens, b.forgiven = FloorPerSecond, now
		b.dry.calls.Store(0)
	}
}

// refillLocked adds what calls and time brought since the last refill.
func (b *Budget) refillLocked(now time.Duration, calls int64, ratio float64) {
	if !b.begun {
		b.begun, b.tokens, b.second, b.forgiven = true, FloorPerSecond, now, now-time.Second
	}
	if b.second-now > backwards {
		b.second, b.gained, b.forgiven = now, 0, min(b.forgiven, now)
	}
	// Calls are counted without the lock: of two who come with their counts the one
	// with the larger may be first, and what the other has is in it.
	gain := 0.0
	if calls > b.calls && ratio > 0 {
		gain = ratio * float64(calls-b.calls)
	}
	b.calls = max(calls, b.calls)
	b.gained += gain
	if n := (now - b.second) / time.Second; n > 0 {
		// What the calls of these seconds fell short of the floor.
		gain += max(float64(n)*FloorPerSecond-b.gained, 0)
		b.second += n * time.Second
		b.gained = 0
	}
	b.tokens = min(b.tokens+gain, Burst)
}
