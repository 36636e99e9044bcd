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

package conf

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The keys of each side, as faults list them.
const (
	overloadNames   = "overload, overload.max-expand, overload.slow-call, overload.slow-share, overload.entry-timeout, overload.max-overdue, overload.calm, overload.floor, overload.ceiling, overload.dump-interval, overload.mode, "
	breakerNames    = "breaker, breaker.error-ratio, breaker.error-count, breaker.consecutive-errors, breaker.slow-ratio, breaker.slow-call, breaker.min-calls, breaker.window, breaker.buckets, breaker.boundary, breaker.open-for, breaker.open-jitter, breaker.open-growth, breaker.open-max, breaker.probes, breaker.probe-successes, breaker.probe-under, breaker.probe-timeout, breaker.failures, breaker.ignore, "
	flowNames       = "flow, flow.behavior, flow.max-queue, flow.warm-up, flow.cold-factor, flow.callers, flow.mode, "
	consumerFlow    = "flow, flow.behavior, flow.max-queue, flow.warm-up, flow.cold-factor, flow.mode, "
	providerKeys    = "executes, executes.scope, executes.mode, actives, tps, tps.rate, tps.interval, tps.algorithm, tps.burst, tps.scope, tps.mode, " + flowNames + "bulkhead, bulkhead.queue, bulkhead.max-wait, bulkhead.run-timeout, bulkhead.group, bulkhead.mode, " + overloadNames + breakerNames + "breaker.force, breaker.mode, weir.weight, weir.group, weir.group.callers, weir.group.role, weir.group.mode, weir.stats, weir.business-errors"
	providerSection = "executes, executes.scope, executes.mode, actives, tps, tps.rate, tps.interval, tps.algorithm, tps.burst, tps.scope, tps.mode, " + flowNames + "bulkhead, bulkhead.queue, bulkhead.max-wait, bulkhead.run-timeout, bulkhead.group, bulkhead.mode, " + overloadNames + breakerNames + "breaker.force, breaker.mode, weight, group, group.callers, group.role, group.mode, stats, business-errors"
	consumerKeys    = "actives, actives.wait, actives.mode, tps, tps.rate, tps.interval, tps.algorithm, tps.burst, tps.scope, tps.mode, " + consumerFlow + "bulkhead, bulkhead.queue, bulkhead.max-wait, bulkhead.group, bulkhead.mode, " + overloadNames + breakerNames + "breaker.scope, breaker.force, breaker.mode, fallback, fallback.on, weir.group, weir.group.match, weir.group.fallback, weir.group.ungrouped, weir.group.min-available, weir.group.min-providers, weir.group.mode, weir.retry-refused, weir.stats, weir.business-errors"
)

func TestParseParams(t *testing.T) {
	p := ParseParams(Provider, "g/a.B:1", map[string]string{
		"executes": "100", "executes.scope": "service", "weir.stats": "1", "weir.business-errors": "failure",
		"methods.SayHello.executes": "10", "methods.SayHello.executes.mode": "observe", "methods.sayBye.executes": "-1", "methods.sayBye.weir.stats": "0",
		"methods.x.timeout": "3", "interface": "a.B", "timestamp": "1", "methods.": "x", "methods": "SayHello,sayBye", "token": "", "execute.limit": "",
	})
	assert.Empty(t, p.Faults)
	assert.Empty(t, p.Warnings)
	assert.Equal(t, Service{
		Policies: Policies{Executes: &Executes{Limit: Of(100), Scope: ScopeService}, Stats: Of(true), BusinessErrors: ErrorsAsFailure},
		Methods: map[string]Policies{
			"sayHello": {Executes: &Executes{Limit: Of(10), Mode: Observe}},
			"sayBye":   {Executes: &Executes{Limit: Of(-1)}, Stats: Of(false)},
		},
	}, p.Service)

	p = ParseParams(Provider, "a.B", map[string]string{
		"tps": "200", "tps.interval": "1000", "tps.algorithm": "bucket", "tps.burst": "50", "tps.scope": "instance", "tps.mode": "observe",
		"methods.SayHello.tps.rate": "30/m", "methods.SayHello.tps.burst": "0", "methods.sayBye.tps": "-1", "methods.sayBye.tps.interval": "1m30s", "actives": "10", "methods.sayBye.actives": "0",
	})
	assert.Empty(t, p.Faults)
	assert.Empty(t, p.Warnings)
	assert.Equal(t, Service{
		Policies: Policies{
			TPS:     &TPS{Limit: Of(200), Interval: Of(time.Second), Algorithm: AlgorithmBucket, Burst: Of(50), Scope: ScopeInstance, Mode: Observe},
			Actives: &Actives{Limit: Of(10)},
		},
		Methods: map[string]Policies{
			"sayHello": {TPS: &TPS{Limit: Of(30), Interval: Of(time.Minute), Burst: Of(0)}},
			"sayBye":   {TPS: &TPS{Limit: Of(-1), Interval: Of(90 * time.Second)}, Actives: &Actives{Limit: Of(0)}},
		},
	}, p.Service)

	p = ParseParams(Consumer, "a.B", map[string]string{"actives": "10", "actives.wait": "0", "methods.Pay.actives.mode": "off", "methods.Pay.actives.wait": "1.5s", "tps.rate": "1/2s"})
	assert.Empty(t, p.Faults)
	assert.Empty(t, p.Warnings)
	assert.Equal(t, Service{
		Policies: Policies{Actives: &Actives{Limit: Of(10), Wait: Of(time.Duration(0))}, TPS: &TPS{Limit: Of(1), Interval: Of(2 * time.Second)}},
		Methods:  map[string]Policies{"pay": {Actives: &Actives{Wait: Of(1500 * time.Millisecond), Mode: Off}}},
	}, p.Service)

	p = ParseParams(Consumer, "a.B", map[string]string{"weir.retry-refused": "0.5"})
	assert.Empty(t, p.Faults)
	assert.Equal(t, Service{Policies: Policies{RetryRefused: Of(0.5)}}, p.Service)

	for _, none := range []map[string]string{nil, {}, {"": ""}, {"x": "y", "methods.m.x": "y"}} {
		p = ParseParams(Provider, "a.B", none)
		assert.Empty(t, p.Faults)
		assert.Empty(t, p.Warnings)
		assert.Equal(t, Service{}, p.Service)
	}
}

func TestParseParamsFaults(t *testing.T) {
	t.Setenv("WEIR_TEST_N", "many")
	for _, tt := range []struct {
		side        Side
		name, value string
		fault       string
	}{
		{Provider, "executes", "", `params side=provider service=a.B key=executes value="": allowed: ` + allowedLimit},
		{Provider, "methods.SayHello.executes", "ten", `params side=provider service=a.B method=SayHello key=executes value="ten": allowed: ` + allowedLimit},
		{Consumer, "executes", "10", `params side=consumer service=a.B key=executes value="10": executes is a provider's key and has no effect on a consumer; allowed: on a provider`},
		{Consumer, "methods.m.weir.retry-refused", "0", `params side=consumer service=a.B method=m key=weir.retry-refused value="0": weir.retry-refused cannot be set for a single method; allowed: for a whole service or reference, or for all of them`},
		{Provider, "methods.m.executes.scope", "service", `params side=provider service=a.B method=m key=executes.scope value="service": allowed: method, service or protocol (service not for a single method)`},

		{Provider, "actives.wait", "1s", `params side=provider service=a.B key=actives.wait value="1s": actives.wait is a consumer's key and has no effect on a provider; allowed: on a consumer`},
		{Provider, "methods.m.actives.mode", "off", `params side=provider service=a.B method=m key=actives.mode value="off": actives.mode is a consumer's key and has no effect on a provider; allowed: on a consumer`},
		{Consumer, "actives", "many", `params side=consumer service=a.B key=actives value="many": allowed: a whole number from -2147483648 to 2147483647, 0 and less is unlimited`},
		{Consumer, "actives.wait", "-1", `params side=consumer service=a.B key=actives.wait value="-1": allowed: a whole number of milliseconds or a Go duration such as 200ms, from 0 to 24h; 0 does not wait`},
		{Consumer, "actives.wait", "", `params side=consumer service=a.B key=actives.wait value="": allowed: a whole number of milliseconds or a Go duration such as 200ms, from 0 to 24h; 0 does not wait`},
		{Consumer, "actives.mode", "on", `params side=consumer service=a.B key=actives.mode value="on": allowed: enforce, observe or off`},
		{Provider, "tps", "200/1s", `params side=provider service=a.B key=tps value="200/1s": allowed: a whole number from -2147483648 to 2147483647, 0 and less is unlimited; a rate such as 200/1s belongs in tps.rate`},
		{Consumer, "methods.m.tps.interval", "0", `params side=consumer service=a.B method=m key=tps.interval value="0": allowed: a whole number of milliseconds or a Go duration such as 1s, from 1ms to 24h`},
		{Provider, "tps.algorithm", "leaky", `params side=provider service=a.B key=tps.algorithm value="leaky": allowed: sliding, fixed or bucket`},
		{Provider, "tps.burst", "-1", `params side=provider service=a.B key=tps.burst value="-1": allowed: a whole number from 0 to 2147483647, 0 is as many as tps`},
		{Provider, "tps.scope", "cluster", `params side=provider service=a.B key=tps.scope value="cluster": allowed: instance, each process by itself; cluster, one quota for all instances, is not supported yet`},
		{Provider, "tps.mode", "x", `params side=provider service=a.B key=tps.mode value="x": allowed: enforce, observe or off`},
		{Provider, "tps.rate", "200", `params side=provider service=a.B key=tps.rate value="200": allowed: ` + allowedRate},
		{Provider, "methods.m.tps.rate", "200/0s", `params side=provider service=a.B method=m key=tps.rate value="200/0s": allowed: ` + allowedRate},
		{Consumer, "actives.limit", "1", `params side=consumer service=a.B key=actives.limit value="1": unknown key; allowed: ` + consumerKeys},
		{Provider, "actives.", "", `params side=provider service=a.B key=actives.: unknown key; allowed: did you mean actives? all: ` + providerKeys},
		{Provider, "tps.limit", "1", `params side=provider service=a.B key=tps.limit value="1": unknown key; allowed: ` + providerKeys},
		{Provider, "flow", "200", `params side=provider service=a.B key=flow value="200": allowed: ` + allowedRate},
		{Provider, "methods.m.flow.callers", "app-a=100/1s, b=x", `params side=provider service=a.B method=m key=flow.callers value="app-a=100/1s, b=x": "x" is not a rate for b; allowed: ` + allowedRate},
		{Provider, "flow.rate", "1/s", `params side=provider service=a.B key=flow.rate value="1/s": unknown key; allowed: ` + providerKeys},
		{Provider, "flow.callers.app-a", "1/s", `params side=provider service=a.B key=flow.callers.app-a value="1/s": unknown key; allowed: ` + providerKeys},
		{Provider, "flow.cold-factor", "1", `params side=provider service=a.B key=flow.cold-factor value="1": allowed: a number from 1.1 to 100`},
		{Consumer, "bulkhead.run-timeout", "1s", `params side=consumer service=a.B key=bulkhead.run-timeout value="1s": bulkhead.run-timeout is a provider's key and has no effect on a consumer; allowed: on a provider`},
		{Provider, "bulkhead.max", "5", `params side=provider service=a.B key=bulkhead.max value="5": unknown key; allowed: ` + providerKeys},
		{Consumer, "bulkhead.maxwait", "5", `params side=consumer service=a.B key=bulkhead.maxwait value="5": unknown key; allowed: did you mean bulkhead.max-wait? all: ` + consumerKeys},
		{Provider, "overload", "lots", `params side=provider service=a.B key=overload value="lots": allowed: a whole number from -2147483648 to 2147483647, 0 and less is unlimited, or auto`},
		{Consumer, "methods.m.overload.max-expand", "17", `params side=consumer service=a.B method=m key=overload.max-expand value="17": allowed: a whole number from 1 to 16, 1 does not expand`},
		{Provider, "overload.limit", "5", `params side=provider service=a.B key=overload.limit value="5": unknown key; allowed: ` + providerKeys},
		{Consumer, "overload.slowcall", "5", `params side=consumer service=a.B key=overload.slowcall value="5": unknown key; allowed: did you mean overload.slow-call? all: ` + consumerKeys},
		{Provider, "overload.entry-timeout", "-1s", `params side=provider service=a.B key=overload.entry-timeout value="-1s": allowed: a whole number of milliseconds or a Go duration such as 1m, from 0 to 24h; 0 is never`},
		{Provider, "breaker.windw", "1s", `params side=provider service=a.B key=breaker.windw value="1s": unknown key; allowed: did you mean breaker.window? all: ` + providerKeys},
		{Consumer, "fallback.name", "x", `params side=consumer service=a.B key=fallback.name value="x": unknown key; allowed: ` + consumerKeys},
		{Provider, "breaker.error-ratio", "57.00001%", `params side=provider service=a.B key=breaker.error-ratio value="57.00001%": allowed: ` + allowedStrategy},
		{Provider, "methods.m.breaker.failures", "timeuot, not_found", `params side=provider service=a.B method=m key=breaker.failures value="timeuot, not_found": "timeuot" is not a word of this list; allowed: did you mean timeout? all: ` + allowedFailures},
		{Provider, "tps.intervall", "1", `params side=provider service=a.B key=tps.intervall value="1": unknown key; allowed: did you mean tps.interval? all: ` + providerKeys},
		{Provider, "methods.m.tps.x", "1", `params side=provider service=a.B method=m key=tps.x value="1": unknown key; allowed: ` + providerKeys},
		{Provider, "methods.tps.interval", "1s", `params side=provider service=a.B key=tps.interval value="1s": there is no method named ""; allowed: methods.<Method>.tps.interval with ` + allowedMethod},

		{Provider, "weir.stat", "1", `params side=provider service=a.B key=weir.stat value="1": unknown key; allowed: did you mean weir.stats? all: ` + providerKeys},
		{Provider, "weir.executes", "1", `params side=provider service=a.B key=weir.executes value="1": unknown key; allowed: ` + providerKeys},
		{Provider, "weir.", "", `params side=provider service=a.B key=weir.: unknown key; allowed: ` + providerKeys},
		{Provider, "executes.scop", "x", `params side=provider service=a.B key=executes.scop value="x": unknown key; allowed: did you mean executes.scope? all: ` + providerKeys},
		{Consumer, "executes.wait", "1", `params side=consumer service=a.B key=executes.wait value="1": unknown key; allowed: ` + consumerKeys},
		{Provider, "methods.m.weir.x", "1", `params side=provider service=a.B method=m key=weir.x value="1": unknown key; allowed: ` + providerKeys},

		{Provider, "methods.executes", "1", `params side=provider service=a.B key=executes value="1": there is no method named ""; allowed: methods.<Method>.executes with ` + allowedMethod},
		{Provider, "methods..executes", "1", `params side=provider service=a.B key=executes value="1": there is no method named ""; allowed: methods.<Method>.executes with ` + allowedMethod},
		{Provider, "methods.executes.scope", "protocol", `params side=provider service=a.B key=executes.scope value="protocol": there is no method named ""; allowed: methods.<Method>.executes.scope with ` + allowedMethod},
		{Provider, "methods.a.b.executes", "1", `params side=provider service=a.B method=a.b key=executes value="1": there is no method named "a.b"; allowed: methods.<Method>.executes with ` + allowedMethod},
		{Provider, "methods.*.executes", "1", `params side=provider service=a.B method=* key=executes value="1": there is no method named "*"; allowed: methods.<Method>.executes with ` + allowedMethod},
		{Provider, "methods.a b.executes", "1", `params side=provider service=a.B method="a b" key=executes value="1": there is no method named "a b"; allowed: methods.<Method>.executes with ` + allowedMethod},
		{Provider, "methods.a\n.executes", "1", `params side=provider service=a.B method="a\n" key=executes value="1": there is no method named "a\n"; allowed: methods.<Method>.executes with ` + allowedMethod},

		{Provider, "executes", "${WEIR_TEST_NONE}", `params side=provider service=a.B key=executes value="${WEIR_TEST_NONE}": environment variable WEIR_TEST_NONE is not set and has no default; allowed: ` + allowedLimit},
		{Provider, "executes", "${WEIR_TEST_N:3}", `params side=provider service=a.B key=executes value="${WEIR_TEST_N:3}": with the environment filled in it is "many"; allowed: ` + allowedLimit},
		{Provider, "methods.m.executes", "${WEIR_TEST_N}", `params side=provider service=a.B method=m key=executes value="${WEIR_TEST_N}": with the environment filled in it is "many"; allowed: ` + allowedLimit},
		{Provider, "executes", "${A:${B:1}}", `params side=provider service=a.B key=executes value="${A:${B:1}}": a placeholder stands inside of another; allowed: ` + allowedLimit},
	} {
		p := ParseParams(tt.side, "a.B", map[string]string{tt.name: tt.value})
		assert.Empty(t, p.Warnings, tt.name)
		assert.Equal(t, Policies{}, p.Policies, tt.name)
		assert.Empty(t, p.Methods, tt.name)
		if assert.Len(t, p.Faults, 1, tt.name) {
			assert.Equal(t, tt.fault, p.Faults[0].String())
		}
	}
}

// A setting for a method without a name, or with a name that has dots, was left
// out without a word.
func TestRegression_MethodsWithoutAName(t *testing.T) {
	for _, name := range []string{"methods.executes", "methods..executes", "methods.a.b.executes", "methods.executes.mode", "methods..weir.stats"} {
		assert.Len(t, ParseParams(Provider, "a.B", map[string]string{name: "1"}).Faults, 1, name)
	}
}

// A rate says what two other keys say.
func TestRateBesideWhatItSets(t *testing.T) {
	for _, tt := range []struct {
		params map[string]string
		fault  string
		want   Service
	}{
		{
			map[string]string{"tps.rate": "200/1s", "tps": "100"},
			`params side=provider service=a.B key=tps.rate value="200/1s": tps.rate sets tps, and both stand here; allowed: tps.rate alone, or tps and tps.interval`,
			Service{Policies: Policies{TPS: &TPS{Limit: Of(100)}}},
		},
		{
			map[string]string{"tps.rate": "200/1s", "tps.interval": "1s", "tps.burst": "3"},
			`params side=provider service=a.B key=tps.rate value="200/1s": tps.rate sets tps.interval, and both stand here; allowed: tps.rate alone, or tps and tps.interval`,
			Service{Policies: Policies{TPS: &TPS{Interval: Of(time.Second), Burst: Of(3)}}},
		},
		{
			map[string]string{"methods.M.tps.rate": "200/1s", "methods.M.tps": "100", "methods.M.tps.interval": "1s"},
			`params side=provider service=a.B method=M key=tps.rate value="200/1s": tps.rate sets tps, and both stand here; allowed: tps.rate alone, or tps and tps.interval`,
			Service{Methods: map[string]Policies{"m": {TPS: &TPS{Limit: Of(100), Interval: Of(time.Second)}}}},
		},
		{ // in another place they may
			map[string]string{"tps.rate": "200/1s", "methods.m.tps": "100", "methods.n.tps.rate": "5/s", "methods.o.tps.interval": "2s", "tps.algorithm": "fixed"},
			"",
			Service{
				Policies: Policies{TPS: &TPS{Limit: Of(200), Interval: Of(time.Second), Algorithm: AlgorithmFixed}},
				Methods: map[string]Policies{
					"m": {TPS: &TPS{Limit: Of(100)}}, "n": {TPS: &TPS{Limit: Of(5), Interval: Of(time.Second)}}, "o": {TPS: &TPS{Interval: Of(2 * time.Second)}},
				},
			},
		},
	} {
		p := ParseParams(Provider, "a.B", tt.params)
		assert.Equal(t, tt.want, p.Service)
		if tt.fault == "" {
			assert.Empty(t, p.Faults)
		} else if assert.Len(t, p.Faults, 1) {
			assert.Equal(t, tt.fault, p.Faults[0].String())
			assert.Equal(t, "200/1s", tt.params[p.Faults[0].Param()], "the rate is the one to go")
		}
	}
	p := ParseParams(Provider, "a.B", map[string]string{"tps.rate": "200/1s", "tps": "ten"})
	assert.Len(t, p.Faults, 2, "beside a wrong one too")
	assert.Equal(t, Service{}, p.Service)
}

// dubbo-go writes these into every URL.
func TestDubbosOwnKeysAreNoFaults(t *testing.T) {
	params := map[string]string{"tps.limiter": "", "execute.limit": "", "execute.limit.rejected.handler": ""}
	for _, name := range []string{"tps.limit.rate", "tps.limit.interval", "tps.limit.strategy", "tps.limit.rejected.handler", "tps.limit.of.some.later.version"} {
		params[name], params["methods.SayHello."+name] = "", ""
	}
	for _, side := range both {
		p := ParseParams(side, "a.B", params)
		assert.Empty(t, p.Faults)
		assert.Empty(t, p.Warnings)
	}
	for name := range params {
		params[name] = "5"
	}
	for _, side := range both {
		p := ParseParams(side, "a.B", params)
		assert.Empty(t, p.Faults)
		assert.NotEmpty(t, p.Warnings)
		assert.Equal(t, Service{}, p.Service)
	}
}

func TestParseParamsSameMethodTwice(t *testing.T) {
	p := ParseParams(Provider, "a.B", map[string]string{"methods.SayHello.executes": "1", "methods.sayHello.executes": "2"})
	require.Len(t, p.Faults, 1)
	assert.Equal(t, `params side=provider service=a.B method=sayHello key=executes value="2": methods SayHello and sayHello are the same method; allowed: one of them`, p.Faults[0].String())
	assert.Equal(t, 1, *p.Methods["sayHello"].Executes.Limit)

	p = ParseParams(Provider, "a.B", map[string]string{"methods.SayHello.executes": "1", "methods.sayHello.executes.mode": "off"})
	assert.Len(t, p.Faults, 1, "two spellings, even of different keys")

	p = ParseParams(Provider, "a.B", map[string]string{"methods.SayHello.executes": "1", "methods.SayHello.executes.mode": "off", "methods.sayhello.executes": "3"})
	assert.Empty(t, p.Faults)
	assert.Len(t, p.Methods, 2)
}

func TestParseParamsTellsAll(t *testing.T) {
	p := ParseParams(Provider, "a.B", map[string]string{
		"executes": "ten", "executes.mode": "observe", "methods.m.executes": "x", "methods.m.executes.mode": "off", "weir.retry-refused": "1", "excutes": "5",
	})
	assert.Len(t, p.Faults, 3)
	assert.Len(t, p.Warnings, 1)
	assert.Equal(t, Service{
		Policies: Policies{Executes: &Executes{Mode: Observe}},
		Methods:  map[string]Policies{"m": {Executes: &Executes{Mode: Off}}},
	}, p.Service, "what is right stays")
}

func TestParseParamsWarnings(t *testing.T) {
	for _, tt := range []struct {
		side        Side
		name, value string
		warning     string
	}{
		{Provider, "execute.limit", "5", "service=a.B side=provider execute.limit=5 is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; use executes with executes.scope: service"},
		{Provider, "methods.m.execute.limit", "5", "service=a.B side=provider methods.m.execute.limit=5 is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; use executes"},
		{Provider, "tps.limiter", "default", "service=a.B side=provider tps.limiter=default is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; use tps"},
		{Provider, "methods.m.tps.limit.rate", "5", "service=a.B side=provider methods.m.tps.limit.rate=5 is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; use tps"},
		{Provider, "tps.limit.interval", "5", "service=a.B side=provider tps.limit.interval=5 is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; use tps.interval"},
		{Provider, "methods.m.tps.limit.strategy", "x", "service=a.B side=provider methods.m.tps.limit.strategy=x is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; use tps.algorithm"},
		{Provider, "tps.limit.rejected.handler", "log", "service=a.B side=provider tps.limit.rejected.handler=log is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; Weir needs no handler, the caller gets a typed error"},
		{Provider, "tps.limit.burst", "5", "service=a.B side=provider tps.limit.burst=5 has no effect on a provider; use tps"},
		{Consumer, "tps.limit.rate", "5", "service=a.B side=consumer tps.limit.rate=5 is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; use tps"},
		{Consumer, "tps.limiter", "default", "service=a.B side=consumer tps.limiter=default is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; use tps"},
		{Consumer, "methods.m.tps.limit.interval", "5", "service=a.B side=consumer methods.m.tps.limit.interval=5 is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; use tps.interval"},
		{Consumer, "qps", "5", "service=a.B side=consumer qps=5 has no effect; did you mean tps?"},
		{Provider, "active", "5", "service=a.B side=provider active=5 has no effect; did you mean actives?"},
		{Provider, "sayHello.tps", "5", "service=a.B side=provider sayHello.tps=5 has no effect; for one method write methods.<Method>.tps"},
		{Provider, "sayHello.tps.interval", "5", "service=a.B side=provider sayHello.tps.interval=5 has no effect; for one method write methods.<Method>.tps.interval"},
		{Consumer, "connections", "1", "service=a.B side=consumer connections=1 is not enforced by this version of Weir"},
		{Provider, "accepts", "1", "service=a.B side=provider accepts=1 is not enforced by this version of Weir"},
		{Consumer, "lazy", "1", "service=a.B side=consumer lazy=1 is not enforced by this version of Weir"},
		{Provider, "flows", "5/s", "service=a.B side=provider flows=5/s has no effect; did you mean flow?"},
		{Consumer, "Flwo", "5/s", "service=a.B side=consumer Flwo=5/s has no effect; did you mean flow?"},
		{Provider, "bulkheads", "5", "service=a.B side=provider bulkheads=5 has no effect; did you mean bulkhead?"},
		{Consumer, "sayHello.flow.callers", "a=5/s", "service=a.B side=consumer sayHello.flow.callers=a=5/s has no effect; for one method write methods.<Method>.flow.callers"},
		{Provider, "overloads", "5", "service=a.B side=provider overloads=5 has no effect; did you mean overload?"},
		{Provider, "braeker", "hystrix", "service=a.B side=provider braeker=hystrix has no effect; did you mean breaker?"},
		{Consumer, "fallbak", "x", "service=a.B side=consumer fallbak=x has no effect; did you mean fallback?"},
		{Consumer, "sayHello.breaker", "off", "service=a.B side=consumer sayHello.breaker=off has no effect; for one method write methods.<Method>.breaker"},
		{Provider, "excutes", "5", "service=a.B side=provider excutes=5 has no effect; did you mean executes?"},
		{Provider, "Executes", "5", "service=a.B side=provider Executes=5 has no effect; did you mean executes?"},
		{Provider, "EXECUTES", "5", "service=a.B side=provider EXECUTES=5 has no effect; did you mean executes?"},
		{Provider, " executes", "5", "service=a.B side=provider  executes=5 has no effect; did you mean executes?"},
		{Provider, "methods.m.execute", "5", "service=a.B side=provider methods.m.execute=5 has no effect; did you mean executes?"},
		{Provider, "sayHello.executes", "5", "service=a.B side=provider sayHello.executes=5 has no effect; for one method write methods.<Method>.executes"},
		{Provider, "method.sayHello.executes.mode", "off", "service=a.B side=provider method.sayHello.executes.mode=off has no effect; for one method write methods.<Method>.executes.mode"},
		{Provider, "exec\nutes", "5\n6", "service=a.B side=provider exec utes=5 6 has no effect; did you mean executes?"},
	} {
		p := ParseParams(tt.side, "a.B", map[string]string{tt.name: tt.value})
		assert.Empty(t, p.Faults, tt.name)
		assert.Equal(t, Service{}, p.Service, tt.name)
		assert.Equal(t, []string{tt.warning}, p.Warnings, tt.name)
	}
	for _, quiet := range []string{"timeout", "weight", "loadbalance", "methods.m.retries", "application.version", "side", "pid", "ip", "tag", "ttl", "bean.name", "protocol", "accesslog", "retries", "warmup", "release", "prefix", "dubbo", "interface", "methods", "token", "anyhost", "category", "cluster", "sticky", "scope", "mode", "broker", "reload", "upload", "load", "override", "failback", "methods.m.broker", "from", "allow", "slow", "low", "show", "flag", "row", "flo-rate", strings.Repeat("x", 100_000), "methods.." + strings.Repeat("y.", 50_000)} {
		p := ParseParams(Provider, "a.B", map[string]string{quiet: "1"})
		assert.Empty(t, p.Faults, shorten(quiet))
		assert.Empty(t, p.Warnings, shorten(quiet))
	}
}

func TestNearest(t *testing.T) {
	names := []string{"executes", "mode", "stats"}
	for name, want := range map[string]string{
		"executes": "executes", "execute": "executes", "exectes": "executes", "xecutse": "", "excutess": "executes", "EXECUTES": "executes",
		"mod": "mode", "nodes": "mode", "stat": "stats", "": "", "xyz": "", "m": "",
	} {
		assert.Equal(t, want, nearest(name, names), name)
	}
	assert.Empty(t, nearest("x", nil))
	for name, want := range map[string]string{"tps": "tps", "TPS": "tps", "qps": "tps", "tp": "tps", "ttps": "tps", "ip": "", "t": "", "": "", "tcp": "", "ttl": "", "pid": "", "tpsss": ""} {
		assert.Equal(t, want, nearest(name, []string{"tps"}), "ip is a param of every URL: %s", name)
	}
	assert.Equal(t, 0, distance("", ""))
	assert.Equal(t, 3, distance("", "abc"))
	assert.Equal(t, 3, distance("abc", ""))
	assert.Equal(t, 3, distance("kitten", "sitting"))
}
