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
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/loadbalance/pick"
)

// kind is a way to balance.
type kind struct {
	name string
	weir bool
	// costly is set for those of dubbo-go that look at all providers for each choice.
	costly bool
	// make is for so many consumers of providers of these weights. No two share a thing.
	make func(consumers int, weights []int64, seed uint64) balancer
}

// The kinds go by the names that a reference's `loadbalance` has.
const (
	weirLeastActive      = "weir-leastactive"
	weirShortestResponse = "weir-shortestresponse"
	weirFewChoices       = "weir-p2c"
	random               = "random"
	roundRobin           = "roundrobin"
	leastActive          = "leastactive"
	leastActiveFilter    = "leastactive, active filter"
	p2c                  = "p2c"
	p2cTold              = "p2c, told the load"
)

func kinds() []kind {
	return []kind{
		{name: weirLeastActive, weir: true, make: weirs(pick.LeastActive)},
		{name: weirShortestResponse, weir: true, make: weirs(pick.ShortestResponse)},
		{name: weirFewChoices, weir: true, make: weirs(pick.FewChoices)},
		{name: random, costly: true, make: dubbos(random, nothing)},
		{name: roundRobin, costly: true, make: dubbos(roundRobin, nothing)},
		{name: leastActive, costly: true, make: dubbos(leastActive, nothing)},
		{name: leastActiveFilter, costly: true, make: dubbos(leastActive, activeFilter)},
		{name: p2c, make: dubbos(p2c, nothing)},
		{name: p2cTold, make: dubbos(p2c, adaptive)},
	}
}

// weir is one of Weir's algorithms.
type weir struct {
	choose    pick.Algorithm
	chance    func() uint64
	consumers []*knowledge
}

// knowledge is what one consumer has.
type knowledge struct {
	peers   pick.Peers
	set     *pick.Set
	records []*pick.Record
}

func weirs(choose pick.Algorithm) func(int, []int64, uint64) balancer {
	return func(consumers int, weights []int64, seed uint64) balancer {
		w := &weir{choose: choose, chance: rand.New(rand.NewPCG(seed, choiceStream)).Uint64}
		for range consumers {
			k := &knowledge{}
			var candidates []pick.Candidate
			for i, weight := range weights {
				r := k.peers.Instance(address(i)).Record(method)
				k.records = append(k.records, r)
				candidates = append(candidates, pick.Candidate{Record: r, Weight: weight})
			}
			k.set = pick.NewSet(candidates)
			w.consumers = append(w.consumers, k)
		}
		return w
	}
}

func (w *weir) begin(consumer int, now time.Duration) int {
	k := w.consumers[consumer]
	i := w.choose(k.set, now, w.chance())
	k.records[i].Begin()
	return i
}

func (w *weir) end(consumer, provider int, took, now time.Duration, _ int) {
	r := w.consumers[consumer].records[provider]
	r.Took(took, now)
	r.Succeeded()
	r.End()
}

func address(i int) string { return fmt.Sprintf("10.0.%d.%d", i/250, i%250+1) }
