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

//go:build services

package registry

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/integration_test/harness"
	"github.com/weir-go/weir/loadbalance"
)

// fleet are the providers of one service that find their consumers by ZooKeeper.
type fleet struct {
	t               *testing.T
	protocol, group string
	registry        harness.Registry
}

func newFleet(t *testing.T, byApplication bool, protocol string) *fleet {
	t.Helper()
	address := os.Getenv("WEIR_TEST_ZOOKEEPER")
	require.NotEmpty(t, address, "WEIR_TEST_ZOOKEEPER names no registry, see .ci/services.sh")
	f := &fleet{t: t, protocol: protocol, group: harness.NewGroup()}
	f.registry = harness.Registry{Protocol: "zookeeper", Address: address, Service: byApplication, Application: "fleet-" + protocol + "-" + f.group}
	return f
}

// eachFleet runs a test for each way of discovery over each protocol.
func eachFleet(t *testing.T, test func(t *testing.T, f *fleet)) {
	for name, byApplication := range map[string]bool{"by_interface": false, "by_application": true} {
		for _, protocol := range harness.Protocols {
			t.Run(name+"/"+protocol, func(t *testing.T) { test(t, newFleet(t, byApplication, protocol)) })
		}
	}
}

// join starts one more, with a warm-up that is soon over.
func (f *fleet) join(params map[string]string, section string) *harness.ChildProvider {
	f.t.Helper()
	spec := harness.ProviderSpec{Protocol: f.protocol, Group: f.group, Params: params, Registry: &f.registry, WarmUp: time.Second}
	if section != "" {
		file := filepath.Join(f.t.TempDir(), "weir.yaml")
		require.NoError(f.t, os.WriteFile(file, fmt.Appendf(nil, "weir: {provider: {services: {%q: %s}}}\n", serviceOf(f.group), section), 0o600))
		spec.Env = map[string]string{"WEIR_CONFIG_PATH": file}
	}
	return harness.SpawnProvider(f.t, spec)
}

// dial refers to them. Of a reference whose methods dubbo-go 3.3.2 does not know, as on the
// dubbo protocol, the load balance gives way to that which a provider publishes, "random"
// if it says nothing (URL.MergeURL). Those of methods do not.
func (f *fleet) dial(balance string) *harness.Consumer {
	f.t.Helper()
	r := f.registry
	r.Application, r.Client = "consumer", fmt.Sprint(clients.Add(1))
	var params map[string]string
	if f.protocol == harness.Dubbo {
		params = map[string]string{"methods.SayHello.loadbalance": balance, "methods.Echo.loadbalance": balance}
	}
	c := harness.Dial(f.t, harness.ConsumerConfig{
		Providers: []harness.Endpoint{{Protocol: f.protocol, Group: f.group}}, Params: params, Client: r.ClientOptions(),
		Reference: []client.ReferenceOption{client.WithURL(""), client.WithLoadBalance(balance)},
	})
	f.t.Cleanup(func() { runtime.KeepAlive(c) })
	return c
}

// balanced are the providers that the only reference to the fleet chooses from, by address.
func (f *fleet) balanced() map[string]weir.BalancedProvider {
	out := map[string]weir.BalancedProvider{}
	for _, b := range weir.Snapshot().Balances {
		if b.Service == serviceOf(f.group) {
			for _, p := range b.Providers {
				out[p.Address] = p
			}
		}
	}
	return out
}

// within is the context of a call that may meet a dead provider. On the dubbo protocol
// one that was sent before its provider died waits for all of it.
func (f *fleet) within() (context.Context, context.CancelFunc) {
	if f.protocol == harness.Triple {
		return context.WithCancel(background)
	}
	return context.WithTimeout(background, 3*time.Second)
}

func addresses(of []*harness.ChildProvider) []string {
	out := make([]string, len(of))
	for i, p := range of {
		out[i] = p.Addr
	}
	return out
}

// weighs waits until the reference knows all weights, by address.
func (f *fleet) weighs(c *harness.Consumer, want map[string]int64) {
	f.t.Helper()
	var known map[string]int64
	ok := harness.Poll(func() bool {
		_, _ = c.SayHello(background, "x")
		_, _ = c.Echo(background, "x")
		known = map[string]int64{}
		for address, p := range f.balanced() {
			known[address] = p.Weight
		}
		return fmt.Sprint(known) == fmt.Sprint(want)
	})
	require.True(f.t, ok, "want %v, known %v", want, known)
}

func TestWeightsShareCallsInZooKeeper(t *testing.T) {
	const calls = 400
	weight := func(w string) map[string]string { return map[string]string{"weir.weight": w} }
	for name, tt := range map[string]struct {
		params   [2]map[string]string
		sections [2]string
		weights  [2]int64
	}{
		"in_params":      {[2]map[string]string{weight("20"), weight("80")}, [2]string{}, [2]int64{20, 80}},
		"in_the_section": {[2]map[string]string{}, [2]string{"{weight: 20}", "{weight: 80}"}, [2]int64{20, 80}},
		"unset":          {[2]map[string]string{}, [2]string{}, [2]int64{100, 100}},
		"drained":        {[2]map[string]string{weight("0"), nil}, [2]string{}, [2]int64{0, 100}},
		"drained_in_the_section": {
			[2]map[string]string{}, [2]string{"{weight: 0}", ""}, [2]int64{0, 100},
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachFleet(t, func(t *testing.T, f *fleet) {
				first, second := f.join(tt.params[0], tt.sections[0]), f.join(tt.params[1], tt.sections[1])
				c := f.dial(loadbalance.LeastActive)
				f.weighs(c, map[string]int64{first.Addr: tt.weights[0], second.Addr: tt.weights[1]})
				before := first.Stats("SayHello").Total
				for range calls {
					_, err := c.SayHello(background, "x")
					require.NoError(t, err)
				}
				share := float64(tt.weights[0]) / float64(tt.weights[0]+tt.weights[1])
				require.InDelta(t, share*calls, first.Stats("SayHello").Total-before, 5*math.Sqrt(calls*share*(1-share)))
				for address, p := range f.balanced() {
					require.Zero(t, p.Inflight, address)
				}
			})
		})
	}
}

// One that has just started and has nothing to do is not flooded: it gets its weight by
// and by, for ten minutes where it says nothing.
func TestANewProviderIsNotFloodedInZooKeeper(t *testing.T) {
	eachFleet(t, func(t *testing.T, f *fleet) {
		first, second := f.join(nil, ""), f.join(nil, "")
		c := f.dial(loadbalance.LeastActive)
		f.weighs(c, map[string]int64{first.Addr: 100, second.Addr: 100})
		spec := harness.ProviderSpec{Protocol: f.protocol, Group: f.group, Registry: &f.registry}
		fresh := harness.SpawnProvider(t, spec)
		const calls = 400
		harness.Eventually(t, "it is known", func() bool {
			_, err := c.SayHello(background, "x")
			require.NoError(t, err)
			return len(f.balanced()) == 3
		})
		before := fresh.Stats("").Total
		for range calls {
			_, err := c.SayHello(background, "x")
			require.NoError(t, err)
		}
		require.Less(t, fresh.Stats("").Total-before, calls/5, "its weight is %d", f.balanced()[fresh.Addr].Weight)
	})
}

// Providers join and leave while callers call without pause.
func TestChurnInZooKeeper(t *testing.T) {
	for _, balance := range []string{loadbalance.LeastActive, loadbalance.ShortestResponse, loadbalance.FewChoices} {
		t.Run(balance, func(t *testing.T) { churn(t, newFleet(t, false, harness.Triple), balance, false) })
	}
}

// On the dubbo protocol a call that was sent to a provider before that was killed waits for
// all of its time, and by application dubbo-go 3.3.2 now and then has no instances of a
// service for a moment when one leaves, so its callers hear that there is no provider. So calls
// fail while somebody leaves, and only then.
func TestRoughChurnInZooKeeper(t *testing.T) {
	for name, tt := range map[string]struct {
		byApplication bool
		protocol      string
	}{
		"by_interface/dubbo":    {false, harness.Dubbo},
		"by_application/triple": {true, harness.Triple},
		"by_application/dubbo":  {true, harness.Dubbo},
	} {
		t.Run(name, func(t *testing.T) { churn(t, newFleet(t, tt.byApplication, tt.protocol), loadbalance.FewChoices, true) })
	}
}

// churn has providers join and leave. Where it is rough calls may fail until the registry has
// told of the last change.
func churn(t *testing.T, f *fleet, balance string, rough bool) {
	t.Helper()
	const callers, rounds, more = 6, 4, 200
	harness.SkipUnderRaceDetector(t, f.protocol)
	there := []*harness.ChildProvider{f.join(nil, ""), f.join(nil, "")}
	c := f.dial(balance)
	f.weighs(c, map[string]int64{there[0].Addr: 100, there[1].Addr: 100})

	var stop atomic.Bool
	var made, failed atomic.Int64
	calling := harness.Go(callers, func(int) error {
		for !stop.Load() {
			ctx, cancel := f.within()
			_, err := c.SayHello(ctx, "x")
			cancel()
			switch {
			case err == nil:
				made.Add(1)
			case rough:
				failed.Add(1)
			default:
				return fmt.Errorf("call %d: %w", made.Load(), err)
			}
		}
		return nil
	})
	on := func(n int64) {
		until := made.Load() + n
		harness.Eventually(t, "calls go on", func() bool {
			select {
			case <-calling.Done():
				return true
			default:
				return made.Load() >= until
			}
		})
	}
	for round := range rounds {
		fresh := f.join(nil, "")
		there = append(there, fresh)
		harness.Eventually(t, "the new one gets calls", func() bool { return fresh.Stats("SayHello").Total > 20 })
		leaving := there[0]
		there = there[1:]
		if round%2 == 0 {
			leaving.Leave()
		} else {
			leaving.Kill()
		}
		harness.Eventually(t, "the registry has told that it is gone", func() bool {
			_, listed := f.balanced()[leaving.Addr]
			return !listed
		})
		if round%2 == 0 {
			// A provider that is referred to anew is not listed for a moment either.
			harness.Eventually(t, "it gets no more calls", func() bool {
				last := leaving.Stats("").Total
				on(more)
				return last == leaving.Stats("").Total
			})
			leaving.Kill()
		}
		on(more)
		want := slices.Sorted(slices.Values(addresses(there)))
		harness.Eventually(t, "those that are there are listed, and no others", func() bool {
			return slices.Equal(want, slices.Sorted(maps.Keys(f.balanced())))
		})
		if rough { // those that wait for a killed one are over at some time
			harness.Eventually(t, "no call fails any more", func() bool {
				before := failed.Load()
				on(more)
				return failed.Load() == before
			})
		}
	}
	stop.Store(true)
	for _, err := range calling.Wait(t) {
		require.NoError(t, err)
	}
	t.Logf("%d calls, and %d that failed", made.Load(), failed.Load())
	if !f.registry.Service { // by interface it is those that were under way to one that was killed
		require.LessOrEqual(t, failed.Load(), int64(callers*rounds/2))
	}
	for address, p := range f.balanced() {
		require.Zero(t, p.Inflight, address)
	}
}
