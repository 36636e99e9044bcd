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

package loadbalance_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/broadcast"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/failfast"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/failover"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/forking"
	"dubbo.apache.org/dubbo-go/v3/cluster/directory/static"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/random"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/protocolwrapper"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/activelimit"
	_ "github.com/weir-go/weir/filter/circuitbreaker"
	_ "github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/loadbalance"
	"github.com/weir-go/weir/loadbalance/pick"
)

var all = []string{loadbalance.LeastActive, loadbalance.ShortestResponse, loadbalance.FewChoices}

// instance is a provider as a consumer sees it.
type instance struct {
	base.BaseInvoker
	hits   atomic.Int64
	handle func(context.Context) error
}

func (i *instance) Invoke(ctx context.Context, _ base.Invocation) result.Result {
	i.hits.Add(1)
	return &result.RPCResult{Err: i.handle(ctx), Rest: "ok"}
}

// consumer is a reference with instances joined by one of dubbo's clusters.
type consumer struct {
	service   string
	ref       *retry.Reference
	instances []*instance
	cluster   base.Invoker
}

var sequence atomic.Int64

func refer(t *testing.T, balance, cluster string, params map[string]string, handlers ...func(context.Context) error) *consumer {
	t.Helper()
	c := &consumer{service: fmt.Sprintf("cluster.Service%d", sequence.Add(1))}
	parsed := conf.ParseParams(conf.Consumer, c.service, params)
	require.Empty(t, parsed.Faults)
	c.ref = retry.NewReference(&parsed.Service)
	c.ref.Cluster = cluster
	var invokers []base.Invoker
	for n, handler := range handlers {
		u := common.NewURLWithOptions(
			common.WithProtocol("tri"), common.WithPath(c.service), common.WithInterface(c.service),
			common.WithIp("127.0.0.1"), common.WithPort(strconv.Itoa(20000+n)), common.WithMethods([]string{"Get", "Put"}),
			common.WithParamsValue(constant.ReferenceFilterKey, guard.ConsumerFilter),
			common.WithParamsValue(constant.ClusterKey, cluster),
			common.WithParamsValue(constant.LoadbalanceKey, balance),
		)
		for k, v := range params {
			u.SetParam(k, v)
		}
		u.SetAttribute(retry.AttributeKey, c.ref)
		i := &instance{BaseInvoker: *base.NewBaseInvoker(u), handle: handler}
		c.instances = append(c.instances, i)
		invokers = append(invokers, protocolwrapper.BuildInvokerChain(i, constant.ReferenceFilterKey))
	}
	joined, err := extension.GetCluster(cluster)
	require.NoError(t, err)
	c.cluster = joined.Join(static.NewDirectory(invokers))
	return c
}

func (c *consumer) call(ctx context.Context) error {
	return c.cluster.Invoke(ctx, invocation.NewRPCInvocation("Get", []any{1}, map[string]any{})).Error()
}

// run makes calls one after another from each of many callers.
func (c *consumer) run(callers, each int) (failed int64) {
	var n atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if c.call(context.Background()) != nil {
					n.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return n.Load()
}

func (c *consumer) peer(i int) *pick.Instance {
	return c.ref.Peers.Instance(c.instances[i].GetURL().Location)
}

func (c *consumer) record(i int) *pick.Record { return c.peer(i).Record("get") }

func (c *consumer) atRest(t *testing.T) {
	t.Helper()
	for i := range c.instances {
		assert.Zero(t, c.peer(i).Inflight(), "instance %d", i)
	}
}

func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func fails(err error) func(context.Context) error {
	var te *triple_protocol.Error
	if errors.As(err, &te) {
		te.Meta() // it is made at the first look, and all callers get this one
	}
	return func(context.Context) error { return err }
}

const ms = time.Millisecond

// Two providers, one hanging, and nothing else configured.
func TestHangingProvider(t *testing.T) {
	for _, balance := range all {
		synctest.Test(t, func(t *testing.T) {
			c := refer(t, balance, "failover", nil, takes(5*ms), takes(500*ms))
			assert.Zero(t, c.run(20, 100), balance)
			assert.Less(t, c.instances[1].hits.Load(), int64(300), balance)
			assert.EqualValues(t, 2000, c.instances[0].hits.Load()+c.instances[1].hits.Load(), "none is counted or sent twice")
			assert.Equal(t, c.instances[0].hits.Load(), c.peer(0).Picks())
			c.atRest(t)
		})
	}
}

func TestProviderThatFailsFast(t *testing.T) {
	for _, balance := range all {
		for name, err := range map[string]error{
			"system":   triple_protocol.NewError(triple_protocol.CodeUnavailable, errors.New("no")),
			"business": triple_protocol.NewError(triple_protocol.CodeBizError, errors.New("no")),
			"plain":    errors.New("no"),
		} {
			synctest.Test(t, func(t *testing.T) {
				c := refer(t, balance, "failfast", nil, takes(20*ms), takes(20*ms), fails(err))
				c.run(20, 100)
				assert.Less(t, c.instances[2].hits.Load(), int64(150), "%s %s", balance, name)
				c.atRest(t)
			})
		}
	}
}

// A provider that has been sick and is well again gets its share again.
func TestRecovery(t *testing.T) {
	for _, balance := range all {
		synctest.Test(t, func(t *testing.T) {
			var sick atomic.Bool
			sick.Store(true)
			c := refer(t, balance, "failover", nil, takes(20*ms), func(ctx context.Context) error {
				if sick.Load() {
					return triple_protocol.NewError(triple_protocol.CodeUnavailable, errors.New("no"))
				}
				return takes(20 * ms)(ctx)
			})
			assert.Zero(t, c.run(10, 100), balance)
			assert.Less(t, c.instances[1].hits.Load(), int64(100), balance)
			sick.Store(false)
			time.Sleep(time.Minute) //nolint:forbidigo // synctest
			before := c.instances[1].hits.Load()
			c.run(10, 100)
			assert.InDelta(t, 500, c.instances[1].hits.Load()-before, 150, balance)
		})
	}
}

// refuses is a provider's guard, as Triple's client hears it.
func refuses(c *consumer, after time.Duration) func(context.Context) error {
	e := call.RejectError{Guard: "executes", Resource: c.service + "#Get", Reason: "concurrency", Limit: 5, Observed: 5, RetryAfter: after}
	return func(context.Context) error {
		te := triple_protocol.NewWireError(triple_protocol.CodeResourceExhausted, errors.New(e.Error()))
		for _, f := range e.Fields() {
			te.Meta().Set("weir-"+f.Key, f.Value)
		}
		return te
	}
}

// A call that was refused goes to the other one, whatever the numbers say, and the one
// that refuses gets fewer calls; none at all for as long as it says so.
func TestProviderThatRefuses(t *testing.T) {
	for _, balance := range all {
		synctest.Test(t, func(t *testing.T) {
			c := refer(t, balance, "failover", nil, takes(20*ms), nil, takes(20*ms))
			c.instances[1].handle = refuses(c, 0)
			assert.Zero(t, c.run(10, 100), balance)
			assert.Less(t, c.instances[1].hits.Load(), int64(100), balance)
			assert.Less(t, c.record(1).Succeeding(guard.Now()), 1.0)
			c.atRest(t)

			c = refer(t, balance, "failfast", nil, takes(20*ms), nil, takes(20*ms))
			c.instances[1].handle = refuses(c, 10*time.Second)
			assert.LessOrEqual(t, c.run(10, 100), int64(10), balance) // those that are under way
			assert.LessOrEqual(t, c.instances[1].hits.Load(), int64(10), balance)
			c.atRest(t)
		})
	}
}

// Where all but one refuse, the one gets the call at the second try: the first one that
// refused it is not tried again.
func TestTheOneThatAdmits(t *testing.T) {
	for _, balance := range all {
		synctest.Test(t, func(t *testing.T) {
			c := refer(t, balance, "failover", nil, takes(20*ms), nil)
			c.instances[1].handle = refuses(c, 0)
			for range 1000 {
				c.peer(0).Begin() // so the numbers speak for the other one
			}
			for range 100 {
				require.NoError(t, c.call(context.Background()), balance)
			}
		})
	}
}

// An instance whose breaker is open is avoided: with no try left no call fails.
func TestOpenBreaker(t *testing.T) {
	for _, balance := range all {
		synctest.Test(t, func(t *testing.T) {
			var sick atomic.Bool
			sick.Store(true)
			c := refer(t, balance, "failfast", map[string]string{"breaker.consecutive-errors": "3", "breaker.open-for": "10s", "breaker.open-jitter": "0"},
				takes(20*ms), takes(20*ms), func(ctx context.Context) error {
					if sick.Load() {
						return triple_protocol.NewError(triple_protocol.CodeUnavailable, errors.New("no"))
					}
					return takes(20 * ms)(ctx)
				})
			for c.record(2).AvoidedFor(guard.Now()) <= 0 {
				_ = c.call(context.Background())
			}
			assert.EqualValues(t, 3, c.instances[2].hits.Load())
			assert.Zero(t, c.run(20, 20), "%s: with 0.4 s gone and the breaker open", balance)
			assert.EqualValues(t, 3, c.instances[2].hits.Load())
			sick.Store(false)
			time.Sleep(10 * time.Second) //nolint:forbidigo // synctest
			assert.Zero(t, c.run(20, 200), "%s: while one call probes the others are sent elsewhere", balance)
			assert.Greater(t, c.instances[2].hits.Load(), int64(400), "%s: it is closed again", balance)
			c.atRest(t)
		})
	}
}

// Whatever the breaker says, a call goes somewhere.
func TestAllOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := refer(t, loadbalance.LeastActive, "failover", map[string]string{"breaker.force": "open", "breaker.error-ratio": "50%"}, takes(ms), takes(ms))
		err := c.call(context.Background())
		var e *call.RejectError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, "forced", e.Reason)
		c.atRest(t)
	})
}

func TestEveryWayOut(t *testing.T) {
	for _, balance := range all {
		synctest.Test(t, func(t *testing.T) {
			c := refer(t, balance, "failfast", nil,
				func(context.Context) error { panic("no") },
				func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			for range 50 {
				func() {
					defer func() { _ = recover() }()
					ctx, cancel := context.WithTimeout(context.Background(), 10*ms)
					defer cancel()
					_ = c.call(ctx)
				}()
			}
			c.atRest(t)
			// A call that its own caller gives up says nothing of the instance.
			c = refer(t, balance, "failfast", nil, takes(time.Second), takes(time.Second))
			for range 20 {
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(10*ms, cancel)
				require.Error(t, c.call(ctx))
			}
			for i := range c.instances {
				assert.InDelta(t, 1, c.record(i).Succeeding(guard.Now()), 0)
			}
			c.atRest(t)
		})
	}
}

// A call that was not answered in time took at least as long as its caller waited.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := refer(t, loadbalance.ShortestResponse, "failfast", nil, takes(time.Hour), takes(time.Hour))
		for range 4 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			require.Error(t, c.call(ctx))
			cancel()
		}
		assert.Equal(t, time.Second, c.record(0).Response(guard.Now()))
		c.atRest(t)
	})
}

func TestClusters(t *testing.T) {
	for _, balance := range all {
		synctest.Test(t, func(t *testing.T) {
			c := refer(t, balance, "broadcast", nil, takes(ms), takes(ms), takes(ms))
			assert.Zero(t, c.run(1, 10))
			for i := range c.instances {
				assert.EqualValues(t, 10, c.instances[i].hits.Load(), balance)
			}
			c.atRest(t)

			c = refer(t, balance, "forking", map[string]string{"forks": "2", "timeout": "1000"}, takes(ms), takes(ms), takes(ms))
			assert.Zero(t, c.run(1, 30))
			synctest.Wait()
			var hits int64
			for i := range c.instances {
				hits += c.instances[i].hits.Load()
				assert.LessOrEqual(t, c.instances[i].hits.Load(), int64(30), "%s: a call goes to two different ones", balance)
			}
			assert.EqualValues(t, 60, hits, balance)
			time.Sleep(time.Second) //nolint:forbidigo // synctest
			c.atRest(t)
		})
	}
}

// What a call waits here for its turn is not how long the instance takes.
func TestWaitsAreNoResponseTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := refer(t, loadbalance.ShortestResponse, "failfast", map[string]string{"actives": "1"}, takes(20*ms), takes(20*ms))
		assert.Zero(t, c.run(20, 20))
		for i := range c.instances {
			assert.Equal(t, 20*ms, c.record(i).Response(guard.Now()))
			assert.InDelta(t, 200, c.instances[i].hits.Load(), 40)
		}
		c.atRest(t)
	})
}

// Calls that only open a stream are no measure of speed.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := refer(t, loadbalance.ShortestResponse, "failfast", nil, takes(ms), takes(ms))
		for range 20 {
			inv := invocation.NewRPCInvocation("Get", []any{1}, map[string]any{})
			inv.SetAttribute(constant.CallTypeKey, constant.CallServerStream)
			require.NoError(t, c.cluster.Invoke(context.Background(), inv).Error())
		}
		for i := range c.instances {
			assert.Zero(t, c.record(i).Response(guard.Now()))
			assert.Positive(t, c.instances[i].hits.Load())
		}
		c.atRest(t)
	})
}

// Where dubbo does not know a reference's methods, the load balance that the provider
// publishes wins over the reference's own. It is set right by the first calls.
func TestTheReferencesOwnLoadBalance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := refer(t, "random", "failover", nil, takes(5*ms), takes(500*ms))
		c.ref.LoadBalance = loadbalance.LeastActive
		assert.Zero(t, c.run(4, 1))
		assert.Zero(t, c.run(20, 100))
		assert.Less(t, c.instances[1].hits.Load(), int64(300))
	})
	synctest.Test(t, func(t *testing.T) { // one of dubbo's is not Weir's to set right
		c := refer(t, loadbalance.LeastActive, "failover", nil, takes(5*ms), takes(5*ms))
		c.ref.LoadBalance = "random"
		assert.Zero(t, c.run(4, 5))
		for _, i := range c.instances {
			assert.Equal(t, loadbalance.LeastActive, i.GetURL().GetParam(constant.LoadbalanceKey, ""))
		}
	})
}
