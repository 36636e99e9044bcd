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
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
	"github.com/weir-go/weir/loadbalance"
)

// Two providers, one of which keeps its calls, and nothing configured but the load
// balance. Whoever waits there makes no further calls, so were it not seen to hang, all
// callers would end up there.
func TestAHangingProviderGetsAFewCalls(t *testing.T) {
	const callers, calls = 12, 1000
	each(t, func(t *testing.T, protocol, balance string) {
		p := newPair(t, protocol, nil)
		c := p.dial(balance)
		warm := p.warm(c)
		p.second.Open("g")
		all := loop(callers, calls, func(int) error {
			_, err := c.SayHello(background, harness.Hold("g"))
			return err
		})
		var hanging, answered int
		harness.Eventually(t, "all calls are made", func() bool {
			hanging, answered = p.total()
			return hanging+answered == calls
		})
		require.Less(t, hanging, callers)
		t.Logf("%d of %d calls hang, by %d callers", hanging, calls, callers)
		require.Equal(t, hanging, p.first.Running(harness.Hold("g")))
		a, b := p.state()
		require.EqualValues(t, hanging, a.Inflight)
		require.EqualValues(t, hanging+answered+warm, a.Picks+b.Picks)
		require.Equal(t, []string{balance}, p.states()[0].Balancers)

		p.first.Open("g")
		noErrors(t, all)
		p.atRest()

		// It answers again, and gets its calls again. Those that go by response times let
		// it wait until they forget how long its calls took, half a minute at most.
		if balance == loadbalance.LeastActive {
			harness.Eventually(t, "it gets calls", func() bool {
				_, err := c.SayHello(background, "x")
				require.NoError(t, err)
				first, _ := p.total()
				return first > hanging+10
			})
			p.atRest()
		}
	})
}

// What runs counts for all methods of a provider together.
func TestWhatHangsInOneMethodCountsForTheOthers(t *testing.T) {
	each(t, func(t *testing.T, protocol, balance string) {
		p := newPair(t, protocol, nil)
		c := p.dial(balance)
		const held = 10
		warm := p.warm(c)
		calls := harness.Go(held, func(int) error {
			_, err := c.SayHello(background, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "they run", func() bool {
			first, second := p.total()
			return first+second == held
		})
		p.second.Open("g")
		harness.Eventually(t, "only the first holds some", func() bool {
			a, b := p.state()
			return a.Inflight > 0 && b.Inflight == 0
		})
		const echoes = 50
		before := p.first.Stats("Echo").Total
		for range echoes {
			_, err := c.Echo(background, "x")
			require.NoError(t, err)
		}
		got := p.first.Stats("Echo").Total - before
		if balance == loadbalance.LeastActive {
			require.Zero(t, got)
		} else {
			require.Less(t, got, echoes/2)
		}
		p.first.Open("g")
		noErrors(t, calls)
		a, b := p.state()
		require.Zero(t, a.Inflight)
		require.Zero(t, b.Inflight)
		require.EqualValues(t, warm+held+echoes, a.Picks+b.Picks)
	})
}
