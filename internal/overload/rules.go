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

package overload

import (
	"fmt"
	"time"
)

const (
	// MaxLimit is the highest limit.
	MaxLimit = 1<<31 - 1
	// Million is the whole in parts per million.
	Million = 1_000_000
)

// Rules are what a [Cap] goes by.
type Rules struct {
	// Limit is N, how many calls may run, 1 to [MaxLimit].
	Limit int64
	// MaxExpand is by how much N may be multiplied, 1 for not at all.
	MaxExpand int64
	// SlowCall is after what time a running call is slow; 0 is never.
	SlowCall time.Duration
	// SlowShare is the share of the running calls, in parts per million, that may be slow
	// when the cap expands. Those that were set aside count as well until they are twice as
	// old as EntryTimeout; then they are a leak.
	SlowShare int64
	// EntryTimeout is after what time a running call may be set aside; 0 is never.
	EntryTimeout time.Duration
	// MaxOverdue is how many may be set aside at the same time.
	MaxOverdue int64
	// Calm is for how long no more than three quarters of the next lower cap may have run
	// until the cap goes back to that.
	Calm time.Duration
}

// Check tells what is wrong with the rules.
func (r Rules) Check() error {
	for _, c := range []struct {
		name       string
		value      int64
		least, top int64
	}{
		{"limit", r.Limit, 1, MaxLimit}, {"max expand", r.MaxExpand, 1, 1 << 10}, {"slow share", r.SlowShare, 0, Million},
		{"max overdue", r.MaxOverdue, 0, MaxLimit}, {"slow call", int64(r.SlowCall), 0, 1<<63 - 1},
		{"entry timeout", int64(r.EntryTimeout), 0, 1<<63 - 1}, {"calm", int64(r.Calm), 0, 1<<63 - 1},
	} {
		if c.value < c.least || c.value > c.top {
			return fmt.Errorf("overload: %s is %d, allowed are %d to %d", c.name, c.value, c.least, c.top)
		}
	}
	return nil
}

// highest is the highest cap.
func (r *Rules) highest() int64 { return min(r.Limit*r.MaxExpand, MaxLimit) }

// Reason is why a cap has changed, or was not expanded.
type Reason uint8

// Reasons.
const (
	None Reason = iota
	// Healthy is that the cap was met and all is well.
	Healthy
	// Highest is that the cap does not go higher.
	Highest
	// SlowCalls is that too many of the running calls are slow.
	SlowCalls
	// Tight is that a signal of the machine is tight.
	Tight
	// Calm is that there was little to do for a while.
	Calm
	// Configured is that the rules say something else now.
	Configured
	// Adapted is that another limit was found out.
	Adapted
)

var reasons = [...]string{"none", "healthy", "concurrency", "slow-calls", "tight", "calm", "configured", "adapted"}

// String is the reason in a word, as it stands in a refusal.
func (r Reason) String() string { return reasons[r] }
