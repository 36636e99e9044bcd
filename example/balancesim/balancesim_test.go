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
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"
)

func small() scenario {
	return scenario{name: "small", providers: 50, consumers: 10, loads: []float64{0.8}, calls: 8000, with: all}
}

func TestOrder(t *testing.T) {
	rows := small().run()
	if err := check(rows, 0.5); err != nil {
		t.Error(err)
	}
	for load, by := range byLoad(rows) {
		for _, r := range by {
			if r.p50 > r.p99 || r.mean < 1 || r.longest < slots {
				t.Errorf("load %v, %s: p50 %v, p99 %v, mean %v, longest queue %d", load, r.kind.name, r.p50, r.p99, r.mean, r.longest)
			}
		}
		// Who is told nothing gives each provider the same share; so does p2c, but under the
		// race detector, where its pool of generators makes new ones of the same seed.
		for _, name := range []string{random, roundRobin, leastActive} {
			if share := by[name].toSick; math.Abs(share-0.04) > 0.01 {
				t.Errorf("load %v: %s gives the sick ones %v of the calls, want 0.04", load, name, share)
			}
		}
	}
	if err := drawRows(io.Discard, rows); err != nil {
		t.Error(err)
	}
}

// What Weir's algorithms make of a seed is the same in each run.
func TestDeterminism(t *testing.T) {
	sc := small()
	sc.with = func(k kind) bool { return k.weir }
	sc.turning = 3
	first := sc.run()
	for i, r := range sc.run() {
		r.kind, first[i].kind = kind{}, kind{}
		if !equal(r, first[i]) {
			t.Errorf("%+v, then %+v", first[i], r)
		}
	}
}

func equal(a, b row) bool {
	return a.load == b.load && a.p50 == b.p50 && a.p99 == b.p99 && a.mean == b.mean && a.longest == b.longest && a.toSick == b.toSick
}

// A claim that does not hold is told.
func TestCheck(t *testing.T) {
	rows := []row{}
	for _, k := range kinds() {
		rows = append(rows, row{kind: k, load: 0.8, p99: 20})
	}
	err := check(rows, 0.2)
	if err == nil || !strings.Contains(err.Error(), "load 0.8: p99 of weir-p2c is 20.0, of random 20.0") {
		t.Error(err)
	}
	if behind := notAhead(rows); len(behind) > 0 {
		t.Error(behind)
	}
	rows[0].p99 = 30
	if behind := notAhead(rows); !slices.Equal(behind, []string{"weir-leastactive at load 0.8: p99 30.0, not 20.0"}) {
		t.Error(behind)
	}
}

// scripted chooses what it is told to, and notes the answers.
type scripted struct {
	choices []int
	took    []time.Duration
	left    []int
}

func (s *scripted) begin(int, time.Duration) int {
	next := s.choices[0]
	s.choices = s.choices[1:]
	return next
}

func (s *scripted) end(_, _ int, took, _ time.Duration, left int) {
	s.took = append(s.took, took)
	s.left = append(s.left, left)
}

// A provider works on four calls at the same time; the fifth waits for the first slot.
func TestQueue(t *testing.T) {
	const ms = time.Millisecond
	service := service{slowness: []float64{1, 2}, sick: []bool{false, true}, turning: []bool{false, false}}
	trace := []request{
		{demand: 40 * ms}, {demand: 30 * ms}, {demand: 20 * ms}, {demand: 10 * ms},
		{at: 5 * ms, demand: 10 * ms}, {at: 5 * ms, demand: 10 * ms}, {at: 6 * ms, demand: 10 * ms},
	}
	b := &scripted{choices: []int{0, 0, 0, 0, 0, 0, 1}}
	got := service.run(trace, 1, b)
	if want := []time.Duration{10 * ms, 20 * ms, 15 * ms, 20 * ms, 30 * ms, 25 * ms, 40 * ms}; !slices.Equal(b.took, want) {
		t.Errorf("the calls took %v in the order of their answers, want %v", b.took, want)
	}
	if want := []int{5, 4, 3, 0, 2, 1, 0}; !slices.Equal(b.left, want) {
		t.Errorf("left when answered: %v, want %v", b.left, want)
	}
	if got.longest != 6 || got.toSick != 1 || len(got.sojourns) != 6 || got.sojourns[5] != 30*ms {
		t.Errorf("%+v", got)
	}
	if p := got.percentile(50); p != 2 {
		t.Errorf("the median is %v mean demands, want 2", p)
	}
}

func TestTrace(t *testing.T) {
	const calls = 100_000
	s := newService(50, seed)
	slow := newTrace(calls, 0.5*s.capacity(), 10, seed)
	fast := newTrace(calls, s.capacity(), 10, seed)
	demand := time.Duration(0)
	perConsumer := make([]int, 10)
	for i, c := range slow {
		demand += c.demand
		perConsumer[c.consumer]++
		if c.demand != fast[i].demand || c.consumer != fast[i].consumer {
			t.Fatalf("call %d is another one at another rate", i)
		}
	}
	if mean := inDemands(demand) / calls; math.Abs(mean-1) > 0.02 {
		t.Errorf("the mean demand is %v of what it should be", mean)
	}
	for c, n := range perConsumer {
		if math.Abs(float64(n)-calls/10) > 500 {
			t.Errorf("consumer %d has %d calls", c, n)
		}
	}
	seconds := (slow[calls-1].at - slow[0].at).Seconds()
	if rate := calls / seconds / s.capacity(); math.Abs(rate-0.5) > 0.01 {
		t.Errorf("the load is %v, want 0.5", rate)
	}
	if n := s.tooSlow(0); n != 0 {
		t.Errorf("%d providers are too slow for nothing", n)
	}
}

func TestNamesAreApart(t *testing.T) {
	const apart, lowest = 10, 50
	for _, heights := range [][]vg.Length{{200}, {200, 100}, {200, 200, 199, 198}, {60, 52, 51, 50}, {300, 55, 54, 53, 51, 51, 50, 50}} {
		got := spread(heights, apart, lowest)
		for i, y := range got {
			if y < lowest-0.1 || i > 0 && got[i-1]-y < apart-0.1 {
				t.Errorf("%v became %v", heights, got)
			}
		}
	}
}
