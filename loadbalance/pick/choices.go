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

package pick

import "time"

// maxDraws bounds how often another is drawn in the place of one that is no choice.
const maxDraws = 16

// TwoChoices draws two by their weights and chooses the one where a call will likely be
// answered first, by the peak of its response times and what runs for its weight. While
// both have nothing to do the first one drawn is chosen, unless the other is faster: then
// that one, the likelier the faster it is. One whose calls mostly fail is no choice:
// another is drawn in its place, so that nobody gets the call for being only the second
// worst. Where both drawn are to be avoided, or drained, it looks at all of them. now may
// be [Peers.Recent] as long as nobody is troubled.
func TwoChoices(s *Set, now time.Duration, chance uint64) int {
	switch len(s.members) {
	case 0:
		return -1
	case 1:
		return 0
	}
	d := dice(chance)
	i := s.drawn(&d)
	j := s.drawn(&d)
	for range 3 { // where one has nearly all of the weight, it is drawn again and again
		if j != i {
			break
		}
		j = s.drawn(&d)
	}
	if j == i {
		if j = d.below(len(s.members) - 1); j >= i {
			j++
		}
	}
	if s.plain && !s.troubled(now) {
		first, second := &s.members[i], &s.members[j]
		if s.second(first, second, first.weight, second.weight, now, &d) {
			return j
		}
		return i
	}
	if s.members[i].tier(now) != 0 && s.members[j].tier(now) != 0 {
		return s.level(now, d.next(), byPeak)
	}
	i, j = s.better(i, j, now, &d)
	for range maxDraws {
		if len(s.members) == 2 || s.members[j].well(now) {
			break
		}
		if k := s.drawn(&d); k != i && k != j {
			i, j = s.better(i, k, now, &d)
		}
	}
	return i
}

// better is the better choice of two, and the other one.
func (s *Set) better(i, j int, now time.Duration, d *dice) (chosen, other int) {
	first, second := &s.members[i], &s.members[j]
	switch t, u := first.tier(now), second.tier(now); {
	case t < u:
		return i, j
	case u < t:
		return j, i
	}
	if s.second(first, second, first.worth(now), second.worth(now), now, d) {
		return j, i
	}
	return i, j
}

// well reports whether it may be used and more than half of its weight is left.
func (m *member) well(now time.Duration) bool {
	return m.tier(now) == 0 && 2*m.worth(now) > m.weight
}

// second tells whether the second of two is the better choice; v and w are the weights
// of the two as they count now.
func (s *Set) second(first, second *member, v, w float64, now time.Duration, d *dice) bool {
	_, a := first.record.times(now)
	_, b := second.record.times(now)
	x, y := float64(first.instance.Inflight()), float64(second.instance.Inflight())
	switch { // one call tries one whose time is not known
	case a == 0 && b == 0:
		a, b = 1, 1
	case a == 0:
		if a = b; x == 0 {
			a = b / 2
		}
	case b == 0:
		if b = a; y == 0 {
			b = a / 2
		}
	}
	if x+y > 0 {
		return (y+1)*b*v < (x+1)*a*w
	}
	// By its weight the first is the right one already; what is left is by how much the
	// other answers earlier, or fails less.
	ratio := (v / a / first.weight) / (w / b / second.weight)
	return ratio < 1 && d.part() > ratio
}

// drawn is the index of one that is drawn by its weight.
func (s *Set) drawn(d *dice) int {
	if s.draw == nil && !s.plain && s.total > 0 {
		at := d.part() * s.total
		for i := range s.members {
			if at -= s.members[i].weight; at < 0 {
				return i
			}
		}
	}
	i := d.below(len(s.members))
	if s.draw == nil {
		return i
	}
	if a := &s.draw[i]; d.next()>>1 >= a.chance {
		return a.other
	}
	return i
}
