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

// Package balance tests Weir's load balances with real providers in processes of their
// own and real consumers over loopback, on both protocols. Those that go through a
// registry are in the package registry.
package balance

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
	"github.com/weir-go/weir/loadbalance"
)

func TestMain(m *testing.M) {
	harness.Main(m, harness.Roles{documentRole: runDocument})
}

var background = context.Background()

var balances = []string{loadbalance.LeastActive, loadbalance.ShortestResponse, loadbalance.FewChoices}

// each runs a test over each protocol with each load balance.
func each(t *testing.T, f func(t *testing.T, protocol, balance string)) {
	for _, protocol := range harness.Protocols {
		for _, balance := range balances {
			t.Run(protocol+"/"+balance, func(t *testing.T) { f(t, protocol, balance) })
		}
	}
}

// eachProtocol runs a test over each.
func eachProtocol(t *testing.T, f func(t *testing.T, protocol string)) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) { f(t, protocol) })
	}
}

// pair are two providers of one service.
type pair struct {
	t             *testing.T
	protocol      string
	group         string
	first, second *harness.ChildProvider
}

func newPair(t *testing.T, protocol string, params map[string]string) *pair {
	t.Helper()
	p := &pair{t: t, protocol: protocol, group: harness.NewGroup()}
	spec := harness.ProviderSpec{Protocol: protocol, Group: p.group, Params: params}
	p.first, p.second = harness.SpawnProvider(t, spec), harness.SpawnProvider(t, spec)
	return p
}

// dial refers to both.
func (p *pair) dial(balance string, opts ...client.ReferenceOption) *harness.Consumer {
	p.t.Helper()
	return p.dialWith(balance, [2]string{}, opts...)
}

// dialWith refers to both by URLs with these queries.
func (p *pair) dialWith(balance string, queries [2]string, opts ...client.ReferenceOption) *harness.Consumer {
	p.t.Helper()
	urls := strings.Join([]string{p.first.URL() + "?" + queries[0], p.second.URL() + "?" + queries[1]}, ";")
	c := harness.Dial(p.t, harness.ConsumerConfig{
		Providers: []harness.Endpoint{p.first.Endpoint},
		Reference: append([]client.ReferenceOption{client.WithURL(urls), client.WithLoadBalance(balance)}, opts...),
	})
	p.t.Cleanup(func() { runtime.KeepAlive(c) }) // what a reference goes by goes with it
	return c
}

// warm calls Echo until each of the two has answered. Before its first call a provider's
// chain of filters has yet to be made, and while that takes many callers may find nothing
// there that runs.
func (p *pair) warm(c *harness.Consumer) (calls int) {
	p.t.Helper()
	harness.Eventually(p.t, "both have answered", func() bool {
		_, err := c.Echo(background, "x")
		require.NoError(p.t, err)
		calls++
		return p.first.Stats("Echo").Total > 0 && p.second.Stats("Echo").Total > 0
	})
	return calls
}

// total is how many calls of SayHello each has begun.
func (p *pair) total() (first, second int) {
	return p.first.Stats("SayHello").Total, p.second.Stats("SayHello").Total
}

// states are those of the references to the pair.
func (p *pair) states() []weir.BalanceState {
	return slices.DeleteFunc(weir.Snapshot().Balances, func(b weir.BalanceState) bool {
		return b.Service != p.group+"/"+greet.GreetServiceName
	})
}

// state is what the only reference to the pair goes by for each, zero before its first call.
func (p *pair) state() (first, second weir.BalancedProvider) {
	p.t.Helper()
	all := p.states()
	if len(all) == 0 {
		return first, second
	}
	require.Len(p.t, all, 1)
	require.Len(p.t, all[0].Providers, 2)
	first, second = all[0].Providers[0], all[0].Providers[1]
	if first.Address != p.first.Addr {
		first, second = second, first
	}
	require.Equal(p.t, p.first.Addr, first.Address)
	require.Equal(p.t, p.second.Addr, second.Address)
	return first, second
}

// atRest requires that no call runs and that each that was made has been counted once.
func (p *pair) atRest() {
	p.t.Helper()
	a, b := p.state()
	require.Zero(p.t, a.Inflight, p.first.Addr)
	require.Zero(p.t, b.Inflight, p.second.Addr)
	require.EqualValues(p.t, p.first.Stats("").Total, a.Picks)
	require.EqualValues(p.t, p.second.Stats("").Total, b.Picks)
}

// loop is a closed loop: so many callers make so many calls together.
func loop(callers, calls int, call func(i int) error) *harness.Calls {
	var made atomic.Int64
	return harness.Go(callers, func(int) (first error) {
		for {
			i := int(made.Add(1))
			if i > calls {
				return first
			}
			if err := call(i); err != nil && first == nil {
				first = fmt.Errorf("call %d: %w", i, err)
			}
		}
	})
}

// within is the context of a call that may meet a dead provider. On the dubbo protocol
// one that was sent before its provider died waits for all of it.
func within(protocol string) (context.Context, context.CancelFunc) {
	if protocol == harness.Triple {
		return context.WithCancel(background)
	}
	return context.WithTimeout(background, 3*time.Second)
}

func noErrors(t *testing.T, calls *harness.Calls) {
	t.Helper()
	for _, err := range calls.Wait(t) {
		require.NoError(t, err)
	}
}
