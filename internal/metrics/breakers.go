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

package metrics

import (
	"github.com/weir-go/weir/filter/circuitbreaker"
	"github.com/weir-go/weir/internal/breaker"
)

var states = []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen}

// breakers collects those of a method together: addresses are no labels.
func (c *Collector) breakers(out sender) {
	type sum struct {
		states [breaker.HalfOpen + 1]int
		hung   int64
	}
	sums := map[site]*sum{}
	circuitbreaker.Breakers(c.runtime, func(k circuitbreaker.Key, s breaker.Stats) {
		at := site{k.Side.String(), k.Service, k.Method}
		if sums[at] == nil {
			sums[at] = &sum{}
		}
		sums[at].states[s.State]++
		sums[at].hung += s.Hung
	})
	for at, s := range sums {
		for _, state := range states {
			out.gauge(breakers, float64(s.states[state]), at.Side, at.Service, at.Method, state.String())
		}
		out.gauge(hung, float64(s.hung), at.Side, at.Service, at.Method)
	}
	circuitbreaker.AllChanges(c.runtime, func(k circuitbreaker.ChangesKey, ch *circuitbreaker.Changes) {
		for _, state := range states {
			out.counter(transitions, float64(ch.To(state)), k.Side.String(), k.Service, k.Method, state.String())
		}
	})
}
