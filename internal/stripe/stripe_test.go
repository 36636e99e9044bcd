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

package stripe

import (
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCount(t *testing.T) {
	for procs, want := range map[int]int{-1: 32, 0: 32, 1: 32, 8: 32, 9: 64, 16: 64, 17: 128, 32: 128, 1024: 128} {
		assert.Equal(t, want, count(procs), procs)
	}
	assert.Zero(t, Count&(Count-1), "a power of two, as Index masks with it")
	assert.Positive(t, Count)
}

func TestIndexInRange(t *testing.T) {
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 1000 {
				if i := Index(); i < 0 || i >= Count {
					t.Errorf("index %d of %d", i, Count)
				}
			}
			deep(t, 200)
		})
	}
	wg.Wait()
}

// deep makes the stack grow and move.
func deep(t *testing.T, n int) {
	var frame [512]byte
	frame[n%len(frame)] = byte(n)
	if i := Index(); i < 0 || i >= Count {
		t.Errorf("index %d of %d", i, Count)
	}
	if n > 0 {
		deep(t, n-1)
	}
	runtime.KeepAlive(&frame)
}

// Goroutines that exist at the same time have stacks of their own: they must
// not all land on the same few stripes.
func TestIndexSpreads(t *testing.T) {
	const goroutines = 256
	var (
		mu    sync.Mutex
		hits  = map[int]int{}
		ready sync.WaitGroup
		wg    sync.WaitGroup
		start = make(chan struct{})
	)
	ready.Add(goroutines)
	for range goroutines {
		wg.Go(func() {
			i := Index()
			mu.Lock()
			hits[i]++
			mu.Unlock()
			ready.Done()
			<-start
		})
	}
	ready.Wait()
	close(start)
	wg.Wait()
	assert.GreaterOrEqual(t, len(hits), Count/2, "%v", hits)
}

func TestCellsDoNotShareCacheLines(t *testing.T) {
	assert.EqualValues(t, 128, unsafe.Sizeof(cell{}))
}

func TestCounter(t *testing.T) {
	c := NewCounter()
	assert.Zero(t, c.Sum())
	c.Add(5)
	c.Add(-7)
	assert.Equal(t, int64(-2), c.Sum())
	c.Add(2)

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := range 1000 {
				c.Add(int64(i % 3))
				c.Add(-int64(i % 2))
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(64*(999-500)), c.Sum())
}

// What is added on one stripe and taken back on another still sums up.
func TestCounterAcrossGoroutines(t *testing.T) {
	c := NewCounter()
	var wg sync.WaitGroup
	for range 100 {
		c.Add(1)
		wg.Go(func() { c.Add(-1) })
	}
	wg.Wait()
	assert.Zero(t, c.Sum())
}
