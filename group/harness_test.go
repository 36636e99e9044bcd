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
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/available"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/broadcast"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/failback"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/failfast"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/failover"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/failsafe"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/forking"
	"dubbo.apache.org/dubbo-go/v3/cluster/directory/static"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/random"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/roundrobin"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/router/tag"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	_ "dubbo.apache.org/dubbo-go/v3/filter/graceful_shutdown"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/protocolwrapper"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group"
	"github.com/weir-go/weir/internal/chain"
	"github.com/weir-go/weir/internal/retry"
)

// instance is a provider as a consumer sees it.
type instance struct {
	base.BaseInvoker
	hits atomic.Int64
	down atomic.Bool
	got  atomic.Value // the attachment that the last call carried
	err  error
}

func (i *instance) Invoke(_ context.Context, inv base.Invocation) result.Result {
	i.hits.Add(1)
	i.got.Store(fmt.Sprint(inv.GetAttachmentInterface(group.AttachmentKey)))
	return &result.RPCResult{Err: i.err, Rest: "ok"}
}

func (i *instance) IsAvailable() bool { return !i.down.Load() }

// consumer is a reference to instances that are joined by one of dubbo's clusters.
type consumer struct {
	service   string
	ref       *retry.Reference
	url       *common.URL
	instances []*instance
	invokers  []base.Invoker
	cluster   base.Invoker
}

var sequence atomic.Int64

// configured puts a weir section in force for a test.
func configured(t testing.TB, doc string) {
	t.Helper()
	cfg, _, faults := conf.ParseYAML("test", []byte(doc))
	require.Empty(t, faults)
	store := guard.Process().Store
	store.Set(conf.FromCode, "test", cfg)
	t.Cleanup(func() { store.Set(conf.FromCode, "", nil) })
}

// newConsumer makes a reference the way dubbo does.
func newConsumer(t testing.TB, params map[string]string) *consumer {
	t.Helper()
	c := &consumer{service: fmt.Sprintf("group.Service%d", sequence.Add(1))}
	c.url = common.NewURLWithOptions(
		common.WithProtocol("tri"), common.WithPath(c.service), common.WithInterface(c.service), common.WithMethods([]string{"Get", "Put"}),
		common.WithParamsValue(constant.LoadbalanceKey, constant.LoadBalanceKeyRoundRobin), // each gets calls, however fast it is
		common.WithParamsValue(constant.ClusterKey, "failover"),
	)
	for k, v := range params {
		c.url.SetParam(k, v)
	}
	chain.NewProcessor(guard.Process(), func() error { return nil }).PostProcessReferenceConfig(c.url)
	c.ref = retry.Of(c.url)
	return c
}

// refer makes a reference to providers "name:group", at addresses that are written down.
func refer(t testing.TB, params map[string]string, providers ...string) *consumer {
	t.Helper()
	c := newConsumer(t, params)
	for n, p := range providers {
		c.add(n, p)
	}
	c.join(t)
	return c
}

func (c *consumer) add(n int, provider string) {
	_, name, _ := strings.Cut(provider, ":")
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(c.service), common.WithInterface(c.service), common.WithIp("127.0.0.1"), common.WithPort(strconv.Itoa(20000+n)))
	own, tag, _ := strings.Cut(name, "#") // group#dubbo.tag
	if own != "" {
		u.SetParam(conf.GroupKey, own)
	}
	if tag != "" {
		u.SetParam(constant.Tagkey, tag)
	}
	i := &instance{BaseInvoker: *base.NewBaseInvoker(u.MergeURL(c.url))}
	c.instances = append(c.instances, i)
	c.invokers = append(c.invokers, protocolwrapper.BuildInvokerChain(i, constant.ReferenceFilterKey))
}

func (c *consumer) join(t testing.TB) {
	t.Helper()
	joined, err := extension.GetCluster(c.url.GetParam(constant.ClusterKey, ""))
	require.NoError(t, err)
	c.cluster = joined.Join(static.NewDirectory(c.invokers))
}

// call makes a call with attachments.
func (c *consumer) call(ctx context.Context, attachments map[string]any) error {
	return c.invoke(ctx, invocation.NewRPCInvocation("Get", []any{1}, maps.Clone(attachments)))
}

func (c *consumer) invoke(ctx context.Context, inv base.Invocation) error {
	return c.cluster.Invoke(ctx, inv).Error()
}

// hit are the providers that calls have come to since it was asked last.
func (c *consumer) hit() string {
	var out []string
	for n, i := range c.instances {
		if i.hits.Swap(0) > 0 {
			out = append(out, string(rune('a'+n)))
		}
	}
	return strings.Join(out, "")
}

// goes makes so many calls that each provider that may get one does, and tells which did.
func (c *consumer) goes(t testing.TB, ctx context.Context, attachments map[string]any) string { //nolint:revive // as testing's own helpers
	t.Helper()
	for range 50 {
		require.NoError(t, c.call(ctx, attachments))
	}
	return c.hit()
}

// carried are the groups that the providers have seen.
func (c *consumer) carried() []string {
	var out []string
	for _, i := range c.instances {
		if v, ok := i.got.Load().(string); ok && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// addresses tell lists of invokers apart, also where one is wrapped.
func addresses(list []base.Invoker) []string {
	var out []string
	for _, i := range list {
		out = append(out, i.GetURL().Location)
	}
	return out
}
