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

package replace

import (
	"context"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/server"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

var background = context.Background()

// refused requires that an error is a refusal of Weir's, of the group's service.
func refused(t *testing.T, err error, group, guard string, limit int64) {
	t.Helper()
	e, ok := weir.AsRejected(err)
	require.True(t, ok, "%T %v", err, err)
	require.ErrorIs(t, err, call.ErrRejected)
	require.Equal(t, guard, e.Guard)
	require.Equal(t, group+"/"+greet.GreetServiceName, e.Service())
	require.Equal(t, limit, e.Limit)
	require.Equal(t, limit, e.Observed)
	require.False(t, e.Forwarded)
}

// hold makes n calls that stay in the provider's handler until the gate opens.
func hold(t *testing.T, p *harness.ChildProvider, c *harness.Consumer, n int, gate string) *harness.Calls {
	t.Helper()
	calls := harness.Go(n, func(int) error {
		_, err := c.SayHello(background, harness.Hold(gate))
		return err
	})
	harness.Eventually(t, "calls are held", func() bool { return p.Stats("").Running == n })
	return calls
}

// limits are dubbo-go's own, as its users write them.
var limits = []string{
	`execute.limit: "3"`,
	"execute.limit.rejected.handler: default",
	"tps.limiter: default",
	"tps.limit.rate: 12",
	"tps.limit.interval: 3600000",
	"tps.limit.strategy: slidingWindow",
}

func TestDubbosLimitsAreKeptByWeir(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := provider(t, protocol, "{replace: [execute, tps]}", limits...)
		require.Equal(t, "*guard.Guard", p.Filter("execute"))
		require.Equal(t, "*guard.Guard", p.Filter("tps"))
		c := p.Dial(t)

		// Three calls run, of all methods together. Those that are refused have been
		// counted by tps, which stands before execute in dubbo-go's default chain, and
		// have not been given back.
		held := hold(t, p, c, 3, "g")
		for range 4 {
			_, err := c.SayHello(background, "x")
			refused(t, err, p.Group, "executes", 3)
			_, err = c.Echo(background, "x")
			refused(t, err, p.Group, "executes", 3)
		}
		p.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		require.Equal(t, 3, p.Stats("").Total, "a refused call never reaches the handler")

		_, err := c.Echo(background, "x")
		require.NoError(t, err, "the twelfth")
		for range 5 {
			_, err = c.SayHello(background, "x")
			refused(t, err, p.Group, "tps", 12)
		}
		require.Equal(t, 3, p.Stats("SayHello").MaxRunning)
		require.Equal(t, 4, p.Stats("").Total)
	})
}

// A budget of a method's own, a limit of Weir's beside dubbo-go's, and one in the
// section.
func TestLimitsOfMethodsAndOfWeirs(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := provider(t, protocol, "{replace: [execute, tps], provider: {executes: 100}}",
			"tps.limiter: method-service", "tps.limit.rate: 5", "tps.limit.interval: 3600000",
			"methods: [{name: SayHello, tps.limit.rate: 3, tps.limit.strategy: slidingWindow}]",
			"params: {executes: 2, methods.SayHello.execute.limit: 1}",
		)
		c := p.Dial(t)
		held := hold(t, p, c, 1, "g")
		_, err := c.SayHello(background, "x")
		refused(t, err, p.Group, "executes", 1)
		p.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		_, err = c.SayHello(background, "x")
		require.NoError(t, err, "the third, with the refused one")
		_, err = c.SayHello(background, "x")
		refused(t, err, p.Group, "tps", 3)
		for range 5 {
			_, err = c.Echo(background, "x")
			require.NoError(t, err)
		}
		_, err = c.Echo(background, "x")
		refused(t, err, p.Group, "tps", 5)
	})
}

// What is not replaced is dubbo-go's, with its answers: an error that says nothing on
// Triple, and a success without a result on the dubbo protocol.
func TestWithoutReplaceDubbosFiltersStay(t *testing.T) {
	for name, section := range map[string]string{"none": "{}", "others": "{replace: [active]}"} {
		t.Run(name, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol string) {
				p := provider(t, protocol, section, limits...)
				require.Equal(t, "*exec_limit.executeLimitFilter", p.Filter("execute"))
				require.Equal(t, "*tps.tpsLimitFilter", p.Filter("tps"))
				c := p.Dial(t, client.WithRetries(0))
				held := hold(t, p, c, 3, "g")
				reply, err := c.SayHello(background, "x")
				require.False(t, weir.IsRejected(err), "%v", err)
				require.Empty(t, reply)
				require.Equal(t, protocol == harness.Triple, err != nil)
				p.Open("g")
				require.Zero(t, harness.Failed(held.Wait(t)))
				require.Equal(t, 3, p.Stats("").Total)
			})
		})
	}
}

// One of two is replaced.
func TestOnlyWhatIsAskedForIsReplaced(t *testing.T) {
	p := provider(t, harness.Triple, "{replace: [tps]}", limits...)
	require.Equal(t, "*exec_limit.executeLimitFilter", p.Filter("execute"))
	require.Equal(t, "*guard.Guard", p.Filter("tps"))
}

// What cannot be said in Weir's keys is said before the service serves.
func TestWhatCannotBeTranslatedStopsTheExport(t *testing.T) {
	require.NoError(t, weir.Configure(conf.Config{Replace: []string{"execute", "tps"}}))
	t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
	eachProtocol(t, func(t *testing.T, protocol string) {
		_, err := harness.TryStartProvider(t, harness.ProviderConfig{Protocol: protocol, Service: []server.ServiceOption{
			server.WithExecuteLimit("0"), server.WithTpsLimiter("default"), server.WithTpsLimitRate(5), server.WithTpsLimitRejectedHandler("log"),
		}})
		var e *conf.Error
		require.ErrorAs(t, err, &e)
		require.Len(t, e.Faults, 1, "the rest can be: %v", err)
		require.ErrorContains(t, err, `key=execute.limit value="0": dubbo-go refuses every call with it, and in Weir it is unlimited; allowed: a whole number from 1`)

		// Once it is mended the service starts, with a filter of Weir's.
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Service: []server.ServiceOption{server.WithExecuteLimit("1")}})
		c := p.Dial(t)
		held := harness.Go(1, func(int) error {
			_, err := c.SayHello(background, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "the slot is taken", func() bool { return p.Handler.Stats("").Running == 1 })
		_, err = c.Echo(background, "x")
		refused(t, err, p.Group, "executes", 1)
		p.Handler.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
	})
}

// A consumer whose list of filters has active keeps its actives there, once.
func TestAReplacedActiveKeepsActives(t *testing.T) {
	require.NoError(t, weir.Configure(conf.Config{Replace: []string{"active"}}))
	t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := provider(t, protocol, "{}")
		c := harness.Dial(t, harness.ConsumerConfig{
			Providers: []harness.Endpoint{p.Endpoint}, Params: map[string]string{"actives": "2", "actives.wait": "0"},
			Reference: []client.ReferenceOption{client.WithFilter("active")},
		})
		held := hold(t, p, c, 2, "g")
		for range 5 {
			_, err := c.SayHello(background, "x")
			refused(t, err, p.Group, "actives", 2)
		}
		p.Open("g")
		require.Zero(t, harness.Failed(held.Wait(t)))
		require.Equal(t, 2, p.Stats("SayHello").Total)
	})
}
