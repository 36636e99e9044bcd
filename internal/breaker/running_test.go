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

package breaker

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// left is what the words of r count, below zero as well.
func (r *running) left() int64 {
	n := r.over.Load()
	for s := range r.stripes {
		for i := range r.stripes[s].slots {
			n += int64(r.stripes[s].slots[i].Load()&(1<<countBits-1)) - zeroCalls
		}
	}
	return n
}

// However calls begin and end while slots are taken, the words count those that run.
func TestRunningIsExact(t *testing.T) {
	r := newRunning(7, 0)
	var now atomic.Int64
	for range 1500 { // what is wrong is made good by later slots: so look often
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				var keys []uint32
				for j := range 12 {
					keys = append(keys, r.enter(time.Duration(now.Load())))
					if (i+j)%5 == 0 {
						now.Add(int64(1 + j%(2*slots)))
					}
					if len(keys) > j%4 {
						r.leave(keys[0])
						keys = keys[1:]
					}
				}
				for _, k := range keys {
					r.leave(k)
				}
			}()
		}
		wg.Wait()
		require.Zero(t, r.over.Load())
		require.Zero(t, r.left())
	}
}

// Tags begin anew after a billion slots. Calls from before are still told apart.
func TestRunningTagsBeginAnew(t *testing.T) {
	r := newRunning(7, 0)
	base := time.Duration(tags - 20)
	var began []time.Duration
	var keys []uint32
	for now := base; now < base+60; now++ {
		for range 1 + now%5 { // so that slots differ
			k := r.enter(now)
			require.NotZero(t, k)
			keys = append(keys, k)
			began = append(began, now)
		}
		slow := 0
		for _, at := range began {
			if now-at >= slots {
				slow++
			}
		}
		require.EqualValues(t, slow, r.hung())
	}
	over := r.hung()
	for i, k := range keys {
		r.leave(k)
		require.Equal(t, max(over-int64(i)-1, 0), r.hung())
		require.EqualValues(t, len(keys)-i-1, r.left())
	}
	// One that ends exactly as many slots later is taken from the wrong word: that is
	// made good when the slot is taken.
	k := r.enter(base)
	r.advance(base + 59 + tags)
	require.EqualValues(t, 1, r.hung())
	r.leave(k)
	r.advance(base + 59 + tags + slots)
	require.Zero(t, r.hung())
	require.Zero(t, r.left())
}

// Whoever comes first begins a bucket; the others find it.
func TestWindowRollsOnce(t *testing.T) {
	w := newWindow(&Rules{Width: 10, Buckets: 3}, 0)
	for now := time.Duration(0); now < 2000; now += 10 {
		var wg sync.WaitGroup
		var found [8]*bucket
		for i := range found {
			wg.Add(1)
			go func() {
				defer wg.Done()
				found[i] = w.at(now + time.Duration(i))
			}()
		}
		wg.Wait()
		for _, b := range found {
			require.Same(t, found[0], b)
		}
		require.LessOrEqual(t, len(w.past), 2)
	}
}

// The slot of a call is taken just as it begins or ends: only what that itself
// leaves behind is looked at.
func TestRunningIsExactAsASlotIsTaken(t *testing.T) {
	r := newRunning(7, 0)
	for round := range time.Duration(1500) {
		var begun, taken atomic.Bool
		var wg sync.WaitGroup
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !taken.Load() {
				r.leave(r.enter(0))
				begun.Store(true)
			}
		}()
		for !begun.Load() {
			runtime.Gosched()
		}
		r.advance((round + 1) * slots)
		taken.Store(true)
		wg.Wait()
		require.Zero(t, r.over.Load())
		require.Zero(t, r.left())
	}
}
