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

// Package group tests groups by tag on real servers and clients over loopback, on both
// protocols.
package group

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, harness.Roles{}) }

var background = context.Background()

// eachProtocol runs a test over each.
func eachProtocol(t *testing.T, f func(t *testing.T, protocol string)) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) { f(t, protocol) })
	}
}

// fleet are providers of one service, each in a process of its own, by name.
type fleet map[string]*harness.ChildProvider

// spawn starts providers, each with its params.
func spawn(t *testing.T, protocol string, params map[string]map[string]string) fleet {
	t.Helper()
	f, service := fleet{}, harness.NewGroup()
	for _, name := range slices.Sorted(maps.Keys(params)) {
		f[name] = harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: service, Params: params[name]})
	}
	return f
}

// dial refers to all of them. What each publishes of its group stands in its address, as
// it would come from a registry.
func (f fleet) dial(t *testing.T, params map[string]map[string]string, reference map[string]string, opts ...client.ReferenceOption) *harness.Consumer {
	t.Helper()
	var endpoints []harness.Endpoint
	var urls []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		p := f[name]
		endpoints = append(endpoints, p.Endpoint)
		query := url.Values{}
		if own := params[name][conf.GroupKey]; own != "" {
			query.Set(conf.GroupKey, own)
		}
		urls = append(urls, p.URL()+"?"+query.Encode())
	}
	return harness.Dial(t, harness.ConsumerConfig{
		Providers: endpoints, Params: reference, Reference: append([]client.ReferenceOption{client.WithURL(strings.Join(urls, ";"))}, opts...),
	})
}

// totals are the calls of SayHello that each has run.
func (f fleet) totals() map[string]int {
	out := map[string]int{}
	for name, p := range f {
		out[name] = p.Stats("SayHello").Total
	}
	return out
}

// configured puts a section in force for a test, for consumers of this process.
func configured(t *testing.T, g conf.Group) {
	t.Helper()
	require.NoError(t, weir.Configure(conf.Config{Consumer: conf.Section{Policies: conf.Policies{Group: &g}}}))
	t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
}
