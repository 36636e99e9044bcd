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

	"github.com/weir-go/weir"
)

// check compares a tale with what is promised. Nothing depends on how fast the machine is.
func (t tale) check() []error {
	f := &faults{title: t.protocol.title}
	seen := map[kind]bool{}
	for i, s := range t.steps {
		f.step = string(s.kind)
		t.checkRefusals(f, i)
		t.checkChain(f, s)
		if s.drawn {
			continue // and it was tried again
		}
		seen[s.kind] = true
		switch s.kind {
		case crowds:
			t.checkCrowd(f, i)
		case tight:
			t.checkTight(f, i)
		case hangs:
			t.checkHang(f, i)
		case leaks:
			t.checkLeak(f, i)
		case warns:
			t.checkWarning(f, i)
		}
	}
	f.step = "in the end"
	for _, k := range []kind{crowds, tight, hangs, leaks, warns} {
		f.unless(seen[k], "nothing was seen of: %s", k)
	}
	t.checkEnd(f)
	return f.list
}

type faults struct {
	title, step string
	list        []error
}

func (f *faults) unless(ok bool, format string, args ...any) {
	if !ok {
		f.list = append(f.list, errors.New(f.title+", "+f.step+": "+fmt.Sprintf(format, args...)))
	}
}

// tally counts how the calls of a step and a method ended.
func (p part) tally(step int, method string) map[outcome]int {
	n := map[outcome]int{}
	for _, c := range p.calls {
		if c.step == step && c.method == method {
			n[c.outcome]++
		}
	}
	return n
}

// reasons counts the refusals of a step by reason.
func (p part) reasons(step int) map[string]int {
	n := map[string]int{}
	for _, c := range p.calls {
		if c.step == step && c.outcome == refused {
			n[c.refusal.Reason]++
		}
	}
	return n
}

// checkRefusals sees that no call failed but by a refusal, which is typed, of this guard
// and of a cap that there was.
func (t tale) checkRefusals(f *faults, step int) {
	for _, c := range t.calls {
		if c.step != step {
			continue
		}
		switch c.outcome {
		case failed:
			f.unless(false, "a call of %s failed: %s", c.method, c.text)
		case waiting:
			f.unless(false, "a call of %s has not ended", c.method)
		case refused:
			r := c.refusal
			f.unless(r.Guard == "overload" && r.Resource == "greet.GreetService#"+methodA && !r.Forwarded, "a call of %s was refused by another: %v", c.method, r)
			f.unless(r.Limit >= limit && r.Limit <= highest, "a call was refused at a cap of %d, want %d to %d", r.Limit, limit, highest)
			f.unless(r.Reason != "concurrency" || r.Limit == highest, "a call was refused by %s at %d, which is not the highest cap", r.Reason, r.Limit)
		}
	}
}

// checkChain sees that each change of the cap follows from the one before, from the limit
// back to the limit, and that it grows in the good case only.
func (t tale) checkChain(f *faults, s step) {
	at := int64(limit)
	for _, e := range t.eventsOf(s.began, s.ended) {
		if e.Kind != "changed" {
			continue
		}
		f.unless(e.From == at, "the cap changed from %d, but was %d", e.From, at)
		f.unless(e.To <= highest && e.To >= limit, "the cap is %d, want %d to %d", e.To, limit, highest)
		f.unless((e.To > e.From) == (e.Reason == "healthy"), "the cap changed from %d to %d by %s", e.From, e.To, e.Reason)
		at = e.To
	}
	f.unless(at == limit, "the cap is %d in the end, want %d", at, limit)
}

// some counts the events that are so.
func some(events []weir.OverloadEvent, kind, reason string) (n int) {
	for _, e := range events {
		if e.Kind == kind && (reason == "" || e.Reason == reason) {
			n++
		}
	}
	return n
}

func (t tale) checkCrowd(f *faults, step int) {
	n, events := t.tally(step, methodA), t.eventsOf(t.steps[step].began, t.steps[step].ended)
	f.unless(n[answered] == crowd, "%d calls were answered and %d refused, want all %d answered", n[answered], n[refused], crowd)
	f.unless(some(events, "changed", "healthy") == 2, "the cap grew %d times, want twice", some(events, "changed", "healthy"))
	f.unless(some(events, "changed", "calm") == 2, "it went back %d times by calm, want twice", some(events, "changed", "calm"))
	f.unless(some(events, "held", "") == 0, "it was held %d times, want never", some(events, "held", ""))
}

func (t tale) checkTight(f *faults, step int) {
	n, events := t.tally(step, methodA), t.eventsOf(t.steps[step].began, t.steps[step].ended)
	f.unless(n[answered] == limit && n[refused] == crowd-limit, "%d calls were answered and %d refused, want %d and %d", n[answered], n[refused], limit, crowd-limit)
	f.unless(t.reasons(step)["tight"] == n[refused], "reasons of refusals are %v, want tight only", t.reasons(step))
	f.unless(some(events, "changed", "") == 0, "the cap changed %d times, want never", some(events, "changed", ""))
	f.unless(some(events, "held", "tight") >= 1, "it was not told that the cap is held")
	for _, e := range events {
		f.unless(e.Kind != "held" || e.Signal == databaseSignal, "held by the signal %q, want %q", e.Signal, databaseSignal)
	}
}

func (t tale) checkHang(f *faults, step int) {
	s := t.steps[step]
	events := t.eventsOf(s.began, s.ended)
	all, inTime := t.while(step, methodB)
	f.unless(t.tally(step, methodB)[refused] == 0, "%d calls of B were refused, want none", t.tally(step, methodB)[refused])
	f.unless(all >= enoughB && inTime*10 >= all*8, "of %d calls of B %d were answered before A was back, want at least %d and 80 %% of them", all, inTime, enoughB)
	f.unless(t.reasons(step)["slow-calls"] >= someRefused, "reasons of refusals are %v, want slow-calls at least %d times", t.reasons(step), someRefused)
	f.unless(some(events, "held", "slow-calls") >= 1, "it was not told that the cap is held by slow calls")
	f.unless(some(events, "slow", "") >= 1, "it was not told of a slow call")
	f.unless(s.stacks > 0, "no profile has %s", hangsIn)
	for _, e := range events {
		f.unless(e.Kind != "slow" || e.Age >= slowCall, "a call is told to be slow after %s, want %s or more", e.Age, slowCall)
	}
}

// while tells how many calls of a method began while A hung, and how many of them were
// answered before it was back.
func (p part) while(step int, method string) (all, inTime int) {
	s := p.steps[step]
	for _, c := range p.calls {
		if c.step == step && c.method == method {
			all++
			if c.outcome == answered && c.end().Before(s.back) {
				inTime++
			}
		}
	}
	return all, inTime
}

func (t tale) checkLeak(f *faults, step int) {
	s := t.steps[step]
	events := t.eventsOf(s.began, s.ended)
	var last time.Time
	for _, e := range events {
		if e.Kind == "overdue" {
			last = e.At
			f.unless(e.Age >= entryTimeout, "a call was set aside after %s, want %s or more", e.Age, entryTimeout)
		}
	}
	f.unless(some(events, "overdue", "") == limit, "%d calls were set aside, want %d", some(events, "overdue", ""), limit)
	f.unless(s.aside == limit, "%d calls were aside when they came back, want %d", s.aside, limit)
	back, after, served := 0, 0, 0
	for _, c := range t.calls {
		switch {
		case c.step != step || c.method != methodA:
		case c.took > entryTimeout && !c.end().Before(s.back):
			back++
			f.unless(c.outcome == answered, "a call that was set aside got no answer")
		case c.began.After(last):
			after++
			if c.outcome == answered {
				served++
			}
		}
	}
	f.unless(back == limit, "%d calls that hung were answered in the end, want %d", back, limit)
	f.unless(served >= enoughA && served*10 >= after*8, "of %d calls after the slots came back %d were answered, want at least %d and 80 %% of them", after, served, enoughA)
}

func (t tale) checkWarning(f *faults, step int) {
	s := t.steps[step]
	var levels []weir.AlarmLevel
	for _, a := range t.bound() {
		if a.At.After(s.began.Round(0)) && !a.At.After(s.ended.Round(0)) {
			levels = append(levels, a.Level)
			f.unless(a.Limit == limit, "the alarm %s is of a limit of %d, want %d", a.Level, a.Limit, limit)
			f.unless(a.Level != weir.AlarmNear || a.Observed*10 >= limit*8, "near with %d running calls", a.Observed)
		}
	}
	n := len(levels)
	f.unless(n >= 3 && levels[0] == weir.AlarmNear && levels[1] == weir.AlarmReached && levels[n-1] == weir.AlarmCalm, "the alarms are %v, want near, reached, calm", levels)
	f.unless(t.tally(step, methodA)[refused] > 0, "no call was refused")
	f.unless(t.tally(step, methodA)[answered] >= bigCrowd, "%d calls were answered, want at least the %d of the burst", t.tally(step, methodA)[answered], bigCrowd)
}

// checkEnd looks at what the whole tale has counted.
func (t tale) checkEnd(f *faults) {
	f.unless(t.Most >= limit && t.Most <= highest+maxOverdue, "%d calls of A ran at the same time, want at most %d and those set aside, %d", t.Most, highest, maxOverdue)
	f.unless(t.A.Limit == limit && t.A.Cap == limit && t.A.Highest == highest, "the cap is %d of %d, want %d of %d", t.A.Cap, t.A.Highest, limit, highest)
	f.unless(t.A.Running == 0 && t.A.Slow == 0 && t.A.Aside == 0, "%d calls run, %d are slow and %d aside, want none", t.A.Running, t.A.Slow, t.A.Aside)
	f.unless(t.A.Overdue >= limit && t.A.Overdue == t.A.Returned, "%d calls were set aside and %d came back, want all", t.A.Overdue, t.A.Returned)
	changes := map[string]int64{}
	overdue := int64(0)
	for _, e := range t.Events {
		switch {
		case e.Method != methodA:
			f.unless(e.Kind == "slow" || e.Reason == "healthy" || e.Reason == "calm", "%s has an event %s, %s", e.Method, e.Kind, e.Reason)
		case e.Kind == "changed":
			changes[e.Reason]++
		case e.Kind == "overdue":
			overdue += 1 + e.More
		}
	}
	f.unless(overdue == t.A.Overdue, "told of %d calls that were set aside, and there were %d", overdue, t.A.Overdue)
	for reason, n := range t.A.Changes {
		f.unless(changes[reason] == n, "told of %d changes by %s, and there were %d", changes[reason], reason, n)
	}
	level := weir.AlarmCalm
	for _, a := range t.bound() {
		f.unless(a.Former == level && a.Level != level, "an alarm from %s to %s, but it was %s", a.Former, a.Level, level)
		level = a.Level
	}
}
