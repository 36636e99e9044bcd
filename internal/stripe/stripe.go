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

// Package stripe spreads counters over several cache lines, so that calls that
// run at the same time seldom write to the same one.
package stripe

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Count is the number of stripes: a power of two, fixed when the program starts.
var Count = count(runtime.GOMAXPROCS(0))

func count(procs int) int {
	n := 32
	for n < 4*procs && n < 128 {
		n *= 2
	}
	return n
}

// Index picks a stripe for the running goroutine. Goroutines have stacks of
// their own, so the address of a local variable tells them apart without a look
// at anything that is shared. The index may change when the stack moves: what
// is added under one index and taken back under another still sums up.
func Index() int {
	var local byte
	// The product's high bits depend on all bits of the address.
	h := uint64(uintptr(unsafe.Pointer(&local))>>10) * 0x9e3779b97f4a7c15 //nolint:gosec // the address is only hashed
	return int(h>>40) & (Count - 1)
}

// Counter is a counter that many goroutines add to and few read.
type Counter struct {
	cells []cell
}

type cell struct {
	n atomic.Int64
	_ [120]byte // two cache lines: the adjacent one is fetched along
}

// NewCounter returns a counter at 0.
func NewCounter() *Counter { return &Counter{cells: make([]cell, Count)} }

// Add adds n.
func (c *Counter) Add(n int64) { c.cells[Index()&(len(c.cells)-1)].n.Add(n) }

// Sum is the count. While others add it is some value between the first and
// the last moment of the call.
func (c *Counter) Sum() int64 {
	var sum int64
	for i := range c.cells {
		sum += c.cells[i].n.Load()
	}
	return sum
}
