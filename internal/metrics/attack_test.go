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
	"runtime"
	"strings"
	"sync"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/activelimit"
	_ "github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/guard"
	_ "github.com/weir-go/weir/filter/tpslimit"
	"github.com/weir-go/weir/internal/metrics"
	"github.com/weir-go/weir/internal/retry"
)

type end struct {
	base.BaseInvoker
	f func() error
}

func (e *end) Invoke(context.Context, base.Invocation) result.Result {
	if e.f == nil {
		return &result.RPCResult{}
	}
	return &result.RPCResult{Err: e.f()}
}

type chain struct {
	g *guard.Guard
	u *common.URL
}

func newChain(rt *guard.Runtime, side conf.Side, protocol, service, port string, methods []string, params map[string]string) *chain {
	u := common.NewURLWithOptions(common.WithProtocol(protocol), common.WithPath(service), common.WithInterface(service),
		common.WithIp("127.0.0.1"), common.WithPort(port), common.WithMethods(methods))
	u.Location = "127.0.0.1:" + port
	for k, v := range params {
		u.SetParam(k, v)
	}
	if side == conf.Consumer {
		parsed := conf.ParseParams(side, service, params)
		u.SetAttribute(retry.AttributeKey, retry.NewReference(&parsed.Service))
	}
	return &chain{guard.New(rt, side), u}
}

func (c *chain) call(method string, attachments map[string]any) error {
	return c.g.Invoke(context.Background(), &end{BaseInvoker: *base.NewBaseInvoker(c.u)}, invocation.NewRPCInvocation(method, nil, attachments)).Error()
}

func gather(t *testing.T, rt *guard.Runtime) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(metrics.New(rt)))
	families, err := reg.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			out[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = v
		}
	}
	return out
}

// Every kind of limit on both sides, two spellings, two references, two
// protocols, hostile callers: a scrape has no series twice and no bad label.
func TestAttackAScrapeOfEverything(t *testing.T) {
	rt := guard.NewRuntime()
	var keep []*chain
	both := []string{"Echo", "echo", "Other"}
	for _, protocol := range []string{"tri", "dubbo"} {
		for _, scope := range []string{"method", "protocol", "service"} {
			keep = append(keep, newChain(rt, conf.Provider, protocol, "m.S"+scope, "1", both, map[string]string{"executes": "0", "methods.Echo.executes": "1", "executes.scope": scope, "tps": "3", "methods.Echo.tps": "2", "tps.interval": "1h"}))
		}
		for i := range 3 {
			keep = append(keep, newChain(rt, conf.Consumer, protocol, "m.Smethod", fmt.Sprint(i), [][]string{both, nil, {"echo"}}[i], map[string]string{"actives": "1", "methods.echo.actives": "2", "tps": "3", "tps.interval": "1h"}))
		}
	}
	hostile := []map[string]any{
		nil, {"weir-caller": "a\xff@m.Smethod"}, {"weir-caller": strings.Repeat("x", 1<<20) + "@m.Smethod"}, {"weir-caller": "a\nb@m.Smethod"},
		{"weir-caller": 5}, {"weir-caller": []string{}}, {"weir-caller": []string{"x@m.Smethod"}}, {"weir-caller": map[string]any{}}, {"weir-caller": "@m.Smethod"},
		{"remote.application": "other"}, {"remote.application": "unknown"}, {"remote-addr": "zzz"}, {"remote-addr": "[::1]:5"}, {"remote-addr": "\x00:5"},
	}
	for i := range 300 {
		hostile = append(hostile, map[string]any{"remote.application": fmt.Sprint("app", i)})
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, c := range keep {
				for i, a := range hostile {
					b := map[string]any{}
					for k, v := range a {
						b[k] = v
					}
					_ = c.call([]string{"Echo", "echo", "Other", "un\xffknown", "x" + fmt.Sprint(i)}[i%5], b)
				}
			}
		})
	}
	wg.Wait()
	callers := 0
	for name := range gather(t, rt) {
		if strings.HasPrefix(name, "weir_rejected_by_caller_total") && strings.Contains(name, "service=m.Smethod") && strings.Contains(name, "guard=tps") {
			callers++
		}
	}
	assert.LessOrEqual(t, callers, 101)
	runtime.KeepAlive(keep)
}

// Once: weir_calls_total of a service is the sum over its references. When one
// of two references goes, the sum falls, but not to zero: to Prometheus that is a
// reset, and rate() counts all calls of the other reference as new ones.
func TestAttackASumDoesNotFallWhenAReferenceGoes(t *testing.T) {
	rt := guard.NewRuntime()
	a := newChain(rt, conf.Consumer, "tri", "m.Two", "1", []string{"Echo"}, map[string]string{"weir.stats": "true"})
	b := newChain(rt, conf.Consumer, "tri", "m.Two", "1", []string{"Echo"}, map[string]string{"weir.stats": "true"})
	for range 1000 {
		require.NoError(t, a.call("Echo", nil))
		require.NoError(t, b.call("Echo", nil))
	}
	const series = "weir_calls_total{method=Echo,outcome=success,service=m.Two,side=consumer}"
	before := gather(t, rt)[series]
	require.EqualValues(t, 2000, before)
	runtime.KeepAlive(a) // until here
	for range 3 {
		runtime.GC()
	}
	after := gather(t, rt)[series]
	assert.GreaterOrEqual(t, after, before, "a counter fell from %v to %v", before, after)
	runtime.KeepAlive(b)
}

// Once: Above 1024 refusals every 16th is looked at: two callers that take turns
// are told as one.
func TestAttackCallersThatTakeTurns(t *testing.T) {
	rt := guard.NewRuntime()
	c := newChain(rt, conf.Provider, "tri", "m.Turns", "1", []string{"Echo"}, map[string]string{"tps": "1", "tps.interval": "24h"})
	require.NoError(t, c.call("Echo", nil))
	for i := range 20000 {
		_ = c.call("Echo", map[string]any{"remote.application": []string{"a", "b"}[i%2]})
	}
	g := gather(t, rt)
	a, b := g["weir_rejected_by_caller_total{caller=a,guard=tps,service=m.Turns}"], g["weir_rejected_by_caller_total{caller=b,guard=tps,service=m.Turns}"]
	assert.InDelta(t, 10000, a, 2000)
	assert.InDelta(t, 10000, b, 2000)
	runtime.KeepAlive(c) // with what it counts
}
