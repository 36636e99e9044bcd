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
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
)

// zero is when the tales of these tests begin.
var zero = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }

func changed(ms int, from, to int64, reason string) weir.OverloadEvent {
	return weir.OverloadEvent{Method: methodA, Kind: "changed", From: from, To: to, Reason: reason, At: at(ms)}
}

func held(ms int, reason, signal string) weir.OverloadEvent {
	return weir.OverloadEvent{Method: methodA, Kind: "held", From: limit, To: limit, Reason: reason, Signal: signal, At: at(ms)}
}

func told(ms int, former, level weir.AlarmLevel, observed int64) weir.Alarm {
	return weir.Alarm{Guard: "overload", Method: methodA, Subject: "limit", Former: former, Level: level, Observed: observed, Limit: limit, At: at(ms)}
}

// add has n calls of a step begin at a time, all with the same end.
func (t *tale) add(n, step int, method string, ms, took int, o outcome, reason string) {
	for range n {
		c := seen{step: step, method: method, began: at(ms), took: time.Duration(took) * time.Millisecond, outcome: o}
		if o == refused {
			c.refusal = &call.RejectError{Guard: "overload", Resource: "greet.GreetService#" + methodA, Reason: reason, Limit: limit, Observed: limit}
		}
		t.calls = append(t.calls, c)
	}
}

// kept is a tale in which the guard did what it should.
func kept() tale {
	t := tale{protocol: protocols[0], began: zero}
	t.steps = []step{
		{kind: crowds, began: at(0), back: at(200), ended: at(1000)},
		{kind: tight, began: at(1000), back: at(1200), ended: at(2000)},
		{kind: hangs, began: at(2000), back: at(4000), ended: at(5000), stacks: 8},
		{kind: leaks, began: at(5000), back: at(8000), ended: at(9000), aside: limit},
		{kind: warns, began: at(9000), back: at(12000), ended: at(15000)},
	}
	t.add(crowd, 0, methodA, 10, 120, answered, "")
	t.add(limit, 1, methodA, 1010, 120, answered, "")
	t.add(crowd-limit, 1, methodA, 1010, 1, refused, "tight")
	t.add(limit, 2, methodA, 2010, 2500, answered, "")
	t.add(someRefused, 2, methodA, 2500, 1, refused, "slow-calls")
	t.add(enoughB, 2, methodB, 2600, 2, answered, "")
	t.add(limit, 3, methodA, 5010, 3100, answered, "")
	t.add(4, 3, methodA, 6000, 1, refused, "slow-calls")
	t.add(enoughA, 3, methodA, 7500, 121, answered, "")
	t.add(bigCrowd, 4, methodA, 9010, 3100, answered, "")
	t.add(3, 4, methodA, 11000, 1, refused, "slow-calls")
	t.Events = []weir.OverloadEvent{
		changed(11, 8, 16, "healthy"), changed(12, 16, 32, "healthy"), changed(500, 32, 16, "calm"), changed(900, 16, 8, "calm"),
		held(1011, "tight", databaseSignal),
		{Method: methodA, Kind: "slow", Age: slowCall, At: at(2300)},
		held(2500, "slow-calls", ""), held(6000, "slow-calls", ""),
	}
	for range limit {
		t.Events = append(t.Events, weir.OverloadEvent{Method: methodA, Kind: "overdue", Age: entryTimeout, At: at(7020)})
	}
	t.Events = append(t.Events, changed(9011, 8, 16, "healthy"), changed(9012, 16, 32, "healthy"),
		changed(10000, 32, 16, "slow-calls"), changed(11000, 16, 8, "slow-calls"))
	t.Alarms = []weir.Alarm{
		told(1100, weir.AlarmCalm, weir.AlarmReached, 8), told(1900, weir.AlarmReached, weir.AlarmCalm, 0),
		told(10500, weir.AlarmCalm, weir.AlarmNear, bigCrowd), told(11100, weir.AlarmNear, weir.AlarmReached, bigCrowd), told(14000, weir.AlarmReached, weir.AlarmCalm, 0),
	}
	t.Most = bigCrowd
	t.A = weir.OverloadState{
		Method: methodA, Limit: limit, Cap: limit, Highest: highest, Overdue: limit, Returned: limit,
		Changes: map[string]int64{"healthy": 4, "calm": 2, "slow-calls": 2},
	}
	return t
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(*tale)
		want  string // "" for kept
	}{
		{"kept", func(*tale) {}, ""},
		{"a burst that the machine drew out", func(t *tale) {
			// It is not looked at, and tried again; here nobody has.
			t.steps[0].drawn = true
		}, "nothing was seen of: a burst, as after a restart"},
		{"a burst is refused", func(t *tale) {
			t.calls[0].outcome, t.calls[0].refusal = refused, &call.RejectError{Guard: "overload", Resource: "greet.GreetService#" + methodA, Reason: "slow-calls", Limit: limit}
		}, "23 calls were answered and 1 refused"},
		{"another guard", func(t *tale) { t.calls[crowd+limit].refusal.Guard = "executes" }, "refused by another"},
		{"a call fails", func(t *tale) { t.calls[0].outcome, t.calls[0].text = failed, "eof" }, "failed: eof"},
		{"a call does not end", func(t *tale) { t.calls[0].outcome = waiting }, "has not ended"},
		{"a tight machine expands", func(t *tale) { t.Events[4] = changed(1011, 8, 16, "healthy") }, "the cap changed 1 times, want never"},
		{"another signal", func(t *tale) { t.Events[4].Signal = "cpu" }, `held by the signal "cpu"`},
		{"B waits", func(t *tale) {
			for i := range t.calls {
				if t.calls[i].method == methodB {
					t.calls[i].took = 2 * time.Second
				}
			}
		}, "of 200 calls of B 0 were answered before A was back"},
		{"nothing in the profile", func(t *tale) { t.steps[2].stacks = 0 }, "no profile has"},
		{"a slot does not come back", func(t *tale) { t.steps[3].aside = limit - 1 }, "7 calls were aside"},
		{"set aside too early", func(t *tale) { t.Events[8].Age = time.Second }, "set aside after 1s"},
		{"a count is lost", func(t *tale) { t.A.Returned-- }, "8 calls were set aside and 7 came back"},
		{"a change is not told", func(t *tale) { t.A.Changes["calm"]++ }, "told of 2 changes by calm, and there were 3"},
		{"the cap jumps", func(t *tale) { t.Events[1].From = 8 }, "the cap changed from 8, but was 16"},
		{"too many run", func(t *tale) { t.Most = highest + maxOverdue + 1 }, "41 calls of A ran at the same time"},
		{"no warning", func(t *tale) {
			t.Alarms = append(t.Alarms[:2:2], told(11100, weir.AlarmCalm, weir.AlarmReached, 28), t.Alarms[4])
		}, "want near, reached, calm"},
		{"an alarm is lost", func(t *tale) { t.Alarms = t.Alarms[1:] }, "an alarm from reached to calm, but it was calm"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tale := kept()
			tc.spoil(&tale)
			switch err := errors.Join(tale.check()...); {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestGoroutinesIn(t *testing.T) {
	profile := strings.Join([]string{
		"goroutine profile: total 12",
		"9 @ 0x1 0x2",
		"#\t0x1\tmain.(*dependency).waitForever+0x24\t/src/dependency.go:71",
		"#\t0x2\tmain.(*dependency).ask+0x50\t/src/dependency.go:36",
		"",
		"2 @ 0x3 0x2",
		"#\t0x3\tmain.(*dependency).waitForeverAndADay+0x24\t/src/dependency.go:80",
		"",
		"1 @ 0x4",
		"#\t0x4\tmain.(*dependency).waitForever+0x30\t/src/dependency.go:72",
	}, "\n")
	if n := goroutinesIn(profile, hangsIn); n != 10 {
		t.Errorf("got %d goroutines, want 10", n)
	}
}

func TestPrint(t *testing.T) {
	var out strings.Builder
	kept().print(&out)
	for _, want := range []string{
		"changed: the cap is 16, it was 8, reason healthy", "held at 8, reason tight, signal database", "8 x overdue, for 2.0s",
		"alarm: near, 28 running at a limit of 8", "A: 24 calls, 8 answered, 16 refused by tight", "8 calls were set aside, and 8 of these came back",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
