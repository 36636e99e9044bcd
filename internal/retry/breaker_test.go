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

package retry_test

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/protocolwrapper"
	"github.com/dubbogo/gost/log/logger"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weir-go/weir/call"
	_ "github.com/weir-go/weir/filter/circuitbreaker"
)

// lines are where the log goes: dubbo's logger must not be replaced while somebody
// writes to it.
var lines *observer.ObservedLogs

func TestMain(m *testing.M) {
	core, logs := observer.New(zapcore.ErrorLevel)
	lines = logs
	logger.SetLogger(zap.New(core).Sugar())
	os.Exit(m.Run())
}

// failsWhile is an instance that cannot be reached while the switch is on.
func failsWhile(on *atomic.Bool) func(*reference) func(base.Invocation) error {
	return func(r *reference) func(base.Invocation) error {
		broken := fails(r)
		return func(inv base.Invocation) error {
			if on.Load() {
				return broken(inv)
			}
			return nil
		}
	}
}

func breaks(more ...string) map[string]string {
	params := map[string]string{"breaker.consecutive-errors": "1", "breaker.open-jitter": "0"}
	for _, p := range more {
		k, v, _ := strings.Cut(p, "=")
		params[k] = v
	}
	return params
}

// open trips the breaker of an instance, by a chain of its own that stays.
func (r *reference) open(t *testing.T, n int) {
	t.Helper()
	chain := protocolwrapper.BuildInvokerChain(r.instances[n], constant.ReferenceFilterKey)
	t.Cleanup(func() { runtime.KeepAlive(chain) })
	require.ErrorContains(t, chain.Invoke(context.Background(), r.invocation()).Error(), "connection refused")
}

// refused makes a call that a breaker refuses. Its caller gets the refusal itself.
func (r *reference) refused(t *testing.T) *call.RejectError {
	t.Helper()
	err := r.call()
	e, ok := err.(*call.RejectError) //nolint:errorlint // itself
	require.True(t, ok, "%T %v", err, err)
	require.Equal(t, "breaker", e.Guard)
	return e
}

// Failover gets by an instance whose breaker is open: callers do not notice, and it is
// asked once per open time.
func TestFailoverGetsByAnOpenBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sick atomic.Bool
		sick.Store(true)
		r := refer(t, "failover", breaks(), failsWhile(&sick), serves, serves)
		for range 200 {
			require.NoError(t, r.call())
		}
		require.EqualValues(t, 1, r.instances[0].hits.Load())
		require.EqualValues(t, 201, r.hits())
		require.False(t, r.ref.Full(r.instances[0].GetURL().Location), "it never got the calls")
		for i := range int64(5) {
			time.Sleep(5 * time.Second) //nolint:forbidigo // synctest
			for range 100 {
				require.NoError(t, r.call())
			}
			require.Equal(t, i+2, r.instances[0].hits.Load(), "one probe")
		}
		sick.Store(false)
		time.Sleep(5 * time.Second) //nolint:forbidigo // synctest
		for range 300 {
			require.NoError(t, r.call())
		}
		require.Greater(t, r.instances[0].hits.Load(), int64(50))
		require.Zero(t, r.twice())
	})
}

// Where the breakers of all instances are open each call ends with the refusal itself,
// however many tries there are. Failover logged an error for it when there were as
// many instances as tries.
func TestRegression_AllBreakersOpen(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7} {
		synctest.Test(t, func(t *testing.T) {
			r := refer(t, "failover", breaks(), slices.Repeat([]func(*reference) func(base.Invocation) error{fails}, n)...)
			for i := range n {
				r.open(t, i)
			}
			hits := r.hits()
			before := lines.Len()
			for range 50 {
				e := r.refused(t)
				require.Equal(t, call.ReasonConsecutiveErrors, e.Reason)
				require.Positive(t, e.RetryAfter)
			}
			require.Equal(t, hits, r.hits())
			for _, l := range lines.All()[before:] {
				require.NotContains(t, l.Message, "[Cluster][Failover]", "%d instances", n)
			}
		})
	}
}

// Who asked for no other try gets none.
func TestAnOpenBreakerWithoutOtherTries(t *testing.T) {
	for cluster, param := range map[string]string{"failfast": "retries=2", "failover": "retries=0", "failover ": "weir.retry-refused=0"} {
		r := refer(t, strings.TrimSpace(cluster), breaks(param), fails, serves)
		r.open(t, 0)
		refused := 0
		for range 100 {
			if r.call() != nil {
				refused++
			}
		}
		require.Greater(t, refused, 10, "%s %s", cluster, param)
		require.False(t, r.ref.Refusing(), "nothing is kept of what goes nowhere else")
		require.EqualValues(t, 1, r.instances[0].hits.Load())
	}
}

// A breaker of all instances refuses at once, whatever failover has left.
func TestTheBreakerOfAServiceIsNotTriedElsewhere(t *testing.T) {
	r := refer(t, "failover", breaks("breaker.scope=service"), fails, serves, serves)
	r.open(t, 0)
	for range 50 {
		_ = r.refused(t)
	}
	require.EqualValues(t, 1, r.hits())
	require.False(t, r.ref.Refusing(), "no instance has refused anything")
}

// What a full instance refuses is no failure, and a breaker's refusal is no debt: it
// costs the budget nothing.
func TestAnOpenBreakerBesideAFullInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		on.Store(true)
		r := refer(t, "failover", breaks(), fails, fullWhile(&on))
		r.open(t, 0)
		for range 100 {
			require.ErrorIs(t, r.call(), call.ErrRejected)
		}
		require.EqualValues(t, 1, r.instances[0].hits.Load())
		on.Store(false)
		time.Sleep(2 * time.Second) //nolint:forbidigo // synctest
		for range 100 {
			require.NoError(t, r.call(), "the breaker of the full one has not opened")
		}
		require.Zero(t, r.twice())
	})
}

// Clusters that call every instance, or several at once, pass open ones by.
func TestOpenBreakersUnderOtherClusters(t *testing.T) {
	for _, cluster := range []string{"forking", "broadcast", "available", "failsafe"} {
		t.Run(cluster, func(t *testing.T) {
			r := refer(t, cluster, breaks(), fails, serves)
			r.open(t, 0)
			for range 20 {
				_ = r.call()
			}
			require.EqualValues(t, 1, r.instances[0].hits.Load())
			require.Zero(t, r.twice())
		})
	}
}

// failback runs a call again when its caller has gone. One that a breaker had refused
// was never sent to the instance, and was not when that was well again either.
func TestRegression_FailbackDeliversWhatABreakerRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sick atomic.Bool
		sick.Store(true)
		r := refer(t, "failback", breaks(), failsWhile(&sick))
		chain := protocolwrapper.BuildInvokerChain(r.instances[0], constant.ReferenceFilterKey)
		inv := r.invocation()
		attempt := func() error { return chain.Invoke(context.Background(), inv).Error() }
		require.ErrorContains(t, attempt(), "connection refused")
		require.ErrorIs(t, attempt(), call.ErrRejected)
		sick.Store(false)
		time.Sleep(5 * time.Second) //nolint:forbidigo // synctest
		require.NoError(t, attempt())
	})
}

// A fallback answers for an open breaker once no instance is left to try, and where it
// answers for nothing else the failures that opened it stay failures.
func TestAFallbackForOpenBreakers(t *testing.T) {
	for _, scope := range []string{"instance", "service"} {
		s := withFallback(t, "failover", breaks("fallback.on=breaker", "breaker.scope="+scope, "retries=1"), fails, fails)
		_, res := s.ask(context.Background())
		if scope == "instance" {
			require.ErrorContains(t, res.Error(), "connection refused", "each instance was asked")
		} else {
			require.NoError(t, res.Error(), "the second try met the breaker")
		}
		before := s.runs.Load()
		hits := s.hits()
		for range 20 {
			reply, res := s.ask(context.Background())
			require.NoError(t, res.Error())
			require.Equal(t, "instead", reply)
		}
		require.Equal(t, hits, s.hits())
		answered, failed, panicked := s.counts()
		require.Equal(t, []int64{before + 20, 0, 0}, []int64{answered, failed, panicked})

		well := withFallback(t, "failover", breaks("fallback.on=breaker"), fails, serves)
		well.open(t, 0)
		for range 20 {
			require.NoError(t, well.call())
		}
		require.Zero(t, well.runs.Load(), "the other instance answered")
	}
}

// The filter by its own name does as the umbrella does, inside of it and without it.
func TestTheBreakersFilterByItsOwnName(t *testing.T) {
	for _, list := range []string{"weir-consumer,circuitbreaker", "circuitbreaker,weir-consumer", "circuitbreaker"} {
		r := refer(t, "failover", breaks("reference.filter="+list), fails, serves)
		r.open(t, 0)
		for range 30 {
			require.NoError(t, r.call(), list)
		}
		require.EqualValues(t, 1, r.instances[0].hits.Load(), list)

		r = refer(t, "failover", breaks("reference.filter="+list), fails, fails)
		r.open(t, 0)
		r.open(t, 1)
		for range 30 {
			_ = r.refused(t)
		}
		require.EqualValues(t, 2, r.hits(), list)
		require.Zero(t, r.twice(), list)
	}
}
