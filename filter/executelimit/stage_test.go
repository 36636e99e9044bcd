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

package executelimit_test

import (
	"context"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// limits are those in force, by method, scope and protocol.
func limits(rt *guard.Runtime) map[executelimit.Key]int64 {
	out := map[executelimit.Key]int64{}
	executelimit.Limiters(rt, func(k executelimit.Key, l *concurrency.Limiter) {
		out[executelimit.Key{Service: k.Service, Method: k.Method, Scope: k.Scope, Protocol: k.Protocol}] = l.Limit()
	})
	return out
}

func TestLimitersTellEveryLimitInForce(t *testing.T) {
	for name, tt := range map[string]struct {
		params map[string]string
		want   map[executelimit.Key]int64
	}{
		"none":            {nil, map[executelimit.Key]int64{}},
		"one method":      {map[string]string{"methods.Get.executes": "3"}, map[executelimit.Key]int64{{Method: "Get", Scope: conf.ScopeMethod}: 3}},
		"off":             {map[string]string{"executes": "3", "executes.mode": "off"}, map[executelimit.Key]int64{}},
		"protocol, alone": {map[string]string{"methods.Get.executes": "3", "methods.Get.executes.scope": "protocol"}, map[executelimit.Key]int64{{Method: "Get", Scope: conf.ScopeProtocol, Protocol: "tri"}: 3}},
		"shared and own": {map[string]string{"executes": "9", "executes.scope": "service", "methods.Get.executes": "3"}, map[executelimit.Key]int64{
			{Method: "*", Scope: conf.ScopeService}: 9, {Method: "Get", Scope: conf.ScopeMethod}: 3,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			const service = "stage.Service"
			rt := guard.NewRuntime()
			g := guard.New(rt, conf.Provider)
			u := benchURL(service, tt.params)
			g.Invoke(context.Background(), base.NewBaseInvoker(u), invocation.NewRPCInvocation("Get", nil, nil))
			want := map[executelimit.Key]int64{}
			for k, v := range tt.want {
				k.Service = service
				want[k] = v
			}
			require.Equal(t, want, limits(rt))
			// Plans own the limiters: they must be alive until here.
			g.Invoke(context.Background(), base.NewBaseInvoker(u), invocation.NewRPCInvocation("Get", nil, nil))
		})
	}
}

func TestTheFilterOfThatNameEnforcesOnlyThisPolicy(t *testing.T) {
	rt := guard.NewRuntime()
	g := guard.NewAlone(rt, conf.Provider, executelimit.FilterName, executelimit.Policy)
	u := benchURL("alone.Service", map[string]string{"executes": "2", "service.filter": executelimit.FilterName})
	g.Invoke(context.Background(), base.NewBaseInvoker(u), invocation.NewRPCInvocation("Get", nil, nil))
	require.NotEmpty(t, limits(rt))
	require.Equal(t, 7, rt.Status.Len(), "alone in the chain it keeps the figures: six methods and the unknown")
}
