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

package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// slots is how many calls a provider works on at the same time; others wait in order.
	slots = 4
	// meanDemand is how long a call takes on average on the fastest provider. Times are
	// given as multiples of it.
	meanDemand = 10 * time.Millisecond
	// slowest is how many times as long a call takes on the slowest of the well providers.
	slowest = 4.0
	// sickness is the same of a sick provider; one of sickOneOf is sick.
	sickness, sickOneOf = 10.0, 25
	// sigma is of the demands, which are lognormal: one in a hundred is more than six
	// times the mean.
	sigma = 1.0
	// even is the weight of all providers where weights tell nothing.
	even = 100
)

// Each use of chance has a stream of its own, so that none moves another.
const (
	orderStream uint64 = iota + 1
	traceStream
	choiceStream
)

// service is a number of providers of unequal speed.
type service struct {
	slowness []float64 // how many times as long a call takes as on the fastest
	sick     []bool
	// turning are those that become sick when the warm-up is over.
	turning []bool
}

// newService has speeds evenly spread between the fastest and the slowest, and some
// sick ones, in an order that says nothing.
func newService(n int, seed uint64) service {
	s := service{make([]float64, n), make([]bool, n), make([]bool, n)}
	well := n - n/sickOneOf
	for i, p := range rand.New(rand.NewPCG(seed, orderStream)).Perm(n) {
		if i < well {
			s.slowness[p] = 1 + (slowest-1)*float64(i)/float64(max(well-1, 1))
		} else {
			s.slowness[p], s.sick[p] = sickness, true
		}
	}
	return s
}

// turn lets so many of the fastest become sick.
func (s service) turn(n int) {
	order := make([]int, len(s.slowness))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(s.slowness[a], s.slowness[b]) })
	for _, p := range order[:n] {
		s.turning[p] = true
	}
}

// weights are the same for all, or in proportion to the speeds.
func (s service) weights(matchSpeed bool) []int64 {
	out := make([]int64, len(s.slowness))
	for i := range out {
		out[i] = even
		if matchSpeed {
			out[i] = int64(math.Round(even / s.slowness[i]))
		}
	}
	return out
}

// capacity is how many calls per second the service answers at most, when each provider
// gets what it can take.
func (s service) capacity() (sum float64) {
	for i := range s.slowness {
		sum += s.capacityOf(i)
	}
	return sum
}

func (s service) capacityOf(provider int) float64 {
	return slots / meanDemand.Seconds() / s.slowness[provider]
}

// tooSlow is how many providers cannot take an even share of so much load: their queues
// grow as long as the load lasts.
func (s service) tooSlow(load float64) (n int) {
	share := load * s.capacity() / float64(len(s.slowness))
	for i := range s.slowness {
		if s.capacityOf(i) < share {
			n++
		}
	}
	return n
}

// request is a call as it comes, whoever balances it.
type request struct {
	at       time.Duration
	demand   time.Duration // how long it takes on the fastest provider
	consumer int
}

// newTrace has so many calls of Poisson arrivals. Those of the same seed have the same
// demands and consumers at any rate, and come in the same pattern.
func newTrace(calls int, perSecond float64, consumers int, seed uint64) []request {
	const begin = 12 * time.Hour // no balancer may count on a clock that begins with 0
	r := rand.New(rand.NewPCG(seed, traceStream))
	out := make([]request, calls)
	at := 0.0
	for i := range out {
		at += r.ExpFloat64() / perSecond
		demand := math.Exp(sigma*r.NormFloat64() - sigma*sigma/2)
		out[i] = request{
			at:       begin + time.Duration(at*float64(time.Second)),
			demand:   time.Duration(demand * float64(meanDemand)),
			consumer: r.IntN(consumers),
		}
	}
	return out
}
