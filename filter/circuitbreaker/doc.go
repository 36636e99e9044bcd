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

// Package circuitbreaker keeps calls from a dependency that fails, is slow or
// hangs, and finds out when it is well again: the policy "breaker", on either side.
//
// On a consumer each attempt counts, and each provider address has a breaker of
// its own, so that failover gets by a sick instance; with breaker.scope: service
// all addresses share one. On a provider it guards what the handler depends on.
//
//	dubbo:
//	  consumer:
//	    references:
//	      GreetConsumer:
//	        interface: greet.GreetService
//	        params:
//	          breaker: hystrix
//	          methods.SayHello.breaker.slow-ratio: 0.5
//	          methods.SayHello.breaker.slow-call: 800ms
//
// or, with a default for all services of a consumer:
//
//	weir:
//	  consumer:
//	    breaker: {preset: standard, open-for: 5s, probes: 3}
//	    services:
//	      greet.GreetService:
//	        breaker: {error-count: 20, ignore: [org.apache.demo.NotFoundException]}
//	        methods:
//	          SayHello: {breaker: {slow-ratio: 50%, slow-call: 800ms}}
//	          Upload: {breaker: off}
//
// It is in one of three states:
//
//	       error-ratio, error-count, consecutive-errors or slow-ratio is met
//	Closed ───────────────────────────────────────────────────▶ Open
//	  ▲ ▲                                                        │  ▲
//	  │ └─ so many of the probes are healthy ─ HalfOpen ◀────────┘  │
//	  │                                           │  after open-for │
//	  │                                           └─────────────────┘
//	  │                                             too many are not
//	  └─ breaker.force: closed
//
// A failure is a broken or refused connection, a timeout, a panic, or one of the
// system codes (unknown, unimplemented, internal, unavailable, data_loss,
// deadline_exceeded). Business errors are answers. Not counted at all are calls that
// their caller gave up, refusals of the other side, and refusals that it passes on:
// see breaker.failures and breaker.ignore.
//
// Failure modes: breakers are per process, so each instance of a consumer finds
// out by itself. On a consumer a call that only opens a stream, and an asynchronous
// one, counts as soon as it is open or sent, and Triple opens streams to providers
// that are dead; on a provider a stream counts when it ends, and is never slow. The dubbo
// protocol carries neither Triple's codes nor that a handler panicked: a consumer
// reads from the text what Go itself and dubbo say, all else is a business error.
// While a guard observes, it changes state as it would if it enforced, but calls that
// it would have refused run and count for nothing.
package circuitbreaker
