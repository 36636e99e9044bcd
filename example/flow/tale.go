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
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// tale is all that was seen in one run of a scenario.
type tale struct {
	scenario scenario
	protocol protocol
	calls    []seen // as their callers see them; that with number n is at n-1
	record          // what the provider has seen
}

// first is when the first call arrived.
func (t tale) first() time.Duration {
	if len(t.Visits) == 0 {
		return 0
	}
	return t.Visits[0].Arrived
}

// raised is how long after the first call the rate may have been raised, 0 for never.
func (t tale) raised() time.Duration {
	if len(t.Changes) == 0 {
		return 0
	}
	return t.Changes[0].Before - t.first()
}

// span is a time of the provider.
type span struct{ from, to time.Duration }

func (s span) has(at time.Duration) bool { return at >= s.from && at < s.to }

// seconds are the whole seconds of a tale from its first call on.
func (t tale) seconds() (out []span) {
	if len(t.Visits) == 0 {
		return nil
	}
	last := t.Visits[len(t.Visits)-1].Arrived
	for from := t.first(); from+time.Second <= last; from += time.Second {
		out = append(out, span{from, from + time.Second})
	}
	return out
}

// figures are what came of the calls in some time.
type figures struct {
	offered, admitted, refused int
	waiting                    int64         // the most
	alwaysWaited               bool          // at each look somebody
	lost                       time.Duration // in which the machine held up the provider longer than a pacer makes good
}

func (t tale) figures(s span) figures {
	var n figures
	for _, v := range t.Visits {
		if s.has(v.Arrived) {
			n.offered++
		}
		switch {
		case v.Refused && s.has(v.Left):
			n.refused++
		case v.Entered > 0 && s.has(v.Entered):
			n.admitted++
		}
	}
	looks := 0
	n.alwaysWaited = true
	for _, l := range t.Samples {
		if s.has(l.At) {
			looks++
			n.waiting = max(n.waiting, l.Waiting)
			n.alwaysWaited = n.alwaysWaited && l.Waiting > 0
		}
	}
	n.alwaysWaited = n.alwaysWaited && looks > 0
	for _, l := range t.Stalls {
		n.lost += max(min(l.To, s.to)-max(l.From+heldUp, s.from), 0)
	}
	return n
}

// running is how many calls at most and on average ran in some time.
func (t tale) running(s span) (most int, mean float64) {
	var turns []time.Duration // when one begins, and negative when one ends
	total := time.Duration(0)
	for _, v := range t.Visits {
		if from, to := max(v.Entered, s.from), min(v.Done, s.to); v.Entered > 0 && from < to {
			turns = append(turns, from, -to)
			total += to - from
		}
	}
	slices.SortFunc(turns, func(a, b time.Duration) int {
		// At the same moment one ends first.
		return cmp.Or(cmp.Compare(max(a, -a), max(b, -b)), cmp.Compare(a, b))
	})
	now := 0
	for _, at := range turns {
		if at < 0 {
			now--
		} else {
			now++
		}
		most = max(most, now)
	}
	return most, total.Seconds() / (s.to - s.from).Seconds()
}

// allowed is how many calls may be admitted in a second of the scenario.
func (t tale) allowed(s span) float64 {
	return t.scenario.most(s.to-t.first(), t.raised()) - t.scenario.most(s.from-t.first(), t.raised())
}

// bound is what is allowed, or without a rate what runs.
func (t tale) bound(s span) float64 {
	if t.scenario.most != nil {
		return t.allowed(s)
	}
	n, _ := t.running(s)
	return float64(n)
}

// print is a table with a row for each second.
func (t tale) print(out io.Writer) {
	bound := "allowed"
	if t.scenario.most == nil {
		bound = "running"
	}
	fmt.Fprintf(out, "%8s %9s %9s %9s %9s %9s\n", "second", "offered", bound, "admitted", "refused", "waiting")
	for i, s := range t.seconds() {
		n := t.figures(s)
		held := ""
		if n.lost > 0 {
			held = fmt.Sprintf("  (held up for %s)", short(n.lost))
		}
		fmt.Fprintf(out, "%8d %9d %9.0f %9d %9d %9d%s\n", i+1, n.offered, t.bound(s), n.admitted, n.refused, n.waiting, held)
	}
	var admitted, turnedAway []time.Duration
	for _, v := range t.Visits {
		if v.Refused {
			turnedAway = append(turnedAway, v.Left-v.Arrived)
		} else {
			admitted = append(admitted, v.Entered-v.Arrived)
		}
	}
	fmt.Fprintf(out, "  of %d calls %d were admitted, half of them within %s; %d were refused, half of them within %s\n",
		len(t.Visits), len(admitted), short(middle(admitted)), len(turnedAway), short(middle(turnedAway)))
}

// middle is the median, 0 of nothing.
func middle(d []time.Duration) time.Duration { return share(d, 50) }

// share is what so many percent are not longer than.
func share(d []time.Duration, percent int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Clone(d)
	slices.Sort(d)
	return d[(len(d)-1)*percent/100]
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
