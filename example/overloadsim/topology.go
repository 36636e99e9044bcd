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
	"math"
	"time"

	"github.com/weir-go/weir/internal/dagor/sim"
)

// system is the topology run.
func system(r *report) {
	loads := []float64{1, 2, 4, 8}
	runs := make([]*sim.TopologyStats, len(loads)+1)
	took := make([]time.Duration, len(runs))
	grid([]policy{{}}, len(runs), func(_ policy, i int) struct{} {
		// The last run has the load of the one at 4x, and next to no bound on what is sent again.
		t := sim.Topology{Seed: 1, Load: func(time.Duration) float64 { return loads[min(i, 2)] }}
		if i < len(loads) {
			t.Load = func(time.Duration) float64 { return loads[i] }
		} else {
			t.Budget = 3
		}
		start := time.Now()
		runs[i] = t.Run()
		took[i] = time.Since(start)
		return struct{}{}
	})
	admitted := func(s sim.HotSecond) float64 { return float64(s.Admitted) }
	passes := func(s sim.HotSecond) float64 { return s.Passes }
	rows := [][]string{{
		"load", "admitted a second", "its variation", "its turns a minute", "the cursor's variation", "its turns", "sent per call", "% of the optimum", "by class, %",
	}}
	capacity := 20 * slots / service.Seconds()
	turns, variation, others, lowest, optimum := 0.0, 0.0, 1.0, 1.0, 1.0
	for i, s := range runs {
		load, name := loads[min(i, 2)], ""
		if i < len(loads) {
			load = loads[i]
			name = fmt.Sprintf("%.0fx", load)
		} else {
			name = fmt.Sprintf("%.0fx, resends without a budget", load)
		}
		a := s.Whole(admitted, 0.2*capacity)
		c := s.Whole(passes, 0.1)
		classes := ""
		for j, k := range s.Hot {
			if j > 0 {
				classes += " / "
			}
			classes += percent(k.Success())
		}
		rows = append(rows, []string{
			name, fmt.Sprintf("%.0f of %.0f", a.Mean, capacity), fmt.Sprintf("%.3f", a.Variation), fmt.Sprintf("%.1f", a.Turns), fmt.Sprintf("%.3f", c.Variation),
			fmt.Sprintf("%.1f", c.Turns), fmt.Sprintf("%.2f", s.Amplification()), percent(s.Success() * max(1, load)), classes,
		})
		if i < len(loads) {
			turns, variation = math.Max(turns, a.Turns), math.Max(variation, a.Variation)
			for _, k := range s.Others {
				others = math.Min(others, k.Success())
			}
			if load <= 4 {
				lowest = math.Min(lowest, s.Hot[0].Success())
			}
			optimum = math.Min(optimum, s.Success()*load)
		}
	}
	r.say("What the hot service's 20 instances do together, from second to second. A turn is a change of direction by more than a fifth of what they can do, or a tenth of all tasks for the cursor; a Poisson process of that rate varies by %.3f:", 1/math.Sqrt(capacity))
	r.table(rows)
	if r.full {
		var sent int
		var spent time.Duration
		for i, s := range runs {
			sent += s.Sent
			spent += took[i]
		}
		// Not in the document: it would not be the same twice.
		fmt.Printf("T    %d calls were sent, %d ns for each on this machine\n", sent, spent.Nanoseconds()/int64(sent))
	}
	r.must(turns == 0, "what is admitted does not swing", "%.1f turns a minute", turns)
	r.must(variation < 0.05, "it varies little more than by chance", "%.3f", variation)
	r.must(others > 0.999, "tasks that need not the hot service are not touched", "%s %%", percent(others))
	r.say("At 8x the top class alone asks for 0.8 of what the hot service can do, and the budget for resends is spent by what is less important: a call that met a full instance is not sent to another.")
	r.must(lowest >= 0.99, "99 % of the top class up to 4x", "%s %% at least", percent(lowest))
	r.must(optimum >= 0.85, "85 % of the optimum, where a task needs two calls of the hot service", "%s %% at least", percent(optimum))
}
