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
	"net"
	"strconv"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

// within is the context of a call that may meet a dead provider. On the dubbo protocol
// one that was sent before its provider died waits for all of it: nobody tells it that
// its session is gone.
func within(t *testing.T, protocol string) context.Context {
	t.Helper()
	if protocol == harness.Triple {
		return background
	}
	ctx, cancel := context.WithTimeout(background, 3*time.Second)
	t.Cleanup(cancel)
	return ctx
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

func TestAKilledProviderCostsNobodyACall(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		harness.SkipUnderRaceDetector(t, protocol)
		p := newPair(t, protocol, params("breaker.consecutive-errors", "3"))
		sick, well := p.providers[0], p.providers[1]
		well.Open("k") // only the sick one holds calls
		const calls = 16
		held := harness.Go(calls, func(int) error {
			_, err := p.SayHello(within(t, protocol), harness.Hold("k"))
			return err
		})
		harness.Eventually(t, "calls are held", func() bool {
			s, w := sick.Stats("SayHello"), well.Stats("SayHello")
			return s.Running > 0 && s.Running+w.Total == calls
		})
		sick.Kill()
		harness.Eventually(t, "the breaker of the dead one opens", func() bool {
			_, err := p.SayHello(within(t, protocol), "x")
			require.NoError(t, err)
			return state(t, p.group, sick.Addr) == open
		})
		for _, err := range held.Wait(t) {
			require.NoError(t, err, "what the dead one held runs again on the other")
		}
		require.Equal(t, "consecutive-errors", breakerOf(t, p.group, sick.Addr).Reason)
		require.Equal(t, closed, state(t, p.group, well.Addr))

		// A late timeout of a call that the dead one held changes nothing.
		again := restart(t, sick)
		before := well.Stats("SayHello").Total
		for range 30 {
			_, err := p.SayHello(background, "x")
			require.NoError(t, err)
		}
		require.Zero(t, again.Stats("").Total, "nobody comes while it is open")
		require.Equal(t, before+30, well.Stats("SayHello").Total)

		// On the dubbo protocol dead sessions are still chosen for a while after the
		// restart, so that a probe may fail, and the breaker open again later.
		probing := func(done func() bool) func() bool {
			return func() bool {
				if state(t, p.group, sick.Addr) == open {
					probeNow(t, conf.Consumer, p.group)
				}
				_, err := p.SayHello(background, "x")
				require.NoError(t, err)
				return done()
			}
		}
		harness.Eventually(t, "a probe closes it", probing(func() bool { return state(t, p.group, sick.Addr) == closed }))
		harness.Eventually(t, "it serves again", probing(func() bool { return again.Stats("SayHello").Total >= 10 }))
	})
}

// On Triple calls that the provider held end with "unavailable: unexpected EOF" or a
// reset connection, and later ones with "connection refused". On the dubbo protocol
// the former time out, and the latter are told "session Already Closed".
func TestWhatBecomesOfADeadProvidersCallsIsAFailure(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		harness.SkipUnderRaceDetector(t, protocol)
		p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol})
		c := dial(t, p.Endpoint, params("breaker.error-count", "1000"))
		const held, later = 5, 20
		calls := harness.Go(held, func(int) error {
			_, err := c.SayHello(within(t, protocol), harness.Hold("k"))
			return err
		})
		harness.Eventually(t, "calls are held", func() bool { return p.Running(harness.Hold("k")) == held })
		p.Kill()
		errs := calls.Wait(t)
		for range later {
			_, err := c.SayHello(within(t, protocol), "x")
			errs = append(errs, err)
		}
		seen := map[string]bool{}
		for _, err := range errs {
			require.Error(t, err)
			class, code := guard.ErrorKind(err)
			require.Empty(t, class)
			if protocol == harness.Triple {
				require.Equal(t, "unavailable", code, "%v", err)
			}
			if text := err.Error(); !seen[text] {
				seen[text] = true
				t.Logf("%T %s", err, text)
			}
		}
		b := breakerOf(t, p.Group, p.Addr)
		require.EqualValues(t, held+later, b.Calls)
		require.EqualValues(t, held+later, b.Failures)
		if protocol == harness.Dubbo {
			require.EqualValues(t, held, b.Timeouts)
		} else {
			require.Zero(t, b.Timeouts)
		}
	})
}

// On Triple a stream opens whether or not anybody is there: the caller learns of it
// only from the stream, and nobody tells the guard. So a breaker does not open by
// streams, and each that is open counts as an answer.
func TestOpeningAStreamNeverFails(t *testing.T) {
	for name, stream := range map[string]func(c *harness.Consumer) (opened, ended error){
		"Repeat": func(c *harness.Consumer) (opened, ended error) {
			stream, err := c.Stub().Repeat(background, &greet.RepeatRequest{Name: "x", Times: 1})
			if err != nil {
				return err, nil
			}
			defer func() { _ = stream.Close() }()
			if stream.Recv() {
				return nil, nil
			}
			return nil, stream.Err()
		},
		"Collect": func(c *harness.Consumer) (opened, ended error) {
			stream, err := c.Stub().Collect(background)
			if err != nil {
				return err, nil
			}
			_ = stream.Send(&greet.HelloRequest{Name: "x"})
			_, err = stream.CloseAndRecv()
			return nil, err
		},
		"Chat": func(c *harness.Consumer) (opened, ended error) {
			stream, err := c.Stub().Chat(background)
			if err != nil {
				return err, nil
			}
			defer func() { _ = stream.CloseResponse() }()
			_ = stream.Send(&greet.HelloRequest{Name: "x"})
			_ = stream.CloseRequest()
			_, err = stream.Recv()
			return nil, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: harness.Triple})
			c := dial(t, p.Endpoint, params("breaker.consecutive-errors", "1"))
			opened, ended := stream(c)
			require.NoError(t, opened)
			require.NoError(t, ended)
			p.Kill()
			const calls = 5
			for range calls {
				opened, ended := stream(c)
				require.NoError(t, opened)
				require.Error(t, ended)
				require.Equal(t, "unavailable", triple_protocol.CodeOf(ended).String(), "%v", ended)
			}
			all := breakersOf(p.Group, name)
			require.Len(t, all, 1)
			require.Equal(t, closed, all[0].State)
			require.EqualValues(t, 1+calls, all[0].Calls)
			require.Zero(t, all[0].Failures)

			// One that is open refuses to open a stream.
			configure(t, conf.Consumer, p.Group, conf.Breaker{Force: conf.ForceOpen})
			opened, _ = stream(c)
			e, ok := weir.AsRejected(opened)
			require.True(t, ok, "%T %v", opened, opened)
			require.Equal(t, call.ReasonForced, e.Reason)
			require.Equal(t, name, e.Method())
		})
	}
}
