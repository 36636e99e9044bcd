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

// Package health tells whether the machine or the container that this process runs
// on is tight: short of CPU, of memory, or of whatever a program measures itself.
//
// A [Monitor] samples signals off the call path and keeps one answer, which a call
// reads with one atomic load. Each signal has a [Rule]:
//
//	         the mean reaches Limit
//	calm ───────────────────────────▶ tight
//	 ▲                                  │
//	 └──────────────────────────────────┘
//	  the mean is below Recover, or the
//	  value is not known any more
//
// Not known means that nothing is done: a signal whose files are missing, whose Go
// version lacks a metric, or that panics, hangs or returns no number is calm.
//
// The signals of the system are read in the terms of the container. CPU and memory
// are measured for each control group in which the process is, its own and those
// above as far as they can be seen, each with its own use against its own limit: it
// is the use of all its members that a limit of a pod throttles. The largest share
// counts.
//
// What every sample needs is read through files that are kept open, which takes a
// quarter of the time of opening them and allocates nothing. What is read every few
// seconds, the load average and the groups of the process, comes from procfs.
//
// The package reads no clock. Times are those of one monotonic clock, counted from
// any origin.
package health
