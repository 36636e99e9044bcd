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
	"math/bits"
	"time"
)

// Candidate is an instance that may get a call.
type Candidate struct {
	*Record
	// Weight is its share among equals; 0 and less is drained.
	Weight int64
	// Avoid is set for one that is to get the call only where there is no other: it
	// has refused this very call.
	Avoid bool
}

// Set is what is chosen from. It does not change; its instances may.
type Set struct {
	members []member
	// counters are those of the members: close together, for those who look at all.
	counters []*counter
	peers    *Peers
	// plain is set when all have the same weight and none is to be avoided.
	plain bool
	// avoids is set when one is to be avoided.
	avoids bool
	// draw is by which index and by which chance [FewChoices] draws, nil where the set is
	// plain or of one call only.
	draw []alias
	// total is the sum of the weights.
	total float64
	// fastest and usual are the shortest response time and the mean that were met when all
	// were looked at last, 0 for none.
	fastest, usual measure
}

// member is a candidate as it is compared.
type member struct {
	instance *Instance
	record   *Record
	weight   float64 // 0 is drained
	share    float64 // 1/weight; of a drained one there is no end
	avoid    bool
}

// NewSet makes a set of instances of one [Peers]. It keeps nothing of the slice.
func NewSet(candidates []Candidate) *Set {
	s := &Set{}
	s.fill(candidates)
	if !s.plain {
		s.draw = aliases(s.members, s.total)
	}
	return s
}

// Reset makes the set one of other instances. Nobody may be choosing from it. From such
// a set [FewChoices] draws in a time that grows with their number.
func (s *Set) Reset(candidates []Candidate) {
	s.draw = nil
	s.fill(candidates)
}

func (s *Set) fill(candidates []Candidate) {
	s.members, s.counters = s.members[:0], s.counters[:0]
	s.peers, s.plain, s.avoids, s.total = nil, true, false, 0
	for _, c := range candidates {
		m := member{instance: c.Instance, record: c.Record, weight: float64(max(c.Weight, 0)), share: math.Inf(1), avoid: c.Avoid}
		if m.weight > 0 {
			m.share = 1 / m.weight
		}
		s.members = append(s.members, m)
		s.counters = append(s.counters, &c.calls)
		s.total += m.weight
		s.avoids = s.avoids || c.Avoid
		s.plain = s.plain && c.Weight == candidates[0].Weight && c.Weight > 0 && !c.Avoid
		s.peers = c.peers
	}
}

// Len is how many there are.
func (s *Set) Len() int { return len(s.members) }

// Load is what a member has to do with one more call for its weight, -1 when it is drained.
func (s *Set) Load(i int) float64 {
	m := &s.members[i]
	if m.weight == 0 {
		return -1
	}
	return float64(m.instance.Inflight()+1) / m.weight
}

// Weight is a member's.
func (s *Set) Weight(i int) int64 { return int64(s.members[i].weight) }

// Member is what is known of one.
func (s *Set) Member(i int) *Record { return s.members[i].record }

// tier orders members before anything else: those that may be used, those that are to
// be avoided, and the drained ones.
func (m *member) tier(now time.Duration) int {
	switch {
	case m.weight == 0:
		return 2
	case m.avoid, now != 0 && m.instance.until.Load() > int64(now) && m.record.avoid.Load() > int64(now):
		return 1
	}
	return 0
}

// alias is a place of Walker's table: a draw that falls on it is for the member of the
// same index as often as chance says, and else for other.
type alias struct {
	chance uint64 // of 2^63
	other  int
}

// aliases makes the table that draws members by their weights in the same time for any
// number of them (Vose's construction). Those to be avoided have their weights here.
func aliases(members []member, sum float64) []alias {
	if sum == 0 {
		return nil
	}
	n := float64(len(members))
	table := make([]alias, len(members))
	scaled := make([]float64, len(members))
	var small, large []int
	for i := range members {
		scaled[i] = members[i].weight * n / sum
		if scaled[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		table[s] = alias{uint64(scaled[s] * (1 << 63)), l}
		if scaled[l] -= 1 - scaled[s]; scaled[l] < 1 {
			large, small = large[:len(large)-1], append(small, l)
		}
	}
	for _, i := range append(small, large...) {
		table[i] = alias{1 << 63, i}
	}
	return table
}

// dice are cheap numbers by chance, from a seed that is not.
type dice uint64

func (d *dice) next() uint64 {
	*d = *d*6364136223846793005 + 1442695040888963407
	return uint64(*d)
}

// below is a number under n.
func below(chance uint64, n int) int {
	hi, _ := bits.Mul64(chance, uint64(n))
	return int(hi)
}

// part is a number from 0 to 1.
func part(chance uint64) float64 { return float64(chance>>11) / (1 << 53) }

func (d *dice) part() float64 { return part(d.next()) }
