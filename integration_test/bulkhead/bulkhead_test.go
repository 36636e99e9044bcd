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

// Package bulkhead tests bulkheads on real servers and clients over loopback, on both
// protocols.
package bulkhead

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
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

func serviceOf(group string) string { return group + "/" + greet.GreetServiceName }

// limits are the bulkheads of a group's service on a side, added up.
func limits(side, group, method string) (running, waiting int64) {
	for _, l := range weir.Snapshot().Limits {
		if l.Guard == "bulkhead" && l.Side == side && l.Service == serviceOf(group) && l.Method == method {
			running += l.Inflight
			waiting += l.Waiting
		}
	}
	return running, waiting
}

func eventually(t *testing.T, side, group, method string, running, waiting int64) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%d run and %d wait", running, waiting), func() bool {
		r, w := limits(side, group, method)
		return r == running && w == waiting
	})
}

// refused requires that an error is the very refusal of a bulkhead.
func refused(t *testing.T, err error, group, reason string, limit int64) *call.RejectError {
	t.Helper()
	require.Error(t, err)
	e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
	require.True(t, ok, "%T %v", err, err)
	require.Equal(t, "bulkhead", e.Guard)
	require.Equal(t, call.Resource(serviceOf(group), "SayHello"), e.Resource)
	require.Equal(t, reason, e.Reason)
	require.Equal(t, limit, e.Limit)
	require.False(t, e.Forwarded)
	return e
}

// hello makes n calls at the same time.
func hello(c *harness.Consumer, n int, arg string, opts ...client.CallOption) *harness.Calls {
	return harness.Go(n, func(int) error {
		_, err := c.SayHello(background, arg, opts...)
		return err
	})
}

func TestAProvidersBulkheadIsExactAndServesAllThatItTookIn(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{
			"bulkhead": "3", "bulkhead.queue": "5", "bulkhead.max-wait": "1m",
		}})
		c := p.Dial(t)
		for round := range 3 {
			gate := fmt.Sprint("g", round)
			in := hello(c, 8, harness.Hold(gate))
			eventually(t, "provider", p.Group, "SayHello", 3, 5)
			over := hello(c, 20, "x")
			for _, err := range over.Wait(t) {
				require.Error(t, refused(t, err, p.Group, call.ReasonConcurrency, 3))
			}
			text, err := c.Echo(background, "another method")
			require.NoError(t, err)
			require.Equal(t, "another method", text)
			p.Handler.Open(gate)
			require.Zero(t, harness.Failed(in.Wait(t)))
			eventually(t, "provider", p.Group, "SayHello", 0, 0)
		}
		stats := p.Handler.Stats("SayHello")
		require.Equal(t, 3, stats.MaxRunning)
		require.Equal(t, 24, stats.Total, "a refused call never reaches the handler")
	})
}

func TestAProvidersRefusalAfterAWaitTellsAll(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{
			"bulkhead": "1", "bulkhead.queue": "5", "bulkhead.max-wait": "20ms",
		}})
		c := p.Dial(t)
		held := hello(c, 1, harness.Hold("g"))
		eventually(t, "provider", p.Group, "SayHello", 1, 0)
		_, err := c.SayHello(background, "x")
		e := refused(t, err, p.Group, call.ReasonWaitTimeout, 1)
		require.GreaterOrEqual(t, e.Waited, 20*time.Millisecond)
		require.Equal(t, 20*time.Millisecond, e.MaxWait)
		require.EqualValues(t, 1, e.Observed)
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		eventually(t, "provider", p.Group, "SayHello", 0, 0)
	})
}

// A caller that has gone holds no place: over Triple its context says so, on the dubbo
// protocol its timeout.
func TestACallerThatHasGoneHoldsNoPlace(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{
			"bulkhead": "1", "bulkhead.queue": "5", "bulkhead.max-wait": "1m",
		}})
		c := p.Dial(t, client.WithRetries(0))
		held := hello(c, 1, harness.Hold("g"))
		eventually(t, "provider", p.Group, "SayHello", 1, 0)
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		var opts []client.CallOption
		if protocol == harness.Dubbo {
			opts = append(opts, client.WithCallRequestTimeout(500*time.Millisecond))
		}
		gone := harness.Go(3, func(int) error {
			_, err := c.SayHello(ctx, "x", opts...)
			return err
		})
		if protocol == harness.Triple {
			eventually(t, "provider", p.Group, "SayHello", 1, 3)
			cancel()
		}
		require.Equal(t, 3, harness.Failed(gone.Wait(t)))
		eventually(t, "provider", p.Group, "SayHello", 1, 0)
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		require.Equal(t, 1, p.Handler.Stats("SayHello").Total, "none of those that had gone was run")
	})
}

// A consumer's bulkhead is for all providers of the reference together, and what it
// refuses goes nowhere.
func TestAConsumersBulkheadIsTheReferences(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		group := harness.NewGroup()
		a := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group})
		b := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group})
		c := harness.Dial(t, harness.ConsumerConfig{
			Providers: []harness.Endpoint{a.Endpoint, b.Endpoint},
			Params:    map[string]string{"bulkhead": "2", "bulkhead.queue": "3", "bulkhead.max-wait": "1m"},
		})
		in := hello(c, 5, harness.Hold("g"))
		eventually(t, "consumer", group, "SayHello", 2, 3)
		over := hello(c, 10, "x")
		for _, err := range over.Wait(t) {
			require.Error(t, refused(t, err, group, call.ReasonConcurrency, 2))
		}
		harness.Eventually(t, "two got there", func() bool { return a.Stats("SayHello").Total+b.Stats("SayHello").Total == 2 })
		a.Open("g")
		b.Open("g")
		require.Zero(t, harness.Failed(in.Wait(t)))
		eventually(t, "consumer", group, "SayHello", 0, 0)
		require.Equal(t, 5, a.Stats("SayHello").Total+b.Stats("SayHello").Total)
	})
}

// Methods that say so share an island, on one side of the process.
func TestAnIslandOfTwoMethods(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		island := "island-" + protocol
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{
			"bulkhead": "1", "bulkhead.group": island,
		}})
		c := p.Dial(t)
		held := hello(c, 1, harness.Hold("g"))
		harness.Eventually(t, "it runs", func() bool { return p.Handler.Stats("SayHello").Running == 1 })
		_, err := c.Echo(background, "x")
		e, ok := weir.AsRejected(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "Echo", e.Method())
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		harness.Eventually(t, "the island is empty", func() bool {
			for _, l := range weir.Snapshot().Limits {
				if l.Group == island {
					return l.Inflight == 0
				}
			}
			return false
		})
		_, err = c.Echo(background, "x")
		require.NoError(t, err)
	})
}

// Settings change while calls wait.
func TestMoreRoomReachesThoseWhoWait(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		group := harness.NewGroup()
		set := func(running int) {
			b := &conf.Bulkhead{Max: conf.Of(running), Queue: conf.Of(9), MaxWait: conf.Of(time.Minute)}
			require.NoError(t, weir.Configure(conf.Config{Provider: conf.Section{Services: map[string]conf.Service{
				serviceOf(group): {Policies: conf.Policies{Bulkhead: b}},
			}}}))
		}
		set(1)
		t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Group: group})
		c := p.Dial(t)
		in := hello(c, 5, harness.Hold("g"))
		eventually(t, "provider", group, "SayHello", 1, 4)
		set(4)
		eventually(t, "provider", group, "SayHello", 4, 1)
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(in.Wait(t)))
	})
}
