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

package activelimit_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/guard"
)

// through calls through an invoker that the test can destroy.
func (c *chain) through(end base.Invoker) error {
	return c.guard.Invoke(context.Background(), end, invocation.NewRPCInvocation("Echo", nil, map[string]any{})).Error()
}

// Once: of two chains of one address the newer, with the larger limit, was
// destroyed. Only a call that found no slot looked again, so the limit of the one
// that is left was not kept: as many calls ran as the one that is gone allowed.
func TestTheLimitOfAChainThatIsLeftHoldsWhenItIsLower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, service := guard.NewRuntime(), fmt.Sprintf("actives.Left%d", services.Add(1))
		ref := reference(t, service, nil)
		var running, most int // guarded by the slot, if there is one
		var wg sync.WaitGroup
		slow := func(context.Context, base.Invocation) result.Result {
			running++
			most = max(most, running)
			sleep(100 * ms)
			running--
			return &result.RPCResult{}
		}
		left := refer(t, rt, ref, "tri", service, "20000", map[string]string{"actives": "1"})
		require.NoError(t, left.call(context.Background(), "Echo", answer))
		gone := refer(t, rt, ref, "tri", service, "20000", map[string]string{"actives": "50"})
		end := &end{*base.NewBaseInvoker(gone.url), answer}
		require.NoError(t, gone.through(end))
		end.Destroy()
		sleep(time.Second) // calls that find a slot look now and then

		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for range 5 {
			wg.Go(func() { _ = left.call(ctx, "Echo", slow) })
			synctest.Wait() // one after the other, so that nobody races
		}
		wg.Wait()
		assert.Equal(t, 1, most, "the chain that is left declares 1")
		assert.EqualValues(t, 1, left.limit(t, "Echo"))
		runtime.KeepAlive(left)
		runtime.KeepAlive(gone)
	})
}

// Once: where activelimit stands in a chain by its own name, the umbrella beside it
// built its steps too, only to know that there are some, and so claimed a limit that
// nobody took back: its plan is not made again before a call comes by. Turned off,
// those who waited went on waiting.
func TestTurnedOffBesideTheUmbrellaAllWhoWaitGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumer(t, "tri", map[string]string{"actives": "1", "timeout": "3s"})
		c.url.SetParam(constant.ReferenceFilterKey, "weir-consumer,activelimit")
		alone := guard.NewAlone(c.rt, conf.Consumer, activelimit.FilterName, activelimit.Policy)
		gate := make(chan struct{})
		inner := &end{*base.NewBaseInvoker(c.url), func(ctx context.Context, inv base.Invocation) result.Result {
			<-gate
			return answer(ctx, inv)
		}}
		outer := &end{*base.NewBaseInvoker(c.url), func(ctx context.Context, inv base.Invocation) result.Result {
			return alone.Invoke(ctx, inner, inv)
		}}
		errs := make(chan error, 3)
		for range 3 {
			go func() { errs <- c.through(outer) }()
			synctest.Wait()
		}
		q := c.queue(t, "Echo")
		require.EqualValues(t, 2, q.Waiting())
		c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: conf.Off})
		synctest.Wait()
		assert.Zero(t, q.Waiting(), "the guard is off")
		close(gate)
		for range 3 {
			assert.NoError(t, <-errs)
		}
		runtime.KeepAlive(alone)
		runtime.KeepAlive(c)
	})
}
