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
	"container/heap"
	"math"
	"slices"
	"time"
)

// balancer chooses for several consumers, each of which knows its own calls only.
type balancer interface {
	// begin chooses a provider for a call of the consumer.
	begin(consumer int, now time.Duration) (provider int)
	// end takes in the answer. left is how many calls the provider still has, of all
	// consumers: what it can tell in its answer.
	end(consumer, provider int, took, now time.Duration, left int)
}

// result is what came of the calls of a trace but for the first ones.
type result struct {
	sojourns []time.Duration // from call to answer, the shortest first
	longest  int             // the most calls that one provider had at the same time
	toSick   int             // how many calls the sick providers got
}

// run lets the balancer choose for all calls of a trace. Those of the warm-up are not in
// the result. Providers serve in the order of arrival, so it is known when a call will
// be answered as soon as it has a provider, and only answers have to be put in order.
func (s service) run(trace []request, warmUp int, b balancer) result {
	var (
		out     result
		pending answers
		free    = make([][slots]time.Duration, len(s.slowness)) // when each slot will be
		calls   = make([]int, len(s.slowness))
	)
	deliver := func(until time.Duration) {
		for len(pending) > 0 && pending[0].at <= until {
			a := heap.Pop(&pending).(answer)
			calls[a.provider]--
			c := trace[a.number]
			b.end(c.consumer, a.provider, a.at-c.at, a.at, calls[a.provider])
		}
	}
	for number, c := range trace {
		deliver(c.at)
		p := b.begin(c.consumer, c.at)
		calls[p]++
		slowness, sick := s.slowness[p], s.sick[p]
		if number >= warmUp && s.turning[p] {
			slowness, sick = sickness, true
		}
		slot := 0
		for i, at := range free[p] {
			if at < free[p][slot] {
				slot = i
			}
		}
		done := max(free[p][slot], c.at) + time.Duration(float64(c.demand)*slowness)
		free[p][slot] = done
		heap.Push(&pending, answer{at: done, number: number, provider: p})
		if number < warmUp {
			continue
		}
		out.sojourns = append(out.sojourns, done-c.at)
		out.longest = max(out.longest, calls[p])
		if sick {
			out.toSick++
		}
	}
	deliver(math.MaxInt64)
	slices.Sort(out.sojourns)
	return out
}

// answer is one that is to come.
type answer struct {
	at       time.Duration
	number   int // of its call
	provider int
}

// answers are a heap, the next one on top.
type answers []answer

func (a answers) Len() int      { return len(a) }
func (a answers) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a answers) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].number < a[j].number
}

func (a *answers) Push(x any) { *a = append(*a, x.(answer)) }

func (a *answers) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// percentile is what so many of a hundred calls do not take longer than.
func (r result) percentile(percent int) float64 {
	return inDemands(r.sojourns[(len(r.sojourns)-1)*percent/100])
}

func (r result) mean() float64 {
	sum := 0.0
	for _, d := range r.sojourns {
		sum += inDemands(d)
	}
	return sum / float64(len(r.sojourns))
}

func inDemands(d time.Duration) float64 { return float64(d) / float64(meanDemand) }
