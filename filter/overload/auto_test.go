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
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/filter/overload"
)

// How long a stream stays open says nothing of how many a service can have, so nothing is
// found out by streams: the ceiling is their limit. Once they were measured, and a method
// whose streams do not all last as long ended at the floor.
func TestRegression_StreamsWithAuto(t *testing.T) {
	for _, more := range []params{{}, {"bulkhead": "100", "bulkhead.run-timeout": "1s"}} {
		synctest.Test(t, func(t *testing.T) {
			p := params{"overload": "auto", "overload.floor": "2", "overload.ceiling": "10"}
			for k, v := range more {
				p[k] = v
			}
			c := newChain(t, conf.Provider, p)
			defer c.stop()
			c.url.SetAttribute(constant.ServiceInfoKey, &common.ServiceInfo{
				InterfaceName: c.url.Service(), Methods: []common.MethodInfo{{Name: "Get", Type: constant.CallBidiStream}, {Name: "Other", Type: constant.CallUnary}},
			})
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					for n := range 30 {
						assert.NoError(t, c.call("Get", func() error { sleep(time.Duration(i*n+1) * time.Second); return nil }))
					}
				})
			}
			wg.Wait()
			leave := c.hang(t, 10)
			e := refusal(t, c.call("Get", answer))
			assert.Equal(t, int64(10), e.Limit)
			s := c.state(t)
			assert.False(t, s.Auto)
			assert.EqualValues(t, 10, s.Highest, "it does not expand")
			leave()
			assert.Zero(t, c.state(t).Running)
			runtime.KeepAlive(c)
		})
	}
}

// Of a call whose answer comes by another way a consumer knows when it was sent. That is no
// response time: calls that are answered would seem to wait beside it, and the limit would
// go down.
func TestRegression_AsynchronousCallsWithAuto(t *testing.T) {
	for _, tt := range []struct {
		protocol, async string
		measured        bool
	}{
		{constant.DubboProtocol, "true", false}, {constant.DubboProtocol, "1", false}, {constant.DubboProtocol, "TRUE", false},
		{constant.DubboProtocol, "false", true}, {constant.DubboProtocol, "no", true},
		{constant.TriProtocol, "true", true}, // dubbo-go has none on Triple: the call is answered
	} {
		t.Run(tt.protocol+" "+tt.async, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newChain(t, conf.Consumer, params{"overload": "auto", "overload.floor": "5", "overload.ceiling": "50"})
				defer c.stop()
				c.url.Protocol = tt.protocol
				for range 100 {
					inv := invocation.NewRPCInvocation("Get", nil, map[string]any{constant.AsyncKey: tt.async})
					require.NoError(t, c.guard.Invoke(context.Background(), &handler{*base.NewBaseInvoker(c.url), func() error { sleep(time.Millisecond); return nil }}, inv).Error())
				}
				sleep(time.Second)
				assert.Equal(t, tt.measured, c.state(t).Alone > 0)
				assert.Zero(t, c.state(t).Running)
				for range 100 {
					require.NoError(t, c.call("Get", func() error { sleep(20 * time.Millisecond); return nil }))
				}
				sleep(time.Second)
				if !tt.measured {
					assert.InDelta(t, 20*time.Millisecond, c.state(t).Alone, float64(time.Millisecond))
				}
				runtime.KeepAlive(c)
			})
		})
	}
}

// Whatever the configuration becomes while calls run, are set aside and come back late, all
// slots come back.
func TestConfigurationsInAStorm(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	c := newChain(t, conf.Provider, nil)
	defer c.stop()
	configs := []string{
		"{limit: 4, entry-timeout: 1ms, slow-call: 0}", "{limit: 1, entry-timeout: 1ms, slow-call: 1ms, max-overdue: 1}", "{limit: 16, entry-timeout: 0, max-expand: 1}",
		"{limit: 4, mode: observe, entry-timeout: 1ms, slow-call: 0}", "{limit: 4, mode: off}", "0", "{limit: auto, floor: 2, ceiling: 8}",
		"{limit: auto, floor: 1, ceiling: 3, entry-timeout: 1ms, slow-call: 0}",
	}
	set := func(policy string) {
		text := "weir: {health: {cpu: off, memory: off}, provider: {services: {" + guard.ServiceOf(c.url).String() + ": {overload: " + policy + "}}}}"
		cfg, _, faults := conf.ParseYAML("test", []byte(text))
		assert.Empty(t, faults)
		c.rt.Store.Set(conf.FromCode, "code", cfg)
	}
	set(configs[0])
	var callers, configurer sync.WaitGroup
	var done atomic.Bool
	configurer.Go(func() {
		for i := 0; !done.Load(); i++ {
			set(configs[rand.IntN(len(configs))])
			overload.Caps(c.rt, func(s overload.State) {
				assert.GreaterOrEqual(t, s.Aside, int64(0))
				assert.GreaterOrEqual(t, s.Running, int64(0))
			})
			runtime.Gosched()
		}
	})
	for range 32 {
		callers.Go(func() {
			for range 400 {
				_ = c.call("Get", func() error {
					if n := rand.IntN(40); n == 0 {
						for began := time.Now(); time.Since(began) < 2*time.Millisecond; { // long enough to be set aside
							runtime.Gosched()
						}
					}
					runtime.Gosched()
					return nil
				})
			}
		})
	}
	callers.Wait()
	done.Store(true)
	configurer.Wait()
	set(configs[0])
	require.NoError(t, c.call("Get", answer))
	s := c.state(t)
	assert.Zero(t, s.Running)
	assert.Zero(t, s.Aside)
	assert.Equal(t, s.Overdue, s.Returned)
	assert.EqualValues(t, 4, s.Limit)
	runtime.KeepAlive(c)
}
