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

package conf

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Health tells when the machine is tight.
type Health struct {
	// Signals are Weir's own by their names: [SignalCPU] and those beside it.
	Signals map[string]Signal
	// Own are signals that the program measures, by names of 1 to 64 letters, digits,
	// dots, underscores and hyphens other than those of Weir's.
	Own map[string]Signal
	// Ready has dubbo-go's readiness probe fail while a signal is tight. nil is not set
	// and means no.
	Ready *bool
}

// Names of Weir's signals, and the units of their limits.
const (
	// SignalCPU is the share of the CPU that the container may use, 0 to 1.
	SignalCPU = "cpu"
	// SignalMemory is the share of the memory that the container may use, 0 to 1.
	SignalMemory = "memory"
	// SignalLoad is the load average per CPU.
	SignalLoad = "load"
	// SignalGoroutines is the number of goroutines.
	SignalGoroutines = "goroutines"
	// SignalThreads is the number of threads.
	SignalThreads = "threads"
	// SignalSchedLatency is how long goroutines wait to run, in seconds.
	SignalSchedLatency = "sched-latency"
	// SignalRunnable is the number of goroutines that could run and do not.
	SignalRunnable = "runnable"
	// SignalGC is the share of the CPU that the garbage collector takes, 0 to 1.
	SignalGC = "gc"
)

// Signal tells when a signal is tight. nil is not set.
type Signal struct {
	// Limit is the value from which on it is tight, in the signal's unit; 0 turns it off.
	Limit *float64
	// Recover is the value below which it is calm again: more than 0 and less than Limit.
	Recover *float64
	// Smoothing is the time constant of the mean that is looked at, up to 1 h; 0 takes
	// each value as it is.
	Smoothing *time.Duration
}

// HealthPolicy is what holds for the machine, with all defaults filled in.
type HealthPolicy struct {
	// Signals are those that are on, by name in order.
	Signals []SignalRule
	// Off are the program's own signals that are turned off, by name in order.
	Off   []string
	Ready bool
}

// SignalRule tells when a signal is tight.
type SignalRule struct {
	Name string
	// Limit is more than 0, and Recover less than it and more than 0. That of
	// [SignalSchedLatency] is in seconds.
	Limit, Recover float64
	Smoothing      time.Duration
	// Own is set for a signal of the program's.
	Own bool
}

// Defaults of signals. All but [SignalCPU] and [SignalMemory] are off, and only the CPU
// is smoothed.
const (
	DefaultCPULimit     = 0.9
	DefaultMemoryLimit  = 0.9
	DefaultCPUSmoothing = time.Second
	// DefaultRecover is the share of the limit below which a signal is calm again.
	DefaultRecover = 0.9
)

// Health is what holds for the machine. For each value the highest source that sets it
// wins. Where that makes a recover of one source and a limit of another which is not
// above it, the default of recover holds.
func (v *View) Health() HealthPolicy {
	all := slices.Clone(signals)
	for _, l := range v.layers {
		if l.cfg != nil {
			all = append(all, l.cfg.ownSignals()...)
		}
	}
	slices.SortFunc(all, func(a, b *signal) int { return strings.Compare(a.name, b.name) })
	all = slices.CompactFunc(all, func(a, b *signal) bool { return a.name == b.name })
	out := HealthPolicy{Ready: topmost(v, false, func(c *Config) *bool { return or(c.Health).Ready })}
	for _, s := range all {
		limit := topmost(v, s.limit, func(c *Config) *float64 { return s.of(c).Limit })
		if limit == 0 {
			if s.own && topmost(v, -1, func(c *Config) *float64 { return s.of(c).Limit }) == 0 {
				out.Off = append(out.Off, s.name) // its limit may be set in code
			}
			continue
		}
		back := topmost(v, 0, func(c *Config) *float64 { return s.of(c).Recover })
		if back == 0 || back >= limit {
			back = limit * DefaultRecover
		}
		out.Signals = append(out.Signals, SignalRule{
			Name: s.name, Limit: limit, Recover: back, Own: s.own,
			Smoothing: topmost(v, s.smoothing, func(c *Config) *time.Duration { return s.of(c).Smoothing }),
		})
	}
	return out
}

// ownSignals are the program's that c names, in order, without names that are wrong.
func (c *Config) ownSignals() []*signal {
	var out []*signal
	for _, name := range slices.Sorted(maps.Keys(or(c.Health).Own)) {
		if problem, _ := ownName(name); problem == "" {
			out = append(out, ownSignal(name))
		}
	}
	return out
}
