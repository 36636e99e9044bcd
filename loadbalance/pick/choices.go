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

const (
	// choices is among how many [FewChoices] chooses. Simulated, two are often both a bad
	// choice when most are busy; a fifth adds little.
	choices = 4
	// maxDraws bounds how often is drawn for them: the same one may be drawn again.
	maxDraws = 7
	// maxMore bounds it where one in place of another is drawn that is no choice.
	maxMore = 16
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
	i, met := s.drawn(&d), 0
	best := s.members[i].prospect(now)
	for n := 0; n < maxDraws && met < choices-1; n++ {
		j := s.drawn(&d)
		if j == i {
			continue
		}
		met++
		if p := s.members[j].prospect(now); p.better(best, &d) {
			i, best = j, p
		}
	}
	if met == 0 { // one has nearly all of the weight, or there are two
		if j := s.other(i, &d); s.members[j].weight > 0 && s.members[j].prospect(now).better(best, &d) {
			return j
		}
	}
	return i
}

// amongTroubled is FewChoices where some are avoided, drained or have failed.
func (s *Set) amongTroubled(now time.Duration, d *dice) int {
	i, met := s.drawn(d), 0
	for n := 0; n < maxMore && met < choices-1; n++ {
		j := s.drawn(d)
		if j == i {
			if n < maxDraws || met > 0 {
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
	j := d.below(len(s.members) - 1)
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
	p.worth, q.worth = first.worth(now), second.worth(now)
	if q.better(p, d) {
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
	response      float64 // 0 is not known
	running       float64
	weight, worth float64 // the weight, and as it counts now
}

func (m *member) prospect(now time.Duration) prospect {
	average, peak := m.record.times(now)
	return prospect{
		response: average + (peak-average)*peakShare, running: float64(m.instance.Inflight()),
		weight: m.weight, worth: m.weight,
	}
}

// better tells whether it is the better choice than one that was drawn before.
func (p prospect) better(best prospect, d *dice) bool {
	switch { // one call tries one whose time is not known
	case p.response == 0 && best.response == 0:
		p.response, best.response = 1, 1
	case p.response == 0:
		p.response = best.response
		if p.running == 0 {
			p.response /= 2
		}
	case best.response == 0:
		best.response = p.response
		if best.running == 0 {
			best.response /= 2
		}
	}
	if p.running+best.running > 0 {
		return (p.running+1)*p.response*best.worth < (best.running+1)*best.response*p.worth
	}
	// By its weight the first is the right one already; what is left is by how much the
	// other answers earlier, or fails less.
	theirs, ours := best.worth*p.response*p.weight, p.worth*best.response*best.weight
	return theirs < ours && d.part()*ours > theirs
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
	a := s.draw[i]
	if d.next()>>1 >= a.chance { // nobody can foresee it, so this is to be no branch
		i = a.other
	}
	return i
}
