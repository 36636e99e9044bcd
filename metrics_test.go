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
	"encoding/json"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group/tag"
	"github.com/weir-go/weir/internal/alarms"
	"github.com/weir-go/weir/internal/health"
	"github.com/weir-go/weir/internal/machine"
	"github.com/weir-go/weir/internal/metrics"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/loadbalance"
)

// metricList is docs/metrics.json, which the dashboard and the alerts of
// docs/monitoring are tested against, in a module that does not know Weir.
type metricList struct {
	Metrics []listedMetric      `json:"metrics"`
	Values  map[string][]string `json:"values"`
}

type listedMetric struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Labels []string `json:"labels"`
}

func readMetricList(t *testing.T) metricList {
	text, err := os.ReadFile("docs/metrics.json")
	require.NoError(t, err)
	var list metricList
	require.NoError(t, json.Unmarshal(text, &list))
	return list
}

// TestTheListOfMetricsIsWhatIsCollected compares names and labels with what the
// collector describes.
func TestTheListOfMetricsIsWhatIsCollected(t *testing.T) {
	described := make(chan *prometheus.Desc, 100)
	Collector().Describe(described)
	close(described)
	// A Desc shows its parts in its text only.
	parts := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)
	got := map[string][]string{}
	for d := range described {
		m := parts.FindStringSubmatch(d.String())
		require.NotNil(t, m, d.String())
		got[m[1]] = slices.Sorted(strings.FieldsFuncSeq(m[2], func(r rune) bool { return r == ',' }))
	}
	want := map[string][]string{}
	for _, m := range readMetricList(t).Metrics {
		want[m.Name] = slices.Sorted(slices.Values(m.Labels))
	}
	require.Equal(t, want, got)
}

// TestTheListOfMetricsHasTheirTypes compares the types with those of a scrape.
func TestTheListOfMetricsHasTheirTypes(t *testing.T) {
	rt := guard.NewRuntime()
	cfg, found, faults := conf.ParseYAML("test", []byte(`
weir:
  provider: {executes: 1, tps: 1000, overload: 5}
  consumer: {actives: 1, breaker: standard}
  group: core
`))
	require.Empty(t, faults)
	require.True(t, found)
	rt.Store.Set(conf.FromCode, "code", cfg)
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("list.Service"), common.WithInterface("list.Service"),
		common.WithMethods([]string{"SayHello"}))
	parsed := conf.ParseParams(conf.Consumer, "list.Service", map[string]string{"fallback": "none"})
	require.Empty(t, parsed.Faults)
	ref := retry.NewReference(&parsed.Service)
	ref.Answerer = guard.NewFallbacks(rt, u, ref)
	require.NoError(t, machine.Of(rt).Add(health.Func("own", func(time.Duration) (float64, bool) { return 0.5, true }), health.Rule{Limit: 0.9}))
	machine.Of(rt).Sample(guard.Now())
	// A call that ends, one that runs, and one that is refused.
	provider, consumer := guard.New(rt, conf.Provider), guard.New(rt, conf.Consumer)
	attackCall(consumer, u, "SayHello", func() {})
	holdOne(t, provider, u, "SayHello")
	attackCall(provider, u, "SayHello", func() {})

	first, second := u.Clone(), u.Clone()
	second.Location = "10.0.0.2:20000"
	for _, u := range []*common.URL{first, second} {
		u.SetAttribute(retry.AttributeKey, ref)
	}
	chosen := []base.Invoker{base.NewBaseInvoker(first), base.NewBaseInvoker(second)}
	extension.GetLoadbalance(loadbalance.LeastActive).Select(chosen, invocation.NewRPCInvocation("SayHello", nil, nil))
	defer runtime.KeepAlive(chosen)

	routed := routedCall(t, rt, "list.Grouped")
	defer runtime.KeepAlive(routed)

	reg := prometheus.NewPedanticRegistry()
	watch := alarms.New(rt)
	watch.Look()
	require.NoError(t, reg.Register(metrics.New(rt, metrics.WithAlarms(watch))))
	families, err := reg.Gather()
	require.NoError(t, err)
	got, want := map[string]string{}, map[string]string{}
	for _, f := range families {
		got[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	for _, m := range readMetricList(t).Metrics {
		want[m.Name] = m.Type
	}
	require.Equal(t, want, got)
	runtime.KeepAlive(ref)
	runtime.KeepAlive(provider) // with what it counts
	runtime.KeepAlive(consumer)
}

// TestTheListOfMetricsHasTheValuesOfLabels compares those labels that have few.
func TestTheListOfMetricsHasTheValuesOfLabels(t *testing.T) {
	values := readMetricList(t).Values
	var outcomes []string
	for o := range call.OutcomeCount {
		outcomes = append(outcomes, call.Outcome(o).String())
	}
	require.Equal(t, outcomes, values["outcome"])
	require.Equal(t, []string{string(conf.Enforce), string(conf.Observe), string(conf.Off)}, values["mode"])
	require.Equal(t, []string{conf.Provider.String(), conf.Consumer.String()}, values["side"])
	for _, g := range values["guard"] {
		if !slices.Contains(conf.KeyNames(), "weir."+g) {
			require.Contains(t, conf.KeyNames(), g, "a guard has the name of its key")
		}
	}
	var results []string
	for r := range tag.Results {
		results = append(results, r.String())
	}
	require.Equal(t, results, values["result"])
}
