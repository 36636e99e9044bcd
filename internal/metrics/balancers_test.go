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
	"strconv"
	"sync/atomic"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/metrics"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/loadbalance"
)

// newBalanced is a reference that has chosen among n providers.
func newBalanced(service string, n int) *retry.Reference {
	none := conf.ParseParams(conf.Consumer, service, nil).Service
	ref := retry.NewReference(&none)
	var invokers []base.Invoker
	for n := range n {
		u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(service), common.WithInterface(service),
			common.WithIp("10.0.0.1"), common.WithPort(strconv.Itoa(1000+n)), common.WithParamsValue(constant.WeightKey, "50"))
		u.SetAttribute(retry.AttributeKey, ref)
		invokers = append(invokers, base.NewBaseInvoker(u))
	}
	extension.GetLoadbalance(loadbalance.LeastActive).Select(invokers, invocation.NewRPCInvocation("Get", nil, nil))
	return ref
}

// balancedRuns tells the runs of a test apart: the balancers belong to the process.
var balancedRuns atomic.Int64

func TestBalancers(t *testing.T) {
	service := "metrics.Balanced" + strconv.FormatInt(balancedRuns.Add(1), 10)
	ref := newBalanced(service, 150)
	p := ref.Peers.Instance("10.0.0.1:1007")
	for range 3 {
		p.Begin()
	}
	p.End()

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.New(guard.Process()))
	found, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]map[string]float64{}
	for _, f := range found {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["service"] != service {
				continue
			}
			if values[f.GetName()] == nil {
				values[f.GetName()] = map[string]float64{}
			}
			v := m.GetGauge().GetValue()
			if f.GetType() == dto.MetricType_COUNTER {
				v = m.GetCounter().GetValue()
			}
			values[f.GetName()][labels["provider"]] = v
		}
	}
	assert.Equal(t, map[string]float64{"": 150}, values["weir_balance_providers"])
	for name, want := range map[string]float64{"weir_balance_picks_total": 3, "weir_balance_inflight": 2, "weir_balance_score": 3.0 / 50} {
		assert.Len(t, values[name], 100, "%s: bounded", name)
		assert.InDelta(t, want, values[name]["10.0.0.1:1007"], 1e-9, name)
	}
}
