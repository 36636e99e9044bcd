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
	type sum struct{ limit, top, aside int64 }
	sums := map[site]*sum{}
	overload.Caps(c.runtime, func(s overload.State) {
		at := site{s.Side.String(), s.Service, s.Method}
		if sums[at] == nil {
			sums[at] = &sum{}
		}
		sums[at].limit = max(sums[at].limit, s.Limit)
		sums[at].top = max(sums[at].top, s.Cap)
		sums[at].aside += s.Aside
	})
	for at, s := range sums {
		out.gauge(overloadLimit, float64(s.limit), at.Side, at.Service, at.Method)
		out.gauge(overloadCap, float64(s.top), at.Side, at.Service, at.Method)
		out.gauge(overloadOverdue, float64(s.aside), at.Side, at.Service, at.Method)
	}
	overload.AllTotals(c.runtime, func(k overload.TotalsKey, t *overload.Totals) {
		side := k.Side.String()
		out.counter(overloadOverdueTotal, float64(t.Overdue()), side, k.Service, k.Method)
		out.counter(slowCalls, float64(t.SlowCalls()), side, k.Service, k.Method)
		t.Changes(func(reason string, n int64) {
			out.counter(overloadChanges, float64(n), side, k.Service, k.Method, reason)
		})
	})
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
