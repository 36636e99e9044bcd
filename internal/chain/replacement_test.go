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
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/protocolwrapper"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/logtest"
)

// replacing returns a processor with replacements of its own, which count how often
// they are installed.
func replacing(names ...string) (*Processor, *guard.Runtime, map[string]*atomic.Int64) {
	p, rt := newProcessor()
	p.replacements = &replacements{}
	counts := map[string]*atomic.Int64{}
	for _, name := range names {
		n := new(atomic.Int64)
		counts[name] = n
		p.replacements.register(name, func() { n.Add(1) })
	}
	return p, rt, counts
}

func asked(rt *guard.Runtime, names ...string) {
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Replace: names})
}

func TestReplacedOnceAndOnlyWhenAsked(t *testing.T) {
	p, rt, counts := replacing("leastactive", "p2c")
	for range 2 {
		p.PostProcessServiceConfig(service("replace.A", "tri", nil))
		p.PostProcessReferenceConfig(service("replace.A", "tri", nil))
	}
	require.Zero(t, counts["leastactive"].Load()+counts["p2c"].Load(), "nobody asks for it")
	asked(rt, "leastactive")
	p.PostProcessServiceConfig(service("grpc.health.v1.Health", "tri", nil))
	require.Zero(t, counts["leastactive"].Load(), "it is not for dubbo's own services to ask")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p.PostProcessReferenceConfig(service("replace.A", "tri", nil))
			if counts["leastactive"].Load() != 1 {
				t.Error("dubbo goes on before it is in place")
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, counts["leastactive"].Load())
	require.Zero(t, counts["p2c"].Load())
	require.Equal(t, []string{"leastactive"}, p.replacements.inPlace())
}

func TestNothingToReplaceWithIsAFault(t *testing.T) {
	p, rt, _ := replacing("p2c", "execute")
	asked(rt, "execute", "shortestresponse")
	e := faults(t, func() { p.PostProcessServiceConfig(service("replace.B", "tri", nil)) })
	require.EqualError(t, e, `weir: configuration: configuration key=replace value="shortestresponse": nothing is there to take its place; allowed: execute, p2c`)
	require.Equal(t, []string{"execute"}, p.replacements.inPlace())
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Replace: []string{"shortestresponse", "p2c"}, OnError: conf.Warn})
	require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(service("replace.B", "tri", nil)) }))
	require.EqualValues(t, 1, rt.ConfigErrors())
	require.Equal(t, []string{"execute", "p2c"}, p.replacements.inPlace(), "what is right holds")
}

func TestChangesOfWhatIsReplaced(t *testing.T) {
	p, rt, counts := replacing("leastactive", "p2c")
	lines := logtest.Warnings(t)
	asked(rt, "leastactive")
	require.Zero(t, lines.Len(), "nothing has been looked at yet")
	p.PostProcessReferenceConfig(service("replace.C", "tri", nil))
	require.Zero(t, lines.Len(), "%v", lines.All())
	for range 2 {
		asked(rt)
		p.PostProcessReferenceConfig(service("replace.C", "tri", nil))
		require.Equal(t, 1, lines.Len(), "it is said once: %v", lines.All())
	}
	require.Contains(t, lines.All()[0].Message, "replace no longer has leastactive, which stays Weir's until the program ends")
	asked(rt, "p2c", "leastactive")
	require.Equal(t, 2, lines.Len())
	require.Contains(t, lines.All()[1].Message, "replace=p2c is asked for while the program runs: it holds from the next export or reference on")
	require.Zero(t, counts["p2c"].Load())
	p.PostProcessReferenceConfig(service("replace.C", "tri", nil))
	require.EqualValues(t, 1, counts["p2c"].Load())
	require.Equal(t, 2, lines.Len(), "of a load balance there are no chains: %v", lines.All())
}

// passing is a filter of dubbo's that lets everything pass.
type passing struct{}

func (passing) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	return next.Invoke(ctx, inv)
}

func (passing) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}

// nesting is a service whose handler calls it again, through the chain.
type nesting struct {
	base.BaseInvoker
	chain   base.Invoker
	running int
	most    int
}

// chained puts a service behind the chain that its URL names.
func chained(u *common.URL) *nesting {
	n := &nesting{BaseInvoker: *base.NewBaseInvoker(u)}
	n.chain = protocolwrapper.BuildInvokerChain(n, constant.ServiceFilterKey)
	return n
}

func (n *nesting) Invoke(ctx context.Context, inv base.Invocation) result.Result {
	n.running++
	n.most = max(n.most, n.running)
	defer func() { n.running-- }()
	if n.running < 100 {
		n.chain.Invoke(ctx, inv)
	}
	return &result.RPCResult{}
}

// admitted is how many calls run at the same time.
func (n *nesting) admitted() int {
	n.most = 0
	n.chain.Invoke(context.Background(), invocation.NewRPCInvocation("Echo", nil, map[string]any{}))
	return n.most
}

var runs atomic.Int64

// The filter that is put under a name of dubbo's counts in place of the umbrella, and
// a chain that was made before goes on as it was.
func TestAReplacedFilterCountsOnce(t *testing.T) {
	// What is replaced stays so, and this test may run more than once.
	name := fmt.Sprint("test-replaced-", runs.Add(1))
	rt := guard.Process()
	extension.SetFilter(name, func() filter.Filter { return passing{} })
	p := NewProcessor(rt, func() error { return nil })
	p.replacements = &replacements{}
	p.replacements.register(name, func() { guard.ReplaceFilter(name, conf.Provider, "executes") })
	lines := logtest.Warnings(t)
	export := func(path string) *nesting {
		u := service(path, "tri", map[string]string{constant.ServiceFilterKey: name + ",pshutdown", "executes": "4"})
		require.Nil(t, faults(t, func() { p.PostProcessServiceConfig(u) }))
		require.Equal(t, name+",pshutdown,weir", u.GetParam(constant.ServiceFilterKey, ""))
		u.SetParam(constant.ServiceFilterKey, name+",weir")
		return chained(u)
	}
	before := export("replace.Before")
	require.Equal(t, 4, before.admitted())

	rt.Store.Set(conf.FromCode, "code", &conf.Config{Replace: []string{name}})
	t.Cleanup(func() { rt.Store.Set(conf.FromCode, "code", nil) })
	after := export("replace.After")
	require.Equal(t, 4, after.admitted())
	require.Equal(t, 4, before.admitted(), "nobody has left its limit out")
	late := "[Weir][Config] replace=" + name + ": the filter is Weir's from now on, and dubbo-go's in the chains that were made before"
	require.Equal(t, 1, lines.FilterMessage(late).Len(), "%v", lines.All())
	flt, _ := extension.GetFilter(name)
	require.IsType(t, &guard.Guard{}, flt)

	// It is there by its policy: that must not stand in the list a second time.
	for list, want := range map[string]string{
		name + ",executelimit":       name + " and executelimit are one filter, which would take two slots per call; allowed: one of them",
		"executelimit," + name:       "executelimit and " + name + " are one filter",
		name + "," + name:            "the filter stands in the list twice",
		name + ",weir,tpslimit":      "",
		"tpslimit,weir,executelimit": "",
	} {
		u := service("replace.Twice", "tri", map[string]string{constant.ServiceFilterKey: list})
		if e := faults(t, func() { p.PostProcessServiceConfig(u) }); want == "" {
			require.Nil(t, e, list)
		} else {
			require.ErrorContains(t, e, want, list)
		}
	}
	u := service("replace.Consumer", "tri", map[string]string{constant.ReferenceFilterKey: "cshutdown," + name})
	other, _ := newProcessor() // where nothing serves yet
	require.ErrorContains(t, faults(t, func() { other.PostProcessReferenceConfig(u) }), "that is a filter for providers")
}

// dubbo-go's leastactive has nothing to go by once active is Weir's.
func TestAReferenceWhoseBalanceIsNotCountedForIsTold(t *testing.T) {
	p, rt, _ := replacing("active", "leastactive")
	asked(rt, "active")
	register(t, "random", "leastactive")
	lines := logtest.Warnings(t)
	refer := func(filters, key, value string) {
		p.PostProcessReferenceConfig(service("replace.Balance", "tri", map[string]string{constant.ReferenceFilterKey: filters, key: value}))
	}
	extension.SetFilter("active", func() filter.Filter { return passing{} })
	refer("cshutdown,active", "loadbalance", "random")
	refer("cshutdown", "loadbalance", "leastactive")
	require.Zero(t, lines.Len(), "%v", lines.All())
	refer("cshutdown,active", "methods.Echo.loadbalance", "leastactive")
	require.Equal(t, 1, lines.Len())
	require.Contains(t, lines.All()[0].Message, "service=replace.Balance side=consumer methods.Echo.loadbalance=leastactive goes by what dubbo-go's filter active counts, which is replaced; replace leastactive too")
	asked(rt, "active", "leastactive")
	refer("cshutdown,active", "loadbalance", "leastactive")
	require.Equal(t, 2, lines.Len(), "only that it comes late: %v", lines.All())
	require.Contains(t, lines.All()[1].Message, "replace=leastactive is asked for")
}
