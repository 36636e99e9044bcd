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

// Package bulkhead keeps the calls of a method, or of several that say so, in a
// compartment of their own: the policy "bulkhead".
//
// It keeps one kind of call from taking everything. So many calls run at the same
// time; so many more may wait, first come, first served; and the rest is refused at
// once. A call waits no longer than max-wait and no longer than it has: until its
// context's deadline, on the dubbo protocol until its timeout, or until it is
// cancelled.
//
//	dubbo:
//	  provider:
//	    services:
//	      ReportProvider:
//	        interface: report.ReportService
//	        params:
//	          bulkhead: 10
//	          bulkhead.queue: 20
//	          methods.Export.bulkhead: 2
//
// or, with everything that can be set:
//
//	weir:
//	  provider:
//	    services:
//	      report.ReportService:
//	        bulkhead: {max: 10, queue: 20, max-wait: 500ms, mode: enforce}
//	        methods:
//	          Export: {bulkhead: {max: 2, group: heavy}}
//	          Rebuild: {bulkhead: {max: 2, group: heavy}}
//
// On a provider each method has a bulkhead of its own, whichever protocol its calls
// come by; on a consumer each method of each reference has, whichever provider its
// calls go to. Methods that name one group share one: all those of this process and
// side, of any service. If they say different things, the smallest max holds for all
// of them, with its queue, and a line in the log tells so.
//
//	        running < max, nobody waits                ended, failed, panicked
//	call ─────────────────────────────────▶ slot taken ─────────────────────▶ to the first who waits,
//	  │                                        ▲                              else free
//	  │ otherwise            first in the queue│
//	  ├───────────▶ waits ─────────────────────┘
//	  │               │ max-wait or the deadline is over ──▶ refused: wait-timeout
//	  │               └ its context is cancelled ──────────▶ refused: cancelled
//	  └ queue places wait already, or nobody may ──────────▶ refused: concurrency
//
// In the chain of all guards the wait comes before a slot of executes is taken, and
// what could refuse the call afterwards looks before it: nobody waits only to be
// refused, or while it holds what others could use. On a consumer it comes after the
// wait for a slot of actives, as a provider that is slow would else fill the bulkhead
// with calls that wait for it. The wait is part of the call and no response time.
//
// Failure modes: a handler that never returns keeps its slot. A stream keeps one of a
// provider for as long as it is open; a consumer's is not counted, as dubbo returns
// when it is open, and neither is an asynchronous or one-way call any longer than it
// takes to send it. A provider on the dubbo protocol does not know how long a call was
// under way, so its wait may end after its caller has gone. A group is one limit for
// methods that may be quick and slow: the slow ones get most of it.
//
// Source: com.alibaba.csp.sentinel's thread-count isolation and
// io.github.resilience4j.bulkhead.SemaphoreBulkhead, with an order and a bound for those
// who wait.
package bulkhead
