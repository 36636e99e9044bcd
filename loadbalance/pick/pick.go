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
	"math/bits"
	"math/rand/v2"
	"time"
)

// Candidate is an instance that may get a call.
type Candidate struct {
	*Instance
	// Weight is its share among equals; 0 and less is drained.
	Weight int64
	// Avoid is set for one that is to get the call only where there is no other: it
	// has refused this very call, or its circuit breaker is open.
	Avoid bool
}

// Random is where chance comes from: a number from 0 up to n, without n. Nil is the
// process's.
type Random func(n int64) int64

func (r Random) below(n int64) int64 {
	if r == nil {
		return rand.Int64N(n)
	}
	return r(n)
}

// tier orders candidates before anything else: those that may be used, those that are
// to be avoided, and the drained ones.
func (c *Candidate) tier() int {
	switch {
	case c.Weight <= 0:
		return 2
	case c.Avoid:
		return 1
	}
	return 0
}

func (c *Candidate) weight() int64 { return max(c.Weight, 1) }

// LeastActive is the index of the candidate with the least to do for its weight, one by
// chance and weight among equals, and -1 when there is none.
func LeastActive(candidates []Candidate, now time.Duration, r Random) int {
	var b best
	for i := range candidates {
		c := &candidates[i]
		if c.Weight <= 0 || c.Avoid {
			continue
		}
		score := c.load(now)
		if c.Weight == b.weight && score > b.score {
			continue // the usual case
		}
		b.offer(i, score, c.Weight, r)
	}
	if b.weight > 0 || len(candidates) == 0 {
		return b.index()
	}
	return lastResort(candidates, now, r, (*Instance).load)
}

// ShortestResponse is the index of the candidate where a call will likely be answered
// first: by its response time times what it has to do, for its weight. One of which no
// time is known counts as the fastest, unless its calls have failed lately.
func ShortestResponse(candidates []Candidate, now time.Duration, r Random) int {
	var b best
	for i := range candidates {
		c := &candidates[i]
		if c.Weight <= 0 || c.Avoid {
			continue
		}
		score := c.wait(now)
		if c.Weight == b.weight && score > b.score {
			continue // the usual case
		}
		b.offer(i, score, c.Weight, r)
	}
	if b.weight > 0 || len(candidates) == 0 {
		return b.index()
	}
	return lastResort(candidates, now, r, (*Instance).wait)
}

// lastResort is for when all are to be avoided or drained: the former come first.
func lastResort(candidates []Candidate, now time.Duration, r Random, measure func(*Instance, time.Duration) float64) int {
	var b best
	tier := 3
	for i := range candidates {
		c := &candidates[i]
		if t := c.tier(); t < tier {
			b, tier = best{}, t
		} else if t > tier {
			continue
		}
		b.offer(i, measure(c.Instance, now), c.weight(), r)
	}
	return b.index()
}

const (
	// leastResponse is what one of which nothing is known counts as, so that it is
	// tried, but by its running calls and weight as the others are; failedResponse is
	// that of one whose calls have only failed so far. In seconds.
	leastResponse  = 1e-6
	failedResponse = 1.0
)

func (i *Instance) wait(now time.Duration) float64 {
	t := i.response.value()
	if t == 0 {
		t = leastResponse
		if i.Failed(now) > 0 {
			t = failedResponse
		}
	}
	return t * i.load(now)
}

// best is the best of those that were offered so far.
type best struct {
	i      int
	score  float64 // what it has to do
	weight int64   // 0 for none
	sum    int64   // of the weights of its equals
	dice   dice
}

func (b *best) index() int {
	if b.weight == 0 {
		return -1
	}
	return b.i
}

func (b *best) offer(i int, score float64, weight int64, r Random) {
	x, y := score*float64(b.weight), b.score*float64(weight)
	switch {
	case x < y || b.weight == 0:
		b.i, b.score, b.weight, b.sum = i, score, weight, weight
	case x == y:
		// One after another each becomes the best with its share of the weights so far.
		if b.dice == 0 {
			b.dice = dice(r.below(1<<62)) | 1
		}
		b.sum += weight
		if b.dice.below(b.sum) < weight {
			b.i, b.score, b.weight = i, score, weight
		}
	}
}

// dice are cheap numbers by chance, from a seed that is not.
type dice uint64

func (d *dice) below(n int64) int64 {
	*d = *d*6364136223846793005 + 1442695040888963407
	hi, _ := bits.Mul64(uint64(*d), uint64(n))
	return int64(hi)
}

// TwoChoices is the index of the better of two candidates that are drawn by their
// weights, and -1 when there is none. Where both are to be avoided, or drained, it looks
// at all of them.
func TwoChoices(candidates []Candidate, now time.Duration, r Random) int {
	switch n := int64(len(candidates)); n {
	case 0:
		return -1
	case 1:
		return 0
	default:
		i := r.below(n)
		j := r.below(n - 1)
		if j >= i {
			j++
		}
		a, b := &candidates[i], &candidates[j]
		if a.tier() != 0 && b.tier() != 0 {
			return ShortestResponse(candidates, now, r)
		}
		if a.tier() != b.tier() {
			if a.tier() < b.tier() {
				return int(i)
			}
			return int(j)
		}
		x, y := a.wait(now)*float64(b.weight()), b.wait(now)*float64(a.weight())
		if x < y || x == y && r.below(a.weight()+b.weight()) < a.weight() {
			return int(i)
		}
		return int(j)
	}
}

// WarmingWeight is the weight of an instance that has been up for a while, of which it
// has its full weight after the warm-up: Java Dubbo's
// AbstractLoadBalance.calculateWarmupWeight, in whole milliseconds. It is at least 1,
// unless the weight is 0.
func WarmingWeight(weight int64, up, warmUp time.Duration) int64 {
	if weight <= 0 || up < 0 || up >= warmUp {
		return max(weight, 0)
	}
	w := int64(float64(up.Milliseconds()) / (float64(warmUp.Milliseconds()) / float64(weight)))
	return min(max(w, 1), weight)
}
