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

package overload_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/bulkhead"
	"github.com/weir-go/weir/internal/health"
	"github.com/weir-go/weir/internal/machine"
)

// A call whose caller is answered holds its slot until it ends, however the limit comes
// about.
func TestSlotsOfCallsThatRunOvertime(t *testing.T) {
	for _, limit := range []string{"5", "auto"} {
		synctest.Test(t, func(t *testing.T) {
			c := newChain(t, conf.Provider, params{"overload": limit, "overload.floor": "5", "bulkhead": "100", "bulkhead.run-timeout": "1s"})
			defer c.stop()
			gate := make(chan struct{})
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() { assert.Error(t, c.call("Get", func() error { <-gate; return nil })) })
			}
			wg.Wait()
			assert.EqualValues(t, 5, c.state(t).Running, limit)
			close(gate)
			synctest.Wait()
			assert.Zero(t, c.state(t).Running, limit)
			for range 30 {
				require.NoError(t, c.call("Get", answer))
			}
			sleep(time.Second)
			assert.Zero(t, c.state(t).Running, limit)
			runtime.KeepAlive(c)
		})
	}
}

// A signal of the program's that takes its time does not keep the guards from what they do.
func TestTicksDoNotWaitForSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Provider, params{"overload": "5"})
		defer c.stop()
		require.NoError(t, machine.Of(c.rt).Add(health.Func("db", func(time.Duration) (float64, bool) {
			sleep(900 * time.Millisecond)
			return 0, true
		}), health.Rule{Limit: 0.9}))
		leave := c.hang(t, 5)
		sleep(2300 * time.Millisecond)
		assert.Len(t, c.kinds("slow"), 3)
		leave()
		machine.Of(c.rt).Remove("db")
		sleep(2 * time.Second)
		runtime.KeepAlive(c)
	})
}

// A consumer's streams are left alone, also before a wait.
func TestStreamsAreNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(t, conf.Consumer, params{"overload": "1", "overload.max-expand": "1", "bulkhead": "10", "bulkhead.queue": "5", "bulkhead.max-wait": "100ms"})
		defer c.stop()
		gate := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, c.call("unknown", func() error { <-gate; return nil })) })
		synctest.Wait()
		_ = refusal(t, c.call("unknown", answer))
		inv := invocation.NewRPCInvocation("unknown", nil, map[string]any{})
		inv.SetAttribute(constant.CallTypeKey, constant.CallBidiStream)
		assert.NoError(t, c.guard.Invoke(context.Background(), &handler{*base.NewBaseInvoker(c.url), answer}, inv).Error())
		close(gate)
		wg.Wait()
		runtime.KeepAlive(c)
	})
}

// Who waits for something else holds no slot.
func TestNobodyWaitsWithASlot(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side) {
		c := newChain(t, side, params{"overload": "5", "bulkhead": "1", "bulkhead.queue": "9", "bulkhead.max-wait": "2s"})
		defer c.stop()
		gate := make(chan struct{})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { assert.NoError(t, c.call("Get", func() error { <-gate; return nil })) })
		}
		synctest.Wait()
		assert.EqualValues(t, 1, c.state(t).Running)
		assert.EqualValues(t, 5, c.state(t).Cap)
		close(gate)
		wg.Wait()
		runtime.KeepAlive(c)
	})
}
