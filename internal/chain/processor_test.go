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

package chain

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/fallback"
	"github.com/weir-go/weir/internal/logtest"
	"github.com/weir-go/weir/internal/retry"
)

func TestPlace(t *testing.T) {
	for _, tt := range []struct {
		name       string
		side       conf.Side
		list, want string
	}{
		{"dubbo's default", conf.Provider, constant.DefaultServiceFilters, "echo,token,accesslog,tps,generic_service,execute,pshutdown,weir"},
		{"with what dubbo appends", conf.Provider, "echo,pshutdown,padasvc,metrics,otelServerTrace", "echo,pshutdown,weir,padasvc,metrics,otelServerTrace"},
		{"a user's list", conf.Provider, "echo,mine", "echo,mine,weir"},
		{"a user's list with what dubbo appends", conf.Provider, "echo,mine,padasvc,metrics,otelServerTrace", "echo,mine,weir,padasvc,metrics,otelServerTrace"},
		{"metrics in the user's own place", conf.Provider, "metrics,mine,metrics", "metrics,mine,weir,metrics"},
		{"only what dubbo appends", conf.Provider, "metrics", "weir,metrics"},
		{"the user decides the place", conf.Provider, "weir,echo,pshutdown", "weir,echo,pshutdown"},
		{"a guard of its own name", conf.Provider, "executelimit,echo,pshutdown", "executelimit,echo,pshutdown,weir"},
		{"nothing", conf.Provider, "", "weir"},
		{"spaces", conf.Provider, " echo , pshutdown ", "echo,pshutdown,weir"},
		{"a consumer's default", conf.Consumer, "cshutdown", "cshutdown,weir-consumer"},
		{"generic", conf.Consumer, "generic,cshutdown,metrics,otelClientTrace,mine", "weir-consumer,generic,cshutdown,metrics,otelClientTrace,mine"},
		{"without graceful shutdown", conf.Consumer, "mine,metrics", "mine,weir-consumer,metrics"},
		{"a consumer's own place", conf.Consumer, "weir-consumer,cshutdown", "weir-consumer,cshutdown"},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, place(tt.side, tt.list)) })
	}
}

func TestMain(m *testing.M) {
	logtest.Switch()
	for _, name := range []string{"echo", "pshutdown", "cshutdown", "mine", "generic"} {
		extension.SetFilter(name, func() filter.Filter { return nil })
	}
	m.Run()
}

func service(name, protocol string, params map[string]string) *common.URL {
	opts := []common.Option{
		common.WithPath(name), common.WithInterface(name), common.WithProtocol(protocol),
		common.WithMethods([]string{"SayHello", "Echo"}),
		common.WithParamsValue(constant.ServiceFilterKey, "echo,pshutdown"),
		common.WithParamsValue(constant.ReferenceFilterKey, "cshutdown"),
	}
	for k, v := range params {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	return common.NewURLWithOptions(opts...)
}

func newProcessor() (*Processor, *guard.Runtime) {
	rt := guard.NewRuntime()
	return NewProcessor(rt, func() error { return nil }), rt
}

// faults runs f and returns the conf.Error that it panics with.
func faults(t *testing.T, f func()) (e *conf.Error) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			err, ok := r.(error)
			require.True(t, ok, "%v", r)
			require.ErrorAs(t, err, &e)
		}
	}()
	f()
	return nil
}

// call makes one call through the umbrella of a side.
func call(rt *guard.Runtime, side conf.Side, u *common.URL, method string) {
	guard.New(rt, side).Invoke(context.Background(), base.NewBaseInvoker(u), invocation.NewRPCInvocation(method, nil, map[string]any{}))
}

func TestAServiceIsPutUnderItsGuards(t *testing.T) {
	p, _ := newProcessor()
	u := service("a.Service", "tri", map[string]string{"executes": "5"})
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	require.Equal(t, "echo,pshutdown,weir", u.GetParam(constant.ServiceFilterKey, ""))

	u = service("a.Service", "tri", map[string]string{"weir.retry-refused": "0.5"})
	require.Nil(t, faults(t, func() { p.PostProcessReferenceConfig(u) }))
	require.Equal(t, "cshutdown,weir-consumer", u.GetParam(constant.ReferenceFilterKey, ""))
	first := retry.Of(u)
	require.NotNil(t, first)
	require.InDelta(t, 0.5, *first.Params.RetryRefused, 0)
	u = service("a.Service", "tri", nil)
	p.PostProcessReferenceConfig(u)
	require.NotEqual(t, first.ID, retry.Of(u).ID, "references are told apart")
}

func TestInternalServicesAreLeftAlone(t *testing.T) {
	p, _ := newProcessor()
	u := service("grpc.health.v1.Health", "tri", map[string]string{"executes": "nonsense"})
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u); p.PostProcessReferenceConfig(u) }))
	require.Equal(t, "echo,pshutdown", u.GetParam(constant.ServiceFilterKey, ""))
	require.Equal(t, "cshutdown", u.GetParam(constant.ReferenceFilterKey, ""))
}

// Only where attempts run at the same time does a filter part them, and before all others.
func TestWhereForksAreParted(t *testing.T) {
	for list, want := range map[string]string{
		"cshutdown":                    "weir-fork,cshutdown,weir-consumer",
		"":                             "weir-fork,weir-consumer",
		"mine, generic":                "weir-fork,mine,weir-consumer,generic",
		"mine,weir-consumer,cshutdown": "weir-fork,mine,weir-consumer,cshutdown",
		"mine, weir-fork ,cshutdown":   "mine,weir-fork,cshutdown,weir-consumer",
		"cshutdown,weir-fork,weir-consumer,metrics": "cshutdown,weir-fork,weir-consumer,metrics",
	} {
		u := service("a.Service", "tri", map[string]string{constant.ReferenceFilterKey: list, constant.ClusterKey: constant.ClusterKeyForking})
		require.Equal(t, want, withOwn(conf.Consumer, u), list)
		u.SetParam(constant.ClusterKey, constant.ClusterKeyFailover)
		if !strings.Contains(list, "weir-fork") {
			require.NotContains(t, withOwn(conf.Consumer, u), "weir-fork")
		}
	}
	p, _ := newProcessor()
	u := service("a.Service", "tri", map[string]string{constant.ClusterKey: constant.ClusterKeyForking})
	for range 2 {
		require.Nil(t, faults(t, func() { p.PostProcessReferenceConfig(u) }))
		require.Equal(t, "weir-fork,cshutdown,weir-consumer", u.GetParam(constant.ReferenceFilterKey, ""))
	}
	u.SetParam(constant.ReferenceFilterKey, "weir-fork,weir-fork")
	require.NotNil(t, faults(t, func() { p.PostProcessReferenceConfig(u) }), "twice is once too often")
	u = service("a.Service", "tri", map[string]string{constant.ServiceFilterKey: "weir-fork"})
	require.NotNil(t, faults(t, func() { p.PostProcessServiceConfig(u) }), "it is a consumer's")
}

func TestAutoChainOff(t *testing.T) {
	p, rt := newProcessor()
	rt.Store.Set(conf.FromCode, "code", &conf.Config{AutoChain: conf.Of(false)})
	u := service("a.Service", "tri", nil)
	p.PostProcessServiceConfig(u)
	p.PostProcessReferenceConfig(u)
	require.Equal(t, "echo,pshutdown", u.GetParam(constant.ServiceFilterKey, ""))
	require.Equal(t, "cshutdown", u.GetParam(constant.ReferenceFilterKey, ""))
	require.NotNil(t, retry.Of(u))
	e := faults(t, func() {
		p.PostProcessServiceConfig(service("a.Service", "tri", map[string]string{"executes": "x"}))
	})
	require.NotNil(t, e, "what is configured is checked all the same")
}

func TestWhatIsWrongStopsTheExport(t *testing.T) {
	for name, tt := range map[string]struct {
		params map[string]string
		says   []string
	}{
		"a value":           {map[string]string{"executes": "1.5", "methods.Echo.executes.scope": "service"}, []string{"2 faults", `key=executes value="1.5"`, "method=Echo key=executes.scope"}},
		"an unknown filter": {map[string]string{constant.ServiceFilterKey: "echo,typo"}, []string{`value="typo"`, "no filter of that name"}},
		"an empty name":     {map[string]string{constant.ServiceFilterKey: "weir,,echo"}, []string{"empty name"}},
		"a consumer's key":  {map[string]string{"weir.retry-refused": "0.1"}, []string{"is a consumer's key"}},
	} {
		t.Run(name, func(t *testing.T) { // H10
			p, _ := newProcessor()
			e := faults(t, func() { p.PostProcessServiceConfig(service("a.Service", "tri", tt.params)) })
			require.NotNil(t, e)
			for _, text := range tt.says {
				require.ErrorContains(t, e, text)
			}
			require.ErrorContains(t, e, "service=a.Service")
		})
	}
	t.Run("a consumer's chain", func(t *testing.T) {
		p, _ := newProcessor()
		e := faults(t, func() {
			p.PostProcessReferenceConfig(service("a.Service", "tri", map[string]string{constant.ReferenceFilterKey: "typo,cshutdown", "executes": "3"}))
		})
		require.ErrorContains(t, e, "side=consumer")
		require.ErrorContains(t, e, "is a provider's key")
		require.ErrorContains(t, e, "typo")
	})
	t.Run("what the sources say", func(t *testing.T) {
		for _, err := range []error{
			&conf.Error{Faults: []conf.Fault{{Source: "weir.yaml:3", Key: "mode", Value: "x", Allowed: "enforce"}}},
			errors.New("weir.yaml: permission denied"),
		} {
			p := NewProcessor(guard.NewRuntime(), func() error { return err })
			e := faults(t, func() { p.PostProcessServiceConfig(service("a.Service", "tri", nil)) })
			require.ErrorContains(t, e, "weir.yaml")
		}
	})
}

func TestOnErrorWarnLeavesTheOneSettingOut(t *testing.T) {
	p, rt := newProcessor()
	rt.Store.Set(conf.FromCode, "code", &conf.Config{OnError: conf.Warn})
	u := service("a.Service", "tri", map[string]string{"executes": "x", "methods.Echo.executes": "3", constant.ServiceFilterKey: "echo,typo,pshutdown"})
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	require.Equal(t, "echo,pshutdown,weir", u.GetParam(constant.ServiceFilterKey, ""), "a name that would panic on every call is left out")
	require.EqualValues(t, 1, rt.ConfigErrors())
}

func TestOnErrorWarnLetsTheFirstExportsValuesHold(t *testing.T) {
	p, rt := newProcessor()
	rt.Store.Set(conf.FromCode, "code", &conf.Config{OnError: conf.Warn})
	p.PostProcessServiceConfig(service("a.Service", "tri", map[string]string{"executes": "1"}))
	u := service("a.Service", "dubbo", map[string]string{"executes": "50", "methods.Echo.executes": "3", "other": "kept"})
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	require.Equal(t, "1", u.GetParam("executes", ""))
	require.Empty(t, u.GetParam("methods.Echo.executes", ""))
	require.Equal(t, "kept", u.GetParam("other", ""))
	require.EqualValues(t, 1, rt.ConfigErrors())
}

func TestTheConsumersFilterMustNotStandBehindTheGenericOne(t *testing.T) {
	p, rt := newProcessor()
	u := service("a.Service", "tri", map[string]string{constant.ReferenceFilterKey: "generic,cshutdown,weir-consumer"})
	e := faults(t, func() { p.PostProcessReferenceConfig(u) })
	require.ErrorContains(t, e, "weir-consumer before generic")
	rt.Store.Set(conf.FromCode, "code", &conf.Config{OnError: conf.Warn})
	require.Nil(t, faults(t, func() { p.PostProcessReferenceConfig(u) }))
	require.Equal(t, "weir-consumer,generic,cshutdown", u.GetParam(constant.ReferenceFilterKey, ""), "it is put in its place")
}

func TestProtocolsOfOneServiceMustAgree(t *testing.T) {
	p, _ := newProcessor()
	p.PostProcessServiceConfig(service("a.Service", "tri", map[string]string{"executes": "5", "methods.Echo.executes": "2"}))
	p.PostProcessServiceConfig(service("a.Service", "dubbo", map[string]string{"executes": "5", "methods.echo.executes": "2"}))
	p.PostProcessServiceConfig(service("d.Service", "tri", map[string]string{"executes": "5", "methods.echo.executes": "2"}))
	e := faults(t, func() { p.PostProcessServiceConfig(service("d.Service", "dubbo", map[string]string{"executes": "6"})) })
	require.ErrorContains(t, e, `tri says "5" and dubbo says "6"`)
	require.ErrorContains(t, e, "method=echo")
	require.Nil(t, faults(t, func() {
		p.PostProcessServiceConfig(service("b.Service", "tri", map[string]string{"executes": "5"}))
		p.PostProcessServiceConfig(service("b.Service", "tri", map[string]string{"executes": "7"}))
	}), "a second export on the same protocol is a change")
	require.Nil(t, faults(t, func() {
		p.PostProcessServiceConfig(service("c.Service", "tri", map[string]string{"executes": "5", "executes.scope": "protocol"}))
		p.PostProcessServiceConfig(service("c.Service", "dubbo", map[string]string{"executes": "7", "executes.scope": "protocol"}))
	}))
}

func TestWarnings(t *testing.T) {
	p, rt := newProcessor()
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Services: map[string]conf.Service{
		"a.Service": {Methods: map[string]conf.Policies{"fromCode": {}}},
	}}})
	lines := logtest.Warnings(t)
	p.PostProcessServiceConfig(service("a.Service", "tri", map[string]string{
		"execute.limit": "5", "methods.Gone.executes": "3", "accepts": "100", "excutes": "7", "tps.limit.rate": "",
	}))
	var said []string
	for _, line := range lines.All() {
		said = append(said, line.Message)
	}
	require.Len(t, said, 5, "%q", said)
	require.Contains(t, said[0]+said[1]+said[2], "execute.limit=5 is dubbo-go's own limit")
	require.Contains(t, said[0]+said[1]+said[2], "accepts=100 is not enforced by this version")
	require.Contains(t, said[0]+said[1]+said[2], "did you mean executes?")
	require.Contains(t, said[3]+said[4], "method=gone is configured but the service does not have it; it has: Echo, SayHello")
	require.Contains(t, said[3]+said[4], "method=fromCode")
	p.PostProcessServiceConfig(service("a.Service", "tri", map[string]string{"execute.limit": "5"}))
	require.Equal(t, 5, lines.Len(), "each is said once")
}

// A fallback that is configured and that nobody has registered is told of once all
// should be, wherever its name stands.
func TestFallbacksThatNobodyRegisteredAreTold(t *testing.T) {
	p, rt := newProcessor()
	lines := logtest.Warnings(t)
	require.NoError(t, fallback.Register("chain-known", func(context.Context, error) (string, error) { return "", nil }))
	defer fallback.Forget("chain-known")
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Consumer: conf.Section{Services: map[string]conf.Service{
		"a.Service": {Methods: map[string]conf.Policies{"echo": {Fallback: &conf.Fallback{Name: "chain-late"}}}},
	}}})
	u := service("a.Service", "tri", map[string]string{"fallback": "chain-unknown", "methods.SayHello.fallback": "chain-known"})
	p.PostProcessReferenceConfig(u)
	require.Zero(t, lines.Len(), "%v", lines.All())
	for range 2 {
		p.WarnUnmatched()
		require.Equal(t, 2, lines.Len(), "%v", lines.All())
		require.Contains(t, lines.All()[0].Message, "side=consumer service=a.Service fallback=chain-unknown is configured: no function of that name is registered; there are: ")
		require.Contains(t, lines.All()[0].Message, "chain-known")
		require.Contains(t, lines.All()[1].Message, "fallback=chain-late")
	}
	runtime.KeepAlive(u)
}

// What is right but perhaps not what was meant is said at start, once.
func TestNotesAreSaidAtStart(t *testing.T) {
	p, _ := newProcessor()
	lines := logtest.Warnings(t)
	u := service("a.Service", "tri", map[string]string{"tps": "200", "methods.Echo.tps.rate": "5/1s", "methods.Echo.tps.burst": "9"})
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	require.Equal(t, 2, lines.Len(), "%v", lines.All())
	require.Contains(t, lines.All()[0].Message, "service=a.Service side=provider tps=200 has no tps.interval: it means 200 calls per minute")
	require.Contains(t, lines.All()[1].Message, "service=a.Service side=provider method=Echo tps.burst=9 has no effect")
	p.PostProcessServiceConfig(service("a.Service", "tri", map[string]string{"tps": "200"}))
	require.Equal(t, 2, lines.Len(), "each is said once")
	p.PostProcessReferenceConfig(service("a.Service", "tri", map[string]string{"tps": "200"}))
	require.Equal(t, 3, lines.Len(), "a reference's own")
}

// A note about a service is said once and not for each of its methods; one about
// settings of a method's own names it.
func TestNotesOfBreakers(t *testing.T) {
	p, _ := newProcessor()
	lines := logtest.Warnings(t)
	u := service("a.Service", "tri", map[string]string{"breaker": "standard", "breaker.open-max": "1s", "methods.Echo.breaker.probe-successes": "9"})
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	var said []string
	for _, l := range lines.All() {
		said = append(said, l.Message[strings.Index(l.Message, "service="):])
	}
	const openMax = "breaker.open-max=1s is taken as 5s: it cannot be less than breaker.open-for"
	require.Equal(t, []string{
		"service=a.Service side=provider " + openMax,
		"service=a.Service side=provider method=Echo breaker.probe-successes=9 is taken as 1: breaker.probes=1 lets no more through",
		"service=a.Service side=provider method=Echo " + openMax,
	}, said)
}

// A provider's URL tells consumers the actives in effect for them, from whichever
// source.
func TestAProviderDeclaresActives(t *testing.T) {
	p, rt := newProcessor()
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Services: map[string]conf.Service{
		"a.Service": {Policies: conf.Policies{Actives: &conf.Actives{Limit: conf.Of(7)}}},
		"b.Service": {Methods: map[string]conf.Policies{"echo": {Actives: &conf.Actives{Limit: conf.Of(2)}}}},
	}}})
	for _, tt := range []struct {
		service string
		params  map[string]string
		want    map[string]string
	}{
		{"a.Service", nil, map[string]string{"actives": "7"}},
		{"a.Service", map[string]string{"actives": "3"}, map[string]string{"actives": "7"}},
		{"a.Service", map[string]string{"methods.SayHello.actives": "3"}, map[string]string{"actives": "7", "methods.SayHello.actives": "3"}},
		{"b.Service", map[string]string{"actives": "5"}, map[string]string{"actives": "5", "methods.Echo.actives": "2"}},
		{"c.Service", nil, map[string]string{"actives": ""}},
		{"c.Service", map[string]string{"actives": "4"}, map[string]string{"actives": "4", "methods.Echo.actives": ""}},
	} {
		u := service(tt.service, "tri", tt.params)
		require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
		for name, value := range tt.want {
			require.Equal(t, value, u.GetParam(name, ""), "%s %v", tt.service, tt.params)
		}
	}
	// A reference's URL says nothing but what it was given.
	u := service("a.Service", "tri", nil)
	p.PostProcessReferenceConfig(u)
	require.Empty(t, u.GetParam("actives", ""))
}

func TestOnErrorWarnStillDeclaresAndNotes(t *testing.T) {
	p, rt := newProcessor()
	rt.Store.Set(conf.FromCode, "code", &conf.Config{OnError: conf.Warn})
	lines := logtest.Warnings(t)
	u := service("a.Service", "tri", map[string]string{"executes": "many", "actives": "4", "tps": "9"})
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	require.Equal(t, "4", u.GetParam("actives", ""))
	require.Empty(t, u.GetParam("executes", ""))
	require.Contains(t, lines.All()[lines.Len()-1].Message, "tps=9 has no tps.interval")
}

// A service that is configured and not there is most likely a misspelling.
func TestServicesThatAreNotThere(t *testing.T) {
	p, rt := newProcessor()
	lines := logtest.Warnings(t)
	some := map[string]conf.Service{"a.Service": {}, "g/a.Service:1": {}, "a.Servise": {}, "b.Service": {}}
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Services: some}, Consumer: conf.Section{Services: some}})
	p.WarnUnmatched()
	require.Zero(t, lines.Len(), "a process without services of a side says nothing of it")
	p.PostProcessServiceConfig(service("a.Service", "tri", map[string]string{"group": "g", "version": "1"}))
	p.WarnUnmatched()
	require.Equal(t, 2, lines.Len())
	require.Contains(t, lines.All()[0].Message, "side=provider service=a.Servise is configured, and this process has none of that name; it has: a.Service, g/a.Service:1")
	require.Contains(t, lines.All()[1].Message, "service=b.Service")
	p.WarnUnmatched()
	require.Equal(t, 2, lines.Len(), "each is said once")
}
