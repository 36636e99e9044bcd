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
)

// printTable shows one protocol: a line per limit and program, and below what
// the numbers mean to a caller.
func printTable(w io.Writer, p protocol, rows []row) {
	const line = "%-24s %-8s %8v %7v %6v %7v %8v %9v %12v\n"
	fmt.Fprintf(w, "\n%s\n", p.title)
	fmt.Fprintf(w, line, "", "", "", "", "", "", "typed", "empty", "hits per")
	fmt.Fprintf(w, line, "limit", "", "admitted", "at once", "waited", "refused", "refusals", "successes", "refused call")
	for i, r := range byTrial(rows) {
		title := r.trial.title
		if i%len(programs) > 0 {
			title = ""
		}
		peak := fmt.Sprint(r.peak)
		if r.trial.atOnce == 0 {
			peak = "-" // handlers return at once, so it tells nothing
		}
		fmt.Fprintf(w, line, title, r.program.title, r.admitted, peak, r.waited, r.refused(), r.typed, r.empty, r.hits())
	}
	for _, r := range byTrial(rows) {
		for _, text := range r.explain() {
			fmt.Fprintf(w, "  %s, %s: %s\n", r.trial.title, r.program.title, text)
		}
	}
}

// byTrial puts the programs' rows of each trial together.
func byTrial(rows []row) []row {
	var sorted []row
	for _, s := range sets {
		for _, t := range s.trials {
			for _, r := range rows {
				if r.trial == t {
					sorted = append(sorted, r)
				}
			}
		}
	}
	return sorted
}

// hits per call that got no greeting, as a number or as a range.
func (r row) hits() string {
	switch {
	case r.refused() == 0:
		return "-"
	case r.minHits == r.maxHits:
		return fmt.Sprint(r.minHits)
	default:
		return fmt.Sprintf("%d to %d", r.minHits, r.maxHits)
	}
}

// explain says what stands out in a row.
func (r row) explain() []string {
	t := r.trial
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case t.atOnce > 0 && r.peak > t.atOnce:
		say("no limit: %d calls ran at one time", r.peak)
	case r.admitted > t.admitted:
		say("no limit: %d calls were admitted", r.admitted)
	case t.atOnce > 0 && r.peak < t.atOnce:
		say("%d calls may run and %d did: SayHello's limit replaced the service's", t.atOnce, r.peak)
		return lines // and otherwise the same as SayHello
	case t.inTurn && !r.mixed:
		say("%d calls waited, and ran in the order in which they came", r.waited)
	}
	if r.typed > 0 && !t.brief {
		say("%d callers were told: %s", r.typed, r.text)
	}
	if r.failed > 0 {
		say("%d callers got this error, after %s attempts: %s", r.failed, r.hits(), r.text)
	}
	if r.empty > 0 {
		say("%d callers got an empty success: no error and no greeting", r.empty)
	}
	return lines
}
