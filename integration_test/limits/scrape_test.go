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

package limits

import (
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
)

func TestAScrapeHasAllMetricsAndGaugesComeToRest(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{
			"methods.SayHello.executes": "1", "methods.Echo.tps": "2", "methods.Echo.tps.interval": "1h",
		}})
		c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{p.Endpoint}, Params: map[string]string{
			"actives": "1", "tps": "1000",
		}})
		held := hold(t, p, c, 1, "g")
		_, err := p.Dial(t).SayHello(background, "x")
		refused(t, err, p.Group, "SayHello", 1)
		queue := harness.Go(3, func(int) error {
			_, err := c.SayHello(background, "x")
			return err
		})
		eventuallyWait(t, p.Group, 3)
		for range 5 {
			_, _ = c.Echo(background, "x")
		}

		provider := map[string]string{"side": "provider", "service": p.Group}
		consumer := map[string]string{"side": "consumer", "service": p.Group}
		of := func(side map[string]string, method, guard string) map[string]string {
			return map[string]string{"side": side["side"], "service": p.Group, "method": method, "guard": guard}
		}
		busy := map[string]float64{
			"weir_queue_waiting":  metric(t, "weir_queue_waiting", of(consumer, "SayHello", "actives")),
			"weir_inflight":       metric(t, "weir_inflight", provider),
			"weir_limit_inflight": metric(t, "weir_limit_inflight", of(consumer, "SayHello", "actives")),
		}
		require.Equal(t, map[string]float64{"weir_queue_waiting": 3, "weir_inflight": 1, "weir_limit_inflight": 1}, busy)
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		require.Zero(t, harness.Failed(queue.Wait(t)))
		eventuallyIdle(t, p.Group, c)

		atRest := func() bool {
			return metric(t, "weir_inflight", provider) == 0 && metric(t, "weir_inflight", consumer) == 0 &&
				metric(t, "weir_queue_waiting", consumer) == 0 &&
				metric(t, "weir_limit_inflight", of(provider, "SayHello", "executes")) == 0 &&
				metric(t, "weir_limit_inflight", of(consumer, "SayHello", "actives")) == 0 &&
				metric(t, "weir_limit_inflight", of(consumer, "Echo", "actives")) == 0
		}
		harness.Eventually(t, "gauges come back to 0", atRest)

		families, err := prometheus.DefaultGatherer.Gather()
		require.NoError(t, err)
		have := map[string]bool{}
		for _, f := range families {
			have[f.GetName()] = true
		}
		for _, name := range []string{
			"weir_calls_total", "weir_rejected_total", "weir_rejected_by_caller_total", "weir_would_reject_total", "weir_inflight",
			"weir_elapsed_seconds_total", "weir_limit", "weir_limit_inflight", "weir_limit_interval_seconds",
			"weir_queue_wait_seconds", "weir_queue_waiting", "weir_would_wait_total", "weir_mode", "weir_config_errors_total",
			"weir_late_responses_total",
		} {
			assert.True(t, have[name], name)
		}

		sayHello := of(provider, "SayHello", "executes")
		assert.EqualValues(t, 1, metric(t, "weir_limit", sayHello))
		assert.EqualValues(t, 1, metric(t, "weir_rejected_total", sayHello))
		echo := of(provider, "Echo", "tps")
		assert.EqualValues(t, 2, metric(t, "weir_limit", echo))
		assert.EqualValues(t, 2, metric(t, "weir_limit_inflight", echo), "what counts within the interval")
		assert.EqualValues(t, 3600, metric(t, "weir_limit_interval_seconds", echo))
		assert.EqualValues(t, 3, metric(t, "weir_rejected_total", echo))
		assert.EqualValues(t, 4, metric(t, "weir_rejected_by_caller_total", map[string]string{"service": p.Group}))
		assert.EqualValues(t, 1000, metric(t, "weir_limit", of(consumer, "*", "tps")))
		assert.EqualValues(t, 9, metric(t, "weir_limit_inflight", of(consumer, "*", "tps")))
		assert.EqualValues(t, 60, metric(t, "weir_limit_interval_seconds", of(consumer, "*", "tps")))
		assert.Equal(t, 4, weirCalls(t, "provider", p.Group, "SayHello", "success"))
		assert.Equal(t, 4, weirCalls(t, "consumer", p.Group, "SayHello", "success"))
		assert.Equal(t, 3, weirCalls(t, "consumer", p.Group, "Echo", "rejected"))
		assert.Positive(t, metric(t, "weir_elapsed_seconds_total", provider))
		assert.EqualValues(t, 1, metric(t, "weir_mode", map[string]string{"mode": "enforce"}))

		waits := 0
		for _, f := range families {
			if f.GetName() != "weir_queue_wait_seconds" {
				continue
			}
			for _, m := range f.GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if labels["service"] != serviceOf(p.Group) || labels["method"] != "SayHello" {
					continue
				}
				waits++
				h := m.GetHistogram()
				assert.EqualValues(t, 4, h.GetSampleCount())
				assert.Positive(t, h.GetSampleSum())
				assert.Zero(t, h.GetBucket()[0].GetUpperBound())
				assert.EqualValues(t, 1, h.GetBucket()[0].GetCumulativeCount(), "the first did not wait")
			}
		}
		assert.Equal(t, 1, waits)
		runtime.KeepAlive(c)
	})
}
