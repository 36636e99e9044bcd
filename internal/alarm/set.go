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

// Set has the machines of many subjects. Readings come in rounds: any number of
// [Set.Read], then one [Set.End]. It is not safe for concurrent use.
type Set[K comparable] struct {
	max     int
	round   uint64
	m       map[K]*subject
	dropped int64
}

type subject struct {
	machine Machine
	reading Reading
	round   uint64        // that it was read in last
	at      time.Duration // when that ended
}

// NewSet returns a set of at most that many subjects: of others nothing is told until
// there is room.
func NewSet[K comparable](most int) *Set[K] {
	return &Set[K]{max: most, m: map[K]*subject{}, round: 1}
}

// Read notes a reading of this round. Several of one subject are one: that with the
// highest use, before those that expand yet one that is full; with the hits of all.
func (s *Set[K]) Read(k K, r Reading) {
	sub := s.m[k]
	if sub == nil {
		if len(s.m) >= s.max {
			s.dropped++
			return
		}
		sub = &subject{}
		s.m[k] = sub
	}
	if sub.round == s.round {
		hits := sub.reading.Hits + r.Hits
		if !r.fuller(sub.reading) {
			r = sub.reading
		}
		r.Hits = hits
	}
	sub.reading, sub.round = r, s.round
}

// Hit adds hits to a reading of this round, and reports whether there is one.
func (s *Set[K]) Hit(k K, hits int64) bool {
	sub := s.m[k]
	if sub == nil || sub.round != s.round {
		return false
	}
	sub.reading.Hits += hits
	return true
}

// Use is that of this round's reading of a subject.
func (s *Set[K]) Use(k K) (use float64, ok bool) {
	if sub := s.m[k]; sub != nil && sub.round == s.round {
		return sub.reading.Use, true
	}
	return 0, false
}

// End ends a round, and calls tell for each change, in no order. A subject that has
// not been read for rule.For is forgotten; it is told to be calm, if it was not.
func (s *Set[K]) End(now time.Duration, rule Rule, tell func(K, Change)) {
	for k, sub := range s.m {
		if sub.round == s.round {
			sub.at = max(now, sub.at)
			if c, ok := sub.machine.Step(now, rule, sub.reading); ok {
				tell(k, c)
			}
			continue
		}
		if now-sub.at < rule.For {
			continue
		}
		delete(s.m, k)
		if l := sub.machine.Level(); l != Calm {
			r := sub.reading
			r.Hits = sub.machine.hits
			tell(k, Change{Level: Calm, Former: l, Reading: r, Since: sub.at, At: now, Gone: true})
		}
	}
	s.round++
}

// Range calls f with the level of each subject.
func (s *Set[K]) Range(f func(K, Level)) {
	for k, sub := range s.m {
		f(k, sub.machine.Level())
	}
}

// Len is the number of subjects.
func (s *Set[K]) Len() int { return len(s.m) }

// Dropped is the number of readings for which there was no room.
func (s *Set[K]) Dropped() int64 { return s.dropped }
