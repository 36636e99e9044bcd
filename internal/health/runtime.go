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

// metricsOf are metrics of the runtime to read together.
func metricsOf(names ...string) []metrics.Sample {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	return samples
}

// readMetrics reports whether this version of Go has them all.
func readMetrics(samples []metrics.Sample) bool {
	metrics.Read(samples)
	for i := range samples {
		if samples[i].Value.Kind() == metrics.KindBad {
			return false
		}
	}
	return true
}

// Goroutines is the number of goroutines that there are.
//
// Source: [runtime.NumGoroutine].
func Goroutines() Signal { return goroutines{} }

type goroutines struct{ nothing }

func (goroutines) Name() string { return NameGoroutines }

// Read implements [Signal].
func (goroutines) Read(time.Duration) (float64, bool) { return float64(runtime.NumGoroutine()), true }

// Runnable is the number of goroutines that could run and do not, for want of a CPU.
// It is that of the moment, so it needs smoothing.
//
// Source: /sched/goroutines/runnable:goroutines of runtime/metrics, from Go 1.26 on;
// before that it is unknown, and [SchedLatency] tells the same from another side.
func Runnable() Signal {
	return &runnable{metrics: metricsOf("/sched/goroutines/runnable:goroutines")}
}

type runnable struct {
	nothing
	metrics []metrics.Sample
}

func (*runnable) Name() string { return NameRunnable }

// Read implements [Signal].
func (r *runnable) Read(time.Duration) (float64, bool) {
	if !readMetrics(r.metrics) {
		return 0, false
	}
	return float64(r.metrics[0].Value.Uint64()), true
}
