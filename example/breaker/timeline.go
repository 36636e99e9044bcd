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
	"time"
)

// slice is the time that a row tells of.
const slice = 500 * time.Millisecond

// timeline prints a tale while it happens: what the breaker did, and for each slice
// of time what callers saw.
type timeline struct {
	out    io.Writer
	begun  bool
	until  time.Time // what is before has been printed
	events int       // printed
}

// show prints the slices that are over.
func (l *timeline) show(t tale) {
	const columns = "%7s  %-16s %8s %8s %8s %8s %8s %9s %9s\n"
	if !l.begun {
		l.begun, l.until = true, t.began
		fmt.Fprintf(l.out, "\n%s\n", t.protocol.title)
		fmt.Fprintf(l.out, columns, "", "the dependency", "", "business", "", "", "still", "median", "longest")
		fmt.Fprintf(l.out, columns, "time", "is", "answered", "errors", "failed", "refused", "waiting", "answer", "answer")
	}
	for now := time.Now(); now.Sub(l.until) >= slice; {
		l.slice(t, l.until.Add(slice))
	}
}

// finish prints what is left, and sums up.
func (l *timeline) finish(t tale) {
	if !l.begun {
		return // there is nothing to tell
	}
	l.slice(t, time.Now())
	n := map[outcome]int{}
	var waits []time.Duration
	for _, c := range t.calls {
		n[c.outcome]++
		if c.outcome == refused {
			waits = append(waits, c.took)
		}
	}
	fmt.Fprintf(l.out, "  %d calls: %d answered, %d errors of the business, %d failed, %d refused by the breaker", len(t.calls), n[answered], n[no], n[failed], n[refused])
	if len(waits) > 0 {
		slices.Sort(waits)
		fmt.Fprintf(l.out, ", half of these within %s", short(waits[len(waits)/2]))
	}
	fmt.Fprintln(l.out)
}

// slice prints the time up to end.
func (l *timeline) slice(t tale, end time.Time) {
	for ; l.events < len(t.events) && t.events[l.events].At.Before(end); l.events++ {
		l.event(t, t.events[l.events])
	}
	is := ""
	for _, p := range t.phases {
		if !p.began.Before(end) {
			break
		}
		is = p.title
	}
	n := map[outcome]int{}
	var took []time.Duration
	for _, c := range t.calls {
		switch {
		case !c.began.Before(end):
		case !c.ended() || !c.end().Before(end):
			n[waiting]++
		case c.end().Before(l.until):
		default:
			n[c.outcome]++
			if c.outcome == answered || c.outcome == no {
				took = append(took, c.took)
			}
		}
	}
	median, longest := "-", "-"
	if len(took) > 0 {
		slices.Sort(took)
		median, longest = short(took[len(took)/2]), short(took[len(took)-1])
	}
	fmt.Fprintf(l.out, "%6.1fs  %-16s %8d %8d %8d %8d %8d %9s %9s\n",
		end.Sub(t.began).Seconds(), is, n[answered], n[no], n[failed], n[refused], n[waiting], median, longest)
	l.until = end
}

func (l *timeline) event(t tale, e change) {
	why := ""
	switch {
	case e.To == "open" && e.From == "closed":
		why = fmt.Sprintf(": %s, %d %% of %d calls, %d %% are allowed", e.Reason, e.Observed, e.Calls, e.Limit)
	case e.To == "open":
		why = fmt.Sprintf(": %s, %d of %d were healthy", e.Reason, e.Observed, e.Limit)
	}
	fmt.Fprintf(l.out, "%7s  %6.2fs %s -> %s%s\n", "", e.At.Sub(t.began).Seconds(), e.From, e.To, why)
}

// short is a duration for people.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%dµs", d.Microseconds())
}
