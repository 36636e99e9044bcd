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

package weir

import (
	"context"
	"slices"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/metrics"
)

type attackEnd struct {
	base.BaseInvoker
	f func()
}

func (e *attackEnd) Invoke(context.Context, base.Invocation) result.Result {
	e.f()
	return &result.RPCResult{}
}

func attackCall(g *guard.Guard, u *common.URL, method string, f func()) {
	g.Invoke(context.Background(), &attackEnd{*base.NewBaseInvoker(u), f}, invocation.NewRPCInvocation(method, nil, nil))
}

// holdOne keeps a call of the present plan running.
func holdOne(t *testing.T, g *guard.Guard, u *common.URL, method string) {
	gate, entered, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		attackCall(g, u, method, func() { close(entered); <-gate })
	}()
	<-entered
	t.Cleanup(func() { close(gate); <-done })
}

func executesConfig(limit int, scope conf.Scope) *conf.Config {
	return &conf.Config{Provider: conf.Section{Policies: conf.Policies{Executes: &conf.Executes{Limit: conf.Of(limit), Scope: scope}}}}
}

// Once: while a call of a former plan runs, or until the garbage is collected,
// Snapshot shows now the former settings and now the ones in force.
func TestAttackSnapshotShowsTheSettingsInForce(t *testing.T) {
	rt := guard.NewRuntime()
	g := guard.New(rt, conf.Provider)
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("snap.Service"), common.WithInterface("snap.Service"),
		common.WithMethods([]string{"SayHello"}))
	rt.Store.Set(conf.FromCode, "code", executesConfig(7, ""))
	holdOne(t, g, u, "SayHello")
	rt.Store.Set(conf.FromCode, "code", executesConfig(9, ""))
	attackCall(g, u, "SayHello", func() {})
	for range 50 {
		for _, m := range snapshot(rt).Methods {
			require.Equal(t, "9", m.Settings[0].Value)
		}
	}
	rt.Store.Set(conf.FromCode, "code", executesConfig(4, ""))
	for _, m := range snapshot(rt).Methods {
		require.Equal(t, "4", m.Settings[0].Value, "a change is told before the next call")
	}
	for _, l := range snapshot(rt).Limits {
		require.EqualValues(t, 4, l.Limit)
	}
	service := conf.ServiceKey{Interface: "quiet.Service"}
	rt.Declare(conf.Provider, service, "tri", []string{"SayHello"}, &conf.Service{})
	require.True(t, slices.ContainsFunc(snapshot(rt).Methods, func(m MethodState) bool { return m.Service == "quiet.Service" }),
		"an exported service is told before its first call")
}

// Once: the limit of unknown names and the one that a service's methods share
// have the same labels. While both are alive, after a change of the scope, every
// scrape of dubbo-go's endpoint fails as a whole.
func TestAttackAChangeOfScopeDoesNotBreakTheScrape(t *testing.T) {
	rt := guard.NewRuntime()
	g := guard.New(rt, conf.Provider)
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("scope.Service"), common.WithInterface("scope.Service"),
		common.WithMethods([]string{"SayHello"}))
	rt.Store.Set(conf.FromCode, "code", executesConfig(7, conf.ScopeMethod))
	holdOne(t, g, u, "SayHello")
	rt.Store.Set(conf.FromCode, "code", executesConfig(7, conf.ScopeService))
	attackCall(g, u, "SayHello", func() {})
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(metrics.New(rt)))
	_, err := reg.Gather()
	require.NoError(t, err)
}

// Once: a method name that is no UTF-8 makes the collector panic, on a
// goroutine of Prometheus's own: the process ends at the next scrape. It takes a
// chain that does not know its methods (a direct or generic reference, a
// pass-through service).
func TestAttackAMethodNameDoesNotEndTheProcess(t *testing.T) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		rt := guard.NewRuntime()
		rt.Store.Set(conf.FromCode, "code", &conf.Config{
			Provider: conf.Section{Policies: conf.Policies{Stats: conf.Of(true)}},
			Consumer: conf.Section{Policies: conf.Policies{Stats: conf.Of(true)}},
		})
		u := common.NewURLWithOptions(common.WithProtocol("dubbo"), common.WithPath("open.Service"), common.WithInterface("open.Service"))
		attackCall(guard.New(rt, side), u, "bad\xff", func() {})
		require.NotPanics(t, func() {
			ch := make(chan prometheus.Metric, 1000)
			metrics.New(rt).Collect(ch)
		}, side.String())
	}
}

// dubbo reads the first document of its file and so starts; a program that only
// imports Weir and has no weir section must start too.
func TestAttackAFileThatIsNotWeirsIsNotItsBusiness(t *testing.T) {
	s := newSources(t, nil)
	t.Setenv("DUBBO_GO_CONFIG_PATH", write(t, "dubbo.yaml", "dubbo: {application: {name: a}}\n---\nother: 1\n"))
	require.NoError(t, s.prepare())
}

// Once: a fault of the file found at the first export sticks to every later
// one, though the file is right and in force by then.
func TestAttackALoadThatSucceedsMendsAFaultyStart(t *testing.T) {
	s := newSources(t, nil)
	t.Setenv(EnvConfigPath, write(t, "weir.yaml", "weir: {provider: {executes: abc}}\n"))
	require.Error(t, s.prepare())
	require.NoError(t, s.use(write(t, "right.yaml", limit7)))
	require.NoError(t, s.prepare())
}

// Once: "config-map.weir and a file that set the same key are an error", but
// Load at run time is not asked.
func TestAttackLoadAtRunTimeMeetsTheSection(t *testing.T) {
	s := newSources(t, map[string]any{"provider": map[string]any{"executes": 3}})
	require.NoError(t, s.prepare())
	require.Error(t, s.use(write(t, "weir.yaml", limit7)))
}
