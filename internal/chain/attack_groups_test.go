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
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/logtest"
)

// The same URL looked at twice, as by a service exported again.
func TestAttackLookedAtTwice(t *testing.T) {
	p, rt := newProcessor()
	rt.Store.Set(conf.FromFile, "weir.yaml", &conf.Config{Provider: conf.Section{Policies: conf.Policies{Actives: &conf.Actives{Limit: conf.Of(20)}}}})
	u := service("attack.Twice", "tri", map[string]string{"executes": "5"})
	p.PostProcessServiceConfig(u)
	p.PostProcessServiceConfig(u)
	g := guard.New(rt, conf.Provider)
	g.Invoke(context.Background(), base.NewBaseInvoker(u), invocation.NewRPCInvocation("Echo", nil, map[string]any{}))
	rt.Store.Set(conf.FromFile, "weir.yaml", &conf.Config{})
	rt.Methods(func(m guard.MethodInfo) {
		assert.Equal(t, []conf.Setting{{Key: "executes", Value: "5", Source: "params", Level: "service"}}, m.Policy.Settings, m.Method)
	})
}

// A reference of several groups.
func TestAttackGroupsAreMet(t *testing.T) {
	for _, group := range []string{"a,b", "*"} {
		p, rt := newProcessor()
		rt.Store.Set(conf.FromFile, "weir.yaml", &conf.Config{Consumer: conf.Section{Services: map[string]conf.Service{
			"a/attack.Groups": {Policies: conf.Policies{Actives: &conf.Actives{Limit: conf.Of(20)}}},
		}}})
		u := service("attack.Groups", "tri", map[string]string{constant.GroupKey: group})
		p.PostProcessReferenceConfig(u)
		lines := logtest.Warnings(t)
		p.WarnUnmatched()
		assert.Zero(t, lines.Len(), "%s: %v", group, lines.All())
	}
}
