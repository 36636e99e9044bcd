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

package dagor

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/stripe"
)

// DefaultPeriod is for how long a user keeps a level.
const DefaultPeriod = time.Hour

// What is drawn from one hash for different ends is drawn apart from each other.
const (
	forLevel  = 0x8bb84b93962eacc9
	forOffset = 0x4b33a62ed433d4a3
	forRank   = 0x2d358dccaa6c78a5
)

// Labels say which priority calls get where they come in.
type Labels struct {
	// Businesses has the business levels of calls that come in. What it does not have is
	// the least important.
	Businesses *BusinessTable
	// Unlabelled is the business level of calls that come without a priority at a service
	// that is no entry: of callers that know nothing of it.
	Unlabelled uint8
	// Period is for how long a user keeps a level, 0 for DefaultPeriod. Instances
	// of an entry agree on levels only if they have the same.
	Period time.Duration
}

// Task is what is known of a task when its first call comes in: one tap of a user, with
// all that it sets off.
type Task struct {
	// User is the id of the user, "" where there is none.
	User string
	// Trace is the id of the task, "" where there is none.
	Trace string
	// Random stands in where Trace is "": bits that were drawn for this task.
	Random uint64
}

// Labeller gives calls their priority where they come in; further down the priority is
// inherited. It is safe for concurrent use.
//
// Its answers depend on nothing but Labels, task and time, so all instances of an
// entry, and the same one after a restart, give the same ones without talking to each
// other. Where their clocks differ, they differ on a user for as long at the end of its
// period. A task without an id has one priority only if whoever labels it does so once.
type Labeller struct {
	labels     atomic.Pointer[Labels]
	unknown    *stripe.Counter
	unlabelled *stripe.Counter
}

// NewLabeller returns a labeller. The error wraps [ErrLabels].
func NewLabeller(labels Labels) (*Labeller, error) {
	l := &Labeller{unknown: stripe.NewCounter(), unlabelled: stripe.NewCounter()}
	if err := l.Update(labels); err != nil {
		return nil, err
	}
	return l, nil
}

// Update has other labels hold from now on. What was counted stays.
func (l *Labeller) Update(labels Labels) error {
	if labels.Period < 0 {
		return fmt.Errorf("%w: users keep a level for %v, want more than 0", ErrLabels, labels.Period)
	}
	if labels.Period == 0 {
		labels.Period = DefaultPeriod
	}
	l.labels.Store(&labels)
	return nil
}

// Entry is the priority of a call that comes in at an entry. wall is the time since the
// start of 1970 by the clock on the wall: the one that instances have in common.
func (l *Labeller) Entry(call Subject, t Task, wall time.Duration) Priority {
	labels := l.labels.Load()
	business, ok := labels.Businesses.Level(call)
	if !ok {
		l.unknown.Add(1)
	}
	return labels.priority(business, t, wall)
}

// Unlabelled is the priority of a call that came without one at a service that is no
// entry.
func (l *Labeller) Unlabelled(t Task, wall time.Duration) Priority {
	l.unlabelled.Add(1)
	labels := l.labels.Load()
	return labels.priority(labels.Unlabelled, t, wall)
}

// LabelStats is what a labeller has counted.
type LabelStats struct {
	// Unknown is how many calls came in that the table does not have.
	Unknown int64
	// Unlabelled is how many came without a priority at a service that is no entry.
	Unlabelled int64
}

// Stats returns what was counted.
func (l *Labeller) Stats() LabelStats {
	return LabelStats{Unknown: l.unknown.Sum(), Unlabelled: l.unlabelled.Sum()}
}

func (l *Labels) priority(business uint8, t Task, wall time.Duration) Priority {
	task := t.Random
	if t.Trace != "" {
		task = hashText(t.Trace)
	}
	var user uint8
	if t.User != "" {
		user = userLevel(hashText(t.User), l.Period, wall)
	} else {
		user = top7(mix(task ^ forLevel))
	}
	return NewPriority(NewLevel(business, user), uint16(mix(task^forRank)>>48))
}

// userLevel is the level that a user has for a period. In each of them it is drawn anew:
// whom a cursor keeps out must not be kept out every day. The periods of users begin at
// different times, so that a cursor does not meet a crowd that is all new.
func userLevel(user uint64, period, wall time.Duration) uint8 {
	offset, _ := bits.Mul64(mix(user^forOffset), uint64(period))
	at := wall + time.Duration(offset)
	epoch := at / period
	if at%period < 0 {
		epoch-- // before 1970 as well a period is as long as the others
	}
	return top7(mix((user ^ forLevel) + uint64(epoch)*golden))
}

func top7(h uint64) uint8 { return uint8(h >> (64 - userBits)) }
