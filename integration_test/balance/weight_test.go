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
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
	"github.com/weir-go/weir/loadbalance"
)

// within5Sigma requires that so many calls of all are a share, but for chance.
func within5Sigma(t *testing.T, share float64, got, all int) {
	t.Helper()
	require.InDelta(t, share*float64(all), got, 5*math.Sqrt(float64(all)*share*(1-share)))
}

// A URL that a consumer was given says what it says.
func TestWeightsInURLs(t *testing.T) {
	const calls = 500
	for name, tt := range map[string]struct {
		queries        [2]string
		sayHello, echo float64 // share of the first
	}{
		"20 to 80":       {[2]string{"weir.weight=20", "weir.weight=80"}, 0.2, 0.2},
		"for a method":   {[2]string{"methods.SayHello.weir.weight=25", "methods.sayHello.weir.weight=75"}, 0.25, 0.5},
		"dubbo's":        {[2]string{"weight=20", "weight=80"}, 0.2, 0.2},
		"unset":          {[2]string{"", ""}, 0.5, 0.5},
		"unset is 100":   {[2]string{"weir.weight=300", ""}, 0.75, 0.75},
		"drained":        {[2]string{"weir.weight=0", "weir.weight=1"}, 0, 0},
		"both drained":   {[2]string{"weir.weight=0", "weir.weight=0"}, 0.5, 0.5},
		"of all and one": {[2]string{"weir.weight=0&methods.Echo.weir.weight=50", "weir.weight=50"}, 0, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol string) {
				p := newPair(t, protocol, nil)
				c := p.dialWith(loadbalance.LeastActive, tt.queries)
				for range calls {
					_, err := c.SayHello(background, "x")
					require.NoError(t, err)
					_, err = c.Echo(background, "x")
					require.NoError(t, err)
				}
				first, second := p.total()
				require.Equal(t, calls, first+second)
				within5Sigma(t, tt.sayHello, first, calls)
				within5Sigma(t, tt.echo, p.first.Stats("Echo").Total, calls)
				a, b := p.state()
				require.Zero(t, a.Inflight+b.Inflight)
				require.EqualValues(t, 2*calls, a.Picks+b.Picks)
			})
		})
	}
}

// Whatever the load balance goes by, a drained provider gets nothing while there is
// another one, and the other's share when there is none.
func TestADrainedProviderGetsNothing(t *testing.T) {
	each(t, func(t *testing.T, protocol, balance string) {
		p := newPair(t, protocol, nil)
		c := p.dialWith(balance, [2]string{"weir.weight=0", ""})
		p.first.Open("g")
		const callers, calls = 8, 200
		all := loop(callers, calls, func(i int) error {
			arg := "x"
			if i <= callers/2 {
				arg = harness.Hold("g") // the other one has more to do
			}
			_, err := c.SayHello(background, arg)
			return err
		})
		harness.Eventually(t, "all calls are made", func() bool {
			first, second := p.total()
			return first+second == calls
		})
		a, b := p.state()
		require.Zero(t, a.Picks)
		require.Zero(t, a.Weight)
		require.InDelta(t, -1, a.Score, 0)
		require.EqualValues(t, calls, b.Picks)
		p.second.Open("g")
		noErrors(t, all)
		p.atRest()
	})
}
