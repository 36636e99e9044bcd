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

package guard

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/call"
)

// Refusals are those of one limit that differ only in their retry-after. Each is
// made once. It is safe for concurrent use.
type Refusals struct {
	site   Site
	reject call.RejectError
	cause  error
	// longest is what one of them says at most.
	longest time.Duration
	// none is the one that cannot tell.
	none *Refusal
	// steps are nil until another is asked for.
	steps atomic.Pointer[[retrySteps]atomic.Pointer[Refusal]]
}

// NewRefusals prepares refusals that say at most longest, 0 for no bound. Their
// counters are there from now on.
func (s Site) NewRefusals(e call.RejectError, cause error, longest time.Duration) *Refusals {
	return &Refusals{site: s, reject: e, cause: cause, longest: longest, none: s.NewRefusal(e, cause)}
}

// After is the refusal that says to come back after d, rounded up by a quarter at
// most to a step of whole milliseconds. 0 and less is that it cannot tell.
func (r *Refusals) After(d time.Duration) *Refusal {
	if d <= 0 {
		return r.none
	}
	steps := r.steps.Load()
	if steps == nil {
		r.steps.CompareAndSwap(nil, new([retrySteps]atomic.Pointer[Refusal]))
		steps = r.steps.Load()
	}
	i, rounded := retryStep(d)
	if made := steps[i].Load(); made != nil {
		return made
	}
	reject := r.reject
	reject.RetryAfter = rounded
	if r.longest > 0 {
		reject.RetryAfter = min(rounded, max(r.longest, d))
	}
	steps[i].CompareAndSwap(nil, r.site.NewRefusal(reject, r.cause))
	return steps[i].Load()
}

// retrySteps are those that retryStep knows: four in each power of two of
// milliseconds.
const retrySteps = 4 * 40

// retryStep rounds a retry-after up by a quarter at most, to a step of whole
// milliseconds, and numbers it.
func retryStep(d time.Duration) (int, time.Duration) {
	ms := uint64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
	if ms < 4 {
		return int(ms), time.Duration(ms) * time.Millisecond
	}
	shift := bits.Len64(ms) - 3 // three leading bits are kept
	ms += 1<<shift - 1
	shift = bits.Len64(ms) - 3
	top := ms >> shift // 4 to 7
	i := min(4*(shift+1)+int(top-4), retrySteps-1)
	return i, time.Duration(top<<shift) * time.Millisecond
}
