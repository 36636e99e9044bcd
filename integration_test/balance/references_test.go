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

// References to one service have counts of their own, and one that balances by dubbo's
// has none.
func TestTwoReferencesToOneService(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		const held, calls = 8, 400
		p := newPair(t, protocol, nil)
		random, own, other := p.dial("random"), p.dial(loadbalance.LeastActive), p.dial(loadbalance.LeastActive)

		// Calls of the one that hang are nothing to the others.
		p.second.Open("g")
		hanging := loop(held, 100, func(int) error {
			_, err := random.SayHello(background, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "all its callers hang", func() bool { return p.first.Running(harness.Hold("g")) == held })
		require.Empty(t, p.states())
		first, second := p.total()
		for range calls {
			_, err := own.SayHello(background, "x")
			require.NoError(t, err)
			_, err = own.Echo(background, "x")
			require.NoError(t, err)
		}
		a, b := p.state()
		require.Zero(t, a.Inflight+b.Inflight)
		require.EqualValues(t, 2*calls, a.Picks+b.Picks)
		within5Sigma(t, 0.5, int(a.Picks), 2*calls)
		afterFirst, afterSecond := p.total()
		require.Equal(t, calls, afterFirst-first+afterSecond-second)

		// And that of dubbo's goes by chance, whatever the others see.
		p.first.Open("g")
		noErrors(t, hanging)
		first, second = p.total()
		ownHanging := harness.Go(held, func(int) error {
			_, err := own.SayHello(background, harness.Hold("h"))
			return err
		})
		harness.Eventually(t, "they run", func() bool {
			nowFirst, nowSecond := p.total()
			return nowFirst+nowSecond == first+second+held
		})
		p.second.Open("h")
		first, _ = p.total()
		for range calls {
			_, err := random.SayHello(background, "x")
			require.NoError(t, err)
		}
		afterFirst, _ = p.total()
		within5Sigma(t, 0.5, afterFirst-first, calls)

		// The third has yet to choose.
		require.Len(t, p.states(), 1)
		_, err := other.Echo(background, "x")
		require.NoError(t, err)
		all := p.states()
		require.Len(t, all, 2)
		require.Less(t, all[0].Reference, all[1].Reference)
		counts := func(i int) (picks, inflight int64) {
			for _, provider := range all[i].Providers {
				picks, inflight = picks+provider.Picks, inflight+provider.Inflight
			}
			return picks, inflight
		}
		picks, _ := counts(0)
		require.EqualValues(t, 2*calls+held, picks)
		picks, inflight := counts(1)
		require.EqualValues(t, 1, picks)
		require.Zero(t, inflight)
		p.first.Open("h")
		noErrors(t, ownHanging)
		a2 := p.states()[0].Providers
		require.Zero(t, a2[0].Inflight+a2[1].Inflight)
	})
}
