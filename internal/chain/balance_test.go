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

	"dubbo.apache.org/dubbo-go/v3/cluster/loadbalance"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
)

const ofEcho = "methods.Echo." + constant.LoadbalanceKey

func register(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		extension.SetLoadbalance(name, func() loadbalance.LoadBalance { return nil })
		t.Cleanup(func() { extension.UnregisterLoadbalance(name) })
	}
}

func TestAnUnknownLoadBalanceStopsTheReference(t *testing.T) {
	register(t, "weir-p2c", "random")
	for name, tt := range map[string]struct {
		params map[string]string
		says   []string
	}{
		"of the reference": {
			map[string]string{constant.LoadbalanceKey: "weir-p3c"},
			[]string{`service=a.Service key=loadbalance value="weir-p3c"`, "no load balance of that name", "allowed: random, weir-p2c;"},
		},
		"of a method": {
			map[string]string{constant.LoadbalanceKey: "weir-p2c", ofEcho: "typo"},
			[]string{`method=Echo key=loadbalance value="typo"`},
		},
		"of both, beside another fault": {
			map[string]string{constant.LoadbalanceKey: "a", ofEcho: "b", "weir.retry-refused": "x"},
			[]string{"3 faults", `value="a"`, `value="b"`, "retry-refused"},
		},
		"under any other cluster": {
			map[string]string{constant.LoadbalanceKey: "typo", constant.ClusterKey: constant.ClusterKeyForking},
			[]string{`value="typo"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newProcessor()
			e := faults(t, func() { p.PostProcessReferenceConfig(service("a.Service", "tri", tt.params)) })
			require.NotNil(t, e)
			for _, text := range tt.says {
				require.ErrorContains(t, e, text)
			}
		})
	}
}

func TestWithoutAnyLoadBalanceNoneIsAllowed(t *testing.T) {
	p, _ := newProcessor()
	u := service("a.Service", "tri", map[string]string{constant.LoadbalanceKey: "weir-p2c"})
	require.ErrorContains(t, faults(t, func() { p.PostProcessReferenceConfig(u) }), "allowed: none so far;")
}

func TestALoadBalanceThatIsNotAskedForIsNoFault(t *testing.T) {
	register(t, "weir-p2c", "random")
	for name, params := range map[string]map[string]string{
		"none":                       nil,
		"empty":                      {constant.LoadbalanceKey: "", ofEcho: ""},
		"known":                      {constant.LoadbalanceKey: "random", ofEcho: "weir-p2c"},
		"of a cluster that asks all": {constant.LoadbalanceKey: "typo", ofEcho: "typo", constant.ClusterKey: constant.ClusterKeyBroadcast},
		"as Java would write it":     {"Echo." + constant.LoadbalanceKey: "typo"}, // dubbo-go does not read it
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newProcessor()
			require.Nil(t, faults(t, func() { p.PostProcessReferenceConfig(service("a.Service", "tri", params)) }))
		})
	}
	t.Run("of a provider", func(t *testing.T) { // references have their own
		p, _ := newProcessor()
		u := service("a.Service", "tri", map[string]string{constant.LoadbalanceKey: "typo"})
		require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
	})
}

// A load balance that takes the place of one that dubbo-go does not have is there in time.
func TestAReplacedLoadBalanceIsKnown(t *testing.T) {
	p, rt := newProcessor()
	p.replacements = new(replacements)
	p.replacements.register(conf.ReplaceShortestResponse, func() { register(t, conf.ReplaceShortestResponse) })
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Replace: []string{conf.ReplaceShortestResponse}})
	u := service("a.Service", "tri", map[string]string{constant.LoadbalanceKey: conf.ReplaceShortestResponse})
	require.Nil(t, faults(t, func() { p.PostProcessReferenceConfig(u) }))
}

func TestOnErrorWarnLeavesAnUnknownLoadBalanceOut(t *testing.T) {
	register(t, "weir-p2c")
	p, rt := newProcessor()
	rt.Store.Set(conf.FromCode, "code", &conf.Config{OnError: conf.Warn})
	u := service("a.Service", "tri", map[string]string{constant.LoadbalanceKey: "weir-p2c", ofEcho: "typo"})
	require.Nil(t, faults(t, func() { p.PostProcessReferenceConfig(u) }))
	require.Equal(t, "weir-p2c", u.GetParam(constant.LoadbalanceKey, ""))
	require.Equal(t, "weir-p2c", u.GetMethodParam("Echo", constant.LoadbalanceKey, u.GetParam(constant.LoadbalanceKey, "")))
	u = service("a.Service", "tri", map[string]string{constant.LoadbalanceKey: "typo", ofEcho: "weir-p2c"})
	require.Nil(t, faults(t, func() { p.PostProcessReferenceConfig(u) }))
	require.Equal(t, "random", u.GetParam(constant.LoadbalanceKey, "random"), "dubbo's default")
	require.Equal(t, "weir-p2c", u.GetMethodParam("Echo", constant.LoadbalanceKey, ""))
	require.EqualValues(t, 2, rt.ConfigErrors())
}
