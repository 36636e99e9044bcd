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

package bulkhead_test

import (
	"context"
	"fmt"
	"maps"
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
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/bulkhead"
	_ "github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/guard"
	_ "github.com/weir-go/weir/filter/tpslimit"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

const ms = time.Millisecond

// sleep lets the time of a bubble pass.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // synctest

type inner func(context.Context, base.Invocation) result.Result

type end struct {
	base.BaseInvoker
	f inner
}

func (e *end) Invoke(ctx context.Context, inv base.Invocation) result.Result { return e.f(ctx, inv) }

func answer(context.Context, base.Invocation) result.Result {
	return &result.RPCResult{Rest: "result"}
}

// takes answers after a while.
func takes(d time.Duration) inner {
	return func(ctx context.Context, inv base.Invocation) result.Result {
		sleep(d)
		return answer(ctx, inv)
	}
}

type params = map[string]string

// with is p and more.
func with(p params, more ...string) params {
	p = maps.Clone(p)
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

var services atomic.Int64

func newService() string { return fmt.Sprintf("bulkhead.Service%d", services.Add(1)) }

type chain struct {
	side  conf.Side
	rt    *guard.Runtime
	guard *guard.Guard
	url   *common.URL
}

func reference(t testing.TB, service string, own params) *retry.Reference {
	t.Helper()
	parsed := conf.ParseParams(conf.Consumer, service, own)
	require.Empty(t, parsed.Faults)
	ref := retry.NewReference(&parsed.Service)
	ref.Cluster, ref.Raw = constant.ClusterKeyFailover, conf.OwnParams(own)
	return ref
}

func referenceOf(u *common.URL) *retry.Reference {
	v, _ := u.GetAttribute(retry.AttributeKey)
	return v.(*retry.Reference)
}

func newURL(protocol, service, port string, own params) *common.URL {
	opts := []common.Option{
		common.WithProtocol(protocol), common.WithPath(service), common.WithIp("127.0.0.1"), common.WithPort(port),
		common.WithInterface(service), common.WithMethods([]string{"Echo", "Other"}),
	}
	for k, v := range own {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	u := common.NewURLWithOptions(opts...)
	u.Location = "127.0.0.1:" + port
	return u
}

// chainOf makes a chain of a service; ref is a consumer's, a new one if nil.
func chainOf(t testing.TB, rt *guard.Runtime, side conf.Side, protocol, service, port string, ref *retry.Reference, own params) *chain {
	t.Helper()
	u := newURL(protocol, service, port, own)
	if side == conf.Consumer {
		if ref == nil {
			ref = reference(t, service, own)
		}
		u.SetAttribute(retry.AttributeKey, ref)
	}
	return &chain{side, rt, guard.New(rt, side), u}
}

func newChain(t testing.TB, side conf.Side, protocol string, own params) *chain {
	t.Helper()
	return chainOf(t, guard.NewRuntime(), side, protocol, newService(), "20000", nil, own)
}

func (c *chain) invoke(ctx context.Context, inv base.Invocation, f inner) result.Result {
	return c.guard.Invoke(ctx, &end{*base.NewBaseInvoker(c.url), f}, inv)
}

func (c *chain) call(ctx context.Context, method string, f inner) error {
	return c.invoke(ctx, invocation.NewRPCInvocation(method, nil, map[string]any{}), f).Error()
}

func (c *chain) echo() error { return c.call(context.Background(), "Echo", answer) }

// queue is the bulkhead of a method of the chain's service, or of a group.
func (c *chain) queue(t testing.TB, method, group string) *concurrency.Queue {
	t.Helper()
	var out *concurrency.Queue
	bulkhead.Queues(c.rt, func(k bulkhead.Key, q *concurrency.Queue) {
		if k.Side == c.side && k.Group == group && (group != "" || k.Method == method && k.Service == guard.ServiceOf(c.url).String()) {
			require.Nil(t, out, "there is a second one")
			out = q
		}
	})
	runtime.KeepAlive(c)
	return out
}

func (c *chain) atRest(t testing.TB) {
	t.Helper()
	bulkhead.Queues(c.rt, func(k bulkhead.Key, q *concurrency.Queue) {
		assert.Zero(t, q.Inflight(), "%v", k)
		assert.Zero(t, q.Waiting(), "%v", k)
	})
	runtime.KeepAlive(c)
}

// hold has a call of the method run until release is called.
func (c *chain) hold(t testing.TB, method string) (release func()) {
	t.Helper()
	gate, entered, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		err := c.call(context.Background(), method, func(ctx context.Context, inv base.Invocation) result.Result {
			close(entered)
			<-gate
			return answer(ctx, inv)
		})
		assert.NoError(t, err)
	}()
	<-entered
	return func() { close(gate); <-done }
}

// later makes a call in the background; the answer is there at the end of the bubble.
func (c *chain) later(method string, f inner) (err *error) {
	err = new(error)
	go func() { *err = c.call(context.Background(), method, f) }()
	synctest.Wait()
	return err
}

// crowd makes n calls at once and returns how many were refused.
func (c *chain) crowd(ctx context.Context, n int, f inner) int64 {
	var (
		wg      sync.WaitGroup
		refused atomic.Int64
	)
	for range n {
		wg.Go(func() {
			if c.call(ctx, "Echo", f) != nil {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	return refused.Load()
}

// everywhere runs a test in a bubble for each side and protocol.
func everywhere(t *testing.T, f func(t *testing.T, side conf.Side, protocol string)) {
	t.Helper()
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		for _, protocol := range []string{"tri", "dubbo"} {
			t.Run(side.String()+" "+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { f(t, side, protocol) })
			})
		}
	}
}

// refusal requires that an error is a refusal of the bulkhead.
func refusal(t testing.TB, err error) *call.RejectError {
	t.Helper()
	e, ok := call.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "bulkhead", e.Guard)
	return e
}

func refused(t testing.TB, err error) {
	t.Helper()
	require.Error(t, refusal(t, err))
}
