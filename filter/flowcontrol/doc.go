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

// Package flowcontrol limits the rate of calls and shapes it: the policy "flow", on
// either side.
//
//	dubbo:
//	  provider:
//	    services:
//	      GreetProvider:
//	        interface: greet.GreetService
//	        params:
//	          flow: 200/1s
//	          flow.behavior: warm-up
//
// or, with more that can be set:
//
//	weir:
//	  provider:
//	    services:
//	      greet.GreetService:
//	        flow: {rate: 200/1s, behavior: queue, max-queue: 500ms}
//	        methods:
//	          SayHello:
//	            flow:
//	              rate: 100/1s
//	              behavior: warm-up-queue
//	              warm-up: 10s
//	              cold-factor: 3
//	              callers: {shop: 60/1s, default: 20/1s}
//
// What becomes of a call over the rate:
//
//	reject         refused: never more than rate in any interval
//	warm-up        refused; the rate begins at rate / cold-factor and grows while calls
//	               come, up to rate within warm-up, and sinks while few come
//	queue          waits for its turn: calls pass evenly, never closer than
//	               interval / rate, in the order of their arrival. One whose turn
//	               would come later than max-queue, or than its deadline, is refused
//	               at once, before it waits
//	warm-up-queue  the same, with a spacing that warms up
//
// The value of a service is one budget for all of its methods; a method with a key of
// its own, but the mode, has a budget of its own. callers, on a provider, limits besides
// what each application sends: those that are not named share what default says.
//
// Failure modes: budgets are per process. Names of callers are what callers say of
// themselves. A provider asks for them by its URL; a consumer that refers to it by a
// URL of its own tells its name only once it has been refused a call, and falls under
// default until then. While a guard observes it counts as it would if it enforced,
// and nobody waits.
package flowcontrol
