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

package breaker

import (
	"fmt"
	"sync/atomic"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/harness"
)

// openBoth calls until the breakers of both providers are open.
func (p *pair) openBoth() {
	p.t.Helper()
	harness.Eventually(p.t, "both are open", func() bool {
		_, err := p.SayHello(background, harness.Broken(p.Protocol))
		require.Error(p.t, err)
		for _, provider := range p.providers {
			if state(p.t, p.group, provider.Addr) != open {
				return false
			}
		}
		return true
	})
}

func TestNoMoreThanSoManyProbesArrive(t *testing.T) {
	const probes, callers = 2, 60
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := newPair(t, protocol, params("breaker.consecutive-errors", "1", "breaker.probes", fmt.Sprint(probes)))
		p.openBoth()
		before := p.total()
		probeNow(t, conf.Consumer, p.group)
		var back atomic.Int32
		calls := harness.Go(callers, func(int) error {
			_, err := p.SayHello(background, harness.Hold("p"))
			back.Add(1)
			return err
		})
		harness.Eventually(t, "all others are refused while the probes run", func() bool { return back.Load() == callers-2*probes })
		for _, provider := range p.providers {
			// A call that is admitted may be on its way yet.
			harness.Eventually(t, "the probes are there", func() bool { return provider.Running(harness.Hold("p")) == probes })
			b := breakerOf(t, p.group, provider.Addr)
			require.Equal(t, halfOpen, b.State)
			require.Equal(t, probes, b.Probes)
		}
		for range 5 {
			_, err := p.SayHello(background, "x")
			refused(t, err, p.group, call.ReasonProbing)
		}
		require.Equal(t, 2*probes, p.total()-before)
		for _, provider := range p.providers {
			provider.Open("p")
		}
		served := 0
		for _, err := range calls.Wait(t) {
			if err == nil {
				served++
				continue
			}
			e := refused(t, err, p.group, call.ReasonProbing)
			require.EqualValues(t, probes, e.Limit)
			require.EqualValues(t, probes, e.Observed)
			require.Zero(t, e.RetryAfter, "nobody can tell")
		}
		require.Equal(t, 2*probes, served)
		for _, provider := range p.providers {
			require.Equal(t, closed, state(t, p.group, provider.Addr))
		}
		_, err := p.SayHello(background, "x")
		require.NoError(t, err)
	})
}

func TestProbesThatFailOpenItAgain(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := dial(t, p.Endpoint, params("breaker.consecutive-errors", "1", "breaker.probes", "2", "breaker.probe-successes", "1"))
		fail := func() {
			_, err := c.SayHello(background, harness.Broken(protocol))
			require.Error(t, err)
			require.False(t, weir.IsRejected(err), "%v", err)
		}
		fail()
		probeNow(t, conf.Consumer, p.Group)
		fail()
		require.Equal(t, halfOpen, state(t, p.Group, p.Addr), "the other may be healthy")
		fail()
		_, err := c.SayHello(background, "x")
		opened(t, err, p.Group, call.ReasonProbesFailed)
		probeNow(t, conf.Consumer, p.Group)
		fail()
		_, err = c.SayHello(background, "x")
		require.NoError(t, err)
		require.Equal(t, closed, state(t, p.Group, p.Addr))
	})
}

func TestOneOpenInstanceCostsNobodyACall(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := newPair(t, protocol, params("breaker.consecutive-errors", "1"))
		sick, well := p.providers[0], p.providers[1]
		// Only one gate is open: the same call fails here and is answered there.
		well.Open("g")
		arg := harness.BrokenUnless("g", protocol)
		harness.Eventually(t, "one opens", func() bool {
			_, err := p.SayHello(background, arg)
			require.NoError(t, err, "failover goes on")
			return state(t, p.group, sick.Addr) == open
		})
		require.Equal(t, 1, sick.Stats("SayHello").Total)
		const calls = 100
		before := well.Stats("SayHello").Total
		require.Zero(t, harness.Failed(harness.Go(calls, func(int) error {
			_, err := p.SayHello(background, arg)
			return err
		}).Wait(t)))
		require.Equal(t, 1, sick.Stats("SayHello").Total)
		require.Equal(t, calls, well.Stats("SayHello").Total-before)

		// Other clusters do not go on.
		fast := p.dial(harness.ConsumerConfig{Params: params("breaker.consecutive-errors", "1"), Reference: []client.ReferenceOption{client.WithClusterFailFast()}})
		harness.Eventually(t, "its caller sees the refusal", func() bool {
			_, err := fast.SayHello(background, arg)
			if err == nil || !weir.IsRejected(err) {
				return false // the well one, or the one that opens its breaker
			}
			opened(t, err, p.group, call.ReasonConsecutiveErrors)
			return true
		})
		require.Equal(t, 2, sick.Stats("SayHello").Total)
		for _, b := range breakersOf(p.group, "SayHello") {
			require.Equal(t, b.Address == sick.Addr, b.State == open, "%+v", b)
		}
	})
}

func TestWhereAllAreOpenNothingIsSent(t *testing.T) {
	for name, tt := range map[string]struct {
		params   []string
		opts     []client.ReferenceOption
		breakers int
		attempts int // of each call
	}{
		"failover":           {nil, nil, 2, 2},
		"failover without":   {nil, []client.ReferenceOption{client.WithRetries(0)}, 2, 1},
		"failfast":           {nil, []client.ReferenceOption{client.WithClusterFailFast()}, 2, 1},
		"scope of a service": {[]string{"breaker.scope", "service"}, nil, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol string) {
				p := newPair(t, protocol, nil)
				own := params(append(tt.params, "breaker.consecutive-errors", "1")...)
				c := p.dial(harness.ConsumerConfig{Params: own, Reference: tt.opts})
				harness.Eventually(t, "all are open", func() bool {
					_, err := c.SayHello(background, harness.Broken(protocol))
					require.Error(t, err)
					opened := 0
					for _, b := range breakersOf(p.group, "SayHello") {
						if b.State == open {
							opened++
						}
					}
					return opened == tt.breakers
				})
				const calls = 20
				total, refusals := p.total(), rejected(t, conf.Consumer, p.group)
				for range calls {
					_, err := c.SayHello(background, "x")
					opened(t, err, p.group, call.ReasonConsecutiveErrors)
				}
				require.Equal(t, total, p.total())
				assert.Equal(t, calls*tt.attempts, rejected(t, conf.Consumer, p.group)-refusals, "a provider is asked for once per call")
			})
		})
	}
}

// One instance is sick, and all are left alone: that is what was asked for.
func TestAllAddressesOfAServiceMayShareABreaker(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := newPair(t, protocol, params("breaker.error-count", "5", "breaker.scope", "service"))
		p.providers[1].Open("g")
		arg, failed := harness.BrokenUnless("g", protocol), 0
		harness.Eventually(t, "it opens", func() bool {
			_, err := p.SayHello(background, arg)
			if err != nil {
				require.True(t, weir.IsRejected(err), "%v", err) // the sick one has just made it open
			}
			failed++
			return state(t, p.group, "") == open
		})
		require.Equal(t, 5, p.providers[0].Stats("SayHello").Total)
		total := p.total()
		for range 10 {
			_, err := p.SayHello(background, arg)
			opened(t, err, p.group, call.ReasonErrorCount)
		}
		require.Equal(t, total, p.total())
		probeNow(t, conf.Consumer, p.group)
		_, err := p.SayHello(background, "x")
		require.NoError(t, err)
		require.Equal(t, closed, state(t, p.group, ""))
	})
}
