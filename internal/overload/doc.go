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

// Package overload is a cap on the running calls of a method that breathes. It knows
// nothing of dubbo.
//
// A [Cap] admits calls up to its limit N. A call that meets the cap has the oldest
// running ones looked at, in this order:
//
//   - Those that run for longer than the entry timeout are set aside: their slots come
//     back, so calls that never end, and counts that were never given back, do not close
//     the method for good. At most so many are set aside as the rules say.
//   - While the machine and the method are well the cap doubles, up to a multiple of N: a
//     short pile-up is let through. When many of the running calls are slow already, or a
//     signal of the machine is tight, it does not: more of them would make it worse.
//
// Otherwise the call is refused. [Cap.Tick] has the cap go back step by step after a calm,
// or at once when machine or method are no longer well, and finds the calls that
// have become slow. With [Auto] the limit N is found out.
//
// Entering and leaving take no lock and allocate nothing: an entry is a word in an array
// in which the call finds a free place by chance. Only a call that meets the cap, and Tick,
// look at all entries. Times are readings of a clock that only goes forward. All is safe for
// concurrent use.
package overload
