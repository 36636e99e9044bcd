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
	"errors"
	"fmt"
	"math"
)

// check compares rows with what is claimed of Weir's algorithms where all providers have
// the same weight. What follows the same rule may differ by the tolerance, since
// dubbo-go's choices take no seed.
func check(rows []row, tolerance float64) error {
	var broken []error
	unless := func(ok bool, format string, args ...any) {
		if !ok {
			broken = append(broken, fmt.Errorf(format, args...))
		}
	}
	for load, by := range byLoad(rows) {
		for _, ours := range []string{weirLeastActive, weirShortestResponse, weirFewChoices} {
			for _, theirs := range []string{random, roundRobin} {
				unless(load < 0.8 || by[ours].p99 < by[theirs].p99, "load %v: p99 of %s is %s, of %s %s",
					load, ours, short(by[ours].p99), theirs, short(by[theirs].p99))
			}
		}
		filter := by[leastActiveFilter]
		unless(math.Abs(by[weirLeastActive].p99/filter.p99-1) <= tolerance, "load %v: p99 of %s is %s, of %s %s, want about the same",
			load, weirLeastActive, short(by[weirLeastActive].p99), leastActiveFilter, short(filter.p99))
		unless(by[weirShortestResponse].p99 < filter.p99, "load %v: p99 of %s is %s, of %s %s",
			load, weirShortestResponse, short(by[weirShortestResponse].p99), leastActiveFilter, short(filter.p99))
		for _, theirs := range []string{leastActiveFilter, p2cTold} {
			unless(by[weirFewChoices].p99 < by[theirs].p99, "load %v: p99 of %s is %s, of %s %s",
				load, weirFewChoices, short(by[weirFewChoices].p99), theirs, short(by[theirs].p99))
		}
	}
	return errors.Join(broken...)
}

// notAhead says where an algorithm of Weir's is behind dubbo-go's least active that is
// told the counts, by more than chance.
func notAhead(rows []row) (out []string) {
	const chance = 1.1
	for _, r := range rows {
		if !r.kind.weir {
			continue
		}
		theirs, there := byLoad(rows)[r.load][leastActiveFilter]
		if !there {
			continue
		}
		for _, m := range []struct {
			name         string
			ours, theirs float64
		}{{"p50", r.p50, theirs.p50}, {"p99", r.p99, theirs.p99}, {"mean", r.mean, theirs.mean}} {
			if m.ours > chance*m.theirs {
				out = append(out, fmt.Sprintf("%s at load %v: %s %s, not %s", r.kind.name, r.load, m.name, short(m.ours), short(m.theirs)))
			}
		}
	}
	return out
}

func byLoad(rows []row) map[float64]map[string]row {
	out := map[float64]map[string]row{}
	for _, r := range rows {
		if out[r.load] == nil {
			out[r.load] = map[string]row{}
		}
		out[r.load][r.kind.name] = r
	}
	return out
}
