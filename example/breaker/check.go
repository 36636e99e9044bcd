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
	"time"
)

// What conf/weir.yaml says.
const (
	slowCall = 200 * time.Millisecond
	window   = time.Second
	minCalls = 10
	probes   = 3
)

// fewest is how many callers at least were refused while the dependency was not well.
const fewest = 5

// check compares a tale with what is promised. Nothing depends on how fast the
// machine is. On a very slow one the breaker may open while the dependency is
// well, if it was right to: callers saw the slow calls.
func (t tale) check() []error {
	f := &faults{title: t.protocol.title}
	t.checkChanges(f)
	for i, p := range t.phases {
		t.checkPhase(f, i, p)
	}
	t.checkCalls(f)
	t.checkProbes(f)
	return f.list
}

type faults struct {
	title string
	list  []error
}

func (f *faults) unless(ok bool, format string, args ...any) {
	if !ok {
		f.list = append(f.list, errors.New(f.title+", "+fmt.Sprintf(format, args...)))
	}
}

// checkChanges looks at the changes of state: one follows from the other, and each
// opening is borne out by what callers saw.
func (t tale) checkChanges(f *faults) {
	state := "closed"
	for _, e := range t.events {
		f.unless(e.From == state, "a change from %s to %s, but the breaker was %s", e.From, e.To, state)
		state = e.To
		switch {
		case e.From == "closed" && e.To == "open":
			t.checkOpening(f, e)
		case e.From == "half-open" && e.To == "open":
			f.unless(e.Reason == "probes-failed", "probes came to an end with reason %s, want probes-failed", e.Reason)
		}
	}
	f.unless(state == "closed", "the breaker is %s in the end, want closed", state)
}

// checkOpening compares what the breaker counted with what callers saw, who see a
// call begin before the breaker does and end after.
func (t tale) checkOpening(f *faults, e change) {
	slow, broken := int64(0), int64(0)
	for _, c := range t.calls {
		if c.began.After(e.heard) || c.end().Before(e.At.Add(-window)) {
			continue
		}
		if c.took > slowCall {
			slow++
		}
		if c.outcome == failed {
			broken++
		}
	}
	f.unless(e.Calls >= minCalls && e.Observed >= e.Limit, "opened by %s at %d %% of %d calls, want at least %d %% of %d", e.Reason, e.Observed, e.Calls, e.Limit, minCalls)
	f.unless(e.Slow <= slow, "opened by %s with %d slow calls, and callers saw %d", e.Reason, e.Slow, slow)
	f.unless(e.Failures <= broken, "opened by %s with %d failures, and callers saw %d", e.Reason, e.Failures, broken)
	f.unless(e.Reason == "slow-ratio" || e.Reason == "error-ratio", "opened by %s, want slow-ratio or error-ratio", e.Reason)
}

// checkPhase looks at what one phase is there to show.
func (t tale) checkPhase(f *faults, i int, p phase) {
	if p.disturbed {
		return // and the phase was tried again
	}
	changes := 0
	var openings []change
	for _, e := range t.events {
		if e.At.Before(p.began) || !e.At.Before(p.ended) {
			continue
		}
		changes++
		if e.From == "closed" {
			openings = append(openings, e)
		}
	}
	n := map[outcome]int{}
	for _, c := range t.calls {
		if c.phase == i && !c.end().After(p.ended) {
			n[c.outcome]++
		}
	}
	if p.reason == "" {
		for _, e := range openings {
			// What the breaker says of slow calls is held against what callers saw.
			f.unless(e.Reason == "slow-ratio", "%s: the breaker opened by %s, want that it does not", p.title, e.Reason)
		}
	} else {
		f.unless(len(openings) == 1 && openings[0].Reason == p.reason, "%s: the breaker opened %d times, want once, by %s", p.title, len(openings), p.reason)
		f.unless(p.rounds >= rounds, "%s: %d rounds of probes, want %d and more", p.title, p.rounds, rounds)
		f.unless(p.through > 0 && p.through <= p.rounds*probes, "%s: %d calls passed in %d rounds of probes, want some and at most %d in each", p.title, p.through, p.rounds, probes)
		f.unless(n[refused] >= fewest, "%s: %d callers were refused before it was over, want %d and more", p.title, n[refused], fewest)
	}
	switch p.is {
	case healthy:
		f.unless(n[answered] >= enough, "%s: %d calls answered, want %d and more", p.title, n[answered], enough)
	case declining:
		f.unless(n[no] >= enough, "%s: %d errors of the business, want %d and more", p.title, n[no], enough)
		f.unless(p.failures == 0, "%s: the breaker counted %d failures, want none", p.title, p.failures)
		f.unless(p.counted >= minCalls, "%s: the breaker counted %d calls, want at least %d, of which it would have opened", p.title, p.counted, minCalls)
		f.unless(n[refused] == 0 || changes > 0, "%s: %d callers were refused by a breaker that was closed", p.title, n[refused])
	case hanging:
		t.checkHanging(f, p)
	}
}

// checkHanging sees that the breaker did not wait for what never came back.
func (t tale) checkHanging(f *faults, p phase) {
	back, hung := 0, 0
	for _, c := range t.calls {
		switch {
		case c.began.Before(p.stopped) || c.began.After(p.opened):
		case c.end().After(p.opened):
			hung++
		case c.took > slowCall && c.outcome != refused:
			back++
		}
	}
	f.unless(back == 0, "%s: %d slow calls had come back when the breaker opened, want none: the dependency stood still", p.title, back)
	f.unless(hung > 0, "%s: no call hung when the breaker opened", p.title)
}

// checkCalls sees that each call ended as it should: refused, typed and without
// having been sent, or as the dependency was.
func (t tale) checkCalls(f *faults) {
	hits := map[int]int{}
	for _, v := range t.visits {
		hits[v.Call]++
	}
	for _, c := range t.calls {
		want := 1
		switch c.outcome {
		case waiting:
			f.unless(false, "call %d has not ended", c.id)
		case empty:
			f.unless(false, "call %d ended with neither an error nor its greeting, but %q", c.id, c.text)
		case failed:
			f.unless(t.while(c, failing), "call %d failed while nothing did: %s", c.id, c.text)
		case no:
			f.unless(t.while(c, declining), "call %d was declined while nothing was: %s", c.id, c.text)
		case refused:
			want = 0
			r := c.refusal
			f.unless(r.Guard == "breaker" && r.Resource == "greet.GreetService#SayHello" && !r.Forwarded, "call %d was refused by another: %s", c.id, c.text)
			switch r.Reason {
			case "slow-ratio", "error-ratio", "probes-failed", "probing":
			default:
				f.unless(false, "call %d was refused for another reason: %s", c.id, c.text)
			}
		}
		f.unless(hits[c.id] == want, "call %d, %s, arrived %d times, want %d", c.id, c.outcome, hits[c.id], want)
	}
}

// while reports whether some of a call was in a phase of that condition.
func (t tale) while(c seen, is condition) bool {
	for _, p := range t.phases {
		if p.is == is && c.began.Before(p.ended) && c.end().After(p.began) {
			return true
		}
	}
	return false
}

// checkProbes counts for each time in half-open the calls that certainly passed in
// it: they began after its begin and had arrived at its end.
func (t tale) checkProbes(f *faults) {
	arrived := map[int]time.Time{}
	for _, v := range t.visits {
		arrived[v.Call] = v.At
	}
	for i := 0; i+1 < len(t.events); i++ {
		from, to := t.events[i], t.events[i+1]
		if from.To != "half-open" {
			continue
		}
		n := 0
		for _, c := range t.calls {
			at, ok := arrived[c.id]
			// An arrival is of another process: only the wall clock is common.
			if ok && c.began.After(from.At) && at.Round(0).Before(to.At.Round(0)) {
				n++
			}
		}
		f.unless(n <= probes, "%d probes in one time in half-open, want at most %d", n, probes)
	}
}
