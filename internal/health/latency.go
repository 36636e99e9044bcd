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
	"math"
	"runtime/metrics"
	"time"
)

// percentile is that of the latencies which counts.
const percentile = 0.99

// SchedLatency is how long goroutines that could run have waited to run since the
// reading before, in seconds: the time that 99 % of them did not exceed, rounded up
// to the next bound of a bucket of the runtime's, a quarter more at most. It is 0
// if none had to be scheduled, and not known at the first reading.
//
// The runtime measures about one of eight times, and few of them make for a
// percentile that jumps: it needs smoothing.
//
// Source: /sched/latencies:seconds of runtime/metrics. A reading within 10 ms of the
// one before repeats it.
func SchedLatency() Signal {
	return &latency{metrics: metricsOf("/sched/latencies:seconds")}
}

type latency struct {
	metrics []metrics.Sample
	held    held
	last    []uint64 // the counts of the reading before
}

func (*latency) Name() string { return NameSchedLatency }

func (l *latency) forget() { l.held, l.last = held{}, l.last[:0] }

// Read implements [Signal].
func (l *latency) Read(now time.Duration) (float64, bool) {
	if l.held.within(shortest, now) {
		return l.held.value, l.held.known
	}
	if !readMetrics(l.metrics) {
		return 0, false
	}
	h := l.metrics[0].Value.Float64Histogram()
	known := len(l.last) == len(h.Counts)
	value := 0.0
	if known {
		value = quantile(h, l.last, percentile)
	}
	l.last = append(l.last[:0], h.Counts...)
	return l.held.hold(value, known, now)
}

// quantile is that of what a histogram has counted since it was as it was: the upper
// bound of its bucket, or the lower one if that is infinite; 0 if there is nothing.
func quantile(h *metrics.Float64Histogram, was []uint64, q float64) float64 {
	total := uint64(0)
	for i, n := range h.Counts {
		total += n - was[i]
	}
	if total == 0 {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(total)))
	for i, n := range h.Counts {
		if n -= was[i]; n < rank {
			rank -= n
			continue
		}
		bound := h.Buckets[i+1]
		if math.IsInf(bound, 1) {
			bound = h.Buckets[i]
		}
		return max(bound, 0)
	}
	return 0
}
