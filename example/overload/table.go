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

// print shows what happened: B with a guard and without, and then all in its order.
func (t tale) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n", t.protocol.title)
	t.printB(out)
	for i := range t.steps {
		t.printStep(out, i)
	}
	if len(t.steps) > 0 {
		fmt.Fprintf(out, "  At most %d calls of A ran at the same time. Of it, %d calls were set aside, and %d of these came back.\n", t.Most, t.A.Overdue, t.A.Returned)
	}
}

// printB compares how B was while A hung.
func (t tale) printB(out io.Writer) {
	const columns = "  %-18s %8v %9v %8v %14v %9v %9v\n"
	fmt.Fprintf(out, columns, "while A hangs", "calls", "", "", "waiting when", "median", "longest")
	fmt.Fprintf(out, columns, "", "of B", "answered", "refused", "A is back", "answer", "answer")
	for _, row := range []struct {
		title string
		part
		kind
	}{{"without a guard", t.bare, bare}, {"with overload", t.part, hangs}} {
		for i, s := range row.steps {
			if s.kind != row.kind {
				continue
			}
			n := row.tally(i, methodB)
			all, inTime := row.while(i, methodB)
			median, longest := row.latency(i, methodB)
			fmt.Fprintf(out, columns, row.title, all, n[answered], n[refused], all-inTime-n[refused], median, longest)
		}
	}
}

func (p part) latency(step int, method string) (median, longest string) {
	var took []time.Duration
	for _, c := range p.calls {
		if c.step == step && c.method == method && c.outcome == answered {
			took = append(took, c.took)
		}
	}
	if len(took) == 0 {
		return "-", "-"
	}
	slices.Sort(took)
	return short(took[len(took)/2]), short(took[len(took)-1])
}

// line is something that happened. Those with the same title that follow each other are
// shown as one.
type line struct {
	at    time.Time
	title string
	times int
	end   string // of the last one
}

func (t tale) printStep(out io.Writer, i int) {
	s := t.steps[i]
	fmt.Fprintf(out, "  %6.2fs  %s\n", s.began.Sub(t.began).Seconds(), s.kind)
	for _, l := range t.lines(s) {
		times := ""
		if l.times > 1 {
			times = fmt.Sprintf("%d x ", l.times)
		}
		fmt.Fprintf(out, "  %6.2fs    %s%s%s\n", l.at.Sub(t.began.Round(0)).Seconds(), times, l.title, l.end)
	}
	for _, m := range []string{methodA, methodB} {
		n := t.tally(i, m)
		all := n[answered] + n[refused] + n[failed] + n[waiting]
		if all == 0 {
			continue
		}
		fmt.Fprintf(out, "             %s: %d calls, %d answered", map[string]string{methodA: "A", methodB: "B"}[m], all, n[answered])
		if m == methodA && n[refused] > 0 {
			why := t.reasons(i)
			for _, reason := range slices.Sorted(maps.Keys(why)) {
				fmt.Fprintf(out, ", %d refused by %s", why[reason], reason)
			}
		}
		if n[failed]+n[waiting] > 0 {
			fmt.Fprintf(out, ", %d failed, %d not ended", n[failed], n[waiting])
		}
		fmt.Fprintln(out)
	}
	if s.stacks > 0 {
		fmt.Fprintf(out, "             a profile has %d goroutines in %s\n", s.stacks, hangsIn)
	}
	if s.drawn {
		fmt.Fprintf(out, "             the machine was busy with something else, the burst took %s: once more\n", short(s.spread))
	}
}

// lines are the events and alarms of a step in their order.
func (t tale) lines(s step) []line {
	var all []line
	for _, e := range t.eventsOf(s.began, s.ended) {
		l := line{at: e.At, times: 1, title: e.Kind}
		switch e.Kind {
		case "changed":
			l.title = fmt.Sprintf("changed: the cap is %d, it was %d, reason %s", e.To, e.From, e.Reason)
		case "held":
			l.title = fmt.Sprintf("held at %d, reason %s", e.To, e.Reason)
			if e.Signal != "" {
				l.title += ", signal " + e.Signal
			}
		case "overdue", "slow":
			l.end = ", for " + short(e.Age)
			if e.Caller != "" {
				l.end += " from " + e.Caller
			}
			if e.More > 0 {
				l.end += fmt.Sprintf(", and %d more", e.More)
			}
		}
		all = append(all, l)
	}
	for _, a := range t.bound() {
		if a.At.After(s.began.Round(0)) && !a.At.After(s.ended.Round(0)) {
			all = append(all, line{at: a.At, times: 1, title: fmt.Sprintf("alarm: %s, %d running at a limit of %d, %d refused since the last one", a.Level, a.Observed, a.Limit, a.Refused)})
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return a.at.Compare(b.at) })
	var out []line
	for _, l := range all {
		if n := len(out); n > 0 && out[n-1].title == l.title && !strings.HasPrefix(l.title, "alarm") {
			out[n-1].times, out[n-1].end = out[n-1].times+1, l.end
			continue
		}
		out = append(out, l)
	}
	return out
}

func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%dµs", d.Microseconds())
}
