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

// Bulkhead keeps the calls of a method in a compartment of their own: so many run
// at the same time, some may wait, and the rest is refused. Every field that is
// not set is asked for at the next level or source.
type Bulkhead struct {
	// Max is the number of running calls; 0 and less is unlimited. nil is not set.
	Max *int
	// Queue is the number of calls that may wait; 0 is none.
	Queue *int
	// MaxWait is the longest wait; 0 is none.
	MaxWait *time.Duration
	// RunTimeout is after what time a running call's caller is answered; 0 is off.
	// Providers only.
	RunTimeout *time.Duration
	// Group is the name under which methods share one bulkhead, or [GroupNone].
	// Empty is not set.
	Group string
	// Mode is this guard's own mode.
	Mode Mode
}

// GroupNone is the group that takes away the one of a wider level.
const GroupNone = "none"

// DefaultMaxWait is the default of bulkhead.max-wait.
const DefaultMaxWait = time.Second

// BulkheadPolicy is a bulkhead in effect, with all defaults filled in. Without one
// it is the zero value.
type BulkheadPolicy struct {
	// Set is false when there is neither a limit nor a time after which a call is
	// answered.
	Set bool
	// Max is 0 when unlimited.
	Max int
	// Queue is 0 when nobody waits.
	Queue   int
	MaxWait time.Duration
	// RunTimeout is 0 when it is off, as it always is on a consumer.
	RunTimeout time.Duration
	// Group is empty when the method has a bulkhead of its own.
	Group string
	Mode  Mode
}
