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

	"github.com/weir-go/weir/call"
)

func named(name string) scenario {
	for _, sc := range scenarios() {
		if sc.name == name {
			return sc
		}
	}
	panic(name)
}

// kept is a tale of a machine without delays, in which decide tells how long a call
// that arrives waits, or that it is refused.
func kept(name string, decide func(now time.Duration) (wait time.Duration, ok bool)) tale {
	sc := named(name)
	t := tale{scenario: sc, protocol: triple}
	now := time.Second
	for _, s := range sc.steps {
		if s.raise > 0 {
			t.Changes = append(t.Changes, change{Before: now, After: now, Rate: s.raise})
		}
		for end := now + s.lasts; now < end; now += time.Second / time.Duration(s.perSecond) {
			v := visit{Call: len(t.Visits) + 1, Arrived: now}
			c := seen{outcome: answered}
			if wait, ok := decide(now); ok {
				v.Entered = now + wait
				v.Done = v.Entered + sc.hold
				v.Left = v.Done
			} else {
				v.Left, v.Refused = now, true
				c.outcome, c.refusal = refused, &call.RejectError{Guard: sc.guard, Reason: sc.reason, Resource: sc.resource}
			}
			t.Visits, t.calls = append(t.Visits, v), append(t.calls, c)
		}
	}
	t.look()
	return t
}

// look fills in the samples.
func (t *tale) look() {
	t.Samples = nil
	for at := t.first(); at < t.first()+t.scenario.lasts(); at += samplesAt * beat {
		n := t.count(func(v visit) bool { return v.Arrived < at && v.Entered > at })
		t.Samples = append(t.Samples, sample{at, int64(n)})
	}
}

// pacer decides with one turn each spacing.
func pacer(spacing, most time.Duration) func(time.Duration) (time.Duration, bool) {
	next := time.Duration(0)
	return func(now time.Duration) (time.Duration, bool) {
		turn := max(next, now)
		if turn-now > most {
			return 0, false
		}
		next = turn + spacing
		return turn - now, true
	}
}

func keptWarmUp() tale {
	l := newWarmUp()
	return kept("warm-up", func(now time.Duration) (time.Duration, bool) { return 0, l.AllowAt(now - time.Second).Admitted })
}

func keptQueue() tale { return kept("queue", pacer(time.Millisecond, maxQueue)) }

// warming decides with a spacing that follows the curve of the scenario.
func keptWarmUpQueue(afterRaise time.Duration) tale {
	most := named("warm-up-queue").most
	next := time.Second
	return kept("warm-up-queue", func(now time.Duration) (time.Duration, bool) {
		turn := max(next, now)
		if turn-now > maxQueue {
			return 0, false
		}
		since := (turn - time.Second) / time.Second * time.Second
		spacing := time.Duration(float64(time.Second) / (most(since+time.Second, 0) - most(since, 0)))
		if now-time.Second >= 8*time.Second {
			spacing = afterRaise
		}
		next = turn + spacing
		return turn - now, true
	})
}

// keptBulkhead decides with so many places.
func keptBulkhead(places int) tale {
	free := make([]time.Duration, places) // when each is
	var turns []time.Duration
	return kept("bulkhead", func(now time.Duration) (time.Duration, bool) {
		waiting, first := 0, 0
		for _, at := range turns {
			if at > now {
				waiting++
			}
		}
		for i, at := range free {
			if at < free[first] {
				first = i
			}
		}
		turn := max(free[first], now)
		if turn > now && waiting >= maxWaiting {
			return 0, false
		}
		free[first] = turn + hold
		turns = append(turns, turn)
		return turn - now, true
	})
}

func TestKept(t *testing.T) {
	for _, tale := range []tale{keptWarmUp(), keptQueue(), keptWarmUpQueue(time.Millisecond), keptBulkhead(maxRunning)} {
		if err := errors.Join(append(tale.check(), tale.shown()...)...); err != nil {
			t.Errorf("%s: %v", tale.scenario.name, err)
		}
	}
}

func TestNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		tale tale
		want string
	}{
		"everything passes": {kept("warm-up", func(time.Duration) (time.Duration, bool) { return 0, true }), "want at most 200"},
		"too warm": {kept("warm-up", func() func(time.Duration) (time.Duration, bool) {
			n := map[int]int{}
			return func(now time.Duration) (time.Duration, bool) {
				n[int(now/time.Second)]++
				return 0, n[int(now/time.Second)] <= warmRate
			}
		}()), "admitted in the first 1s, want at most 200"},
		"too cold":          {kept("warm-up", pacer(10*time.Millisecond, 0)), "admitted in the second before, want at least 200"},
		"too quick":         {kept("queue", pacer(900*time.Microsecond, maxQueue)), "calls admitted in"},
		"refused too early": {kept("queue", pacer(time.Millisecond, maxQueue/2)), "a call was refused at"},
		"waits too long":    {kept("queue", pacer(time.Millisecond, 2*maxQueue)), "waited for longer than"},
		"not raised":        {keptWarmUpQueue(2 * time.Millisecond), "after the rate was raised, want about 1000"},
		"one more runs":     {keptBulkhead(maxRunning + 1), "11 calls ran at the same time"},
		"one fewer runs":    {keptBulkhead(maxRunning - 1), "a call was refused at"},
		"in bursts": {func() tale {
			t := keptQueue()
			for i := range t.Visits {
				if v := &t.Visits[i]; v.Entered > 0 {
					v.Entered = v.Entered.Truncate(150*time.Millisecond) + 150*time.Millisecond
				}
			}
			t.look()
			return t
		}(), "calls passed evenly in"},
		"lost": {func() tale {
			t := keptQueue()
			t.Visits[5].Entered, t.Visits[5].Refused = 0, true
			return t
		}(), "call 6 was answered, and the handler has not seen it"},
		"of another guard": {func() tale {
			t := keptBulkhead(maxRunning)
			for i, c := range t.calls {
				if c.refusal != nil {
					t.calls[i].refusal = &call.RejectError{Guard: "executes"}
				}
			}
			return t
		}(), "was refused by another"},
	} {
		err := errors.Join(append(c.tale.check(), c.tale.shown()...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// A machine that lets too few calls come is no fault of a limit.
func TestBusy(t *testing.T) {
	for _, tale := range []tale{keptWarmUp(), keptQueue(), keptWarmUpQueue(time.Millisecond), keptBulkhead(maxRunning)} {
		for at := tale.first(); at < tale.first()+tale.scenario.lasts(); at += 100 * time.Millisecond {
			tale.Stalls = append(tale.Stalls, stall{at, at + 90*time.Millisecond})
		}
		if err := errors.Join(tale.check()...); err != nil {
			t.Errorf("%s: %v", tale.scenario.name, err)
		}
		if faults := tale.shown(); len(faults) == 0 || !onlyBusy(faults) {
			t.Errorf("%s: got %v, want only what the machine is the cause of", tale.scenario.name, faults)
		}
	}
}

func TestRunning(t *testing.T) {
	s := func(d int) time.Duration { return time.Duration(d) * time.Second }
	tale := tale{record: record{Visits: []visit{{Entered: s(1), Done: s(3)}, {Entered: s(2), Done: s(4)}, {Entered: s(3), Done: s(5)}}}}
	if most, mean := tale.running(span{0, s(6)}); most != 2 || mean != 1 {
		t.Errorf("got %d and %v, want 2 and 1", most, mean)
	}
}
