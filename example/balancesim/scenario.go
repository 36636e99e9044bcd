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
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// seed is of everything by chance but dubbo-go's own choices, which take no seed.
const seed = 1

// scenario is a service, and how it is called.
type scenario struct {
	name, title          string
	providers, consumers int
	loads                []float64 // as shares of the capacity
	calls                int
	warmUp               int  // so many of the calls are not measured; 0 is a quarter
	matchSpeed           bool // the weights do
	turning              int  // so many of the fastest become sick after the warm-up
	with                 func(kind) bool
	long                 bool // says nothing with fewer calls
}

func all(kind) bool { return true }

// told are those that learn of calls, whatever they cost.
func told(k kind) bool { return k.weir || k.name == leastActiveFilter || k.name == p2cTold }

func cheap(k kind) bool { return !k.costly }

// distinct are all but the costly one that is random under another name: with no counts
// all providers are equally active.
func distinct(k kind) bool { return k.name != leastActive }

// scenarios are those of the full run, or of a short one that has fewer calls.
func scenarios(full bool) []scenario {
	few := []float64{0.8, 0.95}
	list := []scenario{
		{name: claimed, title: "50 providers, 10 consumers", providers: 50, consumers: 10, loads: []float64{0.5, 0.7, 0.8, 0.9, 0.95}, calls: 100_000, with: all},
		{name: "large", title: "1000 providers, 10 consumers", providers: 1000, consumers: 10, loads: []float64{0.5, 0.8, 0.95}, calls: 200_000, with: cheap},
		{name: "start", title: "1000 providers, 10 consumers, soon after the start", providers: 1000, consumers: 10, loads: []float64{0.8}, calls: 40_000, with: distinct, long: true},
		{name: "one", title: "50 providers, one consumer", providers: 50, consumers: 1, loads: few, calls: 100_000, with: told},
		{name: "many", title: "50 providers, 100 consumers", providers: 50, consumers: 100, loads: few, calls: 100_000, with: told, long: true},
		{name: "weights", title: "50 providers, 10 consumers, weights in proportion to the speeds", providers: 50, consumers: 10, loads: few, calls: 100_000, matchSpeed: true, with: distinct},
		{name: "sudden", title: "50 providers, 10 consumers, the two seconds after the five fastest have become sick", providers: 50, consumers: 10, loads: []float64{0.5, 0.6}, calls: 60_000, warmUp: 50_000, turning: 5, with: told, long: true},
	}
	if full {
		return list
	}
	for i := range list {
		list[i].calls /= 4
	}
	return slices.DeleteFunc(list, func(sc scenario) bool { return sc.long })
}

// claimed is the scenario that is drawn, and that check is about.
const claimed = "base"

// row is what one balancer made of one load. Times are in mean demands.
type row struct {
	kind           kind
	load           float64
	p50, p99, mean float64
	longest        int
	toSick         float64 // as a share of the calls
}

// run has rows by load and kind, in the order of both.
func (sc scenario) run() []row {
	var rows []row
	for _, load := range sc.loads {
		for _, k := range kinds() {
			if sc.with(k) {
				rows = append(rows, row{kind: k, load: load})
			}
		}
	}
	var wg sync.WaitGroup
	next := make(chan *row)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for r := range next {
				sc.measure(r)
			}
		})
	}
	for i := range rows {
		next <- &rows[i]
	}
	close(next)
	wg.Wait()
	return rows
}

func (sc scenario) measure(r *row) {
	s := newService(sc.providers, seed)
	trace := newTrace(sc.calls, r.load*s.capacity(), sc.consumers, seed)
	s.turn(sc.turning)
	got := s.run(trace, sc.unmeasured(), r.kind.make(sc.consumers, s.weights(sc.matchSpeed), seed))
	r.p50, r.p99, r.mean = got.percentile(50), got.percentile(99), got.mean()
	r.longest, r.toSick = got.longest, float64(got.toSick)/float64(len(got.sojourns))
}

// print is a table in Markdown.
func (sc scenario) print(out io.Writer, rows []row) {
	fmt.Fprintf(out, "\n### %s\n\n", sc.title)
	fmt.Fprintf(out, "%d calls, of which the first %d are not measured.", sc.calls, sc.unmeasured())
	if !sc.matchSpeed {
		fmt.Fprintf(out, " An even share is more than can be taken by %s.", sc.tooSlow())
	}
	fmt.Fprint(out, "\n\n| load | balancer | p50 | p99 | mean | longest queue | calls to sick ones |\n|---|---|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(out, "| %v | %s | %s | %s | %s | %d | %.1f %% |\n", r.load, r.kind.name, short(r.p50), short(r.p99), short(r.mean), r.longest, 100*r.toSick)
	}
}

func (sc scenario) unmeasured() int {
	if sc.warmUp > 0 {
		return sc.warmUp
	}
	return sc.calls / 4
}

func (sc scenario) tooSlow() string {
	var parts []string
	s := newService(sc.providers, seed)
	for _, load := range sc.loads {
		parts = append(parts, fmt.Sprintf("%d providers at %v", s.tooSlow(load), load))
	}
	return strings.Join(parts, ", ")
}

// short is a number of mean demands for people.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
