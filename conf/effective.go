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

// Setting is one effective value and where it comes from.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
	// Level is method, service or side.
	Level string `json:"level"`
}

// Effective are the policies that hold for one method.
type Effective struct {
	// Executes is the method's own limit.
	Executes Limit
	// SharedExecutes is the one that all methods of the service share.
	SharedExecutes Limit
	// Actives is the limit of running calls per provider address. On a provider
	// it is what the provider declares, Set and Limit only.
	Actives WaitLimit
	// TPS is the limit of calls per interval.
	TPS RateLimit
	// RetryRefused is the ratio of the reference.
	RetryRefused float64
	// Stats is nil when no source says anything.
	Stats *bool
	// BusinessErrorsFail makes business errors count as failures.
	BusinessErrorsFail bool
	// Settings tells every value that some source set and that counts, once. A
	// key is there twice where two values hold side by side.
	Settings []Setting
}

// Limit is a limit of running calls in effect.
type Limit struct {
	// Set is false when no source sets one.
	Set bool
	// Limit is 0 when unlimited.
	Limit int
	Scope Scope
	Mode  Mode
}

// WaitLimit is a limit of running calls in effect over which calls wait.
type WaitLimit struct {
	// Set is false when no source sets one.
	Set bool
	// Limit is 0 when unlimited.
	Limit int
	// Wait is the longest wait, negative for as long as the call has.
	Wait time.Duration
	Mode Mode
	// Declared is set when the provider declared it and the reference has none.
	Declared bool
}

// RateLimit is a limit of calls per interval in effect.
type RateLimit struct {
	// Set is false when no source sets one.
	Set bool
	// Rate is the number of calls per Interval, 0 when unlimited.
	Rate     int
	Interval time.Duration
	// Burst is 0 for as many as Rate. Only the bucket has one.
	Burst     int
	Algorithm Algorithm
	Mode      Mode
	// Own is set when the method has a budget of its own; otherwise the methods
	// of the service share one.
	Own bool
}
