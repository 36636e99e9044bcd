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

// printTable shows one protocol: a line per program and method, and below what
// the numbers mean to a caller.
func printTable(w io.Writer, p protocol, rows []row) {
	const line = "%-8s %-10s %10v %7v %8v %7v %11v %8v %9v %12v\n"
	fmt.Fprintf(w, "\n%s\n", p.title)
	fmt.Fprintf(w, line, "", "", "", "", "", "", "greatest", "typed", "empty", "hits per")
	fmt.Fprintf(w, line, "", "method", "configured", "offered", "admitted", "refused", "concurrency", "refusals", "successes", "refused call")
	for _, r := range rows {
		fmt.Fprintf(w, line, r.program.title, r.method, r.limit, offered, r.admitted, r.refused(), r.peak, r.typed, r.empty, r.hits())
	}
	for _, r := range rows {
		for _, text := range r.explain() {
			fmt.Fprintf(w, "  %s: %s\n", r.program.title, text)
		}
	}
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
	var lines []string
	if r.method == methods[0].name {
		if r.typed > 0 {
			lines = append(lines, fmt.Sprintf("%d of %d callers of %s were told: %s", r.typed, offered, r.method, r.text))
		}
		if r.failed > 0 {
			lines = append(lines, fmt.Sprintf("%d of %d callers of %s got this error, after %s attempts: %s",
				r.failed, offered, r.method, r.hits(), r.text))
		}
		if r.empty > 0 {
			lines = append(lines, fmt.Sprintf("%d of %d callers of %s got an empty success: no error and no greeting",
				r.empty, offered, r.method))
		}
	}
	if r.admitted < r.limit {
		lines = append(lines, fmt.Sprintf("%s may run %d calls and got %d: SayHello's limit replaced the service's",
			r.method, r.limit, r.admitted))
	}
	return lines
}
