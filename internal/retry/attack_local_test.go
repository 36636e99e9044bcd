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
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// Once, on grpc, jsonrpc and rest, the single filter stands inside of the
// umbrella, and its refusal is read by the umbrella as text (decodeText comes
// before asRefusal): a refusal of this side marks the instance as full, and its
// cause is lost.
func TestAttackALocalRefusalOnAProtocolOfTexts(t *testing.T) {
	for _, protocol := range []string{"tri", "dubbo", "grpc", "jsonrpc", "rest"} {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			r := refer(t, "failover", map[string]string{"reference.filter": "weir-consumer,activelimit", "actives": "1", "actives.wait": "0"}, holds(gate))
			for _, i := range r.instances {
				i.GetURL().Protocol = protocol
			}
			r.occupy(t)
			err := r.call()
			assert.ErrorIs(t, err, call.ErrRejected, protocol)
			assert.ErrorIs(t, err, concurrency.ErrLimitReached, "%s: the cause is lost", protocol)
			assert.False(t, r.ref.Full(r.instances[0].GetURL().Location), "%s: the instance is held to be full", protocol)
			close(gate)
			synctest.Wait()
		})
	}
}

// The caller gets the refusal itself from every cluster.
func TestAttackTypedInEveryCluster(t *testing.T) {
	for _, cluster := range []string{"failover", "failfast", "available", "broadcast", "forking"} {
		for _, n := range []int{1, 2, 3} {
			for _, params := range []map[string]string{
				{"actives": "1", "actives.wait": "0"},
				{"actives": "1", "actives.wait": "5ms"},
				{"tps": fmt.Sprint(n), "tps.interval": "1h"},
			} {
				synctest.Test(t, func(t *testing.T) {
					gate := make(chan struct{})
					var callees []func(*reference) func(base.Invocation) error
					for range n {
						callees = append(callees, holds(gate))
					}
					r := refer(t, cluster, params, callees...)
					for i := range n {
						go func() { _ = r.callOn(i) }()
					}
					synctest.Wait()
					for range 5 {
						err := r.call()
						_, ok := err.(*call.RejectError) //nolint:errorlint // itself
						assert.True(t, ok, "%s %d %v: %T %v", cluster, n, params, err, err)
						var te *triple_protocol.Error
						assert.NotErrorAs(t, err, &te)
					}
					for i := range r.instances {
						assert.False(t, r.ref.Full(r.instances[i].GetURL().Location))
					}
					close(gate)
					synctest.Wait()
					assert.Zero(t, r.twice())
				})
			}
		}
	}
}

// Once: under forking the attempt that had waited read the invocation's maps without
// its lock, while another, that did not have to wait, wrote to them as dubbo's
// invokers and Weir's own state do: a data race, and where both met the runtime
// ended the process ("concurrent map iteration and map write").
func TestAttackForkedAttemptsCopyWhileOthersWrite(t *testing.T) {
	for _, filters := range []string{"weir-fork,weir-consumer", "weir-consumer"} {
		t.Run(filters, func(t *testing.T) { copyWhileOthersWrite(t, filters) })
	}
}

func copyWhileOthersWrite(t *testing.T, filters string) {
	var stop atomic.Bool
	gate, entered := make(chan struct{}), make(chan struct{})
	var first sync.Once
	busy := func(*reference) func(base.Invocation) error {
		return func(inv base.Invocation) error { // what every invoker of dubbo does to its invocation, for a while
			for !stop.Load() {
				inv.SetAttachment("interface", "x")
				runtime.Gosched()
			}
			return nil
		}
	}
	waits := func(*reference) func(base.Invocation) error {
		return func(base.Invocation) error {
			holds := false
			first.Do(func() { holds = true })
			if holds {
				close(entered)
				<-gate
				return nil
			}
			stop.Store(true)
			return nil
		}
	}
	r := refer(t, "forking", map[string]string{"actives": "1", "timeout": "1m", "forks": "2", constant.ReferenceFilterKey: filters}, busy, waits)
	for _, i := range r.instances {
		i.GetURL().Protocol = constant.DubboProtocol
	}
	go func() { _ = r.callOn(1) }()
	<-entered
	go func() {
		for waiting := int64(0); waiting == 0; runtime.Gosched() {
			activelimit.Queues(guard.Process(), func(k activelimit.Key, q *concurrency.Queue) {
				if k.Service == r.service {
					waiting += q.Waiting()
				}
			})
		}
		close(gate)
	}()
	require.NoError(t, r.invoke(r.invocation()))
}
