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

	"dubbo.apache.org/dubbo-go/v3/common"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
)

// A provider's URL says its group, whatever source it has it from, and asks for the
// names of callers where it goes by them.
func TestAProviderPublishesItsGroup(t *testing.T) {
	p, rt := newProcessor()
	rt.Store.Set(conf.FromFile, "weir.yaml", &conf.Config{Provider: conf.Section{
		Policies: conf.Policies{Group: &conf.Group{Name: "core"}},
		Services: map[string]conf.Service{
			"group.Asks": {Policies: conf.Policies{Group: &conf.Group{Callers: []string{"billing"}}}},
			"group.None": {Policies: conf.Policies{Group: &conf.Group{Name: conf.GroupNone}}},
		},
	}})
	for _, tt := range []struct {
		service, params, want, asks string
	}{
		{"group.A", "", "core", ""}, {"group.A", "core|pay", "core|pay", ""}, {"group.Asks", "", "core", "true"},
		{"group.None", "", "", ""}, {"group.None", "core", "none", ""},
	} {
		u := service(tt.service, "tri", nil)
		if tt.params != "" {
			u.SetParam(conf.GroupKey, tt.params)
		}
		before := guard.OwnParamsOf(u)
		for range 2 { // once more, as by a service that is exported again
			p.PostProcessServiceConfig(u)
			require.Equal(t, tt.want, u.GetParam(conf.GroupKey, ""), tt.service)
			require.Equal(t, tt.asks, u.GetParam(guard.TellCallerKey, ""), tt.service)
			require.Equal(t, before[conf.GroupKey], guard.OwnParamsOf(u)[conf.GroupKey], "what the user wrote is known")
		}
	}
}

// dubbo merges a reference's params into those of its providers: one of no group would
// be of the reference's.
func TestAReferencesGroupIsItsOwn(t *testing.T) {
	p, _ := newProcessor()
	u := service("group.R", "tri", map[string]string{"weir.group": "core", "methods.Echo.weir.group.match": "strict"})
	p.PostProcessReferenceConfig(u)
	require.Empty(t, u.GetParam(conf.GroupKey, ""))
	require.Empty(t, service("group.R", "tri", nil).MergeURL(u).GetParam(conf.GroupKey, ""))
	require.Equal(t, "noncore", service("group.R", "tri", map[string]string{"weir.group": "noncore"}).MergeURL(u).GetParam(conf.GroupKey, ""))
	require.Equal(t, "core", retry.Of(u).Params.Group.Name)
	require.Equal(t, conf.MatchStrict, retry.Of(u).Params.Methods["echo"].Group.Match)
}

// Who wants to know of references is told of those that a user makes, and of changes.
func TestReferencesAreTold(t *testing.T) {
	p, rt := newProcessor()
	var made []string
	changes := 0
	OnReferences(References{
		Made: func(of *guard.Runtime, _ *conf.View, s conf.ServiceKey, u *common.URL, ref *retry.Reference) {
			if of == rt {
				require.Same(t, ref, retry.Of(u))
				require.Equal(t, "core", ref.Params.Group.Name)
				made = append(made, s.String())
			}
		},
		Changed: func(of *guard.Runtime, _ *conf.View) {
			if of == rt {
				changes++
			}
		},
	})
	p.PostProcessReferenceConfig(service("group.Told", "tri", map[string]string{"weir.group": "core"}))
	p.PostProcessReferenceConfig(service("grpc.health.v1.Health", "tri", nil))
	p.PostProcessServiceConfig(service("group.Told", "tri", nil))
	require.Equal(t, []string{"group.Told"}, made)
	rt.Store.Touch()
	require.Equal(t, 1, changes)
}
