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
	"errors"
	"fmt"
	"math"
	"time"
)

// Million is a share of all: shares are in parts per million.
const Million = 1_000_000

// MaxProbes is the largest number of probes.
const MaxProbes = 1000

// maxTime is the longest that a rule can ask for: what is added to now stays a time.
const maxTime = math.MaxInt64 / 4

// Rules are what a breaker goes by. The zero value of a strategy is that it does
// not hold.
type Rules struct {
	// ErrorRatio and SlowRatio are the shares of calls in the window that fail or
	// are slow and trip the breaker, in parts per million.
	ErrorRatio, SlowRatio int64
	// ErrorCount is the number of calls in the window that fail.
	ErrorCount int64
	// ConsecutiveErrors is the number of calls that fail one after another.
	ConsecutiveErrors int64
	// SlowCall is the time over which a call is slow.
	SlowCall time.Duration
	// MinCalls is the number of calls in the window below which no ratio trips, and
	// MinCallsForCount that for ErrorCount. Calls that are slow and still run are
	// among them.
	MinCalls, MinCallsForCount int64
	// Width is that of a bucket; the window has Buckets of them, the one that is
	// being filled included.
	Width   time.Duration
	Buckets int
	// Above tells that a strategy trips above its bound, not at it. A ratio of one
	// trips at it all the same.
	Above bool

	// OpenFor is how long the breaker is open before it probes, at least.
	OpenFor time.Duration
	// OpenJitter is the share of the open time by which it is lengthened at most,
	// at random, in parts per million.
	OpenJitter int64
	// OpenGrowth is the factor for the open time after each round of probes that
	// failed, up to OpenMax; 0 is 1.
	OpenGrowth float64
	OpenMax    time.Duration

	// Probes is how many calls are let through to find out; ProbeSuccesses of them
	// must be healthy. 0 is all of them.
	Probes, ProbeSuccesses int
	// ProbeUnder is what a healthy probe takes less than; 0 is no bound.
	ProbeUnder time.Duration
	// ProbeTimeout is after what time a probe that has not come back counts as failed
	// or, where calls are Lasting, as healthy.
	ProbeTimeout time.Duration
	// Lasting tells that calls last as long as they like, such as streams.
	Lasting bool
}

// ErrRules is wrapped by what [New] and [Breaker.Update] say of rules that are
// not to be gone by.
var ErrRules = errors.New("weir: rules of a breaker")

func (r *Rules) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrRules, fmt.Sprintf(format, args...))
	}
	switch {
	case r.ErrorRatio < 0 || r.ErrorRatio > Million || r.SlowRatio < 0 || r.SlowRatio > Million:
		return bad("ratios %d and %d, want 0 to %d", r.ErrorRatio, r.SlowRatio, Million)
	case r.ErrorCount < 0 || r.ConsecutiveErrors < 0:
		return bad("%d errors and %d one after another, want 0 or more", r.ErrorCount, r.ConsecutiveErrors)
	case r.SlowRatio > 0 && r.SlowCall <= 0:
		return bad("a slow call takes %v, want more than 0", r.SlowCall)
	case max(r.SlowCall, r.OpenFor, r.OpenMax, r.ProbeTimeout) > maxTime:
		return bad("times of %v, %v, %v and %v, want at most %v", r.SlowCall, r.OpenFor, r.OpenMax, r.ProbeTimeout, time.Duration(maxTime))
	case r.Width <= 0 || r.Buckets < 1 || int64(r.Width) > maxTime/int64(r.Buckets):
		return bad("%d buckets of %v, want at least one, longer than 0", r.Buckets, r.Width)
	case r.OpenFor <= 0 || r.OpenJitter < 0 || r.OpenJitter > Million:
		return bad("open for %v with a jitter of %d, want more than 0 and 0 to %d", r.OpenFor, r.OpenJitter, Million)
	case r.OpenGrowth != 0 && !(r.OpenGrowth >= 1 && r.OpenGrowth <= 1000):
		return bad("the open time grows by %v, want 1 to 1000", r.OpenGrowth)
	case r.OpenGrowth > 1 && r.OpenMax < r.OpenFor:
		return bad("the open time grows to %v, want at least %v", r.OpenMax, r.OpenFor)
	case r.Probes < 1 || r.Probes > MaxProbes || r.ProbeSuccesses < 0 || r.ProbeSuccesses > r.Probes:
		return bad("%d probes of which %d must be healthy, want 1 to %d and not more than there are", r.Probes, r.ProbeSuccesses, MaxProbes)
	case r.ProbeUnder < 0 || r.ProbeTimeout <= 0:
		return bad("probes under %v that time out after %v, want 0 or more and more than 0", r.ProbeUnder, r.ProbeTimeout)
	}
	return nil
}

// sameWindow tells whether what was counted by r counts for s.
func (r *Rules) sameWindow(s *Rules) bool {
	return r.Width == s.Width && r.Buckets == s.Buckets && (r.SlowRatio > 0) == (s.SlowRatio > 0) && (r.SlowRatio == 0 || r.SlowCall == s.SlowCall)
}

// need is how many probes must be healthy.
func (r *Rules) need() int {
	if r.ProbeSuccesses == 0 {
		return r.Probes
	}
	return r.ProbeSuccesses
}

// openTime is how long to stay open after so many failed rounds of probes, before jitter.
func (r *Rules) openTime(failed int) time.Duration {
	if r.OpenGrowth <= 1 || failed == 0 {
		return r.OpenFor
	}
	grown := float64(r.OpenFor) * math.Pow(r.OpenGrowth, float64(failed))
	if !(grown < float64(r.OpenMax)) {
		return r.OpenMax
	}
	return time.Duration(grown)
}

// Reason is why a breaker refuses.
type Reason uint8

// Reasons.
const (
	// None is no reason: the breaker is closed.
	None Reason = iota
	// ErrorRatio, SlowRatio, ErrorCount and ConsecutiveErrors are the strategies.
	ErrorRatio
	SlowRatio
	ErrorCount
	ConsecutiveErrors
	// ProbesFailed is a round of probes with too few healthy ones.
	ProbesFailed
	// Probing is that as many probes run as may.
	Probing
	// Forced is that somebody said so.
	Forced
	// NotProbed is a probe that was taken back without having run.
	NotProbed

	reasonCount = int(NotProbed) + 1
)

var reasonNames = [reasonCount]string{
	"none", "error-ratio", "slow-ratio", "error-count", "consecutive-errors", "probes-failed", "probing", "forced", "not-probed",
}

func (r Reason) String() string {
	if int(r) < reasonCount {
		return reasonNames[r]
	}
	return "unknown"
}

// Cause is what opened a breaker.
type Cause struct {
	Reason Reason
	// Limit is the bound that was met, and Observed what met it: whole percents,
	// rounded down, for the ratios.
	Limit, Observed int64
}
