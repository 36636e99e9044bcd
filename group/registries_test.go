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

package group_test

import (
	"maps"
	"slices"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/global"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/group"
)

func zk(change ...func(*global.RegistryConfig)) *global.RegistryConfig {
	r := &global.RegistryConfig{
		Protocol: "zookeeper", Address: "127.0.0.1:2181", Username: "u", Password: "p", Timeout: "3s", TTL: "1m", RegistryType: "service",
		Simplified: true, Weight: 3, Params: map[string]string{"a": "b"},
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func optionsOf(registries map[string]*global.RegistryConfig) *group.Dubbo {
	return &group.Dubbo{
		Registries: registries, MetadataReport: &global.MetadataReportConfig{},
		Provider: &global.ProviderConfig{Services: map[string]*global.ServiceConfig{"all": {}, "own": {RegistryIDs: []string{"zk-old"}}, "named": {RegistryIDs: []string{"zk"}}}},
		Consumer: &global.ConsumerConfig{References: map[string]*global.ReferenceConfig{"all": {}, "own": {RegistryIDs: []string{"zk-old"}}, "named": {RegistryIDs: []string{"nacos,zk"}}}},
	}
}

func TestMakeRegistries(t *testing.T) {
	model, nacos := zk(), &global.RegistryConfig{Protocol: "nacos", Address: "127.0.0.1:8848"}
	o := optionsOf(map[string]*global.RegistryConfig{"zk": model, "nacos": nacos})
	from, faults := group.MakeRegistries(o, conf.GroupRegistries{From: "zk", Join: []string{"core", "noncore"}, See: "noncore", Also: []string{"old", "core"}})
	require.Empty(t, faults)
	assert.Equal(t, "zk", from)
	assert.Equal(t, []string{"nacos", "zk-core", "zk-noncore", "zk-old"}, slices.Sorted(maps.Keys(o.Registries)))
	assert.Same(t, nacos, o.Registries["nacos"])
	for _, g := range []string{"core", "noncore", "old"} {
		want := zk()
		want.Group, want.Namespace, want.UseAsMetaReport = g, g, "false"
		assert.Equal(t, want, o.Registries["zk-"+g])
	}
	assert.Equal(t, zk(), model, "it stays as it was")
	assert.Equal(t, []string{"nacos", "zk-core", "zk-noncore"}, o.Provider.RegistryIDs)
	assert.Empty(t, o.Provider.Services["all"].RegistryIDs, "those of the side")
	assert.Equal(t, []string{"zk-old"}, o.Provider.Services["own"].RegistryIDs)
	assert.Equal(t, []string{"zk-core", "zk-noncore"}, o.Provider.Services["named"].RegistryIDs)
	assert.Equal(t, []string{"nacos", "zk-noncore"}, o.Consumer.RegistryIDs)
	assert.Empty(t, o.Consumer.References["all"].RegistryIDs, "those of the side")
	assert.Equal(t, []string{"zk-old"}, o.Consumer.References["own"].RegistryIDs)
	assert.Equal(t, []string{"nacos", "zk-noncore"}, o.Consumer.References["named"].RegistryIDs)
	assert.Equal(t, &global.MetadataReportConfig{
		Protocol: "zookeeper", Address: "127.0.0.1:2181", Username: "u", Password: "p", Timeout: "3s", Params: map[string]string{"a": "b"},
	}, o.MetadataReport, "metadata lie where dubbo would put them")
}

func TestMakeRegistriesOutOfTheOnlyOne(t *testing.T) {
	o := optionsOf(map[string]*global.RegistryConfig{"main": zk(func(r *global.RegistryConfig) { r.Address, r.Protocol = "zookeeper://a:1,b:2", "" }), "empty": nil})
	o.Provider.RegistryIDs, o.Consumer.RegistryIDs = []string{"main"}, []string{"other"}
	o.Provider.Services, o.Consumer.References = nil, map[string]*global.ReferenceConfig{"nil": nil}
	from, faults := group.MakeRegistries(o, conf.GroupRegistries{Join: []string{"core"}, See: "core"})
	require.Empty(t, faults)
	assert.Equal(t, "main", from)
	assert.Equal(t, []string{"main-core"}, o.Provider.RegistryIDs)
	assert.Equal(t, []string{"other"}, o.Consumer.RegistryIDs, "what is named is left alone")
	assert.Equal(t, "zookeeper://a:1,b:2", o.Registries["main-core"].Address)
	assert.Equal(t, "a:1,b:2", o.MetadataReport.Address)

	for name, change := range map[string]func(o *group.Dubbo){
		"a place of their own": func(o *group.Dubbo) {
			o.MetadataReport = &global.MetadataReportConfig{Protocol: "nacos", Address: "n:1", Group: "core"}
		},
		"nowhere": func(o *group.Dubbo) { o.Registries["main"].UseAsMetaReport = "false" },
	} {
		o := optionsOf(map[string]*global.RegistryConfig{"main": zk()})
		change(o)
		want := *o.MetadataReport
		_, faults := group.MakeRegistries(o, conf.GroupRegistries{Join: []string{"core"}, See: "core"})
		require.Empty(t, faults, name)
		assert.Equal(t, &want, o.MetadataReport, name)
	}
	o = &group.Dubbo{Registries: map[string]*global.RegistryConfig{"main": zk()}}
	_, faults = group.MakeRegistries(o, conf.GroupRegistries{Join: []string{"core"}, See: "core"})
	require.Empty(t, faults)
	assert.NotNil(t, o.Registries["main-core"])
}

func TestMakeRegistriesFaults(t *testing.T) {
	type registries = map[string]*global.RegistryConfig
	core := conf.GroupRegistries{Join: []string{"core"}, See: "core"}
	for name, tt := range map[string]struct {
		registries registries
		asked      conf.GroupRegistries
		want       string
	}{
		"no group": {registries{"zk": zk()}, conf.GroupRegistries{From: "zk", Also: []string{"core"}},
			`registries key=weir.group.registries: it names no group; allowed: join, see or both`},
		"no registry": {registries{}, core,
			`registries key=weir.group.registries: dubbo has no registry to make those of the groups out of; allowed: one registry below dubbo.registries, or by dubbo.WithRegistry`},
		"several": {registries{"b": zk(), "a": zk()}, core,
			`registries key=weir.group.registries.from: dubbo has several registries; allowed: one of a, b`},
		"another": {registries{"zk": zk()}, conf.GroupRegistries{From: "zookeeper", Join: []string{"core"}},
			`registries key=weir.group.registries.from value="zookeeper": dubbo has no such registry; allowed: one of zk`},
		"etcd": {registries{"main": {Protocol: "etcdv3", Address: "127.0.0.1:2379"}}, core,
			`registries key=dubbo.registries.main.protocol value="etcdv3": groups by the path of a registry are for ZooKeeper: elsewhere dubbo-go 3.3.2 mixes them, or finds nobody, or it is not known; allowed: zookeeper, or groups by tag: weir.group`},
		"by address": {registries{"main": {Protocol: "zookeeper", Address: "nacos://127.0.0.1:2379"}}, core,
			`registries key=dubbo.registries.main.protocol value="nacos": groups by the path of a registry are for ZooKeeper: elsewhere dubbo-go 3.3.2 mixes them, or finds nobody, or it is not known; allowed: zookeeper, or groups by tag: weir.group`},
		"a group of its own": {registries{"zk": zk(func(r *global.RegistryConfig) { r.Group = "dubbo" })}, core,
			`registries key=dubbo.registries.zk.group value="dubbo": the groups are those of weir.group.registries; allowed: none here`},
		"the name is there": {registries{"zk": zk(), "zk-core": zk()}, conf.GroupRegistries{From: "zk", Join: []string{"core"}},
			`registries key=dubbo.registries.zk-core: this is the name of the registry of group core; allowed: another name`},
		"among metadata": {registries{"zk": zk()}, conf.GroupRegistries{Join: []string{"core", "dubbo"}},
			`registries key=weir.group.registries value="dubbo": the metadata of applications lie at that path, where dubbo-go 3.3.2 takes them for instances; allowed: another group, or another group of dubbo.metadata-report`},
	} {
		o := optionsOf(maps.Clone(tt.registries))
		_, faults := group.MakeRegistries(o, tt.asked)
		if assert.Len(t, faults, 1, name) {
			assert.Equal(t, tt.want, faults[0].String(), name)
		}
		assert.Equal(t, optionsOf(tt.registries), o, "%s: nothing has changed", name)
	}
	o := optionsOf(registries{"zk": zk(func(r *global.RegistryConfig) { r.RegistryType = "interface" })})
	_, faults := group.MakeRegistries(o, conf.GroupRegistries{Join: []string{"dubbo"}, See: "dubbo"})
	assert.Empty(t, faults, "by interface nobody takes them for instances")
}

func TestJoined(t *testing.T) {
	r := conf.GroupRegistries{Join: []string{"core"}, See: "noncore", Also: []string{"old"}}
	require.NoError(t, group.Joined("zk", r, &global.ProviderConfig{RegistryIDs: []string{"zk-core", "nacos"}}))
	err := group.Joined("zk", r, &global.ProviderConfig{RegistryIDs: []string{"zk-old", "zk-core"}})
	require.EqualError(t, err, `weir: configuration: server key=registry-ids value="zk-old,zk-core": services would be registered under group old, which weir.group.registries.join does not have: dubbo-go 3.3.2 has the server of an instance use all registries; allowed: server.WithServerRegistryIDs([]string{"zk-core"})`)
}
