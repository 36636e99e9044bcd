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

import (
	"math"
	"time"
)

// Algorithm is how one of a set is chosen: the index of a member, or -1 when there is
// none. now is a reading of the clock that the records' measures are of; see
// [Peers.Troubled] for who may do without. chance are 64 bits by chance, new ones for each
// choice.
type Algorithm func(s *Set, now time.Duration, chance uint64) int

// LeastActive chooses the one that has the least to do for its weight, by weight and
// chance among equals. now may be 0 as long as nobody is troubled.
func LeastActive(s *Set, now time.Duration, chance uint64) int {
	if len(s.members) == 0 {
		return -1
	}
	if !s.troubled(now) && !s.avoids {
		if s.plain && len(s.members) <= maxFewest {
			return s.fewest(chance)
		}
		return s.lightest(chance)
	}
	return s.level(now, chance, byWeight)
}

// ShortestResponse chooses the one where a call will likely be answered first: by
// average response time and what runs for its weight. One whose time is not known
// counts as twice as fast as the fastest.
func ShortestResponse(s *Set, now time.Duration, chance uint64) int {
	if len(s.members) == 0 {
		return -1
	}
	return s.level(now, chance, byAverage)
}

func (s *Set) troubled(now time.Duration) bool {
	return now != 0 && s.peers.until.Load() > int64(now)
}

const (
	// indexBits is the part of a key of [Set.fewest] that tells whose it is.
	indexBits = 16
	maxFewest = 1 << indexBits
)

// fewest is the one with the fewest running calls: all weigh the same and are well. Each
// has a key of what runs, then chance, then its index, and the lowest key has it: which
// of equals that is, the processor need not foresee.
func (s *Set) fewest(chance uint64) int {
	d, lowest := dice(chance), uint64(math.MaxUint64)
	for i, c := range s.counters {
		running := c.word.Load() << (64 - runningBits)
		if running > lowest {
			continue
		}
		lowest = min(lowest, running|d.next()>>runningBits&^(maxFewest-1)|uint64(i))
	}
	return int(lowest % maxFewest)
}

// lightest is level for members of different weights that are all well.
func (s *Set) lightest(chance uint64) int {
	lowest, best := math.Inf(1), -1
	for i := range s.members {
		m := &s.members[i]
		if with := float64(m.instance.Inflight()+1) * m.share; with < lowest {
			lowest, best = with, i
		}
	}
	if best < 0 {
		return s.level(0, chance, byWeight) // all are drained
	}
	var (
		d   = dice(chance)
		sum float64
	)
	for i := range s.members {
		m := &s.members[i]
		if float64(m.instance.Inflight())*m.share >= lowest {
			continue
		}
		if sum += m.weight; d.part()*sum < m.weight {
			best = i
		}
	}
	return best
}

// by is what a member's weight is divided by.
type by uint8

const (
	byWeight  by = iota // nothing
	byAverage           // its average response time
	byPeak              // the peak of its response times
)

// worth is a member's weight as it counts now: what it has to do is divided by it.
// Drained ones weigh the same among themselves.
func (s *Set) worth(m *member, now time.Duration, measure by) float64 {
	if m.weight == 0 {
		return 1
	}
	w := m.worth(now)
	if measure == byWeight {
		return w
	}
	t, peak := m.record.times(now)
	if measure == byPeak {
		t = peak
	}
	if t == 0 {
		t = s.unknown(m, now)
	}
	return w / t
}

// worth is its weight, by the share of its calls that succeed.
func (m *member) worth(now time.Duration) float64 {
	if now == 0 || m.instance.until.Load() <= int64(now) {
		return m.weight
	}
	return m.weight * m.record.worth(now)
}

// unknown is the response time that one counts with whose own is not known. One call
// tries it, as if it were twice as fast as the fastest; until that is answered it counts
// as one like the others, and so does one that has only failed.
func (s *Set) unknown(m *member, now time.Duration) float64 {
	fastest, usual := s.fastest.get(), s.usual.get()
	switch {
	case fastest == 0:
		return 1
	case m.instance.Inflight() > 0 || m.record.failed(now) > 0:
		return usual
	}
	return fastest / 2
}

// level chooses by the water level, among those of the best tier.
func (s *Set) level(now time.Duration, chance uint64, measure by) int {
	if measure != byWeight {
		s.survey(now)
	}
	tier, lowest, best := 3, 0.0, -1
	for i := range s.members {
		m := &s.members[i]
		t := m.tier(now)
		if t > tier {
			continue
		}
		with := float64(m.instance.Inflight()+1) / s.worth(m, now, measure)
		if t < tier || with < lowest {
			tier, lowest, best = t, with, i
		}
	}
	var (
		d   = dice(chance)
		sum float64
	)
	for i := range s.members {
		m := &s.members[i]
		if m.tier(now) != tier {
			continue
		}
		w := s.worth(m, now, measure)
		if float64(m.instance.Inflight())/w >= lowest {
			continue
		}
		if measure != byWeight && m.weight > 0 {
			w *= w / m.weight // by its speed twice: one that is slow is only to be kept in sight
		}
		if sum += w; d.part()*sum < w {
			best = i
		}
	}
	return best
}

// survey finds what response times are met.
func (s *Set) survey(now time.Duration) {
	fastest, sum, n := 0.0, 0.0, 0.0
	for i := range s.members {
		if average, _ := s.members[i].record.times(now); average > 0 {
			if fastest == 0 || average < fastest {
				fastest = average
			}
			sum += average
			n++
		}
	}
	s.fastest.set(fastest)
	s.usual.set(sum / max(n, 1))
}
