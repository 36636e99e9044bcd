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
	"math"
	"math/bits"
	"sync/atomic"
)

// sheds counts calls that were shed and keeps a sample of them, each with the same
// chance (Vitter's algorithm R), without a lock. What it draws it draws from a hash of its
// counter, so that the same calls give the same sample.
//
// Calls are counted in rounds, each of which ends with a Report. Two that follow each
// other have different places, so a round can be read while the next one fills.
type sheds struct {
	count  atomic.Uint64 // the round in the upper half, the calls of it in the lower
	places [2][reportSample]atomic.Uint64
}

const (
	roundBits = 32
	callMask  = 1<<roundBits - 1
	// maxCalls is up to where calls are put back. It leaves room for those that are shed, as
	// a sum that does not fit would end the round.
	maxCalls = math.MaxInt32
)

func (s *sheds) add(p Priority) {
	count := s.count.Add(1)
	round, n := count>>roundBits, count&callMask
	switch {
	case n == 0: // the sum did not fit, which no caller lives to see
	case n <= reportSample:
		s.put(round, n-1, p)
	default:
		if i := draw(count, n); i < reportSample {
			s.put(round, i, p)
		}
	}
}

// draw is one of the numbers below n that follows from seed.
func draw(seed, n uint64) uint64 {
	i, _ := bits.Mul64(mix(seed*golden), n)
	return i
}

// tag marks what is of a round. A place where nothing was written yet has none.
func tag(round uint64) uint64 { return (round + 1) << roundBits }

// put writes one of a round. One that comes so late that the place is the next round's but
// one takes a call from that round's sample: that is as rare as it does little harm.
func (s *sheds) put(round, i uint64, p Priority) {
	s.places[round&1][i].Store(tag(round) | uint64(p))
}

// take ends the round. A call that is counted but not written yet is not in the sample.
func (s *sheds) take() (Report, bool) {
	count := s.count.Load()
	for {
		if count&callMask == 0 {
			return Report{}, false
		}
		if s.count.CompareAndSwap(count, (count>>roundBits+1)<<roundBits) {
			break
		}
		count = s.count.Load()
	}
	round, n := count>>roundBits, count&callMask
	r := Report{Shed: uint32(n)}
	for i := range min(n, reportSample) {
		if v := s.places[round&1][i].Load(); v&^callMask == tag(round) {
			r.Sample[r.N] = Priority(v & callMask)
			r.N++
		}
	}
	return r, true
}

// putBack makes the calls of a report some of the running round's.
func (s *sheds) putBack(r Report) {
	count := s.count.Load()
	var here, back uint64
	for {
		here = count & callMask
		if here >= maxCalls {
			return
		}
		if back = min(uint64(r.Shed), maxCalls-here); back == 0 {
			return
		}
		if s.count.CompareAndSwap(count, count+back) {
			break
		}
		count = s.count.Load()
	}
	// How many of a sample of all would be of those that come back.
	kept := min(here, reportSample)
	of := min(uint64(r.N), reportSample)
	take, seed := uint64(0), ^count
	for i, a, b := uint64(0), here, back; i < reportSample && a+b > 0; i++ {
		if seed++; draw(seed, a+b) < b {
			take++
			b--
		} else {
			a--
		}
	}
	if take = min(take, of); take == 0 {
		return
	}
	// They fill the places that are free, and of the others, from any on.
	first, from := draw(seed+1, max(kept, 1)), draw(seed+2, of)
	for i := range take {
		place := kept + i
		if place >= reportSample {
			place = (first + place) % max(kept, 1)
		}
		s.put(count>>roundBits, place, r.Sample[(from+i)%of])
	}
}
