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
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// tale is all that was seen of a way.
type tale struct {
	way    way
	phases []phase
	asks   map[string][]ask // by group
	strays []ask            // of the one without a group
}

// sum is what became of a group's calls in a phase.
type sum struct {
	calls, answered int
	refused         map[string]int // by guard and reason
	failed          map[string]int // by error
	by              map[string]int // answers of each provider
	p50, p99        time.Duration  // of the answers
}

func (s sum) refusals() int { return total(s.refused) }
func (s sum) failures() int { return total(s.failed) }

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// sum counts the calls of a phase.
func (t tale) sum(group, phase string) sum {
	return sumOf(t.asks[group], phase)
}

func sumOf(asks []ask, phase string) sum {
	s := sum{refused: map[string]int{}, failed: map[string]int{}, by: map[string]int{}}
	var took []int64
	for _, a := range asks {
		if a.Phase != phase {
			continue
		}
		s.calls++
		switch {
		case a.Refused != "":
			s.refused[a.Refused]++
		case a.Failed != "":
			s.failed[a.Failed]++
		default:
			s.answered++
			s.by[a.By]++
			took = append(took, a.Took)
		}
	}
	slices.Sort(took)
	s.p50, s.p99 = quantile(took, 0.50), quantile(took, 0.99)
	return s
}

// quantile is that of sorted microseconds, the next higher value.
func quantile(sorted []int64, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := min(int(q*float64(len(sorted))), len(sorted)-1)
	return time.Duration(sorted[i]) * time.Microsecond
}

// print is a table: a row for each phase and group.
func (t tale) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n  %-8s%-10s%7s%10s%9s%8s%8s%8s  %s\n", t.way,
		"phase", "group", "calls", "answered", "refused", "failed", "p50", "p99", "why refused, and who answered")
	for _, phase := range phases {
		for _, group := range groups {
			s := t.sum(group, phase)
			fmt.Fprintf(out, "  %-8s%-10s%7d%10d%9d%8d%8s%8s  %s\n", phase, group,
				s.calls, s.answered, s.refusals(), s.failures(), short(s.p50), short(s.p99), s.remark())
			for _, e := range slices.Sorted(maps.Keys(s.failed)) {
				fmt.Fprintf(out, "    failed: %.160s\n", strings.ReplaceAll(e, "\n", " "))
			}
		}
	}
	if len(t.strays) > 0 {
		s := sumOf(t.strays, "")
		fmt.Fprintf(out, "  a consumer without a group: %d calls, %d answered, %d refused: %s\n", s.calls, s.answered, s.refusals(), s.remark())
	}
}

func (s sum) remark() string {
	out := slices.Sorted(maps.Keys(s.refused))
	if len(s.by) > 0 {
		out = append(out, strings.Join(slices.Sorted(maps.Keys(s.by)), " "))
	}
	return strings.Join(out, "; ")
}

// short is a duration for people.
func short(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	if d >= 10*time.Second {
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}
