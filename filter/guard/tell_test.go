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

package guard_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/guard"
	_ "github.com/weir-go/weir/filter/tpslimit"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/rpcstatus"
)

// span records what it is told.
type span struct {
	noop.Span
	off        bool
	attributes map[attribute.Key]attribute.Value
	events     []string
}

func (s *span) IsRecording() bool { return !s.off }

func (s *span) SetAttributes(kv ...attribute.KeyValue) {
	if s.attributes == nil {
		s.attributes = map[attribute.Key]attribute.Value{}
	}
	for _, a := range kv {
		s.attributes[a.Key] = a.Value
	}
}

func (s *span) AddEvent(name string, opts ...trace.EventOption) {
	cfg := trace.NewEventConfig(opts...)
	s.events = append(s.events, fmt.Sprint(name, " ", len(cfg.Attributes())))
}

func TestRefusalsAreToldToTheSpan(t *testing.T) {
	for mode, enforced := range map[string]bool{"enforce": true, "observe": false} {
		for _, off := range []bool{false, true} {
			s := &span{off: off}
			ctx := trace.ContextWithSpan(context.Background(), s)
			c := provider(map[string]string{"tps": "1", "tps.mode": mode})
			c.callCtx(ctx, "SayHello", answer)
			require.Empty(t, s.attributes, "a call that is admitted")
			c.callCtx(ctx, "SayHello", answer)
			c.callCtx(ctx, "SayHello", answer)
			if off {
				require.Empty(t, s.attributes)
				continue
			}
			require.Equal(t, map[attribute.Key]attribute.Value{
				"weir.guard":     attribute.StringValue("tps"),
				"weir.resource":  attribute.StringValue(guard.ServiceOf(c.url).String() + "#*"),
				"weir.reason":    attribute.StringValue("rate"),
				"weir.limit":     attribute.Int64Value(1),
				"weir.observed":  attribute.Int64Value(1),
				"weir.forwarded": attribute.BoolValue(false),
				"weir.enforced":  attribute.BoolValue(enforced),
			}, s.attributes)
			require.Equal(t, []string{"weir.refusal 7", "weir.refusal 7"}, s.events)
		}
	}
}

// A refusal that comes over the wire is told to the caller's span.
func TestRefusalsOfTheProviderAreToldToTheCallersSpan(t *testing.T) {
	for _, stats := range []string{"true", "false"} {
		c := consumer(t, map[string]string{"weir.stats": stats})
		for _, forwarded := range []bool{false, true} {
			s := &span{}
			service := guard.ServiceOf(c.url).String()
			e := call.NewRejectError(call.RejectError{Guard: "executes", Resource: service + "#SayHello", Reason: "concurrency", Limit: 3, Forwarded: forwarded}, nil)
			c.callCtx(trace.ContextWithSpan(context.Background(), s), "SayHello", func(context.Context, base.Invocation) result.Result {
				return &result.RPCResult{Err: wireError(e)}
			})
			require.Equal(t, attribute.StringValue("executes"), s.attributes["weir.guard"])
			require.Equal(t, attribute.BoolValue(forwarded), s.attributes["weir.forwarded"])
			require.Len(t, s.events, 1)
		}
	}
}

func consumer(t *testing.T, params map[string]string) *chain {
	t.Helper()
	service := serviceName()
	rt := guard.NewRuntime()
	c := &chain{rt: rt, guard: guard.New(rt, conf.Consumer), url: newURL("tri", service, params)}
	parsed := conf.ParseParams(conf.Consumer, service, params)
	require.Empty(t, parsed.Faults)
	ref := retry.NewReference(&parsed.Service)
	ref.Application = params["application"]
	c.url.SetAttribute(retry.AttributeKey, ref)
	c.url.SetParam("application", "provider") // dubbo merges the provider's over it
	return c
}

func (c *chain) consumerFigures(method string) rpcstatus.Figures {
	ref, _ := c.url.GetAttribute(retry.AttributeKey)
	return c.rt.Status.Status(rpcstatus.Key{
		Side: "consumer", Reference: ref.(*retry.Reference).ID, Service: guard.ServiceOf(c.url).String(), Method: method,
	}).Figures()
}

// wireError is a refusal as Triple's client gets it.
func wireError(e *call.RejectError) error {
	code := triple_protocol.CodeResourceExhausted
	if e.Forwarded {
		code = triple_protocol.CodeBizError
	}
	te := triple_protocol.NewWireError(code, errors.New(e.Error()))
	for _, f := range e.Fields() {
		te.Meta().Set("weir-"+f.Key, f.Value)
	}
	return te
}

func (c *chain) callers() map[string]int64 {
	out := map[string]int64{}
	c.rt.Callers(func(k guard.CallersKey, callers *guard.Callers) {
		callers.Range(func(name string, n int64) { out[k.Guard+" "+name] += n })
	})
	return out
}

func (c *chain) callFrom(attachments map[string]any) {
	inv := invocation.NewRPCInvocation("SayHello", nil, attachments)
	c.guard.Invoke(context.Background(), &handler{*base.NewBaseInvoker(c.url), answer}, inv)
}

func TestRefusalsPerCaller(t *testing.T) {
	c := provider(map[string]string{"tps": "1", "group": "g"})
	service := guard.ServiceOf(c.url).String()
	c.callFrom(map[string]any{"remote.application": "java-shop"}) // admitted
	for n, attachments := range []map[string]any{
		{"weir-caller": "shop@" + service, "remote.application": "other", "remote-addr": "10.0.0.1:4000"},
		{"weir-caller": "upstream@some.Other"}, // passed on from further up
		{"weir-caller": []string{"shop@" + service}},
		{"weir-caller": 7, "remote-addr": 8},
		{"weir-caller": "\xff@" + service},
		{"weir-caller": strings.Repeat("x", 1000) + "@" + service},
		{"weir-caller": "a\nb@" + service, "remote.application": "c\x00d"},
		{"weir-caller": "@" + service},
		{"remote.application": "java-shop"},
		{"remote-addr": "10.0.0.1:4000"},
		{"remote-addr": "10.0.0.1:4001"},
		{"remote-addr": "[::1]:4001"},
		{"remote-addr": "nonsense"},
		{},
		nil,
	} {
		if attachments == nil {
			attachments = map[string]any{}
		}
		before := c.callers()
		c.callFrom(attachments)
		sum := int64(0)
		for _, v := range c.callers() {
			sum += v
		}
		for _, v := range before {
			sum -= v
		}
		require.EqualValues(t, 1, sum, "%d", n)
	}
	require.Equal(t, map[string]int64{
		"tps shop": 2, "tps java-shop": 1, "tps 10.0.0.1": 2, "tps ::1": 1, "tps unknown": 9,
	}, c.callers())
	runtime.KeepAlive(c.guard)
}

// Callers are what they say: names without end must not take memory without end.
func TestCallersAreBounded(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	c := provider(map[string]string{"tps": "1", "tps.interval": "24h"})
	c.callFrom(map[string]any{})
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 500 {
				c.callFrom(map[string]any{"remote.application": fmt.Sprint("app", g, "-", i)})
			}
		})
	}
	wg.Wait()
	callers := c.callers()
	require.LessOrEqual(t, len(callers), 101)
	require.GreaterOrEqual(t, len(callers), 50)
	sum := int64(0)
	for _, n := range callers {
		sum += n
	}
	require.Positive(t, callers["tps other"])
	// After the first 1,024 one of 16 stands for all.
	require.InDelta(t, 8000, sum, 2000) // six times the standard deviation
	runtime.KeepAlive(c.guard)
}

// A consumer tells its name once it has been refused a call, and not before.
func TestAConsumerTellsItsNameOnceRefused(t *testing.T) {
	for _, stats := range []string{"true", "false"} {
		c := consumer(t, map[string]string{"weir.stats": stats, "application": "shop"})
		service := guard.ServiceOf(c.url).String()
		tells := func() (name string) {
			c.call("SayHello", func(ctx context.Context, inv base.Invocation) result.Result {
				name, _ = inv.GetAttachment("weir-caller")
				return answer(ctx, inv)
			})
			return name
		}
		require.Empty(t, tells())
		e := call.NewRejectError(call.RejectError{Guard: "executes", Resource: service + "#SayHello", Reason: "concurrency"}, nil)
		c.call("SayHello", func(context.Context, base.Invocation) result.Result { return &result.RPCResult{Err: wireError(e)} })
		require.Equal(t, "shop@"+service, tells())
	}
}

// Where the provider asks for it a consumer tells its name from the first call on,
// also one that has nothing else to do, but not one whose attempts share an invocation.
func TestAConsumerTellsItsNameWhereTheProviderAsks(t *testing.T) {
	for _, params := range []map[string]string{
		{}, {"weir.stats": "true"}, {"weir.stats": "false"}, {"tps": "1000"}, {"tps": "1000", "actives": "9"}, {"cluster": "forking"},
		{"cluster": "forking", constant.ReferenceFilterKey: guard.ForkFilter + "," + guard.ConsumerFilter},
	} {
		own := maps.Clone(params)
		own["application"] = "shop"
		c := consumer(t, own)
		c.url.SetParam(guard.TellCallerKey, "true")
		ref, _ := c.url.GetAttribute(retry.AttributeKey)
		ref.(*retry.Reference).Cluster = params["cluster"]
		want := "shop@" + guard.ServiceOf(c.url).String()
		if params["cluster"] == "forking" && params[constant.ReferenceFilterKey] == "" {
			want = ""
		}
		for range 2 {
			name := ""
			c.call("SayHello", func(ctx context.Context, inv base.Invocation) result.Result {
				name, _ = inv.GetAttachment("weir-caller")
				return answer(ctx, inv)
			})
			require.Equal(t, want, name, "%v", params)
		}
		require.Zero(t, c.rt.ConfigErrors(), "nothing is wrong with it")
		runtime.KeepAlive(c.guard)
	}
}

// tps is asked before a call waits for actives; a call that is refused after the
// wait has not used its share.
func TestStepsOfAConsumerInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumer(t, map[string]string{"actives": "1", "actives.wait": "5ms", "tps": "3", "tps.interval": "1h"})
		release := c.hold(t, "SayHello", 1)
		for range 10 {
			e, ok := call.As(c.call("SayHello", answer).Error())
			require.True(t, ok)
			require.Equal(t, "actives", e.Guard)
		}
		release()
		for range 2 {
			require.NoError(t, c.call("SayHello", answer).Error())
		}
		e, ok := call.As(c.call("SayHello", answer).Error())
		require.True(t, ok)
		require.Equal(t, "tps", e.Guard)
		f := c.consumerFigures("SayHello")
		assert.EqualValues(t, 3, f.Outcomes[call.Success])
		assert.EqualValues(t, 11, f.Outcomes[call.Rejected])
		assert.EqualValues(t, 3, f.Total)
		assert.Zero(t, f.Inflight)
	})
}
