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

package metrics_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

// A bulkhead has the series of other limits; that of a group goes by the group's name.
func TestBulkheads(t *testing.T) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		synctest.Test(t, func(t *testing.T) {
			c := &chains{rt: guard.NewRuntime()}
			own := map[string]string{"bulkhead": "2", "bulkhead.queue": "1", "timeout": "1h"}
			ref := reference(t, own)
			first, second := c.chain(t, side, "1", ref, own), c.chain(t, side, "2", ref, own)
			gate := make(chan struct{})
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { _ = first(func() { <-gate }) })
				wg.Go(func() { _ = second(func() { <-gate }) })
			}
			synctest.Wait()
			scraped := func(want map[string]float64) {
				t.Helper()
				got := c.scrape(t)
				for name, v := range want {
					require.Equal(t, v, got[name], name)
				}
			}
			name := side.String() + "}"
			scraped(map[string]float64{
				"weir_limit{bulkhead,Get,method," + name:                 2,
				"weir_limit_inflight{bulkhead,Get,method," + name:        2,
				"weir_queue_waiting{bulkhead,Get," + name:                1,
				"weir_rejected_total{bulkhead,Get,concurrency," + name:   1,
				"weir_queue_wait_seconds{bulkhead,Get," + name + " le 0": 3,
				"weir_inflight{Get," + name:                              2,
			})
			close(gate)
			wg.Wait()
			scraped(map[string]float64{
				"weir_limit_inflight{bulkhead,Get,method," + name:         0,
				"weir_queue_waiting{bulkhead,Get," + name:                 0,
				"weir_queue_wait_seconds{bulkhead,Get," + name + " count": 4,
			})
			b := conf.Policies{Bulkhead: &conf.Bulkhead{Group: "heavy"}}
			c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Policies: b}, Consumer: conf.Section{Policies: b}})
			synctest.Wait()
			scraped(map[string]float64{
				"weir_limit{bulkhead,heavy,group,*," + name: 2, // the service's own is more exact
				"weir_limit{bulkhead,Get,method," + name:    0,
			})
			runtime.KeepAlive(c) // its guards hold what is told
		})
	}
}
