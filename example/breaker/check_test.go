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
	"bytes"
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

func turn(ms int, from, to, reason string) change {
	e := weir.BreakerEvent{From: from, To: to, Reason: reason, At: at(ms)}
	if from == "closed" {
		e.Calls, e.Limit, e.Observed = 40, 50, 55
	}
	return change{e, at(ms + 1)}
}

// kept is a tale in which the breaker did what it should. Calls begin every 10 ms
// from 5 ms on.
func kept() tale {
	t := tale{protocol: protocols[0], began: zero, phases: []phase{
		{title: "healthy", is: healthy, began: at(0), ended: at(1000)},
		{title: "business errors", is: declining, began: at(1000), ended: at(2000), counted: 90},
		{title: "failing", is: failing, reason: "error-ratio", began: at(2000), ended: at(3000), rounds: 2, through: 2},
		{title: "healthy", is: healthy, began: at(3000), ended: at(4000)},
		{title: "hanging", is: hanging, reason: "slow-ratio", began: at(4000), ended: at(5500), stopped: at(4001), opened: at(4601), rounds: 2, through: 6},
		{title: "recovering", is: healthy, began: at(5500), ended: at(7000)},
	}}
	t.events = []change{
		turn(2500, "closed", "open", "error-ratio"),
		turn(2800, "open", "half-open", "error-ratio"),
		turn(2801, "half-open", "open", "probes-failed"),
		turn(3050, "open", "half-open", "probes-failed"),
		turn(3090, "half-open", "closed", ""),
		turn(4600, "closed", "open", "slow-ratio"),
		turn(4900, "open", "half-open", "slow-ratio"),
		turn(5200, "half-open", "open", "probes-failed"),
		turn(5550, "open", "half-open", "probes-failed"),
		turn(5590, "half-open", "closed", ""),
	}
	t.events[0].Failures, t.events[5].Slow = 40, 40
	phase, through := 0, map[int]int{}
	for ms := 5; ms < 7000; ms += 10 {
		for !at(ms).Before(t.phases[phase].ended) {
			phase++
		}
		c := seen{id: len(t.calls) + 1, phase: phase, began: at(ms), took: time.Millisecond, outcome: answered}
		state, era := "closed", 0
		for i, e := range t.events {
			if e.At.Before(c.began) {
				state, era = e.To, i
			}
		}
		switch {
		case state == "open":
			c.outcome, c.refusal = refused, refusal("probes-failed")
		case state == "half-open" && through[era] == probes:
			c.outcome, c.refusal = refused, refusal("probing")
		case phase == 1:
			c.outcome = no
		case phase == 2:
			c.outcome = failed
		case phase == 4:
			c.took = at(5500).Sub(c.began) + time.Millisecond
		}
		t.calls = append(t.calls, c)
		if c.outcome != refused {
			through[era]++
			t.visits = append(t.visits, visit{c.id, c.began.Add(c.took / 2)})
		}
	}
	return t
}

func refusal(reason string) *call.RejectError {
	return &call.RejectError{Guard: "breaker", Resource: "greet.GreetService#SayHello", Reason: reason}
}

// TestCheck proves that each expectation can fail.
func TestCheck(t *testing.T) {
	check := func(tl tale) string {
		if err := errors.Join(tl.check()...); err != nil {
			return err.Error()
		}
		return ""
	}
	if got := check(kept()); got != "" {
		t.Fatalf("a breaker that did what it should: got %q, want nothing", got)
	}
	refusedCall := func(tl *tale) *seen {
		for i := range tl.calls {
			if tl.calls[i].outcome == refused {
				return &tl.calls[i]
			}
		}
		t.Fatal("no call was refused")
		return nil
	}
	for _, tc := range []struct {
		name   string
		change func(*tale)
		want   string
	}{
		{"a change is missing", func(tl *tale) { tl.events = append(tl.events[:1:1], tl.events[2:]...) }, "a change from half-open to open, but the breaker was open"},
		{"not closed in the end", func(tl *tale) { tl.events = tl.events[:len(tl.events)-1] }, "the breaker is half-open in the end"},
		{"probes end otherwise", func(tl *tale) { tl.events[2].Reason = "not-probed" }, "probes came to an end with reason not-probed"},
		{"too few calls", func(tl *tale) { tl.events[0].Calls = 9 }, "at 55 % of 9 calls"},
		{"below the bound", func(tl *tale) { tl.events[0].Observed = 49 }, "at 49 % of 40 calls"},
		{"slow calls that nobody saw", func(tl *tale) { tl.events[5].Slow = 70 }, "with 70 slow calls, and callers saw"},
		{"failures that nobody saw", func(tl *tale) { tl.events[0].Failures = 70 }, "with 70 failures, and callers saw"},
		{"of business errors", func(tl *tale) {
			tl.events = append([]change{
				turn(1500, "closed", "open", "error-ratio"), turn(1800, "open", "half-open", "error-ratio"), turn(1801, "half-open", "closed", ""),
			}, tl.events...)
		}, "business errors: the breaker opened by error-ratio, want that it does not"},
		{"for another reason", func(tl *tale) { tl.events[0].Reason = "slow-ratio" }, "failing: the breaker opened 1 times, want once, by error-ratio"},
		{"not at all", func(tl *tale) { tl.events = tl.events[:5] }, "hanging: the breaker opened 0 times"},
		{"twice", func(tl *tale) {
			tl.events = append([]change{
				turn(2100, "closed", "open", "error-ratio"), turn(2400, "open", "half-open", "error-ratio"), turn(2401, "half-open", "closed", ""),
			}, tl.events...)
		}, "failing: the breaker opened 2 times"},
		{"not probed", func(tl *tale) { tl.phases[2].rounds = 1 }, "failing: 1 rounds of probes"},
		{"nothing passed", func(tl *tale) { tl.phases[4].through = 0 }, "hanging: 0 calls passed in 2 rounds"},
		{"more than probes passed", func(tl *tale) { tl.phases[4].through = 7 }, "hanging: 7 calls passed in 2 rounds"},
		{"nobody refused in time", func(tl *tale) { tl.phases[2].ended = at(2510) }, "failing: 1 callers were refused before it was over"},
		{"too few answers", func(tl *tale) { tl.phases[0].ended = at(500) }, "healthy: 50 calls answered"},
		{"too few business errors", func(tl *tale) { tl.phases[1].ended = at(1500) }, "business errors: 50 errors of the business"},
		{"business errors count", func(tl *tale) { tl.phases[1].failures = 1 }, "business errors: the breaker counted 1 failures"},
		{"business errors are ignored", func(tl *tale) { tl.phases[1].counted = 9 }, "business errors: the breaker counted 9 calls"},
		{"refused while closed", func(tl *tale) { tl.calls[110].outcome, tl.calls[110].refusal = refused, refusal("probing") }, "1 callers were refused by a breaker that was closed"},
		{"it waited for what hangs", func(tl *tale) { tl.calls[405].took = 300 * time.Millisecond }, "hanging: 1 slow calls had come back"},
		{"nothing hung", func(tl *tale) { tl.phases[4].stopped = at(4600) }, "hanging: no call hung"},
		{"a call is lost", func(tl *tale) { tl.calls[0].outcome = waiting }, "call 1 has not ended"},
		{"empty success", func(tl *tale) { tl.calls[0].outcome = empty }, "call 1 ended with neither an error nor its greeting"},
		{"failure without cause", func(tl *tale) { tl.calls[0].outcome = failed }, "call 1 failed while nothing did"},
		{"business error without cause", func(tl *tale) { tl.calls[0].outcome = no }, "call 1 was declined while nothing was"},
		{"other guard", func(tl *tale) { refusedCall(tl).refusal = &call.RejectError{Guard: "tps", Reason: "rate"} }, "was refused by another"},
		{"other reason", func(tl *tale) {
			refusedCall(tl).refusal = refusal("forced")
		}, "was refused for another reason"},
		{"refused and sent", func(tl *tale) { tl.visits = append(tl.visits, visit{refusedCall(tl).id, at(2600)}) }, "refused, arrived 1 times, want 0"},
		{"sent twice", func(tl *tale) { tl.visits = append(tl.visits, tl.visits[0]) }, "call 1, answered, arrived 2 times, want 1"},
		{"too many probes", func(tl *tale) { tl.events[4].At, tl.events[4].heard = at(3140), at(3141) }, "8 probes in one time in half-open"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tl := kept()
			tc.change(&tl)
			if got := check(tl); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q in it", got, tc.want)
			}
		})
	}
}

// TestShow proves that any tale can be printed and drawn: none, one that broke off,
// a whole one.
func TestShow(t *testing.T) {
	broken := kept()
	broken.phases, broken.events, broken.calls = broken.phases[:3], broken.events[:2], broken.calls[:270]
	broken.phases[2].ended = time.Time{}
	broken.calls[269].outcome = waiting
	for name, tales := range map[string][]tale{
		"none": nil, "nothing happened": {{protocol: protocols[0], began: zero}}, "broken off": {broken}, "both": {kept(), kept()},
	} {
		t.Run(name, func(t *testing.T) {
			var drawn, printed bytes.Buffer
			if err := drawTales(&drawn, tales); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(strings.TrimSpace(drawn.String()), "</svg>") || strings.Contains(drawn.String(), "NaN") {
				t.Errorf("not a drawing: %.200s", drawn.String())
			}
			for _, tl := range tales {
				line := &timeline{out: &printed, begun: true, until: tl.began}
				line.slice(tl, tl.end())
				line.finish(tl)
			}
			if len(tales) > 0 && !strings.Contains(printed.String(), "calls:") {
				t.Errorf("not a time line: %q", printed.String())
			}
		})
	}
}
