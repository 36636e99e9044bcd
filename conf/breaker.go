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

package conf

import "time"

// Breaker refuses calls for a while once too many of them failed or were slow.
// Every field that is not set is asked for at the next level or source.
type Breaker struct {
	// Preset fills in what no level sets, or takes the breaker off.
	Preset Preset
	// ErrorRatio is the share of failed calls in the window that trips; 0 is off.
	ErrorRatio *Ratio
	// ErrorCount is the number of failed calls in the window that trips; 0 is off.
	ErrorCount *int
	// ConsecutiveErrors is the number of failed calls in a row that trips; 0 is off.
	ConsecutiveErrors *int
	// SlowRatio is the share of slow calls in the window that trips; 0 is off.
	SlowRatio *Ratio
	// SlowCall is how long a call may take before it is slow.
	SlowCall *time.Duration
	// MinCalls is the number of calls in the window below which no ratio trips,
	// and, where it is set, no ErrorCount.
	MinCalls *int
	// Window is the time that the ratios and ErrorCount look back.
	Window *time.Duration
	// Buckets is the number of parts in which the window moves on.
	Buckets *int
	// Boundary tells whether what is just met trips.
	Boundary Boundary
	// OpenFor is how long the breaker stays open before it lets probes through.
	OpenFor *time.Duration
	// OpenJitter is the largest share by which that time is lengthened at random.
	OpenJitter *Ratio
	// OpenGrowth is the factor, 1 to 10, by which that time grows with each round
	// of probes that failed, and OpenMax where that ends.
	OpenGrowth *float64
	OpenMax    *time.Duration
	// Probes is the number of calls let through in half-open, and ProbeSuccesses
	// the number of them that must be healthy.
	Probes, ProbeSuccesses *int
	// ProbeUnder is what a probe must take less than to be healthy.
	ProbeUnder *time.Duration
	// ProbeTimeout is when a probe that has not come back counts as failed.
	ProbeTimeout *time.Duration
	// Failures are what counts as failure besides the default, and Ignore what
	// does not count at all. nil is not set.
	Failures, Ignore []string
	// Scope tells what shares a breaker on a consumer.
	Scope Scope
	// Force holds the breaker in a state.
	Force Force
	// Mode is this guard's own mode.
	Mode Mode
}

// Preset is a set of values for a breaker.
type Preset string

const (
	// PresetStandard trips at half of the calls failed, and is the defaults otherwise.
	PresetStandard Preset = "standard"
	// PresetHystrix is what Hystrix does when nothing is set.
	PresetHystrix Preset = "hystrix"
	// PresetOff takes off the breaker that a wider level sets.
	PresetOff Preset = "off"
)

// Boundary tells whether a breaker trips at what is just met.
type Boundary string

const (
	// BoundaryAtLeast trips at what is just met.
	BoundaryAtLeast Boundary = "at-least"
	// BoundaryAbove trips only above it.
	BoundaryAbove Boundary = "above"
)

// Force is the state that a breaker is held in.
type Force string

const (
	// ForceNone leaves the breaker to itself.
	ForceNone Force = "none"
	// ForceOpen refuses every call.
	ForceOpen Force = "open"
	// ForceClosed refuses none.
	ForceClosed Force = "closed"
)

// BreakerPolicy is a breaker in effect, with all defaults filled in. Without one
// it is the zero value.
type BreakerPolicy struct {
	// Set is false when no source sets one.
	Set bool
	// Preset is empty when there is none, and never [PresetOff].
	Preset Preset
	// ErrorRatio, SlowRatio, ErrorCount and ConsecutiveErrors are 0 when they are
	// off. All of them may be: such a breaker trips by force only.
	ErrorRatio, SlowRatio         Ratio
	ErrorCount, ConsecutiveErrors int
	// SlowCall is what a call must take longer than to be slow.
	SlowCall time.Duration
	MinCalls int
	// MinCallsSet is set when a source sets min-calls. It then holds for
	// ErrorCount too.
	MinCallsSet bool
	// Window is Buckets times a whole number of milliseconds.
	Window  time.Duration
	Buckets int
	// Above is set when what is just met does not trip. A ratio of 1 trips when it
	// is met all the same: nothing is above it.
	Above      bool
	OpenFor    time.Duration
	OpenJitter Ratio
	OpenGrowth float64
	// OpenMax is never less than OpenFor.
	OpenMax time.Duration
	// ProbeSuccesses is never more than Probes.
	Probes, ProbeSuccesses int
	// ProbeUnder is 0 for no bound.
	ProbeUnder, ProbeTimeout time.Duration
	// Failures and Ignore have no word in common.
	Failures, Ignore []string
	// Scope is [ScopeInstance] or [ScopeService] on a consumer, and empty on a
	// provider, where each method has one breaker.
	Scope Scope
	Force Force
	Mode  Mode
}

// BucketWidth is the part of the window that one bucket stands for, a whole
// number of milliseconds.
func (b BreakerPolicy) BucketWidth() time.Duration {
	if b.Buckets == 0 {
		return 0
	}
	return b.Window / time.Duration(b.Buckets)
}

// Defaults of a breaker.
const (
	DefaultSlowCall     = time.Second
	DefaultMinCalls     = 20
	DefaultWindow       = 10 * time.Second
	DefaultBuckets      = 10
	DefaultOpenFor      = 5 * time.Second
	DefaultOpenJitter   = WholeRatio / 10
	DefaultOpenGrowth   = 1.0
	DefaultOpenMax      = 5 * time.Minute
	DefaultProbes       = 1
	DefaultProbeTimeout = 30 * time.Second
)

// values are those of a preset, which stand in for the defaults.
func (p Preset) values() Breaker {
	switch p {
	case PresetStandard:
		return Breaker{ErrorRatio: Of(WholeRatio / 2)}
	case PresetHystrix:
		return Breaker{
			ErrorRatio: Of(WholeRatio / 2), MinCalls: Of(21), Window: Of(10 * time.Second), Buckets: Of(10), Boundary: BoundaryAbove,
			OpenFor: Of(5 * time.Second), OpenJitter: Of(Ratio(0)), Probes: Of(1), ProbeUnder: Of(250 * time.Millisecond),
		}
	}
	return Breaker{}
}
