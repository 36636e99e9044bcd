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

// Package metrics shows what Weir counts to Prometheus. Nothing is counted
// here: the collector reads the registries when it is scraped, so it costs a
// call nothing.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/transport"
	"github.com/weir-go/weir/rpcstatus"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

var (
	siteLabels      = []string{"side", "service", "method"}
	rejectionLabels = append(append([]string{}, siteLabels...), "guard", "reason")
	limitLabels     = append(append([]string{}, siteLabels...), "guard", "scope", "protocol")

	calls        = desc("weir_calls_total", "Calls by how they ended. Refused ones are among them.", append(append([]string{}, siteLabels...), "outcome"))
	rejected     = desc("weir_rejected_total", "Calls that a guard refused.", rejectionLabels)
	wouldReject  = desc("weir_would_reject_total", "Calls that a guard in observe mode would have refused.", rejectionLabels)
	inflight     = desc("weir_inflight", "Calls that run now.", siteLabels)
	limit        = desc("weir_limit", "The limit in force; 0 is unlimited.", limitLabels)
	limitUsed    = desc("weir_limit_inflight", "Slots of the limit that are taken now.", limitLabels)
	configErrors = desc("weir_config_errors_total", "Faults in a configuration that were met while running; the last good one stayed in force.", nil)
	late         = desc("weir_late_responses_total", "Responses on the dubbo protocol that came after their caller had timed out, and were dropped.", nil)
)

func desc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Collector collects the metrics of one runtime.
type Collector struct {
	runtime *guard.Runtime
}

// New returns the collector of a runtime.
func New(rt *guard.Runtime) *Collector { return &Collector{rt} }

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{calls, rejected, wouldReject, inflight, limit, limitUsed, configErrors, late} {
		ch <- d
	}
}

// Collect reads the counts.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType, d *prometheus.Desc, v float64, labels []string) {
		m, err := prometheus.NewConstMetric(d, kind, v, labels...)
		if err != nil {
			// Collect runs on a goroutine of Prometheus's own: a panic would end
			// the process.
			m = prometheus.NewInvalidMetric(d, err)
		}
		ch <- m
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) { send(prometheus.CounterValue, d, v, labels) }
	gauge := func(d *prometheus.Desc, v float64, labels ...string) { send(prometheus.GaugeValue, d, v, labels) }
	for site, f := range c.figures() {
		for o, n := range f.Outcomes {
			counter(calls, float64(n), site.Side, site.Service, site.Method, call.Outcome(o).String())
		}
		gauge(inflight, float64(f.Inflight), site.Side, site.Service, site.Method)
	}
	c.runtime.Rejections(func(k guard.RejectionKey, r *guard.Rejections) {
		labels := []string{k.Side, k.Service, k.Method, k.Guard, k.Reason}
		counter(rejected, float64(r.Rejected()), labels...)
		counter(wouldReject, float64(r.WouldReject()), labels...)
	})
	executelimit.Limiters(c.runtime, func(k executelimit.Key, l *concurrency.Limiter) {
		labels := []string{conf.Provider.String(), k.Service, k.Method, executelimit.Policy, string(k.Scope), k.Protocol}
		gauge(limit, float64(l.Limit()), labels...)
		gauge(limitUsed, float64(l.Inflight()), labels...)
	})
	counter(configErrors, float64(c.runtime.ConfigErrors()))
	counter(late, float64(transport.LateReplies()))
}

type site struct{ Side, Service, Method string }

// figures sums up what has the same labels: the references of one service.
func (c *Collector) figures() map[site]rpcstatus.Figures {
	out := map[site]rpcstatus.Figures{}
	c.runtime.Status.Range(func(k rpcstatus.Key, s *rpcstatus.Status) bool {
		at := site{k.Side, k.Service, k.Method}
		out[at] = out[at].Plus(s.Figures())
		return true
	})
	return out
}
