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
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/harness"
)

func TestCallsThatHangOpenABreakerWhileTheyHang(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol})
		c := dial(t, p.Endpoint, params("breaker.slow-ratio", "50%", "breaker.slow-call", "400", "breaker.min-calls", "5"))
		_, err := c.SayHello(background, "x")
		require.NoError(t, err)
		p.Pause()
		var (
			calls       sync.WaitGroup
			hung, wrong atomic.Int32
			refusal     atomic.Pointer[error]
		)
		harness.Eventually(t, "a call is refused", func() bool {
			hung.Add(1)
			calls.Go(func() {
				_, err := c.SayHello(background, "x")
				switch {
				case weir.IsRejected(err):
					hung.Add(-1)
					refusal.Store(&err)
				case err != nil:
					wrong.Add(1)
				}
			})
			return refusal.Load() != nil
		})
		opened(t, *refusal.Load(), p.Group, call.ReasonSlowRatio)
		require.Equal(t, open, state(t, p.Group, p.Addr))
		require.GreaterOrEqual(t, hung.Load(), int32(4), "it opened before any of them came back")

		// What they come to changes nothing.
		p.Resume()
		calls.Wait()
		require.Zero(t, wrong.Load(), "the connection is there")
		_, err = c.SayHello(background, "x")
		opened(t, err, p.Group, call.ReasonSlowRatio)
		require.EqualValues(t, 1+hung.Load(), p.Stats("SayHello").Total)
		probeNow(t, conf.Consumer, p.Group)
		harness.Eventually(t, "a probe that is fast closes it", func() bool {
			if state(t, p.Group, p.Addr) == open {
				probeNow(t, conf.Consumer, p.Group) // this one was not
			}
			_, err := c.SayHello(background, "x")
			require.NoError(t, err)
			return state(t, p.Group, p.Addr) == closed
		})
		require.Zero(t, breakerOf(t, p.Group, p.Addr).Hung)
	})
}

func TestTimeoutsOpenABreaker(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol})
		c := dial(t, p.Endpoint, params("breaker.consecutive-errors", "5"))
		port := ""
		if protocol == harness.Dubbo {
			var err error
			port, err = c.Echo(background, harness.Peer)
			require.NoError(t, err)
		}
		late := weir.Snapshot().LateResponses
		p.Pause()
		const doomed = 5
		for _, err := range harness.Go(doomed, func(int) error {
			ctx, cancel := context.WithTimeout(background, 200*time.Millisecond)
			defer cancel()
			_, err := c.SayHello(ctx, "x")
			return err
		}).Wait(t) {
			require.Error(t, err)
			require.False(t, weir.IsRejected(err), "%v", err)
		}
		require.Equal(t, open, state(t, p.Group, p.Addr))
		_, err := c.SayHello(background, "x")
		opened(t, err, p.Group, call.ReasonConsecutiveErrors)

		p.Resume()
		if protocol == harness.Dubbo {
			harness.Eventually(t, "the late replies come", func() bool { return weir.Snapshot().LateResponses == late+doomed })
			harness.Eventually(t, "the session lives on", func() bool {
				again, err := c.Echo(background, harness.Peer)
				require.NoError(t, err)
				return again == port
			})
		}
		_, err = c.SayHello(background, "x")
		opened(t, err, p.Group, call.ReasonConsecutiveErrors)
		probeNow(t, conf.Consumer, p.Group)
		_, err = c.SayHello(background, "x")
		require.NoError(t, err)
		require.Equal(t, closed, state(t, p.Group, p.Addr), "one success is enough")
		for range 20 {
			_, err = c.SayHello(background, "x")
			require.NoError(t, err)
		}
	})
}

func TestASlowProviderIsLeftAloneUntilItIsFast(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := dial(t, p.Endpoint, map[string]string{
			"breaker.slow-ratio": "50%", "breaker.slow-call": "250", "breaker.min-calls": "4", "breaker.open-for": "50", "breaker.window": "1h",
		})
		calls := harness.Go(4, func(int) error {
			_, err := c.SayHello(background, harness.Sleep(300*time.Millisecond))
			return err
		})
		require.Zero(t, harness.Failed(calls.Wait(t)))
		reasons := map[string]bool{}
		harness.Eventually(t, "a probe was slow too", func() bool {
			_, err := c.SayHello(background, harness.Sleep(300*time.Millisecond))
			if e, ok := weir.AsRejected(err); ok {
				reasons[e.Reason] = true
			} else {
				require.NoError(t, err)
			}
			return reasons[call.ReasonProbesFailed]
		})
		require.True(t, reasons[call.ReasonSlowRatio])
		served := 0
		harness.Eventually(t, "it closes when it is fast", func() bool {
			if _, err := c.SayHello(background, "x"); err == nil {
				served++
			}
			return served >= 20
		})
	})
}

func TestWhatTheCallerGivesUpIsNoFailureAndADeadlineIs(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol})
		c := dial(t, p.Endpoint, params("breaker.error-count", "1000"))
		const calls = 5
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		held := harness.Go(calls, func(int) error {
			_, err := c.SayHello(ctx, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "calls are held", func() bool { return p.Handler.Stats("").Running == calls })
		cancel()
		if protocol == harness.Dubbo {
			p.Handler.Open("g") // there nobody looks at the context
			require.Zero(t, harness.Failed(held.Wait(t)))
		} else {
			for _, err := range held.Wait(t) {
				require.Error(t, err)
			}
		}
		b := breakerOf(t, p.Group, p.Addr)
		require.Zero(t, b.Failures)
		if protocol == harness.Triple {
			require.Zero(t, b.Calls, "it says nothing")
		}

		// A handler that gives up at its deadline is sometimes heard before the client
		// has noticed its own.
		const deadlines = 200
		errs := harness.Go(deadlines, func(int) error {
			ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
			defer cancel()
			_, err := c.SayHello(ctx, harness.Hold("never"))
			if err == nil {
				return errors.New("it was answered")
			}
			return nil
		}).Wait(t)
		require.Zero(t, harness.Failed(errs))
		b = breakerOf(t, p.Group, p.Addr)
		assert.EqualValues(t, deadlines, b.Failures)
		if protocol == harness.Triple { // on the dubbo protocol there may be no time left to send it
			assert.EqualValues(t, deadlines, b.Timeouts)
		}
		p.Handler.Open("never")
	})
}
