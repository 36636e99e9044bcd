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

package dagor

import (
	"math"
	"sync/atomic"
	"time"
)

// A clock may be behind a period by so many of its lengths, and by a second in any case: a goroutine
// that read the clock and then had to wait is, but not by more.
const (
	periodBehind      = 10
	periodBehindLeast = time.Second
)

// period is a time that ends after so long, and is followed by another.
type period struct {
	ends   atomic.Int64
	length time.Duration
	behind uint64 // as far as a number goes
}

// set begins the first one at now.
func (p *period) set(length, now time.Duration) {
	p.length, p.behind = length, math.MaxUint64
	if length < math.MaxInt64/periodBehind {
		p.behind = uint64(max(length*periodBehind, periodBehindLeast))
	}
	p.begin(now)
}

// begin begins another one at now.
func (p *period) begin(now time.Duration) { p.ends.Store(int64(later(now, p.length))) }

// over tells whether it has ended by now. So has one whose end lies too far ahead: the clock was
// ahead when it began, and might not get there for long.
func (p *period) over(now time.Duration) bool {
	ends := p.ends.Load()
	return int64(now) >= ends || uint64(ends)-uint64(now) > p.behind
}

// later is d after now, or the end of all time.
func later(now, d time.Duration) time.Duration {
	if now > math.MaxInt64-d {
		return math.MaxInt64
	}
	return now + d
}
