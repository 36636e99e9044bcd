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

package profile

import (
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"
	"time"
)

// What a profile does to the others: one goroutine keeps asking for the clock and
// for its turn, and its longest gap is what a call could have waited. Beside it, the
// longest stop of the world as the runtime has it, to the width of its histogram's
// buckets, some 10 to 25 %. A machine that others use makes gaps too, so "no-profile"
// stands beside, which formats as much without one, and of all rounds the least is
// nearest to what a profile costs. ns/op is the time from beginning to end, during
// which the others run but for the gaps.
//
// debug=2 and runtime.Stack take seconds a round: -benchtime 5x.
func BenchmarkPause(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			defer park(n)()
			dump := make([]byte, 64<<20) // what debug=2 gives up at
			for _, way := range []struct {
				name string
				take func() (int, error)
			}{
				{"no-profile", func() (int, error) { return 0, work(n * 60) }},
				{"WriteTo", func() (int, error) {
					var size counter
					err := WriteTo(&size, 0)
					return int(size), err
				}},
				{"pprof-debug=0", lookup(0)},
				{"pprof-debug=1", lookup(1)},
				{"pprof-debug=2", lookup(2)},
				{"runtime.Stack", func() (int, error) { return runtime.Stack(dump, true), nil }},
			} {
				b.Run(way.name, func(b *testing.B) { pauses(b, way.take) })
			}
		})
	}
}

// work does what a profile does without stopping anybody: it formats addresses.
func work(times int) error {
	var size counter
	for i := range times {
		if _, err := fmt.Fprintf(&size, " %#x", 0x400000+i); err != nil {
			return err
		}
	}
	return nil
}

func lookup(debug int) func() (int, error) {
	return func() (int, error) {
		var size counter
		err := pprof.Lookup("goroutine").WriteTo(&size, debug)
		return int(size), err
	}
}

func pauses(b *testing.B, take func() (int, error)) {
	var gaps, stops []float64
	size := 0
	for range b.N {
		b.StopTimer()
		runtime.GC() // the last round's garbage is not this one's
		stop := watch()
		before := stopped()
		b.StartTimer()
		n, err := take()
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		size = n
		gaps = append(gaps, float64(stop()))
		stops = append(stops, longest(before, stopped()))
		b.StartTimer()
	}
	b.ReportMetric(slices.Min(gaps)/1e3, "us-gap-least")
	b.ReportMetric(median(gaps)/1e3, "us-gap-median")
	b.ReportMetric(slices.Min(stops)/1e3, "us-stop-least")
	b.ReportMetric(median(stops)/1e3, "us-stop-median")
	b.ReportMetric(float64(size), "B")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// watch returns what stops it and tells its longest gap.
func watch() (stop func() time.Duration) {
	done, gap := make(chan struct{}), make(chan time.Duration)
	running := make(chan struct{})
	go func() {
		close(running)
		longest, last := time.Duration(0), time.Now()
		for {
			select {
			case <-done:
				gap <- longest
				return
			default:
			}
			runtime.Gosched()
			now := time.Now()
			longest, last = max(longest, now.Sub(last)), now
		}
	}()
	<-running
	return func() time.Duration {
		close(done)
		return <-gap
	}
}

func stopped() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/other:seconds"}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	return &metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: h.Buckets}
}

// longest is the upper end of the last bucket that has got more.
func longest(before, after *metrics.Float64Histogram) (ns float64) {
	for i, n := range after.Counts {
		if upper := after.Buckets[i+1]; n > before.Counts[i] && !math.IsInf(upper, 1) {
			ns = upper * 1e9
		}
	}
	return ns
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// park starts n goroutines that wait, with 60 different stacks of 20 to 49 calls, as
// a server's chain of filters has them, and returns what ends them.
func park(n int) (release func()) {
	gate := make(chan struct{})
	var all, parked sync.WaitGroup
	parked.Add(n)
	for i := range n {
		kind := i % 60
		all.Go(func() { filterA(kind, 20+kind%30, &parked, gate) })
	}
	parked.Wait()
	return func() {
		close(gate)
		all.Wait()
	}
}

//go:noinline
func filterA(kind, depth int, parked *sync.WaitGroup, gate chan struct{}) int {
	if depth == 0 {
		return hang(kind, parked, gate)
	}
	if depth%3 == kind%2 {
		return 1 + filterB(kind, depth-1, parked, gate)
	}
	return 1 + filterA(kind, depth-1, parked, gate)
}

//go:noinline
func filterB(kind, depth int, parked *sync.WaitGroup, gate chan struct{}) int {
	var frame [16]int // some room on the stack
	frame[depth%16] = kind
	if depth == 0 {
		return frame[0] + hang(kind, parked, gate)
	}
	return frame[depth%16] + filterA(kind, depth-1, parked, gate)
}

//go:noinline
func hang(kind int, parked *sync.WaitGroup, gate chan struct{}) int {
	parked.Done()
	if kind%2 == 0 {
		<-gate
		return kind
	}
	select {
	case <-gate:
	case <-make(chan int):
	}
	return kind
}
