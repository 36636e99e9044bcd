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
	"math/rand/v2"
	"time"
)

// event is something to do at a time.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

// before tells whether e is done before f: of the same time, what was asked for first.
func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.order < f.order
}

// events is a heap. It is not container/heap's, which allocates for each event.
type events []event

func (h *events) push(e event) {
	*h = append(*h, e)
	q := *h
	i := len(q) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&q[parent]) {
			break
		}
		q[i] = q[parent]
		i = parent
	}
	q[i] = e
}

func (h *events) pop() event {
	q := *h
	first, last := q[0], len(q)-1
	e := q[last]
	q[last] = event{}
	q = q[:last]
	*h = q
	for i := 0; last > 0; {
		child := 2*i + 1
		if child+1 < last && q[child+1].before(&q[child]) {
			child++
		}
		if child >= last || !q[child].before(&e) {
			q[i] = e
			break
		}
		q[i] = q[child]
		i = child
	}
	return first
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
	w.events.push(event{at: max(at, w.now), order: w.order, do: do})
}

// After has something done later.
func (w *World) After(d time.Duration, do func()) { w.At(w.now+d, do) }

// Run lets time pass until end.
func (w *World) Run(end time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= end {
		e := w.events.pop()
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
