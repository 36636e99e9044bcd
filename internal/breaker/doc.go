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

// Package breaker is a circuit breaker: it keeps calls from a dependency that
// fails, is slow or hangs, and lets some through now and then to find out whether
// it is well again.
//
//	         a strategy trips
//	Closed ───────────────────▶ Open ◀──────────────┐
//	   ▲                         │ the open time     │ too many probes failed,
//	   │                         ▼ is over           │ or the only one did not run
//	   └──── enough probes ── HalfOpen ──────────────┘
//	         were healthy
//
// Four strategies can be combined: the share of calls that fail, the share that is
// slow, the number that fail, and the number that fail one after another. The
// first three look at a window of time in buckets. A share is compared in whole
// numbers, so that 57 of 100 is 57 %.
//
// A call is slow as soon as it runs for longer than is allowed: it counts while it
// still runs, so a dependency that hangs trips the breaker before the first of its
// calls has come back. Calls that run are counted by when they began, in slots of
// a seventh of what is slow; a call is known to be slow that much later at most.
//
// What a call that began in one state comes to changes nothing in the next one,
// and calls that began before the breaker closed are none of the new window's.
//
// A closed breaker takes no lock: one addition to a counter that all calls share,
// and two to a striped one where slow calls count. The lock is taken to change
// state, to begin a bucket, and for each probe.
//
// The package reads no clock. Times are those of one monotonic clock, counted
// from any origin; those of calls that run side by side may be slightly out of order.
package breaker
