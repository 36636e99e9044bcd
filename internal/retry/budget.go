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

package retry

import (
	"sync"
	"time"
)

const (
	// floorPerSecond is what the budget gains at least, so that a service with
	// few calls gets tries too.
	floorPerSecond = 1.0
	// maxTokens bounds what quiet times save up, and what a burst of free tries
	// that were refused can owe.
	maxTokens = 10.0
)

// budget counts the tries that may be refused again. It gains ratio per call,
// or one per second where that is more. It is asked only after a refusal.
type budget struct {
	mu     sync.Mutex
	tokens float64 // guarded by mu; negative when free tries were refused
	calls  int64   // guarded by mu: calls seen at the last refill
	begun  bool    // guarded by mu
	// The running second, for the floor: when it began and what it has gained.
	second time.Duration // guarded by mu
	gained float64       // guarded by mu
	// forgiven is when a debt was last forgiven.
	forgiven time.Duration // guarded by mu
}

// refillLocked adds what calls and time brought since the last refill.
func (b *budget) refillLocked(now time.Duration, calls int64, ratio float64) {
	if !b.begun {
		b.begun, b.tokens, b.second, b.forgiven = true, floorPerSecond, now, now-time.Second
	}
	// Calls are counted without the lock: of two who come with their counts the one
	// with the larger may be first, and what the other has is in it.
	gain := ratio * float64(max(calls-b.calls, 0))
	b.calls = max(calls, b.calls)
	b.gained += gain
	if n := (now - b.second) / time.Second; n > 0 {
		// What the calls of these seconds fell short of the floor.
		gain += max(float64(n)*floorPerSecond-b.gained, 0)
		b.second += n * time.Second
		b.gained = 0
	}
	b.tokens = min(b.tokens+gain, maxTokens)
}

// solvent reports whether the budget is not overdrawn. Nothing is taken.
func (b *budget) solvent(now time.Duration, calls int64, ratio float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refillLocked(now, calls, ratio)
	return b.tokens > 0
}

// take takes a whole token if there is one.
func (b *budget) take(now time.Duration, calls int64, ratio float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refillLocked(now, calls, ratio)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// giveBack returns a token that was taken.
func (b *budget) giveBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+1, maxTokens)
}

// owe takes a token even where there is none.
func (b *budget) owe() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = max(b.tokens-1, -maxTokens)
}

// forgive takes a debt back, once per second at most: an instance that was full
// has served a call, so the next try is likely to be served as well.
func (b *budget) forgive(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun && b.tokens < floorPerSecond && now-b.forgiven >= time.Second {
		b.tokens, b.forgiven = floorPerSecond, now
	}
}
