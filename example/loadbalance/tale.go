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
	"slices"
	"strings"
	"time"
)

// tale is all that was seen of a story.
type tale struct {
	protocol protocol
	phases   []phase
	joined   time.Time         // when the first of those who join was there
	roles    map[string]role   // by address
	records  map[string]record // by load balance
}

// figures are what a consumer saw of a provider in a phase.
type figures struct {
	tries, first, failed int
	took                 time.Duration // of those that were answered, on the average
}

// sum is what a consumer saw in a phase.
type sum struct {
	of           [roles]figures
	tries, first int
	calls, lost  int // as the callers see it
	median       time.Duration
	errors       map[string]bool
}

// share is the part of the calls that a balancer sent to a provider. The tries after an
// error are not among them.
func (s sum) share(r role) float64 {
	if s.first == 0 {
		return 0
	}
	return float64(s.of[r].first) / float64(s.first)
}

func (p phase) has(at int64) bool {
	return at >= p.from.UnixMicro() && at < p.to.UnixMicro()
}

// sum counts what began in a phase.
func (t tale) sum(balance string, p phase) (s sum) {
	s.errors = map[string]bool{}
	var took [roles]int64
	for _, a := range t.records[balance].Tries {
		if !p.has(a.At) {
			continue
		}
		f := &s.of[t.roles[a.To]]
		f.tries++
		s.tries++
		if a.First {
			f.first++
			s.first++
		}
		if a.Failed {
			f.failed++
		} else {
			took[t.roles[a.To]] += a.Took
		}
	}
	for r, sum := range took {
		if n := s.of[r].tries - s.of[r].failed; n > 0 {
			s.of[r].took = time.Duration(sum) * time.Microsecond / time.Duration(n)
		}
	}
	var all []int64
	for _, a := range t.records[balance].Asks {
		if !p.has(a.At) {
			continue
		}
		s.calls++
		if a.Lost != "" {
			s.lost++
			s.errors[a.Lost] = true
		}
		all = append(all, a.Took)
	}
	if len(all) > 0 {
		slices.Sort(all)
		s.median = time.Duration(all[len(all)/2]) * time.Microsecond
	}
	return s
}

func (t tale) phase(title string) phase {
	i := slices.IndexFunc(t.phases, func(p phase) bool { return p.title == title })
	if i < 0 {
		return phase{}
	}
	return t.phases[i]
}

// print is a table for each balancer: a row for each phase, a column for each provider.
func (t tale) print(out io.Writer) {
	for _, balance := range balances {
		fmt.Fprintf(out, "\n%-37s", balance+", "+t.protocol.title)
		for r := range role(roles) {
			fmt.Fprintf(out, "  %-17s", r)
		}
		fmt.Fprintf(out, "%7s%6s%8s\n", "calls", "lost", "median")
		for _, p := range t.phases {
			s := t.sum(balance, p)
			fmt.Fprintf(out, "  %-35s", p.title)
			for r := range role(roles) {
				fmt.Fprintf(out, "  %-17s", s.cell(r))
			}
			fmt.Fprintf(out, "%7d%6d%8s\n", s.calls, s.lost, short(s.median))
			for e := range s.errors {
				fmt.Fprintf(out, "    lost: %.160s\n", strings.ReplaceAll(e, "\n", " "))
			}
		}
	}
}

// cell is what a provider got: calls, its share of what the balancer chose first, and
// how many of the calls failed.
func (s sum) cell(r role) string {
	f := s.of[r]
	switch {
	case f.tries == 0:
		return "-"
	case f.failed == 0:
		return fmt.Sprintf("%d %.1f%%", f.tries, 100*s.share(r))
	}
	return fmt.Sprintf("%d %.1f%% (%d)", f.tries, 100*s.share(r), f.failed)
}

// short is a duration for people.
func short(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return fmt.Sprintf("%.1fms", float64(d.Microseconds())/1000)
}
