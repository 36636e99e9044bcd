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

package conf

import "time"

// Overload caps the running calls of a method with a cap that breathes: it expands for
// a while when machine and method are well, gives up on calls that never end, and may
// find its limit out. Every field that is not set is asked for at the next level or
// source.
type Overload struct {
	// Limit is the number of running calls, up to 2147483647; 0 and less is unlimited.
	// nil is not set. It must be nil beside Auto.
	Limit *int
	// Auto has the limit found out.
	Auto bool
	// MaxExpand is by how much the limit may be multiplied, 1 to 16; 1 does not expand.
	MaxExpand *int
	// SlowCall is how long a call may run before it is slow, up to 1 h; 0 is off.
	SlowCall *time.Duration
	// SlowShare is the share of the running calls with which the cap does not expand
	// when so many are slow.
	SlowShare *Ratio
	// EntryTimeout is the age at which running calls may be set aside, up to 24 h and
	// not shorter than SlowCall; 0 is never.
	EntryTimeout *time.Duration
	// MaxOverdue is how many may be set aside at the same time; 0 is none.
	MaxOverdue *int
	// Calm is how long there must be little to do until the cap goes back a step, up to
	// 24 h.
	Calm *time.Duration
	// Floor and Ceiling are the bounds of what Auto finds, 1 to 2147483647. Floor is not
	// more than Ceiling.
	Floor, Ceiling *int
	// DumpInterval is how often a profile may be written for a slow method, up to 24 h;
	// 0 is never.
	DumpInterval *time.Duration
	// Mode is this guard's own mode.
	Mode Mode
}

// Defaults of a cap that breathes.
const (
	DefaultMaxExpand        = 4
	DefaultOverloadSlowCall = time.Second
	DefaultSlowShare        = WholeRatio / 5
	DefaultEntryTimeout     = time.Minute
	DefaultCalm             = 30 * time.Second
	DefaultFloor            = 20
	DefaultCeiling          = 2000
	DefaultDumpInterval     = 10 * time.Minute
)

// OverloadPolicy is a cap that breathes in effect, with all defaults filled in.
// Without one it is the zero value.
type OverloadPolicy struct {
	// Set is false when no source sets a limit, or it is unlimited.
	Set  bool
	Mode Mode
	// Limit is at least 1: how many calls may run, with Auto at the beginning, which is
	// Floor.
	Limit int
	// Auto has the limit found out, from Floor to Ceiling.
	Auto bool
	// MaxExpand is 1 to 16, with Auto always 1.
	MaxExpand int
	// SlowCall is 0 when it is off.
	SlowCall  time.Duration
	SlowShare Ratio
	// EntryTimeout is 0 for never, else not shorter than SlowCall.
	EntryTimeout time.Duration
	// MaxOverdue is as many as Limit, or Ceiling with Auto, where it is not set.
	MaxOverdue int
	Calm       time.Duration
	// Floor and Ceiling are 0 without Auto.
	Floor, Ceiling int
	// DumpInterval is 0 for never.
	DumpInterval time.Duration
}
