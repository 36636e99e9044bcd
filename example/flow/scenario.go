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
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/example/internal/greet"
	"github.com/weir-go/weir/filter/bulkhead"
	"github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/tps"
)

// What the files in conf say.
const (
	warmRate  = 600
	warmTime  = 5 * time.Second
	queueRate = 1000
	bothRate  = 500
	bothTime  = 4 * time.Second
	// raisedTo is what the rate of the last is at run time.
	raisedTo   = 1000
	coldFactor = 3
	maxQueue   = 200 * time.Millisecond

	maxRunning = 10
	maxWaiting = 20
)

// hold is how long a call of the bulkhead runs, so that 200 a second can.
const hold = 50 * time.Millisecond

// step is a time in which callers call at one rate.
type step struct {
	lasts     time.Duration
	perSecond int
	raise     int // sets the limit to this rate first; 0 leaves it
}

// scenario is one limit, and what is offered to it.
type scenario struct {
	name, title string
	protocols   []protocol
	steps       []step
	hold        time.Duration // that a call runs
	// guard is the policy; reason and resource are in its refusals.
	guard, reason, resource string
	// longestWait is how long calls wait at most; with 0 none does.
	longestWait time.Duration
	// most is how many calls at most may have been admitted so long after the first,
	// in which the rate had been raised after raised, or has not with 0. nil is no rate.
	most func(since, raised time.Duration) float64
	// check looks at what must hold, however slow the machine is.
	check func(t tale, f *faults)
	// shown looks at what can be seen if the machine lets callers call.
	shown func(t tale, f *faults)
}

func scenarios() []scenario {
	all := []scenario{
		{
			name:      "warm-up",
			title:     "Warm-up from 200 to 600 a second, 800 are offered",
			protocols: []protocol{triple},
			steps:     []step{{lasts: 9 * time.Second, perSecond: 800}},
			most:      warmUpCurve(),
			check:     tale.checkWarmUp,
			shown:     tale.shownWarmUp,
		},
		{
			name:        "queue",
			title:       "Queue at 1000 a second, 700 and then 1300 are offered",
			protocols:   []protocol{triple, dubboProto},
			longestWait: maxQueue,
			steps:       []step{{lasts: 2 * time.Second, perSecond: 700}, {lasts: 4 * time.Second, perSecond: 1300}},
			most:        func(since, _ time.Duration) float64 { return queueRate * since.Seconds() },
			check:       tale.checkQueue,
			shown:       tale.shownQueue,
		},
		{
			name:        "warm-up-queue",
			title:       "Warm-up with queue to 500 a second, then raised to 1000",
			protocols:   []protocol{dubboProto},
			longestWait: maxQueue,
			steps:       []step{{lasts: 8 * time.Second, perSecond: 700}, {lasts: 4 * time.Second, perSecond: 1300, raise: raisedTo}},
			most:        warmUpQueueCurve(),
			check:       tale.checkWarmUpQueue,
			shown:       tale.shownWarmUpQueue,
		},
		{
			name:  "bulkhead",
			title: "Bulkhead of 10 running and 20 waiting, a call takes 50 ms",
			guard: bulkhead.Policy, reason: call.ReasonConcurrency, resource: greet.GreetServiceName + "#SayHello",
			protocols:   []protocol{triple, dubboProto},
			hold:        hold,
			longestWait: hold * maxWaiting / maxRunning,
			steps: []step{
				{lasts: 1500 * time.Millisecond, perSecond: 100}, {lasts: 3 * time.Second, perSecond: 300}, {lasts: 1 * time.Second, perSecond: 100},
			},
			check: tale.checkBulkhead,
			shown: tale.shownBulkhead,
		},
	}
	for i := range all {
		if sc := &all[i]; sc.guard == "" {
			// The methods of a service share its rate.
			sc.guard, sc.reason, sc.resource = flowcontrol.Policy, call.ReasonRate, greet.GreetServiceName+"#*"
		}
	}
	return all
}

// longest is longer than any scenario takes.
const longest = 30 * time.Second

// warmUpCurve is what the limiter alone admits of calls that never stop: no other
// calls make it warm sooner.
func warmUpCurve() func(since, raised time.Duration) float64 {
	l := newWarmUp()
	return curve(100*time.Microsecond, func(now time.Duration) bool { return l.AllowAt(now).Admitted })
}

func newWarmUp() *tps.WarmUp {
	l, err := tps.NewWarmUp(tps.Quota{Rate: warmRate, Interval: time.Second}, tps.Warming{Time: warmTime, Factor: coldFactor}, nil)
	if err != nil {
		panic(err)
	}
	return l
}

// warmUpQueueCurve is the same of a pacer, which is warm when the rate is raised.
func warmUpQueueCurve() func(since, raised time.Duration) float64 {
	p, err := tps.NewPacer(tps.Quota{Rate: bothRate, Interval: time.Second}, tps.Warming{Time: bothTime, Factor: coldFactor}, nil)
	if err != nil {
		panic(err)
	}
	unraised := curve(5*time.Microsecond, func(now time.Duration) bool { _, ok := p.Pass(now); return ok })
	return func(since, raised time.Duration) float64 {
		n := unraised(since, 0)
		if raised > 0 && since > raised {
			n += (raisedTo - bothRate) * (since - raised).Seconds()
		}
		return n
	}
}

// curve counts the calls that are admitted until so long after the first: whole
// seconds, which are the steps of a warm-up, and evenly in between.
func curve(every time.Duration, admits func(now time.Duration) bool) func(since, raised time.Duration) float64 {
	n := []float64{0}
	for now := time.Duration(0); now < longest; now += every {
		if now > 0 && now%time.Second == 0 {
			n = append(n, n[len(n)-1])
		}
		if len(n) == 1 {
			n = append(n, 0)
		}
		if admits(now) {
			n[len(n)-1]++
		}
	}
	return func(since, _ time.Duration) float64 {
		i := min(max(int(since/time.Second), 0), len(n)-2)
		return n[i] + (n[i+1]-n[i])*(since-time.Duration(i)*time.Second).Seconds()
	}
}
