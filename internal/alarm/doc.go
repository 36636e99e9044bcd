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

// Package alarm tells when something comes near its bound, reaches it, and is calm
// again: once each, however the figures tremble.
//
// Of each subject, a limit or a queue, one state machine is fed with readings:
//
//	        above for long               refused, or full
//	Calm ---------------------> Near ---------------------> Reached
//	  ^                          | ^                          | |
//	  +------- low for long -----+ +----- free for long ------+ |
//	  +---------------------- low for long ---------------------+
//
// (and from Calm to Reached at once). Above is a use of [Rule.WarnAt] and more, low one
// of less than nine tenths of that, free one that is not full and without refusals; for
// long is [Rule.For] without a break. So of one subject any five changes take at least
// Rule.For, whatever the readings: see [Machine.Step].
//
// The hysteresis is that of a Schmitt trigger with a delay, as in Prometheus's alerts
// (for and keep_firing_for).
//
// The package is a core: the time is an argument, nothing is logged, nothing waits.
package alarm
