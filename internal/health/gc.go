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

package health

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// GCShare is the share of the CPU time of the Go runtime, GOMAXPROCS times the time
// that passes, which the collector took from the program, 0 to 1. What it did on CPUs
// that were idle is not counted.
//
// The runtime adds it up at the end of each collection, so between two of them
// nothing moves. The share of the last ones that ended stays until the
// time since then is longer than what it was measured over; from there on it shrinks, as
// far as it would if nothing had been collected since. Not known at the first
// reading; one that takes long is seen when it ends.
//
// Sources: /cpu/classes/gc/total:cpu-seconds without
// /cpu/classes/gc/mark/idle:cpu-seconds, of /cpu/classes/total:cpu-seconds.
func GCShare() Signal {
	return newGC(metricsOf(
		"/cpu/classes/gc/total:cpu-seconds", "/cpu/classes/gc/mark/idle:cpu-seconds", "/cpu/classes/total:cpu-seconds",
	))
}

func newGC(samples []metrics.Sample) *gc { return &gc{metrics: samples} }

type gc struct {
	metrics []metrics.Sample
	cycle   gcCycle
}

func (*gc) Name() string { return NameGCShare }

func (g *gc) forget() { g.cycle = gcCycle{} }

// Read implements [Signal].
func (g *gc) Read(now time.Duration) (float64, bool) {
	if !readMetrics(g.metrics) {
		return 0, false
	}
	taken := g.metrics[0].Value.Float64() - g.metrics[1].Value.Float64()
	return g.cycle.share(taken, g.metrics[2].Value.Float64(), float64(runtime.GOMAXPROCS(0)), now)
}

// gcCycle is what the collections took that were the last to end. CPU times are in
// seconds.
type gcCycle struct {
	taken, total float64 // so far
	since        time.Duration
	begun        bool

	took, of float64 // in between
}

func (c *gcCycle) share(taken, total, cpus float64, now time.Duration) (float64, bool) {
	switch {
	case !c.begun || total < c.total || now < c.since:
		*c = gcCycle{taken: taken, total: total, since: now, begun: true}
		return 0, false
	case total > c.total:
		c.took, c.of = max(taken-c.taken, 0), total-c.total
		c.taken, c.total, c.since = taken, total, now
	}
	over := max(c.of, cpus*(now-c.since).Seconds())
	if over <= 0 {
		return 0, true
	}
	return min(c.took/over, 1), true
}
