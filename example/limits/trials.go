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

import "time"

// offered is how many calls each limit meets.
const offered = 40

// set is limits that are set together, in the files of one folder of conf/.
type set struct {
	name   string
	trials []trial
}

// trial is one limit, and what is promised of it.
type trial struct {
	title  string // of its rows
	brief  bool   // only what is wrong is told below the table
	method string // that it holds for
	inTurn bool   // a call starts when the one before has been decided, not all together

	admitted int // calls that reach the handler
	atOnce   int // of them in the handler at one time; 0 if that is not limited
	waited   int // calls that wait for a slot
	hits     int // how often a refused call arrives at the provider

	guard, reason string        // of each refusal
	wait          time.Duration // how long each call waits before it is refused
	interval      time.Duration // of calls that are counted over time; each refusal says when to try again
}

var sets = []set{
	{name: "executes", trials: []trial{
		{
			title: "executes 5", method: "SayHello", // its own limit
			admitted: 5, atOnce: 5, hits: 1, guard: "executes", reason: "concurrency",
		},
		{
			title: "executes 20, 2nd method", method: "SayGoodbye", brief: true, // the service's
			admitted: 20, atOnce: 20, hits: 1, guard: "executes", reason: "concurrency",
		},
	}},
	{name: "actives", trials: []trial{
		{
			title: "actives 4", method: "SayHello", inTurn: true, // to see the order of those that wait
			admitted: offered, atOnce: 4, waited: offered - 4,
		},
		{
			title: "actives 4, wait 100ms", method: "SayGoodbye",
			admitted: 4, atOnce: 4, waited: offered - 4, guard: "actives", reason: "wait-timeout", wait: 100 * time.Millisecond,
		},
	}},
	{name: "tps", trials: []trial{
		{
			title: "tps 10/h, provider", method: "SayHello",
			admitted: 10, hits: 1, guard: "tps", reason: "rate", interval: time.Hour,
		},
		{
			title: "tps 10/h, consumer", method: "SayGoodbye",
			admitted: 10, guard: "tps", reason: "rate", interval: time.Hour,
		},
	}},
}
