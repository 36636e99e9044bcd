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

package health_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/health"
)

// 16 goroutines ask and look while others sample, change rules, and add and remove
// signals, some of which misbehave.
func TestStorm(t *testing.T) {
	m := health.New()
	names := map[string]bool{"": true, "own": true}
	for _, s := range health.BuiltIn() {
		names[s.Name()] = true
		require.NoError(t, m.Add(s, health.Rule{Limit: 1e-9, Smoothing: ms}))
	}
	own := func() health.Signal {
		r := rand.New(rand.NewPCG(rand.Uint64(), 0))
		var mu sync.Mutex // it is read twice at a time after it was removed and added
		return health.Func("own", func(time.Duration) (float64, bool) {
			mu.Lock()
			defer mu.Unlock()
			switch r.IntN(6) {
			case 0:
				panic("mine")
			case 1:
				return math.NaN(), true
			}
			return r.Float64(), r.IntN(2) == 0
		})
	}
	var clock atomic.Int64
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for range 16 {
		readers.Go(func() {
			for !stop.Load() {
				name, tight := m.Tight()
				if !names[name] || tight != (name != "") {
					t.Errorf("%q %v", name, tight)
					return
				}
				for _, s := range m.States() {
					if !finite(s.Value) || !finite(s.Raw) || s.Tight && !s.Known || s.Known && s.Err != nil {
						t.Errorf("%+v", s)
						return
					}
				}
			}
		})
	}
	for i := range 2 {
		writers.Go(func() { // two that sample: one of them returns at once
			for range 300 {
				m.Sample(time.Duration(clock.Add(int64(20 * ms))))
			}
		})
		writers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 0))
			all := health.BuiltIn()
			for range 1000 {
				rule := health.Rule{Limit: r.Float64() - 0.1, Smoothing: time.Duration(r.IntN(2)) * ms}
				if err := m.Update(all[r.IntN(len(all))].Name(), rule); err != nil {
					t.Error(err)
				}
				switch r.IntN(4) {
				case 0:
					_ = m.Add(own(), rule)
				case 1:
					m.Remove("own")
				}
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()

	m.Remove("own")
	for _, s := range m.States() {
		assert.NoError(t, m.Update(s.Name, health.Rule{}))
	}
	m.Sample(time.Duration(clock.Add(int64(sec))))
	assert.Empty(t, who(m), fmt.Sprint(m.States()))
	assert.Len(t, m.States(), 8)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
