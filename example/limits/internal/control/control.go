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

// Package control is what the demo's driver and its two child processes say to
// each other: commands, and what they are answered with.
// It has nothing to do with dubbo: in a program of your own nothing of it is needed.
package control

import "time"

// Commands that the driver gives.
const (
	Ready   = "ready"   // both: answered once the child is up
	Status  = "status"  // provider: status METHOD -> ProviderStatus; consumer: status METHOD -> ConsumerStatus
	Release = "release" // provider: release METHOD N, N of its handlers may return; without N all, now and later
	Call    = "call"    // consumer: call METHOD N, start N callers at once, besides those that run
)

// ProviderStatus is what a provider has seen of one method so far.
type ProviderStatus struct {
	Entered []string       // ids of the calls that reached the handler, in their order
	Running int            // calls that are in the handler now
	Peak    int            // greatest number of calls in the handler at one time
	Hits    map[string]int // by call id: how often the call arrived, admitted or not
}

// ConsumerStatus is how the calls of one method ended so far.
type ConsumerStatus struct {
	Calls   []CallResult
	Waiting int // calls that wait for a slot now
}

// Outcome is what a caller got.
type Outcome string

// The outcomes.
const (
	Answered Outcome = "answered" // a greeting
	Refused  Outcome = "refused"  // an error that says which limit was met, by its type
	Failed   Outcome = "failed"   // any other error
	Empty    Outcome = "empty"    // no error and no greeting
)

// CallResult is how one call ended.
type CallResult struct {
	ID      string
	Outcome Outcome
	Refusal *Refusal `json:",omitempty"` // if it was refused
	Text    string   `json:",omitempty"` // of a refusal or a failure: the error's text
}

// Refusal is what an error tells of the limit that was met.
type Refusal struct {
	Guard, Reason string
	Waited        time.Duration // before it was refused
	RetryAfter    time.Duration // when it is worth trying again
}
