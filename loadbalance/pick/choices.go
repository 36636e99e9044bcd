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

const (
	// choices is among how many [FewChoices] chooses. Simulated, two are often both a bad
	// choice when most are busy; a fifth adds little.
	choices = 4
	// maxDraws bounds how often another is drawn in the place of one that is no choice, or
	// that was drawn before; after maxSame draws of one alone any other will do.
	maxDraws, maxSame = 16, 7
	// peakShare is the share of the peak in the response time that FewChoices goes by. The
	// average alone finds out late that an instance has become slow, the peak alone goes
	// by what a few calls ask for.
	peakShare = 1.0 / 4
)

// FewChoices draws four by their weights and chooses the one where a call will likely be
// answered first, by its response times and what runs for its weight. While they have
// nothing to do the first one drawn is chosen, unless another is faster: then that one, the
// likelier the faster it is. One whose calls mostly fail is no choice: another is drawn in
// its place, so that nobody gets the call for being only the second worst. Where all drawn
// are to be avoided, or drained, it looks at all of them. now may be [Peers.Recent] as long
// as nobody is troubled.
func FewChoices(s *Set, now time.Duration, chance uint64) int {
	switch len(s.members) {
	case 0:
		return -1
	case 1:
		return 0
	}
	d := dice(chance)
	if s.avoids || s.total == 0 || s.troubled(now) {
		return s.amongTroubled(now, &d)
	}
	var at [choices]int
	for k := range at {
		at[k] = s.drawn(d.next(), d.next())
	}
	if at[0] == at[1] && at[1] == at[2] && at[2] == at[3] { // one has nearly all of the weight, or there are two
		if j := s.other(at[0], &d); s.members[j].weight > 0 {
			at[3] = j
		}
	}
	return at[s.bestOf(&at, now, &d)]
}

// bestOf is the best one of those drawn, by its place among them. It has no branch that
// depends on how they compare: the processor would guess wrong once in each choice.
func (s *Set) bestOf(at *[choices]int, now time.Duration, d *dice) uint64 {
	var (
		response [choices]float64
		load     [choices]float64
		running  int64
		unknown  int
	)
	for k, i := range at {
		m := &s.members[i]
		n := m.instance.Inflight()
		running += n
		load[k] = float64(n+1) * m.share
		response[k] = m.record.expected(now)
		if response[k] == 0 {
			unknown++
		}
	}
	switch {
	case unknown == 0:
	case unknown == choices && running == 0:
		return 0
	default:
		s.guess(&response, at)
	}
	if running == 0 {
		best := 0
		for k := 1; k < choices; k++ {
			if ours, theirs := response[k], response[best]; ours < theirs && d.part()*theirs > ours {
				best = k
			}
		}
		return uint64(best)
	}
	lowest := uint64(math.MaxUint64)
	for k := range at { // of what is positive the bits are in the order of the numbers
		lowest = min(lowest, math.Float64bits(response[k]*load[k])&^(choices-1)|uint64(k))
	}
	return lowest % choices
}

// guess fills in response times that are not known: one call tries such an instance, as if
// it were twice as fast as the fastest, and until that is answered it counts like that one.
func (s *Set) guess(response *[choices]float64, at *[choices]int) {
	fastest := math.Inf(1)
	for _, t := range response {
		if t > 0 {
			fastest = min(fastest, t)
		}
	}
	if math.IsInf(fastest, 1) {
		fastest = 1
	}
	for k, i := range at {
		if response[k] > 0 {
			continue
		}
		if response[k] = fastest; s.members[i].instance.Inflight() == 0 {
			response[k] /= 2
		}
	}
}

// amongTroubled is FewChoices where some are avoided, drained or have failed.
func (s *Set) amongTroubled(now time.Duration, d *dice) int {
	i, met := s.drawn(d.next(), d.next()), 0
	for n := 0; n < maxDraws && met < choices-1; n++ {
		j := s.drawn(d.next(), d.next())
		if j == i {
			if n < maxSame || met > 0 {
				continue
			}
			j = s.other(i, d)
		}
		var other int
		if i, other = s.better(i, j, now, d); len(s.members) == 2 || s.members[other].well(now) {
			met++
		}
	}
	if s.members[i].tier(now) != 0 {
		return s.level(now, d.next(), byPeak)
	}
	return i
}

// other is any but one of them.
func (s *Set) other(i int, d *dice) int {
	j := below(d.next(), len(s.members)-1)
	if j >= i {
		j++
	}
	return j
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
	p, q := first.prospect(now), second.prospect(now)
	p.handicap, q.handicap = first.weight/first.worth(now), second.weight/second.worth(now)
	if q.better(p, d.next()) {
		return j, i
	}
	return i, j
}

// well reports whether it may be used and more than half of its weight is left.
func (m *member) well(now time.Duration) bool {
	return m.tier(now) == 0 && 2*m.worth(now) > m.weight
}

// prospect is what a call can expect of an instance.
type prospect struct {
	response float64 // 0 is not known
	// handicap is how many times the instance's weight is what is left of it.
	handicap float64
	running  float64
	share    float64
}

func (m *member) prospect(now time.Duration) prospect {
	return prospect{response: m.record.expected(now), handicap: 1, running: float64(m.instance.Inflight()), share: m.share}
}

// better tells whether it is the better choice than one that was drawn before.
func (p prospect) better(best prospect, chance uint64) bool {
	ours, theirs := p.response, best.response
	if ours == 0 || theirs == 0 {
		ours, theirs = p.unknown(best)
	}
	ours, theirs = ours*p.handicap, theirs*best.handicap
	if p.running+best.running > 0 {
		return ours*(p.running+1)*p.share < theirs*(best.running+1)*best.share
	}
	// By its weight the first is the right one already; what is left is by how much the
	// other answers earlier, or fails less.
	return ours < theirs && part(chance)*theirs > ours
}

// unknown are the response times that count where one of the two is not known, or both are
// not: one call tries one whose time is not known.
func (p prospect) unknown(best prospect) (ours, theirs float64) {
	switch {
	case p.response > 0:
		if theirs = p.response; best.running == 0 {
			theirs /= 2
		}
		return p.response, theirs
	case best.response > 0:
		if ours = best.response; p.running == 0 {
			ours /= 2
		}
		return ours, best.response
	}
	return 1, 1
}

// drawn is the index of one that is drawn by its weight, by two numbers by chance.
func (s *Set) drawn(first, second uint64) int {
	i := below(first, len(s.members))
	switch {
	case s.plain:
	case s.draw != nil:
		a := s.draw[i]
		if second>>1 >= a.chance { // nobody can foresee it, so this is to be no branch
			i = a.other
		}
	case s.total > 0:
		at := part(first) * s.total
		for i := range s.members {
			if at -= s.members[i].weight; at < 0 {
				return i
			}
		}
	}
	return i
}
