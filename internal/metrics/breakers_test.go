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
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

// Addresses are no labels: the breakers of a method are counted by state.
func TestBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := func(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest
		c := &chains{rt: guard.NewRuntime()}
		own := map[string]string{"breaker.consecutive-errors": "2", "breaker.slow-ratio": "1", "breaker.slow-call": "70ms", "breaker.open-jitter": "0"}
		ref := reference(t, own)
		first, second := c.chain(t, conf.Consumer, "1", ref, own), c.chain(t, conf.Consumer, "2", ref, own)
		breakers := func() map[string]float64 {
			all := c.scrape(t)
			maps.DeleteFunc(all, func(name string, _ float64) bool {
				return !strings.HasPrefix(name, "weir_breaker") || strings.Contains(name, "{*")
			})
			return all
		}
		require.NoError(t, first(func() {}))
		require.NoError(t, second(func() {}))
		require.Equal(t, map[string]float64{"weir_breaker_state{Get,consumer,closed}": 2}, breakers())
		gate := make(chan struct{})
		done := make(chan error)
		for range 3 {
			go func() { done <- second(func() { <-gate }) }()
		}
		for range 2 {
			require.Panics(t, func() { _ = first(func() { panic("broken") }) })
		}
		sleep(100 * time.Millisecond)
		require.Equal(t, map[string]float64{
			"weir_breaker_state{Get,consumer,closed}": 1, "weir_breaker_state{Get,consumer,open}": 1,
			"weir_breaker_transitions_total{Get,consumer,open}": 1, "weir_breaker_hung_calls{Get,consumer}": 3,
		}, breakers())
		close(gate)
		for range 3 {
			require.NoError(t, <-done)
		}
		sleep(5 * time.Second)
		require.NoError(t, first(func() {}))
		require.Equal(t, map[string]float64{
			"weir_breaker_state{Get,consumer,closed}":           2,
			"weir_breaker_transitions_total{Get,consumer,open}": 1, "weir_breaker_transitions_total{Get,consumer,half-open}": 1,
			"weir_breaker_transitions_total{Get,consumer,closed}": 1,
		}, breakers())
		runtime.KeepAlive(c)
	})
}
