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
	"slices"
	"time"

	"github.com/weir-go/weir/call"
)

// check compares a tale with what is promised, and nothing in it depends on how fast
// the machine is. A call was admitted, or refused, at some moment between two that the
// provider has noted; it counts for a bound from above only where it must, and for one
// from below wherever it can.
func (t tale) check() []error {
	f := &faults{}
	t.checkCalls(f)
	t.scenario.check(t, f)
	return f.list
}

type faults struct{ list []error }

// unless notes a fault. It stops at a few: where one thing is wrong, all calls are.
func (f *faults) unless(ok bool, format string, args ...any) {
	const most = 12
	if !ok && len(f.list) < most {
		f.list = append(f.list, fmt.Errorf(format, args...))
	}
}

// checkCalls sees that callers and provider tell the same of each call.
func (t tale) checkCalls(f *faults) {
	visits := map[int]visit{}
	for _, v := range t.Visits {
		_, twice := visits[v.Call]
		f.unless(!twice, "call %d arrived twice", v.Call)
		visits[v.Call] = v
	}
	for i, c := range t.calls {
		v, arrived := visits[i+1]
		switch c.outcome {
		case answered:
			f.unless(arrived && v.Entered > 0 && !v.Refused, "call %d was answered, and the handler has not seen it", i+1)
		case refused:
			f.unless(arrived && v.Entered == 0 && v.Refused, "call %d was refused, and the handler has seen it", i+1)
			t.checkRefusal(f, i+1, c.refusal)
		default:
			f.unless(false, "call %d %s: %s", i+1, c.outcome, c.text)
		}
	}
}

// checkRefusal sees that callers learn why.
func (t tale) checkRefusal(f *faults, id int, r *call.RejectError) {
	sc := t.scenario
	f.unless(r.Guard == sc.guard && r.Reason == sc.reason && r.Resource == sc.resource && !r.Forwarded, "call %d was refused by another: %v", id, r)
	f.unless(r.Waited == 0, "call %d was refused after a wait of %s", id, r.Waited)
}

// checkWarmUp: never more than the full rate in any second, nor sooner than a limiter
// that had as many calls as it could admit; and a refusal only where so many as the
// cold rate allows were admitted in the second before.
func (t tale) checkWarmUp(f *faults) {
	t.checkSoonest(f, 0)
	for i, v := range t.Visits {
		n := 0
		for _, w := range t.Visits[i:] {
			if w.Arrived >= v.Arrived+time.Second {
				break
			}
			if w.Entered > 0 && w.Entered < v.Arrived+time.Second {
				n++
			}
		}
		f.unless(n <= warmRate, "%d calls admitted in the second from %s on, want at most %d", n, v.Arrived-t.first(), warmRate)
	}
	f.unless(t.scenario.most(time.Second, 0) == warmRate/coldFactor, "the curve begins at %v, want %d", t.scenario.most(time.Second, 0), warmRate/coldFactor)
	for _, v := range t.Visits {
		if !v.Refused {
			continue
		}
		n := t.count(func(w visit) bool { return w.Entered >= v.Arrived-time.Second && w.Arrived <= v.Left })
		f.unless(n >= warmRate/coldFactor, "a call was refused at %s with %d admitted in the second before, want at least %d", v.Arrived-t.first(), n, warmRate/coldFactor)
	}
}

// checkQueue: never more than the spacing allows, and a refusal only where so many wait
// that the turn would come too late.
func (t tale) checkQueue(f *faults) {
	t.checkSpacing(f)
	t.checkFull(f, queueRate)
}

func (t tale) checkWarmUpQueue(f *faults) {
	t.checkSoonest(f, 0.01)
	t.checkSpacing(f)
	t.checkFull(f, bothRate/coldFactor)
	f.unless(len(t.Changes) == 1, "the rate was changed %d times, want once", len(t.Changes))
}

// checkSoonest sees that at no whole second more calls had been admitted than the
// scenario's curve allows.
func (t tale) checkSoonest(f *faults, tolerance float64) {
	for _, s := range t.seconds() {
		n := float64(t.count(func(w visit) bool { return w.Entered > 0 && w.Entered < s.to }))
		most := t.scenario.most(s.to-t.first(), t.raised())
		f.unless(n <= most*(1+tolerance)+2, "%.0f calls admitted in the first %s, want at most %.0f", n, s.to-t.first(), most)
	}
}

// checkSpacing sees, for stretches from many moments on, that so many calls as were
// certainly admitted in them fit in with the spacing of the full rate. Where the
// machine was late a pacer makes 10 ms good.
func (t tale) checkSpacing(f *faults) {
	const every = 50 * time.Millisecond
	for from := t.first(); from < t.Visits[len(t.Visits)-1].Arrived; from += every {
		var entered []time.Duration
		for _, v := range t.Visits {
			if v.Arrived >= from && v.Entered > 0 {
				entered = append(entered, v.Entered)
			}
		}
		slices.Sort(entered)
		for i, at := range entered {
			most := t.full(from-heldUp, at) + 1
			f.unless(float64(i+1) <= most+0.001, "%d calls admitted in %s from %s on, want at most %.1f", i+1, at-from, from-t.first(), most)
		}
	}
}

// full is how many turns a queue that is warm has in a time.
func (t tale) full(from, to time.Duration) float64 {
	if t.scenario.name == "queue" {
		return queueRate * (to - from).Seconds()
	}
	n := bothRate * (to - from).Seconds()
	for _, c := range t.Changes {
		n += float64(c.Rate-bothRate) * max(to-max(from, c.Before), 0).Seconds()
	}
	return n
}

// checkFull sees that calls are refused only where so many wait as have their turn in
// the longest wait, at the slowest spacing that can hold.
func (t tale) checkFull(f *faults, slowest float64) {
	for _, v := range t.Visits {
		if !v.Refused {
			continue
		}
		n := t.count(func(w visit) bool { return w.Arrived <= v.Left && w.Entered >= v.Arrived })
		want := slowest*(maxQueue-(v.Left-v.Arrived)).Seconds() - 1
		f.unless(float64(n) >= want, "a call was refused at %s while %d waited, want %.0f and more", v.Arrived-t.first(), n, want)
	}
}

// checkBulkhead: never more calls run or wait than may, and a refusal only where as
// many do.
func (t tale) checkBulkhead(f *faults) {
	n, _ := t.running(span{t.first(), longest})
	f.unless(n <= maxRunning, "%d calls ran at the same time, want at most %d", n, maxRunning)
	for _, s := range t.Samples {
		f.unless(s.Waiting <= maxWaiting, "%d calls waited at %s, want at most %d", s.Waiting, s.At-t.first(), maxWaiting)
	}
	for _, v := range t.Visits {
		if !v.Refused {
			continue
		}
		n := t.count(func(w visit) bool { return w.Entered > 0 && w.Arrived <= v.Left && w.Left >= v.Arrived })
		f.unless(n >= maxRunning+maxWaiting, "a call was refused at %s while %d ran or waited, want %d", v.Arrived-t.first(), n, maxRunning+maxWaiting)
	}
}

func (t tale) count(so func(visit) bool) (n int) {
	for _, v := range t.Visits {
		if so(v) {
			n++
		}
	}
	return n
}

// errBusy is in each fault that is the machine's: it was busy with something else.
var errBusy = errors.New("the machine was too busy to show it")

// busy notes that something could not be seen.
func (f *faults) busy(unless bool, format string, args ...any) {
	f.unless(unless, "%w: %s", errBusy, fmt.Sprintf(format, args...))
}

// shown tells what was not as it should be though the machine let it, and what could
// not be seen because the machine did not. In a run that nothing disturbs it is empty.
func (t tale) shown() []error {
	f := &faults{}
	t.scenario.shown(t, f)
	return f.list
}

// onlyBusy reports whether all of the faults are the machine's.
func onlyBusy(faults []error) bool {
	return !slices.ContainsFunc(faults, func(err error) bool { return !errors.Is(err, errBusy) })
}

// shownWarmUp: in each second as many calls are admitted as the limiter alone admits of
// calls that come at the same moments; and so many come that the curve is seen.
func (t tale) shownWarmUp(f *faults) {
	alone, l := map[int]int{}, newWarmUp()
	for _, v := range t.Visits {
		if l.AllowAt(v.Arrived - t.first()).Admitted {
			alone[int((v.Arrived-t.first())/time.Second)]++
		}
	}
	before, cold, warm := 0, 0, 0
	for i, s := range t.seconds() {
		n := t.figures(s)
		if n.lost > maxLost || float64(n.offered) < 1.05*t.allowed(s) {
			before = 0 // it may have become colder
			continue
		}
		f.unless(near(n.admitted, float64(alone[i])), "second %d: %d calls admitted, the limiter alone admits %d of them", i+1, n.admitted, alone[i])
		f.unless(float64(n.admitted) >= 0.9*float64(before), "second %d: %d calls admitted, %d in the one before", i+1, n.admitted, before)
		before = n.admitted
		if near(n.admitted, warmRate) {
			warm++
		} else if n.admitted < warmRate/2 {
			cold++
		}
	}
	f.busy(cold >= 2, "%d judged seconds had less than half of the full rate, want two and more", cold)
	f.busy(warm >= 1, "%d judged seconds had the full rate, want one and more", warm)
}

// near allows for what moves over the edge of a second on a busy machine.
func near(n int, want float64) bool { return float64(n) >= 0.88*want-5 && float64(n) <= 1.12*want+5 }

// maxLost is how much of a second the machine may have taken for it to be judged.
const maxLost = 150 * time.Millisecond

// judged reports whether in a second somebody waited all the time, so that every turn
// was taken, and the machine let the provider run.
func (n figures) judged() bool { return n.alwaysWaited && n.lost <= maxLost }

// keeps reports whether so many calls as at least should were admitted. What the machine
// took cannot be made good, and a look every 2 ms does not see all of that.
func (n figures) keeps(rate float64) bool {
	return float64(n.admitted) >= 0.85*rate*(1-n.lost.Seconds())
}

func (t tale) shownQueue(f *faults) {
	const enough = 2
	judged := 0
	for i, s := range t.seconds() {
		if n := t.figures(s); n.judged() {
			judged++
			f.unless(n.keeps(queueRate), "second %d: %d calls admitted while others waited, want about %d", i+1, n.admitted, queueRate)
		}
	}
	f.busy(judged >= enough, "only in %d seconds somebody always waited, want %d", judged, enough)
	t.shownEven(f)
	t.shownWaits(f)
}

// shownEven: while calls wait they pass evenly, also in a tenth of a second.
func (t tale) shownEven(f *faults) {
	const tenth, enough = 100 * time.Millisecond, 5
	judged, even := 0, 0
	for from := t.first(); from < t.first()+t.scenario.lasts(); from += tenth {
		around := t.figures(span{from - 2*tenth, from + 3*tenth})
		if !around.alwaysWaited || around.lost > 0 {
			continue
		}
		judged++
		n := float64(t.figures(span{from, from + tenth}).admitted)
		if mean := float64(around.admitted) / 5; n >= 0.7*mean && n <= 1.3*mean {
			even++
		}
	}
	f.busy(judged >= enough, "only in %d tenths of a second somebody always waited, want %d", judged, enough)
	f.unless(4*even >= 3*judged, "calls passed evenly in %d of %d tenths of a second, want three quarters", even, judged)
}

// shownWaits: nobody waits longer than allowed, and who is refused does not wait. Calls
// that the machine held up are not judged.
func (t tale) shownWaits(f *faults) {
	const late, enough = 50 * time.Millisecond, 50
	var waits, refusals []time.Duration
	for _, v := range t.Visits {
		end := v.Entered
		if v.Refused {
			end = v.Left
		}
		if slices.ContainsFunc(t.Stalls, func(s stall) bool { return s.From < end && s.To > v.Arrived }) {
			continue
		}
		if v.Refused {
			refusals = append(refusals, end-v.Arrived)
		} else {
			waits = append(waits, end-v.Arrived)
		}
	}
	most := t.scenario.longestWait
	f.unless(share(waits, 95) <= most+late, "one of 20 calls waited for longer than %s, want at most %s", share(waits, 95), most)
	f.unless(middle(refusals) < most/4, "half of the refusals took longer than %s, want that they do not wait", middle(refusals))
	f.busy(len(waits) >= enough && len(refusals) >= enough, "%d admitted and %d refused calls were not held up, want %d", len(waits), len(refusals), enough)
}

// shownWarmUpQueue: from cold it never sinks while enough calls come, holds the full
// rate, and follows when that is raised.
func (t tale) shownWarmUpQueue(f *faults) {
	before, cold, held, higher, unjudged := 0, 0, 0, 0, 0
	warm := false
	for i, s := range t.seconds() {
		n := t.figures(s)
		full := t.full(s.from, s.to)
		switch after := t.raised() > 0 && s.from-t.first() >= t.raised(); {
		case s.has(t.first() + t.raised()): // some of both
			warm = warm && n.judged()
		case i == 0 && !n.alwaysWaited: // at first nobody waits
		case !n.judged():
			unjudged++
			before, warm = 0, false // it may have become colder
		case after && warm:
			f.unless(n.keeps(full), "second %d: %d calls admitted after the rate was raised, want about %.0f", i+1, n.admitted, full)
			higher++
		case after:
			warm = n.keeps(full)
		default:
			f.unless(float64(n.admitted) >= 0.88*float64(before), "second %d: %d calls admitted, %d in the one before", i+1, n.admitted, before)
			before = n.admitted
			if warm = n.keeps(full); warm {
				held++
			} else if float64(n.admitted) < 0.6*full {
				cold++
			}
		}
	}
	f.busy(cold >= 2, "%d judged seconds had less than 60 %% of the full rate, want two and more", cold)
	f.busy(higher >= 1, "%d seconds after the rate was raised could be judged, want one and more", higher)
	if unjudged == 0 {
		f.unless(held >= 2, "the full rate of %d was held in %d seconds, want two and more", bothRate, held)
	} else {
		f.busy(held >= 2, "%d judged seconds had the full rate of %d, want two and more", held, bothRate)
	}
	t.shownEven(f)
	t.shownWaits(f)
}

// shownBulkhead: where somebody always waits, as many calls run as may.
func (t tale) shownBulkhead(f *faults) {
	judged := 0
	for i, s := range t.seconds() {
		if !t.figures(s).judged() {
			continue
		}
		judged++
		most, mean := t.running(s)
		f.unless(most == maxRunning && mean >= 0.85*maxRunning, "second %d: %d calls ran at most and %.1f on average while others waited, want %d", i+1, most, mean, maxRunning)
	}
	f.busy(judged >= 1, "in no second somebody always waited")
	t.shownWaits(f)
}
