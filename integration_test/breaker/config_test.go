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
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/server"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/harness"
)

// A provider's breaker watches what its handler depends on. Its refusals go to the
// consumer as such, and open no breaker there.
func TestAProvidersBreakerRefusesForItsHandler(t *testing.T) {
	for _, downProtocol := range harness.Protocols {
		t.Run("over "+downProtocol, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol string) {
				// The dependency dies, its caller passes on what becomes of its calls.
				harness.SkipUnderRaceDetector(t, downProtocol)
				down := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: downProtocol})
				fromMiddle := dial(t, down.Endpoint, nil)
				p := harness.StartProvider(t, harness.ProviderConfig{
					Protocol: protocol, Params: params("breaker.error-ratio", "50%", "breaker.min-calls", "4"),
					Handler: &harness.Handler{Func: func(_ context.Context, _, arg string) (string, error) {
						return fromMiddle.SayHello(within(t, downProtocol), arg)
					}},
				})
				c := p.Dial(t, client.WithParam("breaker.consecutive-errors", "100"), client.WithParam("weir.stats", "true"))
				_, err := c.SayHello(background, "x")
				require.NoError(t, err)
				down.Kill()
				harness.Eventually(t, "it opens", func() bool {
					_, err := c.SayHello(background, "x")
					require.Error(t, err)
					for _, b := range breakersOf(p.Group, "SayHello") {
						if b.Side == "provider" && b.State == open {
							return true
						}
					}
					return false
				})
				_, err = c.SayHello(background, "x")
				opened(t, err, p.Group, call.ReasonErrorRatio)
			})
		})
	}
}

func TestAProvidersRefusalsOpenNoBreakerOfItsConsumers(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := failing(t, protocol)
		configure(t, conf.Provider, p.Group, conf.Breaker{ConsecutiveErrors: ptr(3), OpenFor: ptr(harness.Patience)})
		c := dial(t, p.Endpoint, params("breaker.consecutive-errors", "4"))
		for range 3 {
			_, err := c.SayHello(background, panics)
			require.Error(t, err)
			require.False(t, weir.IsRejected(err), "%v", err)
		}
		const calls = 20
		for range calls {
			_, err := c.SayHello(background, "x")
			e := refused(t, err, p.Group, call.ReasonConsecutiveErrors)
			require.EqualValues(t, 3, e.Limit)
			require.EqualValues(t, 3, e.Observed)
			require.Positive(t, e.RetryAfter)
		}
		require.Equal(t, 3, p.Handler.Stats("SayHello").Total)
		require.Equal(t, calls, rejected(t, conf.Provider, p.Group))
		require.Zero(t, rejected(t, conf.Consumer, p.Group))
		for _, b := range breakersOf(p.Group, "SayHello") {
			require.Equal(t, b.Side == "provider", b.State == open, "%+v", b)
			if b.Side == "consumer" {
				require.EqualValues(t, calls, b.Refused)
				require.EqualValues(t, 3, b.Failures)
			}
		}
		_, err := c.Echo(background, "x")
		require.NoError(t, err, "another method has another")

		// A wish of retries costs nothing: the refusal ends the call.
		again := p.Dial(t)
		_, err = again.SayHello(background, "x")
		refused(t, err, p.Group, call.ReasonConsecutiveErrors)
		require.Equal(t, calls+1, rejected(t, conf.Provider, p.Group))
	})
}

func ptr[T any](v T) *T { return &v }

// Where the filter stands in the chain by its own name it is the only one that
// breaks, in its place.
func TestTheFilterAlone(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		t.Run("on a consumer", func(t *testing.T) {
			p := failing(t, protocol)
			c := harness.Dial(t, harness.ConsumerConfig{
				Providers: []harness.Endpoint{p.Endpoint}, Params: params("breaker.consecutive-errors", "3"),
				Reference: []client.ReferenceOption{client.WithFilter("circuitbreaker"), client.WithRetries(0)},
			})
			for range 3 {
				_, err := c.SayHello(background, harness.Broken(protocol))
				require.Error(t, err)
				require.False(t, weir.IsRejected(err), "%v", err)
			}
			for range 5 {
				_, err := c.SayHello(background, "x")
				opened(t, err, p.Group, call.ReasonConsecutiveErrors)
			}
			require.Equal(t, 3, p.Handler.Stats("SayHello").Total)
			require.Equal(t, 5, rejected(t, conf.Consumer, p.Group), "one refusal each")
			require.Equal(t, open, state(t, p.Group, p.Addr))
			runtime.KeepAlive(c) // its breakers go with it
		})
		t.Run("on a consumer of two", func(t *testing.T) {
			p := newPair(t, protocol, nil)
			c := p.dial(harness.ConsumerConfig{
				Params: params("breaker.consecutive-errors", "1"), Reference: []client.ReferenceOption{client.WithFilter("circuitbreaker")},
			})
			p.providers[1].Open("g")
			for range 30 {
				_, err := c.SayHello(background, harness.BrokenUnless("g", protocol))
				require.NoError(t, err)
			}
			require.LessOrEqual(t, p.providers[0].Stats("SayHello").Total, 1)
		})
		t.Run("on a provider", func(t *testing.T) {
			p := harness.StartProvider(t, harness.ProviderConfig{
				Protocol: protocol, Params: params("breaker.consecutive-errors", "3"),
				Server: []server.ServerOption{server.WithServerFilter("echo,circuitbreaker-provider")},
			})
			c := p.Dial(t, client.WithRetries(0))
			for range 3 {
				_, err := c.SayHello(background, harness.Broken(protocol))
				require.Error(t, err)
				require.False(t, weir.IsRejected(err), "%v", err)
			}
			for range 5 {
				_, err := c.SayHello(background, "x")
				opened(t, err, p.Group, call.ReasonConsecutiveErrors)
			}
			require.Equal(t, 3, p.Handler.Stats("SayHello").Total)
			require.Equal(t, 5, rejected(t, conf.Provider, p.Group), "one refusal each")
		})
	})
}

func TestABreakerIsToldWhatToDoWhileCallsRun(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := failing(t, protocol)
		c := dial(t, p.Endpoint, params("breaker.consecutive-errors", "3"))
		say := func(arg string) error {
			_, err := c.SayHello(background, arg)
			return err
		}
		fail := func(n int) {
			t.Helper()
			for range n {
				err := say(harness.Broken(protocol))
				require.Error(t, err)
				require.False(t, weir.IsRejected(err), "%v", err)
			}
		}
		require.NoError(t, say("x"))

		configure(t, conf.Consumer, p.Group, conf.Breaker{Force: conf.ForceOpen})
		require.True(t, breakerOf(t, p.Group, p.Addr).Forced)
		require.Zero(t, refused(t, say("x"), p.Group, call.ReasonForced).RetryAfter)

		configure(t, conf.Consumer, p.Group, conf.Breaker{Force: conf.ForceClosed})
		fail(10)
		require.NoError(t, say("x"))
		require.Equal(t, closed, state(t, p.Group, p.Addr))

		configure(t, conf.Consumer, p.Group, conf.Breaker{}) // thresholds of the reference
		fail(3)
		opened(t, say("x"), p.Group, call.ReasonConsecutiveErrors)

		configure(t, conf.Consumer, p.Group, conf.Breaker{Mode: conf.Observe})
		require.NoError(t, say("x"), "it is open, and lets all pass")
		configure(t, conf.Consumer, p.Group, conf.Breaker{})
		opened(t, say("x"), p.Group, call.ReasonConsecutiveErrors)

		configure(t, conf.Consumer, p.Group, conf.Breaker{Mode: conf.Off})
		fail(10)
		require.NoError(t, say("x"))
		require.Empty(t, breakersOf(p.Group, "SayHello"))

		configure(t, conf.Consumer, p.Group, conf.Breaker{ConsecutiveErrors: ptr(5)})
		require.NotEqual(t, open, state(t, p.Group, p.Addr), "nothing is left of what was")
		fail(4)
		require.NoError(t, say("x"))
		fail(5)
		e := refused(t, say("x"), p.Group, call.ReasonConsecutiveErrors)
		require.EqualValues(t, 5, e.Limit)
	})
}

func TestABreakerIsToldWhatToDoByAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	say := func(group, what string) {
		t.Helper()
		text := "weir:\n  consumer:\n    services:\n      " + serviceOf(group) + ":\n        breaker: {" + what + "}\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Triple})
	c := dial(t, p.Endpoint, params())
	say(p.Group, "force: open")
	require.NoError(t, weir.Load(file))
	t.Cleanup(func() {
		require.NoError(t, os.WriteFile(file, []byte("weir: {}\n"), 0o600))
		require.NoError(t, weir.Load(file))
	})
	_, err := c.SayHello(background, "x")
	refused(t, err, p.Group, call.ReasonForced)
	say(p.Group, "consecutive-errors: 2")
	harness.Eventually(t, "the file is read again", func() bool {
		_, err := c.SayHello(background, "x")
		return err == nil
	})
	for range 2 {
		_, err = c.SayHello(background, harness.Broken(harness.Triple))
		require.Error(t, err)
	}
	_, err = c.SayHello(background, "x")
	opened(t, err, p.Group, call.ReasonConsecutiveErrors)
}
