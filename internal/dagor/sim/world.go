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

// Package sim runs admission policies on a virtual clock: tasks arrive as a Poisson process
// and make calls to a service that is too small for them. The controllers of package dagor
// run as they are; there are no goroutines, so that a run with a given seed is always the same.
//
// The service is a number of servers, each with a number of slots. A call that has got past
// its server's Policy waits for a slot in the order of arrival, and takes it for an
// exponentially distributed time. A task makes its calls one after another and succeeds
// when all are answered within its deadline. A call that is refused is sent again, to a server by
// chance, some times.
package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// event is something to do at a time.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

// World is the clock of a run and what is to happen.
type World struct {
	now    time.Duration
	events events
	order  uint64
	steps  uint64
}

// Now is the time.
func (w *World) Now() time.Duration { return w.now }

// At has something done at a time, or now if that is over.
func (w *World) At(at time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, event{at: max(at, w.now), order: w.order, do: do})
}

// After has something done later.
func (w *World) After(d time.Duration, do func()) { w.At(w.now+d, do) }

// Run lets time pass until end.
func (w *World) Run(end time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= end {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		w.steps++
		e.do()
	}
	w.now = end
}

// Steps is how many events there were.
func (w *World) Steps() uint64 { return w.steps }

// stream is a source of chance of its own: what one part of a run draws changes nothing for another.
func stream(seed uint64, part uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, part)) }

// exponential draws a time with a mean.
func exponential(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(r.ExpFloat64() * float64(mean))
}
