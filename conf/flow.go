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

// Flow limits the rate of calls and shapes it. Set for a service, its methods
// share one budget; a method with a setting of its own, other than the mode, has a
// budget of its own. Every field that is not set is asked for at the next level or
// source.
type Flow struct {
	// Rate is what is let through; its Calls are 0 for unlimited. nil is not set.
	Rate *Rate
	// Behavior tells what becomes of calls over the rate, and how it starts.
	Behavior Behavior
	// MaxQueue is the longest wait of a behavior that queues; 0 is none.
	MaxQueue *time.Duration
	// WarmUp is the time from cold to the full rate.
	WarmUp *time.Duration
	// ColdFactor, 1.1 to 100, is what the rate is divided by when cold.
	ColdFactor *float64
	// Callers are the rates of callers by name, each counted apart. That of
	// [DefaultCaller] is what those without a rate of their own share. nil is not
	// set. Providers only.
	Callers map[string]Rate
	// Mode is this guard's own mode.
	Mode Mode
}

// DefaultCaller is the name under which the rate of callers without one stands.
const DefaultCaller = "default"

// Behavior is what a flow does with calls over its rate, and how it starts.
type Behavior string

const (
	// BehaviorReject refuses calls over the rate at once.
	BehaviorReject Behavior = "reject"
	// BehaviorWarmUp does so, and raises the rate from cold to full.
	BehaviorWarmUp Behavior = "warm-up"
	// BehaviorQueue lets calls through evenly spaced, and those that come earlier wait.
	BehaviorQueue Behavior = "queue"
	// BehaviorWarmUpQueue does so with a rate that rises from cold to full.
	BehaviorWarmUpQueue Behavior = "warm-up-queue"
)

// Queues reports whether calls may wait.
func (b Behavior) Queues() bool { return b == BehaviorQueue || b == BehaviorWarmUpQueue }

// WarmsUp reports whether the rate starts cold.
func (b Behavior) WarmsUp() bool { return b == BehaviorWarmUp || b == BehaviorWarmUpQueue }

// Defaults of a flow.
const (
	DefaultMaxQueue   = 500 * time.Millisecond
	DefaultWarmUp     = 10 * time.Second
	DefaultColdFactor = 3.0
)

// FlowPolicy is a flow in effect, with all defaults filled in. Without one it is
// the zero value.
type FlowPolicy struct {
	// Set is false when there is neither a rate nor one of a caller.
	Set bool
	// Rate is the zero value when only callers have one.
	Rate     Rate
	Behavior Behavior
	// MaxQueue is the longest wait, and counts where Behavior queues. 0 is none.
	MaxQueue time.Duration
	// WarmUp and ColdFactor count where Behavior warms up.
	WarmUp     time.Duration
	ColdFactor float64
	// Callers are the rates of callers by name. One with 0 Calls is unlimited.
	// nil is for none.
	Callers map[string]Rate
	Mode    Mode
	// Own is set when the method has a budget of its own; otherwise the methods
	// of the service share one.
	Own bool
}
