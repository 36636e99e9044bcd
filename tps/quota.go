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
	"fmt"
	"time"
)

// Bounds of a [Quota]. They keep all sums far within 64 bits.
const (
	MaxRate     = 1_000_000_000_000
	MinInterval = time.Millisecond
	MaxInterval = 366 * 24 * time.Hour
	// maxFill is the longest time that an empty bucket may take to fill.
	maxFill = time.Duration(1) << 61 // 73 years
)

// Quota is how many calls may pass in which time. There is no unlimited one:
// whoever takes a rate of 0 or less for unlimited makes no limiter.
type Quota struct {
	// Rate is the number of calls per Interval, 1 to [MaxRate].
	Rate int64
	// Interval is from [MinInterval] to [MaxInterval], 1 ms to 366 days.
	Interval time.Duration
	// Burst is the number of calls that a full [Bucket] admits at once, at most
	// [MaxRate]; 0 is as many as Rate. [Sliding] and [Fixed] do not use it.
	Burst int64
}

// Validate returns an error for the first field that is out of its bounds. A
// rate below 1 is an error, and so is an interval below 1 ms. One call in two
// seconds is a rate of 1 and an interval of 2 s.
func (q Quota) Validate() error {
	switch {
	case q.Rate < 1 || q.Rate > MaxRate:
		return fmt.Errorf("weir: rate %d: must be 1 to %d calls per interval; no limit means no limiter", q.Rate, int64(MaxRate))
	case q.Interval < MinInterval || q.Interval > MaxInterval:
		return fmt.Errorf("weir: interval %v: must be %v to %v", q.Interval, MinInterval, MaxInterval)
	case q.Burst < 0 || q.Burst > MaxRate:
		return fmt.Errorf("weir: burst %d: must be 1 to %d calls, or 0 for as many as the rate", q.Burst, int64(MaxRate))
	case float64(q.Burst)*float64(q.Interval)/float64(q.Rate) > float64(maxFill):
		return fmt.Errorf("weir: burst %d: at %d calls per %v it would take over 73 years to come together", q.Burst, q.Rate, q.Interval)
	}
	return nil
}
