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

package balance

import (
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
	"github.com/weir-go/weir/loadbalance"
)

// A provider whose calls fail at once has always the least to do, and is not to get them
// for that. No other one is asked for a business error, so callers see it.
func TestAProviderOfBusinessErrorsDoesNotAttractCalls(t *testing.T) {
	const callers, calls = 8, 1000
	each(t, func(t *testing.T, protocol, balance string) {
		p := newPair(t, protocol, nil)
		c := p.dial(balance)
		p.second.Open("g")
		var failed atomic.Int64
		loop(callers, calls, func(int) error {
			if _, err := c.SayHello(background, "unless:g:"+harness.Fail("no")); err != nil {
				failed.Add(1)
			}
			return nil
		}).Wait(t)
		first, second := p.total()
		t.Logf("%d calls went to the one that fails, %d to the other; callers saw %d errors", first, second, failed.Load())
		require.Less(t, first, calls/4)
		require.GreaterOrEqual(t, second, calls-first)
		require.LessOrEqual(t, int(failed.Load()), first)
		p.atRest()

		// What fails no longer gets its calls again.
		p.first.Open("g")
		harness.Eventually(t, "it gets calls", func() bool {
			_, err := c.SayHello(background, "x")
			require.NoError(t, err)
			now, _ := p.total()
			return now > first+10
		})
	})
}

// An error of the system has dubbo try another provider.
func TestAProviderOfSystemErrorsCostsNobodyACall(t *testing.T) {
	const callers, calls = 8, 1000
	each(t, func(t *testing.T, protocol, balance string) {
		p := newPair(t, protocol, nil)
		c := p.dial(balance)
		p.second.Open("g")
		noErrors(t, loop(callers, calls, func(int) error {
			_, err := c.SayHello(background, harness.BrokenUnless("g", protocol))
			return err
		}))
		first, second := p.total()
		t.Logf("%d attempts went to the one that fails", first)
		require.Less(t, first, calls/4)
		require.Equal(t, calls, second)
		p.atRest()
	})
}

// restart starts a provider where another was killed.
func restart(t *testing.T, dead *harness.ChildProvider) *harness.ChildProvider {
	t.Helper()
	_, text, err := net.SplitHostPort(dead.Addr)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return harness.SpawnProvider(t, harness.ProviderSpec{Protocol: dead.Protocol, Group: dead.Group, Port: port})
}

// Callers call without pause while one of two providers is killed, and later started
// again where it was. Those whose calls it held are answered by the other one.
func TestAKilledProviderAndItsReturn(t *testing.T) {
	each(t, func(t *testing.T, protocol, balance string) {
		harness.SkipUnderRaceDetector(t, protocol)
		p := newPair(t, protocol, nil)
		c := p.dial(balance)
		p.warm(c)
		const callers = 8
		var stop atomic.Bool
		hello := func(arg string) error {
			ctx, cancel := within(protocol)
			defer cancel()
			_, err := c.SayHello(ctx, arg)
			return err
		}
		p.second.Open("k") // only the first holds calls
		held := harness.Go(callers, func(int) error { return hello(harness.Hold("k")) })
		harness.Eventually(t, "the first holds calls", func() bool {
			first, second := p.total()
			return first+second == callers && p.first.Running(harness.Hold("k")) == first && first > 0
		})
		calling := harness.Go(callers, func(int) error {
			for !stop.Load() {
				if err := hello("x"); err != nil {
					return err
				}
			}
			return nil
		})
		_, before := p.total()
		harness.Eventually(t, "calls go on", func() bool {
			_, second := p.total()
			return second > before+100
		})

		p.first.Kill()
		noErrors(t, held)
		harness.Eventually(t, "nothing is under way to it", func() bool {
			a, _ := p.state()
			return a.Inflight == 0
		})
		atDeath, atOther := p.state()
		const more = 2000
		harness.Eventually(t, "many calls are answered", func() bool {
			_, b := p.state()
			return b.Picks >= atOther.Picks+more
		})
		tries, others := p.state()
		tried, answered := tries.Picks-atDeath.Picks, others.Picks-atOther.Picks
		t.Logf("%d attempts at the dead one, %d at the other", tried, answered)
		require.Less(t, tried, answered/5)

		// On the dubbo protocol calls that it held have taken seconds, which those that go by
		// response times remember for half a minute.
		if protocol == harness.Triple || balance == loadbalance.LeastActive {
			again := restart(t, p.first)
			harness.Eventually(t, "it gets calls again", func() bool { return again.Stats("SayHello").Total >= 20 })
		}
		stop.Store(true)
		noErrors(t, calling)
		a, b := p.state()
		require.Zero(t, a.Inflight)
		require.Zero(t, b.Inflight)
	})
}
