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
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/alarms"
	"github.com/weir-go/weir/internal/transport"
	"github.com/weir-go/weir/rpcstatus"
)

var (
	siteLabels      = []string{"side", "service", "method"}
	rejectionLabels = append(append([]string{}, siteLabels...), "guard", "reason")
	waitLabels      = append(append([]string{}, siteLabels...), "guard")
	balanceLabels   = []string{"service", "provider"}
	alarmLabels     = append(append([]string{}, siteLabels...), "guard", "subject")
	limitLabels     = append(append([]string{}, siteLabels...), "guard", "scope", "protocol")

	calls                = desc("weir_calls_total", "Calls by how they ended. Refused ones are among them.", append(append([]string{}, siteLabels...), "outcome"))
	rejected             = desc("weir_rejected_total", "Calls that a guard refused.", rejectionLabels)
	wouldReject          = desc("weir_would_reject_total", "Calls that a guard in observe mode would have refused.", rejectionLabels)
	inflight             = desc("weir_inflight", "Calls that run now.", siteLabels)
	limit                = desc("weir_limit", "The limit in force; 0 is unlimited.", limitLabels)
	limitUsed            = desc("weir_limit_inflight", "Slots of the limit that are taken now.", limitLabels)
	interval             = desc("weir_limit_interval_seconds", "The time that a limit of calls over time counts in.", limitLabels)
	byCaller             = desc("weir_rejected_by_caller_total", "Calls that a provider's guard refused, by what callers say of themselves. Of many refusals one in 16 is looked at and stands for all.", []string{"service", "guard", "caller"})
	elapsed              = desc("weir_elapsed_seconds_total", "Sum of the response times of calls that ran; its rate is the average number of running calls.", siteLabels)
	waited               = desc("weir_queue_wait_seconds", "How long calls waited at a guard before they ran or were refused, those that did not wait included.", waitLabels)
	waiting              = desc("weir_queue_waiting", "Calls that wait now.", waitLabels)
	wouldWait            = desc("weir_would_wait_total", "Calls that a guard in observe mode would have let wait.", waitLabels)
	breakers             = desc("weir_breaker_state", "Circuit breakers that are in the state: of each provider address one, or one for all.", append(append([]string{}, siteLabels...), "state"))
	transitions          = desc("weir_breaker_transitions_total", "How often circuit breakers entered the state.", append(append([]string{}, siteLabels...), "state"))
	hung                 = desc("weir_breaker_hung_calls", "Calls that run for longer than breaker.slow-call.", siteLabels)
	balancePicks         = desc("weir_balance_picks_total", "Calls that references which choose by one of Weir's load balances have sent to the provider, retries included.", balanceLabels)
	balanceInflight      = desc("weir_balance_inflight", "Calls of those references that run at the provider.", balanceLabels)
	balanceScore         = desc("weir_balance_score", "(Running calls + 1) / weight: of providers that are well the one with the lowest gets the next call. 0 and less is drained.", balanceLabels)
	balanceProviders     = desc("weir_balance_providers", "Providers that those references choose from. The first 100 by address have series of their own.", []string{"service"})
	groupRouted          = desc("weir_group_routed_total", "Calls of a group by where they were routed; those without one are of group none.", []string{"service", "group", "result"})
	groupProviders       = desc("weir_group_providers", "Providers of a group that are known; those without one are of group none.", []string{"service", "group"})
	mode                 = desc("weir_mode", "1 for the mode that holds for all guards.", []string{"mode"})
	fallbacks            = desc("weir_fallbacks_total", "Failed calls that came to their fallback, by how it ended: answered, failed, panicked.", append(append([]string{}, siteLabels...), "fallback", "outcome"))
	configErrors         = desc("weir_config_errors_total", "Faults in a configuration that were met while running; the last good one stayed in force.", nil)
	alarmLevel           = desc("weir_alarms", "How near it is to its bound: 0 calm, 1 near, 2 reached.", alarmLabels)
	alarmsTotal          = desc("weir_alarms_total", "How often it came near its bound, and reached it.", append(append([]string{}, alarmLabels...), "level"))
	late                 = desc("weir_late_responses_total", "Responses on the dubbo protocol that came after their caller had timed out, and were dropped.", nil)
	overloadLimit        = desc("weir_overload_limit", "The limit of an overload guard, as it is configured or was found out: what its cap expands from. Of several references the highest.", siteLabels)
	overloadCap          = desc("weir_overload_cap", "Running calls that an overload guard admits now. Of several references the highest.", siteLabels)
	overloadChanges      = desc("weir_overload_changes_total", "How often an overload guard has changed its cap, by reason.", append(append([]string{}, siteLabels...), "reason"))
	overloadOverdue      = desc("weir_overload_overdue", "Calls that an overload guard has set aside and that still run.", siteLabels)
	overloadOverdueTotal = desc("weir_overload_overdue_total", "Calls that an overload guard has set aside.", siteLabels)
	slowCalls            = desc("weir_slow_calls_total", "Calls that ran for longer than overload.slow-call.", siteLabels)
	healthValue          = desc("weir_health", "Signals of the machine, smoothed, in their own units.", []string{"signal"})
	healthLimit          = desc("weir_health_limit", "From where on a signal is tight.", []string{"signal"})
	healthTight          = desc("weir_health_tight", "1 while a signal is tight.", []string{"signal"})
)

func desc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Collector collects the metrics of one runtime.
type Collector struct {
	runtime *guard.Runtime
	alarms  *alarms.Watch // nil for none
}

// Option gives a [Collector] more to collect.
type Option func(*Collector)

// WithAlarms adds the levels of what a watch has looked at.
func WithAlarms(w *alarms.Watch) Option { return func(c *Collector) { c.alarms = w } }

// New returns the collector of a runtime.
func New(rt *guard.Runtime, options ...Option) *Collector {
	c := &Collector{runtime: rt}
	for _, o := range options {
		o(c)
	}
	return c
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		calls, rejected, byCaller, wouldReject, inflight, elapsed, limit, limitUsed, interval,
		waited, waiting, wouldWait, breakers, transitions, hung, fallbacks,
		alarmLevel, alarmsTotal,
		overloadLimit, overloadCap, overloadChanges, overloadOverdue, overloadOverdueTotal, slowCalls, healthValue, healthLimit, healthTight,
		balancePicks, balanceInflight, balanceScore, balanceProviders, groupRouted, groupProviders, mode, configErrors, late,
	} {
		ch <- d
	}
}

// Collect reads the counts.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	out := sender{ch}
	c.runtime.Status.Sums(func(k rpcstatus.SumKey, f rpcstatus.Figures) {
		for o, n := range f.Outcomes {
			out.counter(calls, float64(n), k.Side, k.Service, k.Method, call.Outcome(o).String())
		}
		out.gauge(inflight, float64(f.Inflight), k.Side, k.Service, k.Method)
		out.counter(elapsed, f.Elapsed.Seconds(), k.Side, k.Service, k.Method)
	})
	c.runtime.Rejections(func(k guard.RejectionKey, r *guard.Rejections) {
		labels := []string{k.Side, k.Service, k.Method, k.Guard, k.Reason}
		out.counter(rejected, float64(r.Rejected()), labels...)
		out.counter(wouldReject, float64(r.WouldReject()), labels...)
	})
	c.runtime.Callers(func(k guard.CallersKey, callers *guard.Callers) {
		callers.Range(func(caller string, n int64) { out.counter(byCaller, float64(n), k.Service, k.Guard, caller) })
	})
	c.runtime.Waits(func(k guard.WaitKey, w *guard.Waits) {
		f := w.Figures()
		out.histogram(waited, f, k.Side, k.Service, k.Method, k.Guard)
		out.counter(wouldWait, float64(f.WouldWait), k.Side, k.Service, k.Method, k.Guard)
	})
	c.runtime.Fallbacks(func(k guard.FallbackKey, f *guard.FallbackCounts) {
		for outcome, n := range map[string]int64{"answered": f.Answered(), "failed": f.Failed(), "panicked": f.Panicked()} {
			out.counter(fallbacks, float64(n), k.Side, k.Service, k.Method, k.Fallback, outcome)
		}
	})
	c.limits(out)
	c.breakers(out)
	c.overloads(out)
	c.machine(out)
	c.balancers(out)
	c.groups(out)
	c.standings(out)
	now, _ := c.runtime.Store.View().Mode()
	for _, m := range []conf.Mode{conf.Enforce, conf.Observe, conf.Off} {
		v := 0.0
		if m == now {
			v = 1
		}
		out.gauge(mode, v, string(m))
	}
	out.counter(configErrors, float64(c.runtime.ConfigErrors()))
	out.counter(late, float64(transport.LateReplies()))
}

// sender makes metrics of numbers.
type sender struct{ ch chan<- prometheus.Metric }

// send keeps Collect, which runs on a goroutine of Prometheus's own, from a panic
// that would end the process.
func (s sender) send(d *prometheus.Desc, m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	s.ch <- m
}

func (s sender) counter(d *prometheus.Desc, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(d, prometheus.CounterValue, v, labels...)
	s.send(d, m, err)
}

func (s sender) gauge(d *prometheus.Desc, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, v, labels...)
	s.send(d, m, err)
}

func (s sender) histogram(d *prometheus.Desc, f guard.WaitFigures, labels ...string) {
	var count uint64
	buckets := make(map[float64]uint64, len(guard.WaitBounds))
	for i, n := range f.Counts {
		count += uint64(max(n, 0))
		if i < len(guard.WaitBounds) {
			buckets[guard.WaitBounds[i].Seconds()] = count
		}
	}
	m, err := prometheus.NewConstHistogram(d, count, f.Sum.Seconds(), buckets, labels...)
	s.send(d, m, err)
}

type site struct{ Side, Service, Method string }
