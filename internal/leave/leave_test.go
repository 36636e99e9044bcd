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

package leave

import (
	"context"
	"errors"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/registry"
	"github.com/stretchr/testify/require"
)

// book is a registry that knows what was taken out of it.
type book struct {
	registry.Registry
	protocol, kind string
	left           []string
	err            error
}

func (b *book) GetURL() *common.URL {
	return common.NewURLWithOptions(common.WithParamsValue(constant.RegistryKey, b.protocol), common.WithParamsValue(constant.RegistryTypeKey, b.kind))
}

func (b *book) UnRegister(u *common.URL) error {
	b.left = append(b.left, u.Path+" "+u.GetParam("registry", "")+" "+u.GetParam(constant.RegistryTypeKey, "")+" "+u.GetParam("a", "")+u.GetParam(".hidden", ""))
	return b.err
}

func TestServicesLeaveAllRegistries(t *testing.T) {
	a, b := &book{protocol: "zookeeper", kind: "interface", err: errors.New("it has not registered")}, &book{protocol: "nacos", kind: "service"}
	all := []registry.Registry{a}
	s := Services{registries: func() []registry.Registry { return all }}
	for _, path := range []string{"/one", "/two"} {
		s.Note(common.NewURLWithOptions(common.WithPath(path), common.WithParamsValue("a", "b"), common.WithParamsValue(".hidden", "c"), common.WithParamsValue("registry", "x")))
	}
	// Another Services of this process may have been first: the first stays.
	require.Contains(t, extension.GracefulShutdownCallbacks(), "weir-leave")
	require.NoError(t, s.leave(context.Background()))
	require.Empty(t, a.left, "dubbo has taken them out of the only one")

	all = append(all, b)
	require.NoError(t, s.leave(context.Background()))
	require.Equal(t, []string{"/one zookeeper interface b", "/two zookeeper interface b"}, a.left)
	require.Equal(t, []string{"/one nacos service b", "/two nacos service b"}, b.left)
}

func TestAProgramWithoutRegistries(t *testing.T) {
	require.Empty(t, ofDubbo())
	require.NoError(t, (&Services{registries: ofDubbo}).leave(context.Background()))
}
