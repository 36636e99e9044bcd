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

package notify_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/notify"
)

func all(int) bool { return true }

func TestOrderAndChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			h         notify.Hub[int]
			got, even []int
		)
		stop := h.Subscribe(all, func(n int) { got = append(got, n) })
		stopEven := h.Subscribe(func(n int) bool { return n%2 == 0 }, func(n int) { even = append(even, n) })
		for n := range 100 {
			h.Publish(n)
		}
		synctest.Wait()
		assert.Len(t, got, 100)
		assert.IsIncreasing(t, got)
		assert.Len(t, even, 50)
		stop()
		stopEven()
		stop()
		h.Publish(1000)
		synctest.Wait()
		assert.Len(t, got, 100)
	})
}

// One that does not come back keeps nobody waiting, and hears the newest.
func TestSlowSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			h    notify.Hub[int]
			gate = make(chan struct{})
			got  []int
		)
		stop := h.Subscribe(all, func(n int) {
			<-gate
			got = append(got, n)
		})
		for n := range 5000 {
			h.Publish(n)
		}
		close(gate)
		synctest.Wait()
		assert.Less(t, len(got), 1100)
		assert.Equal(t, 4999, got[len(got)-1])
		assert.IsIncreasing(t, got)
		stop()
	})
}

// A hub may keep more, and takes memory for what waits only.
func TestALongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := notify.Hub[int]{Queue: 3000}
		gate := make(chan struct{}, 1)
		var got []int
		stop := h.Subscribe(all, func(n int) {
			<-gate
			got = append(got, n)
		})
		defer stop()
		for n := range 10_000 {
			h.Publish(n)
			if n%3 == 0 && n < 300 {
				gate <- struct{}{}
				synctest.Wait()
			}
		}
		close(gate)
		synctest.Wait()
		assert.Len(t, got, 101+3000)
		assert.IsIncreasing(t, got)
		assert.Equal(t, 7000, got[101])
		assert.Equal(t, 9999, got[len(got)-1])
	})
}

func TestPanicAndExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults, got := 0, 0
		h := notify.Hub[int]{Panicked: func(any) { faults++ }}
		var stop func()
		stop = h.Subscribe(all, func(n int) {
			got++
			switch n {
			case 0:
				panic("no")
			case 1:
				runtime.Goexit()
			case 3:
				stop() // from inside
			}
		})
		for n := range 10 {
			h.Publish(n)
			synctest.Wait()
		}
		assert.Equal(t, 1, faults)
		assert.Equal(t, 4, got)
	})
}

func TestManyAtOnce(t *testing.T) {
	var h notify.Hub[int]
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 500 {
				stop := h.Subscribe(all, func(int) {})
				h.Publish(n)
				stop()
			}
		})
	}
	wg.Wait()
}
