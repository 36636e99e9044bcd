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
	"errors"
	"time"
)

// Signal is something that tells how tight it is.
type Signal interface {
	// Name tells it from others. It is asked once.
	Name() string
	// Read returns the value of now, in a unit of its own, where more is worse; and
	// whether it is known. What needs a difference keeps its last reading. It is not
	// called again before it has come back, unless it was removed and added meanwhile.
	//
	// It may panic and take its time, see [Monitor.Sample]: then it is not known.
	// A value that is no finite number is not known either. One below 0 counts.
	Read(now time.Duration) (value float64, known bool)
}

// Names of the signals of this package.
const (
	NameCPU          = "cpu"
	NameLoadAverage  = "load"
	NameMemory       = "memory"
	NameGoroutines   = "goroutines"
	NameThreads      = "threads"
	NameSchedLatency = "sched-latency"
	NameRunnable     = "runnable"
	NameGCShare      = "gc"
)

// BuiltIn returns new ones of all signals of this package. As each keeps its last
// reading, it belongs to one [Monitor].
func BuiltIn() []Signal {
	return []Signal{
		CPU(), LoadAverage(), Memory(), Goroutines(), Threads(), SchedLatency(), Runnable(), GCShare(),
	}
}

// Func makes a signal of a function.
func Func(name string, read func(now time.Duration) (value float64, known bool)) Signal {
	return function{name, read}
}

type function struct {
	name string
	read func(time.Duration) (float64, bool)
}

func (f function) Name() string                           { return f.name }
func (f function) Read(now time.Duration) (float64, bool) { return f.read(now) }

// ours is a signal of this package: it comes back soon.
type ours interface {
	Signal
	// forget drops what was read before.
	forget()
}

// Why a value is not known, where its signal did not say so itself.
var (
	// ErrPanic is wrapped with what it panicked with.
	ErrPanic = errors.New("weir: signal panicked")
	// ErrLate is that of a signal that has not come back within [Patience].
	ErrLate = errors.New("weir: signal has not come back in time")
	// ErrValue is that of a value that is no finite number.
	ErrValue = errors.New("weir: signal returned no finite number")
)

// nothing is kept by signals that need one reading only.
type nothing struct{}

func (nothing) forget() {}

// shortest is the time between two readings below which their difference says
// little: the kernel brings some counters up to date with each of its ticks only.
const shortest = 10 * time.Millisecond

// held is the value of a reading.
type held struct {
	value float64
	known bool
	at    time.Duration
	begun bool
}

// within reports that it is younger than that.
func (h *held) within(d, now time.Duration) bool {
	return h.begun && now >= h.at && now-h.at < d
}

func (h *held) hold(value float64, known bool, now time.Duration) (float64, bool) {
	*h = held{value: value, known: known, at: now, begun: true}
	return value, known
}
