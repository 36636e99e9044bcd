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

import "fmt"

// The shape of a Priority.
const (
	// Businesses is how many business levels there are, 0 the most important.
	Businesses = 256
	// Users is how many user levels each business level has, 0 the most important.
	Users = 128

	taskBits = 16
	userBits = 7
)

// Level is a compound level (B, U): the business level, and within it the user level.
// Smaller is more important. There are Levels of them.
type Level uint16

// Levels is one more than the least important Level.
const Levels = Businesses * Users

// NewLevel makes one of a business level and a user level. Users and more are taken for
// the least important.
func NewLevel(business uint8, user uint8) Level {
	return Level(business)<<userBits | Level(min(user, Users-1))
}

// Business is its business level. What is beyond the scale is the least important Level.
func (l Level) Business() uint8 { return uint8(min(l, Levels-1) >> userBits) }

// User is its user level.
func (l Level) User() uint8 { return uint8(min(l, Levels-1) & (Users - 1)) }

func (l Level) String() string { return fmt.Sprintf("(%d,%d)", l.Business(), l.User()) }

// Priority is how important a call is: its Level, and within the level the rank of its
// task. Smaller is more important. All calls of one task have the same Priority,
// so that tasks are refused whole: of a level that has to be parted, the same tasks get
// through at each of their calls.
type Priority uint32

// The ends of the scale.
const (
	// Highest is the most important Priority.
	Highest Priority = 0
	// Lowest is the least important one.
	Lowest Priority = Levels<<taskBits - 1
	// Open is the cursor that every call passes: one passes a cursor that is greater than
	// its Priority.
	Open = Lowest + 1
)

// NewPriority makes one of a level and the rank of a task within it.
func NewPriority(l Level, task uint16) Priority {
	return Priority(min(l, Levels-1))<<taskBits | Priority(task)
}

// Level is its compound level.
func (p Priority) Level() Level { return Level(min(p, Lowest) >> taskBits) }

// Task is the rank of its task within the level.
func (p Priority) Task() uint16 { return uint16(p) }

func (p Priority) String() string { return fmt.Sprintf("%s.%d", p.Level(), p.Task()) }

// Begun is the Priority of the later calls of a task, of which one was answered: in the more
// important half of the user levels, in the same order, and of the same business level. To
// refuse a task late wastes what was done for it.
func (p Priority) Begun() Priority {
	p = min(p, Lowest)
	first := NewPriority(NewLevel(p.Level().Business(), 0), 0)
	return first + (p-first)/2
}
