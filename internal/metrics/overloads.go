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
	"github.com/weir-go/weir/filter/overload"
	"github.com/weir-go/weir/internal/machine"
)

// overloads collects the caps of a method together: those of all references.
func (c *Collector) overloads(out sender) {
	type sum struct {
		top                    int64
		aside, overdue, slowed int64
		changes                map[string]int64
	}
	sums := map[site]*sum{}
	overload.Caps(c.runtime, func(s overload.State) {
		at := site{s.Side.String(), s.Service, s.Method}
		if sums[at] == nil {
			sums[at] = &sum{changes: map[string]int64{}}
		}
		all := sums[at]
		all.top = max(all.top, s.Cap)
		all.aside += s.Aside
		all.overdue += s.Overdue
		all.slowed += s.SlowCalls
		for reason, n := range s.Changes {
			all.changes[reason] += n
		}
	})
	for at, s := range sums {
		out.gauge(overloadCap, float64(s.top), at.Side, at.Service, at.Method)
		out.gauge(overloadOverdue, float64(s.aside), at.Side, at.Service, at.Method)
		out.counter(overloadOverdueTotal, float64(s.overdue), at.Side, at.Service, at.Method)
		out.counter(slowCalls, float64(s.slowed), at.Side, at.Service, at.Method)
		for _, reason := range overload.ChangeReasons {
			out.counter(overloadChanges, float64(s.changes[reason]), at.Side, at.Service, at.Method, reason)
		}
	}
}

// machine collects the signals that are read.
func (c *Collector) machine(out sender) {
	for _, s := range machine.Of(c.runtime).States() {
		if s.Limit <= 0 {
			continue
		}
		tight := 0.0
		if s.Tight {
			tight = 1
		}
		if s.Known {
			out.gauge(healthValue, s.Value, s.Name)
		}
		out.gauge(healthLimit, s.Limit, s.Name)
		out.gauge(healthTight, tight, s.Name)
	}
}
