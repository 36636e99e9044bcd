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

// Package executelimit limits the calls of a provider's method that run at the
// same time: the policy "executes".
//
// It protects against a burst, or a dependency that turned slow, filling the
// process with calls that wait for each other. A call over the limit is refused
// at once; it never waits, and no goroutine is kept for it.
//
//	dubbo:
//	  provider:
//	    services:
//	      GreetProvider:
//	        interface: greet.GreetService
//	        params:
//	          executes: 100
//	          methods.SayHello.executes: 10
//
// or, with everything that can be set:
//
//	weir:
//	  provider:
//	    services:
//	      greet.GreetService:
//	        executes: {limit: 100, scope: method, mode: enforce}
//	        methods:
//	          SayHello: {executes: 10}
//
// A slot is taken when a call passes the filter and given back when the call
// leaves it, whatever way that is:
//
//	        running < limit                 ended, failed, panicked, cancelled
//	call ───────────────────▶ slot taken ──────────────────────────────▶ slot free
//	  │
//	  └─ running = limit ───▶ refused: executes, reason concurrency
//
// Failure modes: a handler that never returns keeps its slot. A stream keeps
// one for as long as it is open. Calls that began while the method had no
// executes at all, or the guard was off, are not counted by a limit that is set
// later; those that began under any value of it, 0 included, are, and so are
// those that were only observed. After a change of the scope counting begins
// anew.
package executelimit
