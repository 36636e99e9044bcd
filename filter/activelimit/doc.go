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

// Package activelimit limits the calls that a reference has running on one
// provider at the same time: the policy "actives".
//
// It keeps a consumer from piling up calls on a provider that has become slow. A
// call over the limit waits for one of those that run to end, in the order of
// arrival, but never longer than it has: until its deadline, until actives.wait
// has passed, or until its context is cancelled.
//
//	dubbo:
//	  consumer:
//	    references:
//	      GreetClient:
//	        interface: greet.GreetService
//	        params:
//	          actives: 20
//	          actives.wait: 200ms
//	          methods.SayHello.actives: 5
//
// or, with everything that can be set:
//
//	weir:
//	  consumer:
//	    services:
//	      greet.GreetService:
//	        actives: {limit: 20, wait: 200ms, mode: enforce}
//	        methods:
//	          SayHello: {actives: 5}
//
// Each method of each reference has a limit of its own for each provider
// address. A provider may declare actives for its consumers in its own params;
// that holds where the reference says nothing.
//
//	        running < limit, nobody waits              ended, failed, panicked
//	call ─────────────────────────────────▶ slot taken ─────────────────────▶ to the first who waits,
//	  │                                        ▲                              else free
//	  │ otherwise            first in the queue│
//	  └───────────▶ waits ─────────────────────┘
//	                  │ actives.wait or the deadline is over ──▶ refused: wait-timeout
//	                  │ its context is cancelled ──────────────▶ refused: cancelled
//	                  └ actives.wait is 0 ─────────────────────▶ refused: concurrency
//
// The wait is part of the call: what it takes is taken from the call's timeout,
// on the dubbo protocol too. Under failover each attempt has the whole timeout,
// as without a wait.
//
// Failure modes: a call that never ends keeps its slot until the transport's
// timeout. A stream is not counted, as dubbo returns when it is open; neither is
// an asynchronous or one-way call any longer than it takes to send it.
//
// Source: org.apache.dubbo.rpc.filter.ActiveLimitFilter, without its unbounded
// wait, its lost wake-ups, and its order by chance.
package activelimit
