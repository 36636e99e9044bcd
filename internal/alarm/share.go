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

package alarm

import "time"

// parts is how many pieces a [Share] keeps its time in.
const parts = 10

// Share is a part of a whole over the last time, of two counts that only grow. It keeps
// a dozen readings, however often it is read: the time that it is over is
// the one asked for, or up to a tenth more. The zero value has counted nothing. It is
// not safe for concurrent use.
type Share struct {
	marks [parts + 2]mark // the oldest first
	n     int
}

type mark struct {
	at          time.Duration
	part, whole int64
}

// Read notes the counts at a time, and returns by how much they have grown in the last
// over, or since the first reading if that is later. Counts that have fallen begin
// anew.
func (s *Share) Read(now, over time.Duration, part, whole int64) (parted, of int64) {
	if s.n > 0 {
		last := s.marks[s.n-1]
		now = max(now, last.at)
		if part < last.part || whole < last.whole {
			s.n = 0
		}
	}
	here := mark{now, part, whole}
	for s.n > 1 && now-s.marks[1].at >= over {
		s.drop() // the second is old enough to count from
	}
	if s.n == 0 {
		s.marks[0], s.n = here, 1
		return 0, 0
	}
	from := s.marks[0]
	switch {
	case s.n > 1 && now-s.marks[s.n-2].at < over/parts:
		s.marks[s.n-1] = here // of readings that lie close together the newest stands for all
	default:
		if s.n == len(s.marks) {
			s.drop()
		}
		s.marks[s.n] = here
		s.n++
	}
	return part - from.part, whole - from.whole
}

func (s *Share) drop() {
	copy(s.marks[:], s.marks[1:s.n])
	s.n--
}
