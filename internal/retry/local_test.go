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
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	_ "github.com/weir-go/weir/filter/activelimit"
	_ "github.com/weir-go/weir/filter/tpslimit"
)

// holds is an instance whose calls run until the gate opens.
func holds(gate chan struct{}) func(*reference) func(base.Invocation) error {
	return func(*reference) func(base.Invocation) error {
		return func(base.Invocation) error { <-gate; return nil }
	}
}

// occupy makes a call that stays on the first instance.
func (r *reference) occupy(t *testing.T) {
	t.Helper()
	go func() { _ = r.callOn(0) }()
	synctest.Wait()
	require.EqualValues(t, 1, r.instances[0].hits.Load())
}

// actives are counted per provider: a call that waited in vain for one may go to
// another, within what it has left.
func TestActivesTryAnotherInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, wait := range []string{"0", "10ms"} {
			gate := make(chan struct{})
			r := refer(t, "failover", map[string]string{"actives": "1", "actives.wait": wait}, holds(gate), serves)
			r.occupy(t)
			for range 30 {
				require.NoError(t, r.call(), "the other instance has room")
			}
			require.EqualValues(t, 1, r.instances[0].hits.Load())
			require.EqualValues(t, 30, r.instances[1].hits.Load())
			close(gate)
			synctest.Wait()
			require.Zero(t, r.twice())
		}
	})
}

func TestActivesWaitOncePerInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		r := refer(t, "failover", map[string]string{"actives": "1", "actives.wait": "10ms", "timeout": "1h"}, holds(gate))
		r.occupy(t)
		start := time.Now()
		err := r.call()
		require.Equal(t, 10*time.Millisecond, time.Since(start), "dubbo comes again with the only instance, but nobody waits there twice")
		e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
		require.True(t, ok, "%T", err)
		require.Equal(t, "actives", e.Guard)
		require.Equal(t, 10*time.Millisecond, e.Waited)
		close(gate)
		synctest.Wait()
		require.NoError(t, r.call())
		require.Zero(t, r.twice())
	})
}

func TestActivesBothFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		r := refer(t, "failover", map[string]string{"actives": "1", "actives.wait": "10ms", "timeout": "1h"}, holds(gate), holds(gate), holds(gate))
		for i := range r.instances {
			go func() { _ = r.callOn(i) }()
		}
		synctest.Wait()
		start := time.Now()
		require.ErrorIs(t, r.call(), call.ErrRejected)
		require.Equal(t, 30*time.Millisecond, time.Since(start), "each instance that failover has a try for, once")
		require.EqualValues(t, 3, r.hits())
		close(gate)
		synctest.Wait()
	})
}

// A deadline that was used up in a queue is used up everywhere.
func TestAfterTheDeadlineThereIsNoOtherTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		r := refer(t, "failover", map[string]string{"actives": "1"}, holds(gate), serves)
		r.occupy(t)
		for range 20 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			served := r.instances[1].hits.Load()
			err := r.cluster.Invoke(ctx, r.invocation()).Error()
			if err == nil {
				require.Equal(t, served+1, r.instances[1].hits.Load())
			} else {
				require.ErrorIs(t, err, call.ErrRejected, "the refusal says more than a timeout of the other instance")
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			cancel()
			ctx, cancel = context.WithCancel(context.Background())
			time.AfterFunc(time.Millisecond, cancel)
			if err := r.cluster.Invoke(ctx, r.invocation()).Error(); err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
		}
		close(gate)
		synctest.Wait()
	})
}

// The budget keeps calls from full instances. A call that waited here has not
// been to any, so it pays nothing and takes no instance out of sight.
func TestALocalRefusalCostsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		r := refer(t, "failover", map[string]string{"actives": "1", "actives.wait": "0", "methods.SayHello.actives": "1"}, holds(gate), serves)
		r.occupy(t)
		require.NoError(t, r.call())
		require.False(t, r.ref.Full(r.instances[0].GetURL().Location))
		for range 1000 {
			require.NoError(t, r.call())
		}
		close(gate)
		synctest.Wait()
	})
}

// A limit of calls over time belongs to the reference: another instance would not
// change the verdict.
func TestTPSIsNotTriedElsewhere(t *testing.T) {
	for _, cluster := range []string{"failover", "failfast", "failsafe", "available"} {
		r := refer(t, cluster, map[string]string{"tps": "5", "tps.interval": "1h"}, serves, serves, serves)
		served, refused := 0, 0
		for range 20 {
			switch err := r.call(); {
			case err == nil:
				served++
			default:
				e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
				require.True(t, ok, "%T %v", err, err)
				require.Equal(t, "tps", e.Guard)
				require.Positive(t, e.RetryAfter)
				refused++
			}
		}
		require.EqualValues(t, 5, r.hits(), cluster)
		if cluster != "failsafe" { // which calls every error a success
			require.Equal(t, 5, served, cluster)
			require.Equal(t, 15, refused, cluster)
		}
		require.False(t, r.ref.Refusing(), "no instance has refused anything")
	}
}

// Retries are calls, and count.
func TestTPSCountsAttempts(t *testing.T) {
	r := refer(t, "failover", map[string]string{"tps": "5", "tps.interval": "1h"}, fails, fails, fails)
	require.ErrorContains(t, r.call(), "connection refused")
	require.EqualValues(t, 3, r.hits())
	require.ErrorIs(t, r.call(), call.ErrRejected, "the third attempt is refused")
	require.EqualValues(t, 5, r.hits())
}

// The single filter refuses as the umbrella does, inside of it and without it.
func TestTheFiltersByTheirOwnNames(t *testing.T) {
	for _, list := range []string{"weir-consumer,activelimit,tpslimit-consumer", "activelimit,tpslimit-consumer", "tpslimit-consumer,activelimit,weir-consumer"} {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			r := refer(t, "failover", map[string]string{
				"reference.filter": list, "actives": "1", "actives.wait": "0", "tps": "3", "tps.interval": "1h",
			}, holds(gate))
			r.occupy(t)
			e, ok := call.As(r.call())
			require.True(t, ok)
			require.Equal(t, "actives", e.Guard, list)
			close(gate)
			synctest.Wait()
			served := 0
			for range 10 {
				if r.call() == nil {
					served++
				}
			}
			require.LessOrEqual(t, served, 2, list)
			require.GreaterOrEqual(t, served, 1, list)
			require.Zero(t, r.twice())
		})
	}
}

// Under forking attempts of one call run at the same time, each charged for its
// own wait: also where a list of filters that its user has made leaves the one out that
// parts them.
func TestForkedAttemptsAreChargedApart(t *testing.T) {
	for _, filters := range []string{"weir-fork,weir-consumer", "weir-consumer"} {
		t.Run(filters, func(t *testing.T) { chargedApart(t, filters) })
	}
}

func chargedApart(t *testing.T, filters string) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		left := map[string]int{}
		gates := []chan struct{}{make(chan struct{}), make(chan struct{})}
		var occupied atomic.Int64
		callee := func(n int) func(*reference) func(base.Invocation) error {
			return func(*reference) func(base.Invocation) error {
				return func(inv base.Invocation) error {
					if occupied.Add(1) <= 2 {
						<-gates[n]
						return nil
					}
					text, _ := inv.GetAttachment("timeout")
					mu.Lock()
					left[fmt.Sprint(n)+" "+text]++
					mu.Unlock()
					return nil
				}
			}
		}
		r := refer(t, "forking", map[string]string{"actives": "1", "timeout": "100ms", "protocol": "dubbo", "forks": "2", constant.ReferenceFilterKey: filters}, callee(0), callee(1))
		for _, i := range r.instances {
			i.GetURL().Protocol = "dubbo"
		}
		for i := range r.instances {
			go func() { _ = r.callOn(i) }()
		}
		synctest.Wait()
		time.AfterFunc(10*time.Millisecond, func() { close(gates[0]) })
		time.AfterFunc(30*time.Millisecond, func() { close(gates[1]) })
		inv := invocation.NewRPCInvocation("SayHello", []any{calls.Add(1)}, map[string]any{})
		require.NoError(t, r.invoke(inv))
		time.Sleep(time.Second) //nolint:forbidigo // synctest
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, map[string]int{"0 90ms": 1, "1 70ms": 1}, left)
		_, there := inv.GetAttachment("timeout")
		require.False(t, there)
	})
}
