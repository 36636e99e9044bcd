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

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

// Once: what a provider declares for its consumers, from its file, was written into
// its URL and then read back as a param of the service that nobody had written:
// the first call of each such service made a new version of the configuration for
// all chains of the process, and when the file said nothing any more, the snapshot
// told of a value with the source params.
func TestWhatIsDeclaredIsNoParamOfTheProviders(t *testing.T) {
	p, rt := newProcessor()
	cfg := &conf.Config{Provider: conf.Section{Policies: conf.Policies{Actives: &conf.Actives{Limit: conf.Of(20)}}}}
	rt.Store.Set(conf.FromFile, "weir.yaml", cfg)
	u := service("review.Declared", "tri", map[string]string{"executes": "5"})
	p.PostProcessServiceConfig(u)
	require.Equal(t, "20", u.GetParam("actives", ""))

	g := guard.New(rt, conf.Provider)
	before := rt.Store.Version()
	g.Invoke(context.Background(), base.NewBaseInvoker(u), invocation.NewRPCInvocation("Echo", nil, map[string]any{}))
	require.Equal(t, before, rt.Store.Version(), "a first call changes nothing")

	rt.Store.Set(conf.FromFile, "weir.yaml", &conf.Config{})
	rt.Methods(func(m guard.MethodInfo) {
		require.Equal(t, []conf.Setting{{Key: "executes", Value: "5", Source: "params", Level: "service"}}, m.Policy.Settings, m.Method)
	})
}
