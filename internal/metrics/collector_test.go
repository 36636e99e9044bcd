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
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/alarms"
	"github.com/weir-go/weir/internal/health"
	"github.com/weir-go/weir/internal/machine"
	"github.com/weir-go/weir/internal/metrics"
	"github.com/weir-go/weir/internal/retry"
)

type inner struct {
	base.BaseInvoker
	f func()
}

func (e *inner) Invoke(context.Context, base.Invocation) result.Result {
	e.f()
	return &result.RPCResult{}
}

// chains are those of one runtime.
type chains struct {
	rt   *guard.Runtime
	keep []*guard.Guard
}

// chain returns a function that makes one call.
func (c *chains) chain(t *testing.T, side conf.Side, port string, ref *retry.Reference, params map[string]string) func(f func()) error {
	t.Helper()
	opts := []common.Option{
		common.WithProtocol("tri"), common.WithPath("a.B"), common.WithIp("127.0.0.1"), common.WithPort(port),
		common.WithInterface("a.B"), common.WithMethods([]string{"Get"}),
	}
	for k, v := range params {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	u := common.NewURLWithOptions(opts...)
	u.Location = "127.0.0.1:" + port
	if ref != nil {
		u.SetAttribute(retry.AttributeKey, ref)
	}
	g := guard.New(c.rt, side)
	c.keep = append(c.keep, g)
	return func(f func()) error {
		return g.Invoke(context.Background(), &inner{*base.NewBaseInvoker(u), f}, invocation.NewRPCInvocation("Get", nil, map[string]any{})).Error()
	}
}

func reference(t *testing.T, params map[string]string) *retry.Reference {
	t.Helper()
	parsed := conf.ParseParams(conf.Consumer, "a.B", params)
	require.Empty(t, parsed.Faults)
	return retry.NewReference(&parsed.Service)
}

// scrape gathers everything, as Prometheus would, and returns what is not zero.
func (c *chains) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(metrics.New(c.rt)))
	families, err := r.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetValue() != "a.B" && l.GetValue() != "" {
					labels = append(labels, l.GetValue())
				}
			}
			name := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if h := m.GetHistogram(); h != nil {
				out[name+" count"] = float64(h.GetSampleCount())
				out[name+" sum"] = h.GetSampleSum()
				last := uint64(0)
				for _, b := range h.GetBucket() {
					require.GreaterOrEqual(t, b.GetCumulativeCount(), last)
					last = b.GetCumulativeCount()
					out[fmt.Sprint(name, " le ", b.GetUpperBound())] = float64(last)
				}
				continue
			}
			if v != 0 {
				out[name] = v
			}
		}
	}
	return out
}

func TestWhatIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := func(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest
		c := &chains{rt: guard.NewRuntime()}
		c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: conf.Enforce})
		provider := c.chain(t, conf.Provider, "1", nil, map[string]string{"executes": "4", "tps": "6", "tps.interval": "1h"})
		own := map[string]string{"actives": "1", "actives.wait": "7ms", "timeout": "1h"}
		one, other := reference(t, own), reference(t, own)
		first, second := c.chain(t, conf.Consumer, "1", one, own), c.chain(t, conf.Consumer, "2", one, own)
		third := c.chain(t, conf.Consumer, "1", other, own)

		gate := make(chan struct{})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _ = provider(func() { <-gate }) })
		}
		for range 3 {
			wg.Go(func() { _ = first(func() { <-gate }) })
			wg.Go(func() { _ = second(func() { <-gate }) })
		}
		wg.Go(func() { _ = third(func() { <-gate }) })
		synctest.Wait()
		got := c.scrape(t)
		for name, want := range map[string]float64{
			"weir_inflight{Get,provider}":                            4,
			"weir_inflight{Get,consumer}":                            3,
			"weir_limit{executes,Get,method,provider}":               4,
			"weir_limit_inflight{executes,Get,method,provider}":      4,
			"weir_limit{tps,*,instance,provider}":                    6,
			"weir_limit_inflight{tps,*,instance,provider}":           4, // one was given back
			"weir_limit_interval_seconds{tps,*,instance,provider}":   3600,
			"weir_limit{actives,Get,address,consumer}":               1,
			"weir_limit_inflight{actives,Get,address,consumer}":      1,
			"weir_queue_waiting{actives,Get,consumer}":               4,
			"weir_rejected_total{executes,Get,concurrency,provider}": 1,
			"weir_rejected_by_caller_total{unknown,executes}":        1,
			"weir_queue_wait_seconds{actives,Get,consumer} count":    3,
			"weir_queue_wait_seconds{actives,Get,consumer} le 0":     3,
			"weir_mode{enforce}":                                     1,
		} {
			require.InDelta(t, want, got[name], 0, "%s in\n%s", name, strings.Join(slices.Sorted(maps.Keys(got)), "\n"))
		}
		sleep(20 * time.Millisecond)
		close(gate)
		wg.Wait()
		got = c.scrape(t)
		for name, want := range map[string]float64{
			"weir_inflight{Get,provider}":                            0,
			"weir_inflight{Get,consumer}":                            0,
			"weir_limit_inflight{executes,Get,method,provider}":      0,
			"weir_limit_inflight{actives,Get,address,consumer}":      0,
			"weir_queue_waiting{actives,Get,consumer}":               0,
			"weir_calls_total{Get,success,provider}":                 4,
			"weir_calls_total{Get,rejected,provider}":                1,
			"weir_calls_total{Get,success,consumer}":                 3,
			"weir_calls_total{Get,rejected,consumer}":                4,
			"weir_rejected_total{actives,Get,wait-timeout,consumer}": 4,
			"weir_elapsed_seconds_total{Get,provider}":               0.08,
			"weir_elapsed_seconds_total{Get,consumer}":               0.06,
			"weir_queue_wait_seconds{actives,Get,consumer} count":    7,
			"weir_queue_wait_seconds{actives,Get,consumer} sum":      0.028,
			"weir_queue_wait_seconds{actives,Get,consumer} le 0.005": 3,
			"weir_queue_wait_seconds{actives,Get,consumer} le 0.01":  7,
		} {
			require.InDelta(t, want, got[name], 1e-9, "%s in\n%s", name, strings.Join(slices.Sorted(maps.Keys(got)), "\n"))
		}
		c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: conf.Observe})
		synctest.Wait()
		require.Equal(t, 1.0, c.scrape(t)["weir_mode{observe}"])
		runtime.KeepAlive(c)
	})
}

// Every metric is described, and is there from the first call on, at 0.
func TestEveryMetricIsDescribedAndThere(t *testing.T) {
	c := &chains{rt: guard.NewRuntime()}
	own := map[string]string{"actives": "1", "tps": "5", "breaker": "standard", "fallback": "none"}
	ref := reference(t, own)
	ref.Answerer = guard.NewFallbacks(c.rt, common.NewURLWithOptions(common.WithInterface("a.B"), common.WithMethods([]string{"Get", "get"})), ref)
	require.NoError(t, c.chain(t, conf.Consumer, "1", ref, own)(func() {}))
	provider := c.chain(t, conf.Provider, "1", nil, map[string]string{"executes": "4", "tps": "1", "overload": "5"})
	require.NoError(t, provider(func() {}))
	require.Error(t, provider(func() {})) // a caller
	balanced := newBalanced("metrics.Described", 2)
	groups := routed(t, c.rt, "metrics.Described", "core")
	require.NoError(t, machine.Of(c.rt).Add(health.Func("own", func(time.Duration) (float64, bool) { return 0.5, true }), health.Rule{Limit: 0.9}))
	machine.Of(c.rt).Sample(guard.Now())
	described := make(chan *prometheus.Desc, 100)
	metrics.New(c.rt).Describe(described)
	close(described)
	r := prometheus.NewPedanticRegistry()
	watch := alarms.New(c.rt)
	watch.Look()
	require.NoError(t, r.Register(metrics.New(c.rt, metrics.WithAlarms(watch))))
	families, err := r.Gather()
	require.NoError(t, err)
	require.Len(t, families, len(described))
	runtime.KeepAlive(ref)
	runtime.KeepAlive(c)
	runtime.KeepAlive(balanced)
	runtime.KeepAlive(groups)
}
