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

import (
	"fmt"
	"time"
)

// Side tells whose policy it is.
type Side uint8

const (
	// Provider is the side that serves.
	Provider Side = iota
	// Consumer is the side that calls.
	Consumer
)

// String is "provider" or "consumer".
func (s Side) String() string {
	if s == Consumer {
		return "consumer"
	}
	return "provider"
}

// MarshalText has a side encode as its name.
func (s Side) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name. Any other text is an error and changes nothing.
func (s *Side) UnmarshalText(text []byte) error {
	for _, side := range []Side{Provider, Consumer} {
		if string(text) == side.String() {
			*s = side
			return nil
		}
	}
	return fmt.Errorf("side is %q, allowed are provider and consumer", text)
}

// Mode is what a guard does with its verdict. The zero value is "not set",
// which works as [Enforce].
type Mode string

const (
	// Enforce refuses what is over a limit.
	Enforce Mode = "enforce"
	// Observe decides and counts with its own accounting and refuses nobody.
	Observe Mode = "observe"
	// Off takes the guard out of the call path.
	Off Mode = "off"
)

// And joins a guard's own mode with the one that holds for all: the weaker wins.
func (m Mode) And(o Mode) Mode {
	switch {
	case m == Off || o == Off:
		return Off
	case m == Observe || o == Observe:
		return Observe
	}
	return Enforce
}

// Scope is what shares one limit.
type Scope string

const (
	// ScopeMethod gives each method of a service its own count, shared by the
	// protocols that the service is exported on.
	ScopeMethod Scope = "method"
	// ScopeService gives all methods of a service one count, and all provider
	// addresses one breaker.
	ScopeService Scope = "service"
	// ScopeProtocol gives each method one count per exported protocol, as
	// Java Dubbo counts.
	ScopeProtocol Scope = "protocol"
	// ScopeInstance gives each process a budget of its own, and each provider
	// address a breaker of its own.
	ScopeInstance Scope = "instance"
)

// OnError is what a fault that is found at export or refer does.
type OnError string

const (
	// Fail panics with the [Error], as dubbo does for a missing extension.
	Fail OnError = "fail"
	// Warn logs it and leaves the one setting at its default.
	Warn OnError = "warn"
)

// ErrorsAs is how statistics count a business error.
type ErrorsAs string

const (
	// ErrorsAsSuccess counts a business error as an answer.
	ErrorsAsSuccess ErrorsAs = "success"
	// ErrorsAsFailure counts it as a failure.
	ErrorsAsFailure ErrorsAs = "failure"
)

// Defaults of what no source sets.
const (
	DefaultRetryRefused = 0.1
	// DefaultTPSInterval is Java Dubbo's.
	DefaultTPSInterval = time.Minute
)

// Config is everything that one source says. The zero value says nothing.
//
// A Config that was given to a [Store] must not be changed afterwards.
type Config struct {
	// Mode holds for all guards.
	Mode Mode
	// AutoChain tells whether the filters are put into every chain; nil means yes.
	AutoChain *bool
	// Replace names dubbo-go's extensions under which Weir's own are put: the load
	// balances leastactive, shortestresponse and p2c, the filters execute and tps of
	// providers and active of consumers. nil is not set, an empty list is none.
	Replace []string
	// OnError tells what a fault found at export or refer does.
	OnError OnError
	// Health tells when the machine is tight.
	Health *Health
	// Alarms tell when a limit comes near.
	Alarms *Alarms
	// Profiles are the files of profiles that may be written.
	Profiles *Profiles
	// GroupRegistries make a registry of dubbo's one for each group.
	GroupRegistries *GroupRegistries
	// Provider and Consumer are the two sides.
	Provider, Consumer Section
}

// Section is one side: defaults for all of its services and the services.
type Section struct {
	Policies
	// Services are keyed by [group/]interface[:version]. A bare interface
	// matches all groups and versions of it.
	Services map[string]Service
}

// Service is one service, or one reference of it.
type Service struct {
	Policies
	// Methods are keyed by method name; the case of its first letter does not
	// matter.
	Methods map[string]Policies
}

// Policies are the settings that can stand at any level. A nil pointer or an
// empty string is "not set here": the next level or source is asked.
type Policies struct {
	// Executes limits the running calls of a provider.
	Executes *Executes
	// Actives limits the running calls of a consumer to each provider address. On
	// a provider its limit is what it declares for its consumers.
	Actives *Actives
	// TPS limits the calls per interval, on either side.
	TPS *TPS
	// Flow limits the rate of calls and shapes it, on either side.
	Flow *Flow
	// Bulkhead keeps running calls in compartments, on either side.
	Bulkhead *Bulkhead
	// Overload caps running calls with a cap that breathes, on either side.
	Overload *Overload
	// Breaker breaks off calls to what fails or is slow, on either side.
	Breaker *Breaker
	// Fallback answers calls that were refused or failed. Consumers only.
	Fallback *Fallback
	// Weight is the share of the calls that a provider is to get, in proportion to the
	// weights of others; 0 is none, and nil is not set. Providers only.
	Weight *int
	// Group tells which consumers a provider is for, and whom a consumer calls.
	Group *Group
	// RetryRefused is the share of calls that may be refused a second time by
	// another instance, 0 to 1; 0 turns such tries off. Consumers only.
	RetryRefused *float64
	// Stats tells whether response times are kept. Without it they are kept
	// where another policy is set.
	Stats *bool
	// BusinessErrors tells how statistics count a business error.
	BusinessErrors ErrorsAs
}

// Executes limits the calls of a method that run at the same time.
type Executes struct {
	// Limit is the number of running calls; 0 and less is unlimited. nil is
	// not set.
	Limit *int
	// Scope tells what shares the limit.
	Scope Scope
	// Mode is this guard's own mode.
	Mode Mode
}

// Actives limits the calls of a method that a reference has running on one
// provider address. Calls over it wait, in the order of their arrival.
type Actives struct {
	// Limit is the number of running calls; 0 and less is unlimited. nil is
	// not set.
	Limit *int
	// Wait is the longest wait; 0 is none. nil is as long as the call has.
	Wait *time.Duration
	// Mode is this guard's own mode.
	Mode Mode
}

// Algorithm is how calls per interval are counted.
type Algorithm string

const (
	// AlgorithmSliding never admits more than the limit in any interval of that length.
	AlgorithmSliding Algorithm = "sliding"
	// AlgorithmFixed counts in windows one after another, as Java Dubbo does.
	AlgorithmFixed Algorithm = "fixed"
	// AlgorithmBucket is a token bucket.
	AlgorithmBucket Algorithm = "bucket"
)

// TPS limits the calls per interval. Set for a service, its methods share one
// budget; set for a method, the method has a budget of its own.
type TPS struct {
	// Limit is the number of calls per Interval; 0 and less is unlimited. nil is
	// not set.
	Limit *int
	// Interval is nil when not set.
	Interval *time.Duration
	// Algorithm tells how calls are counted.
	Algorithm Algorithm
	// Burst is how many calls a full bucket admits at once; 0 is as many as
	// Limit. nil is not set.
	Burst *int
	// Scope tells what shares the budget.
	Scope Scope
	// Mode is this guard's own mode.
	Mode Mode
}

// Of returns a pointer to v, for the optional fields.
func Of[T any](v T) *T { return &v }
