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

package metrics_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
)

// What was counted stays so when one of several references is gone.
func TestOverloadTotalsDoNotGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := func(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest
		c := &chains{rt: guard.NewRuntime()}
		own := map[string]string{"overload": "2", "overload.slow-call": "70ms"}
		first := reference(t, own)
		u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("a.B"), common.WithIp("127.0.0.1"), common.WithPort("1"),
			common.WithInterface("a.B"), common.WithMethods([]string{"Get"}))
		u.SetAttribute(retry.AttributeKey, first)
		g := guard.New(c.rt, conf.Consumer)
		next := &inner{*base.NewBaseInvoker(u), func() { sleep(1500 * time.Millisecond) }}
		require.NoError(t, g.Invoke(context.Background(), next, invocation.NewRPCInvocation("Get", nil, map[string]any{})).Error())
		second := c.chain(t, conf.Consumer, "2", reference(t, own), own)
		require.NoError(t, second(func() { sleep(1500 * time.Millisecond) }))
		const slow = "weir_slow_calls_total{Get,consumer}"
		require.InDelta(t, 2, c.scrape(t)[slow], 0)
		next.Destroy()
		c.rt.Store.Touch()
		require.NoError(t, second(func() {}))
		require.InDelta(t, 2, c.scrape(t)[slow], 0)
		runtime.KeepAlive(c)
		runtime.KeepAlive(g)
	})
}
