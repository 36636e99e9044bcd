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
	"maps"
	"slices"
	"testing"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/global"
	"dubbo.apache.org/dubbo-go/v3/registry"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
)

const oneRegistry = `
dubbo:
  application: {name: shop}
  registries:
    zk: {protocol: zookeeper, address: "${where:127.0.0.1:2181}", registry-type: interface}
  provider:
    services:
      Order: {interface: shop.OrderService}
`

// registriesOf are the registries that dubbo.Load would be given, nil for those of the document.
func (s *sources) registriesOf(t *testing.T, path string) *dubbo.InstanceOptions {
	t.Helper()
	opts, err := s.loading(path, nil)
	require.NoError(t, err)
	if len(opts) == 1 {
		return nil
	}
	o, _, err := readDubbo(path, nil)
	require.NoError(t, err)
	_, err = s.makeRegistries(o, false)
	require.NoError(t, err)
	return o
}

func TestLoadDubboMakesRegistriesOfGroups(t *testing.T) {
	s := newSources(t, nil)
	t.Setenv("WEIR_TEST_GROUP", "noncore")
	path := write(t, "dubbogo.yaml", oneRegistry+"weir: {group: {registries: {join: ['${WEIR_TEST_GROUP:core}'], also: [core]}}}")
	o := s.registriesOf(t, path)
	require.Equal(t, []string{"zk-core", "zk-noncore"}, slices.Sorted(maps.Keys(o.Registries)))
	require.Equal(t, &global.RegistryConfig{
		Protocol: "zookeeper", Address: "127.0.0.1:2181", RegistryType: "interface",
		Group: "noncore", Namespace: "noncore", UseAsMetaReport: "false", Params: map[string]string{},
	}, o.Registries["zk-noncore"])
	require.Equal(t, []string{"zk-noncore"}, o.Provider.RegistryIDs)
	require.Equal(t, []string{"zk-noncore"}, o.Consumer.RegistryIDs)
	require.Equal(t, "shop", o.Application.Name)
	require.Equal(t, "shop.OrderService", o.Provider.Services["Order"].Interface)
	require.NoError(t, s.load())
	require.Equal(t, path, s.file.Path, "it is the file whose changes hold")

	s = newSources(t, nil)
	require.Nil(t, s.registriesOf(t, write(t, "dubbogo.yaml", oneRegistry+limit7)), "as dubbo.Load")
	limit, _ := s.executes()
	require.Equal(t, 7, limit)
	require.NoError(t, s.load())

	s = newSources(t, nil)
	require.Nil(t, s.registriesOf(t, write(t, "dubbogo.yaml", oneRegistry)), "without a section, as dubbo.Load")
}

func TestWhereLoadDubboReadsTheSectionFrom(t *testing.T) {
	core := "weir: {group: {registries: {join: core}}}"
	t.Run("the file that the environment names", func(t *testing.T) {
		s := newSources(t, nil)
		t.Setenv(EnvConfigPath, write(t, "weir.yaml", core))
		require.Contains(t, s.registriesOf(t, write(t, "dubbogo.yaml", oneRegistry+limit7)).Registries, "zk-core")
		limit, _ := s.executes()
		require.Zero(t, limit)
	})
	t.Run("the file that Load has named", func(t *testing.T) {
		s := newSources(t, nil)
		require.NoError(t, s.use(write(t, "mine.yaml", core)))
		require.Contains(t, s.registriesOf(t, write(t, "dubbogo.yaml", oneRegistry+limit7)).Registries, "zk-core")
	})
	t.Run("dubbo's file that the environment names", func(t *testing.T) {
		s := newSources(t, nil)
		t.Setenv(constant.ConfigFileEnvKey, write(t, "dubbogo.yaml", oneRegistry+core))
		opts, err := s.loading("", nil)
		require.NoError(t, err)
		require.Len(t, opts, 2)
	})
	t.Run("dubbo's config-map", func(t *testing.T) {
		s := newSources(t, nil)
		path := write(t, "dubbogo.yaml", oneRegistry+"  custom: {config-map: {weir: {group: {registries: {from: zk, see: core}}}}}\n")
		require.Contains(t, s.registriesOf(t, path).Registries, "zk-core")
	})
	t.Run("code", func(t *testing.T) {
		s := newSources(t, nil)
		s.runtime.Store.Set(conf.FromCode, "code", &conf.Config{GroupRegistries: &conf.GroupRegistries{See: "core"}})
		require.Contains(t, s.registriesOf(t, write(t, "dubbogo.yaml", oneRegistry)).Registries, "zk-core")
	})
}

func TestLoadDubboFaults(t *testing.T) {
	for name, tt := range map[string]struct{ document, want string }{
		"no YAML":            {"dubbo: [", "did not find expected node content"},
		"empty":              {"", "the file is empty"},
		"another type":       {oneRegistry + "  shutdown: 5\n", "shutdown"},
		"not a part of path": {oneRegistry + "weir: {group: {registries: {join: a/b}}}", "key=group.registries.join"},
		"another registry":   {oneRegistry + "weir: {group: {registries: {from: zoo, join: core}}}", `key=weir.group.registries.from value="zoo": dubbo has no such registry; allowed: one of zk`},
		"in the config-map":  {oneRegistry + "  custom: {config-map: {weir: {group: {registries: {see: ..}}}}}\n", "dubbo.custom.config-map.weir"},
	} {
		s := newSources(t, nil)
		_, err := s.loading(write(t, "dubbogo.yaml", tt.document), nil)
		require.ErrorContains(t, err, tt.want, name)
	}
	s := newSources(t, nil)
	_, err := s.loading("nowhere.yaml", nil)
	require.ErrorContains(t, err, "no such file")
	_, err = s.loading("", nil)
	require.ErrorContains(t, err, "no such file", "nor at dubbo's own path")
}

// Whoever asks for registries and starts dubbo without them would have no groups.
func TestRegistriesOfGroupsThatNobodyHasMade(t *testing.T) {
	s := newSources(t, nil)
	path := write(t, "dubbogo.yaml", oneRegistry+"weir: {group: {registries: {join: core}}}")
	t.Setenv(constant.ConfigFileEnvKey, path)
	require.ErrorContains(t, s.load(), "key=weir.group.registries value=\"[core]\": dubbo has been started without them")
	_, err := s.loading(path, nil)
	require.NoError(t, err)
	require.NoError(t, s.wrong())
}

func TestNewInstanceMakesRegistriesOfGroups(t *testing.T) {
	s := newSources(t, nil)
	t.Setenv(EnvConfigPath, write(t, "weir.yaml", "weir: {group: {registries: {join: [core], see: noncore}}}"))
	// A metadata report of dubbo's would connect.
	zk := dubbo.WithRegistry(registry.WithZookeeper(), registry.WithAddress("127.0.0.1:1"), registry.WithID("zk"), registry.WithoutUseAsMetaReport())
	ins, err := s.newInstance([]dubbo.InstanceOption{zk})
	require.NoError(t, err)
	o := ins.GetInstanceOptionsSnapshot()
	require.Equal(t, []string{"zk-core", "zk-noncore"}, slices.Sorted(maps.Keys(o.Registries)))
	require.Equal(t, "core", o.Registries["zk-core"].Group)
	require.Equal(t, []string{"zk-noncore"}, o.Consumer.RegistryIDs)

	// dubbo-go has its servers register everywhere.
	u := common.NewURLWithOptions()
	require.NoError(t, s.joined(u))
	u.SetAttribute(constant.ProviderConfigKey, &global.ProviderConfig{RegistryIDs: []string{"zk-core", "zk-noncore"}})
	require.ErrorContains(t, s.joined(u), `allowed: server.WithServerRegistryIDs([]string{"zk-core"})`)
	u.SetAttribute(constant.ProviderConfigKey, &global.ProviderConfig{RegistryIDs: []string{"zk-core"}})
	require.NoError(t, s.joined(u))

	_, err = s.newInstance(nil)
	require.ErrorContains(t, err, "dubbo has no registry to make those of the groups out of")
	_, err = newSources(t, nil).newInstance([]dubbo.InstanceOption{zk})
	require.NoError(t, err, "nobody asks for groups")
	require.PanicsWithValue(t, "mine", func() {
		_, _ = s.newInstance([]dubbo.InstanceOption{func(*dubbo.InstanceOptions) { panic("mine") }})
	})
}

// A document that says nothing is what dubbo begins with.
func TestDefaultOptions(t *testing.T) {
	require.Equal(t, dubbo.GetInstanceOptionsSnapshot(), defaultOptions().Clone())
}
