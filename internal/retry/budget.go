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
	// maxTokens bounds what quiet times save up.
	maxTokens = 10.0
)

// budget counts the tries that may be refused again. It gains ratio per call,
// or one per second if that is more. It is asked only after a refusal.
type budget struct {
	mu     sync.Mutex
	tokens float64 // guarded by mu; negative when free tries were refused
	calls  int64   // guarded by mu: calls seen at the last refill
	at     time.Duration
	begun  bool
}

// refillLocked adds what calls and time brought since the last refill.
func (b *budget) refillLocked(now time.Duration, calls int64, ratio float64) {
	if !b.begun {
		b.begun, b.tokens, b.at = true, floorPerSecond, now
	}
	elapsed := max(now-b.at, 0).Seconds()
	gain := max(ratio*float64(calls-b.calls), floorPerSecond*elapsed)
	b.tokens = min(b.tokens+gain, maxTokens)
	b.calls, b.at = calls, now
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

// add gives tokens back, or with a negative n takes them even where there are none.
func (b *budget) add(n float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+n, maxTokens)
}
