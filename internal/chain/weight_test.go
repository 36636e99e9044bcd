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
	"github.com/weir-go/weir/internal/retry"
)

// weights are the params of a URL about weights, whether there or not.
var weights = []string{"weight", "weir.weight", "methods.SayHello.weight", "methods.SayHello.weir.weight", "methods.Echo.weight", "methods.Echo.weir.weight"}

// A provider's URL says the weight in effect, as dubbo's own key and as Weir's.
func TestAProviderPublishesItsWeight(t *testing.T) {
	p, rt := newProcessor()
	lines := logtest.Warnings(t)
	rt.Store.Set(conf.FromFile, "weir.yaml", &conf.Config{Provider: conf.Section{
		Policies: conf.Policies{Weight: conf.Of(10)},
		Services: map[string]conf.Service{
			"weight.A": {Methods: map[string]conf.Policies{"echo": {Weight: conf.Of(0)}}},
			"weight.B": {Policies: conf.Policies{Weight: conf.Of(70)}},
		},
	}})
	for _, tt := range []struct {
		service string
		params  map[string]string
		want    [6]string
	}{
		{"weight.A", map[string]string{"weight": "0"}, [6]string{"10", "10", "", "", "0", "0"}},
		{"weight.B", map[string]string{"weight": "0", "weir.weight": "5", "methods.Echo.weight": "0"}, [6]string{"70", "70", "", "", "70", ""}},
		{"weight.C", map[string]string{"weight": "0", "weir.weight": "0"}, [6]string{"0", "0", "", "", "", ""}},
	} {
		u := service(tt.service, "tri", tt.params)
		before := guard.OwnParamsOf(u)
		for range 2 { // once more, as by a service that is exported again
			require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
			for i, name := range weights {
				require.Equal(t, tt.want[i], u.GetParam(name, ""), "%s %s", tt.service, name)
			}
			after := guard.OwnParamsOf(u)
			for _, name := range weights {
				require.Equal(t, before[name], after[name], "what the user wrote is known: %s %s", tt.service, name)
			}
		}
	}
	require.Zero(t, lines.Len(), "%v", lines.All())
	u := service("weight.D", "tri", map[string]string{"weight": "30"})
	p.PostProcessServiceConfig(u)
	require.Equal(t, 1, lines.Len())
	require.Contains(t, lines.All()[0].Message, "service=weight.D side=provider weight=30 is dubbo-go's and gives way to weir.weight, which makes it 10")
}

// Without a weight of Weir's nothing is touched.
func TestDubbosWeightIsLeftAlone(t *testing.T) {
	p, _ := newProcessor()
	u := service("weight.None", "tri", map[string]string{"weight": "30", "methods.Echo.weight": "3"})
	p.PostProcessServiceConfig(u)
	for i, want := range []string{"30", "", "", "", "3", ""} {
		require.Equal(t, want, u.GetParam(weights[i], ""), weights[i])
	}
}

// A reference has no weight of its own, and one of its provider's that is merged into
// its URL is nothing that it must answer for.
func TestAWeightOnAReference(t *testing.T) {
	p, rt := newProcessor()
	u := service("weight.R", "tri", map[string]string{"weir.weight": "5"})
	require.ErrorContains(t, faults(t, func() { p.PostProcessReferenceConfig(u) }), "weir.weight is a provider's key and has no effect on a consumer; allowed: on a provider")
	ref := service("weight.R", "tri", nil)
	require.Nil(t, faults(t, func() { p.PostProcessReferenceConfig(ref) }))
	provider := service("weight.R", "tri", map[string]string{"weight": "5", "weir.weight": "5", "methods.Echo.weir.weight": "0", "Echo.weir.weight": "0"})
	merged := provider.MergeURL(ref)
	require.Same(t, retry.Of(ref), retry.Of(merged))
	lines := logtest.Warnings(t)
	call(rt, conf.Consumer, merged, "Echo")
	require.Zero(t, lines.Len(), "%v", lines.All())
	require.Zero(t, rt.ConfigErrors())
	require.Equal(t, "0", merged.GetMethodParam("Echo", "weir.weight", ""))
}
