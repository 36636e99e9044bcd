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

// Package tps has the limits that count calls over time: so many calls per
// interval. They refuse at once and never wait.
//
//   - [Sliding] never admits more than Rate calls in any interval of that length.
//   - [Fixed] is the StatItem of Java Dubbo: windows one after another, each with
//     Rate calls; around an edge up to twice as many pass within one interval.
//   - [Bucket] is a token bucket: Rate calls per interval in the long run, and up to
//     Burst of them at once.
//
// Methods that take `now` are pure: they read no clock. Time is the reading of a
// monotonic clock, a duration since some origin, in nanoseconds. A reading that
// is older than one seen before counts as that one, so a clock that steps back
// stands still, and one before the origin counts as the origin. The other methods
// read the [Clock] given at construction.
//
// A goroutine may be starved between reading the clock and taking its share.
// Fixed and Bucket are right with such an old reading, so they read the clock
// first and then take their share without a lock. In a sliding window the call
// would be noted earlier than it passes, so Sliding reads the clock under its
// lock.
package tps
