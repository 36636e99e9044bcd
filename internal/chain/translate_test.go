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
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/logtest"
)

// Once: dubbo-go's keys of a replaced filter would have been read by nobody.
func TestDubbosLimitsAreTranslated(t *testing.T) {
	p, rt, _ := replacing("execute", "tps")
	lines := logtest.Warnings(t)
	keys := map[string]string{"execute.limit": "5", "tps.limiter": "default", "tps.limit.rate": "7", "tps.limit.interval": "1000", "executes.mode": "observe"}
	u := service("translate.A", "tri", keys)
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	require.Equal(t, "5", u.GetParam("execute.limit", ""), "nothing is replaced")
	require.Equal(t, 4, lines.Len(), "and as before it is told of")

	asked(rt, "execute", "tps")
	u = service("translate.B", "tri", keys)
	for range 2 {
		require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
		require.Equal(t, map[string]string{
			"executes": "5", "executes.scope": "service", "executes.mode": "observe", "tps": "7", "tps.interval": "1s", "tps.algorithm": "fixed",
		}, conf.OwnParams(guard.ParamsOf(u)))
		require.Empty(t, u.GetParam("execute.limit", "")+u.GetParam("tps.limiter", "")+u.GetParam("tps.limit.rate", ""))
	}
	parsed := conf.ParseParams(conf.Provider, "translate.B", guard.OwnParamsOf(u))
	e := rt.Store.View().Resolve(conf.Provider, guard.ServiceOf(u), "Echo", &parsed.Service)
	require.Equal(t, conf.Limit{Set: true, Limit: 5, Scope: conf.ScopeService, Mode: conf.Observe}, e.SharedExecutes)

	// What was replaced stays, and so does what its keys mean.
	asked(rt)
	u = service("translate.C", "tri", keys)
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	require.Equal(t, "5", u.GetParam("executes", ""))

	bad := map[string]string{"execute.limit": "0", "tps.limiter": "polaris-limit", "methods.Echo.executes": "3"}
	err := faults(t, func() { p.PostProcessServiceConfig(service("translate.D", "tri", bad)) })
	require.ErrorContains(t, err, `key=execute.limit value="0": dubbo-go refuses every call with it`)
	require.ErrorContains(t, err, `key=tps.limiter value="polaris-limit"`)
	rt.Store.Set(conf.FromCode, "code", &conf.Config{OnError: conf.Warn})
	u = service("translate.E", "tri", bad)
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	require.Equal(t, map[string]string{"methods.Echo.executes": "3"}, conf.OwnParams(guard.ParamsOf(u)), "the rest holds")
	require.EqualValues(t, 1, rt.ConfigErrors())
}

// On a second protocol the same keys are the same limits.
func TestTranslatedLimitsAreSharedByProtocols(t *testing.T) {
	p, rt, _ := replacing("execute", "tps")
	asked(rt, "execute")
	p.PostProcessServiceConfig(service("translate.Two", "tri", map[string]string{"execute.limit": "5"}))
	require.Nil(t, faults(t, func() {
		p.PostProcessServiceConfig(service("translate.Two", "dubbo", map[string]string{"executes": "5", "executes.scope": "service"}))
	}))
	require.ErrorContains(t, faults(t, func() {
		p.PostProcessServiceConfig(service("translate.Two", "rest", map[string]string{"execute.limit": "6"}))
	}), "protocols share a service's limits")
}
