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
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	clusterpkg "dubbo.apache.org/dubbo-go/v3/cluster/cluster"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/available"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/broadcast"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/failback"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/failfast"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/failover"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/forking"
	"dubbo.apache.org/dubbo-go/v3/cluster/directory/static"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/random"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/loadbalance/roundrobin"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/protocolwrapper"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
)

// instance is a provider as a consumer sees it.
type instance struct {
	base.BaseInvoker
	hits   atomic.Int64
	mu     sync.Mutex
	callee func(inv base.Invocation) error
	ids    map[any]int
}

func (i *instance) Invoke(_ context.Context, inv base.Invocation) result.Result {
	i.hits.Add(1)
	i.mu.Lock()
	if i.ids == nil {
		i.ids = map[any]int{}
	}
	i.ids[inv.Arguments()[0]]++
	i.mu.Unlock()
	return &result.RPCResult{Err: i.callee(inv), Rest: "ok"}
}

var sequence atomic.Int64

// reference is a consumer of some instances, joined by one of dubbo's clusters.
type reference struct {
	service   string
	ref       *retry.Reference
	instances []*instance
	cluster   base.Invoker
}

func refer(t *testing.T, cluster string, params map[string]string, callees ...func(*reference) func(base.Invocation) error) *reference {
	t.Helper()
	r := &reference{service: fmt.Sprintf("retry.Service%d", sequence.Add(1))}
	parsed := conf.ParseParams(conf.Consumer, r.service, params)
	require.Empty(t, parsed.Faults)
	r.ref = retry.NewReference(&parsed.Service)
	filters := "weir-consumer"
	if cluster == constant.ClusterKeyForking {
		filters = "weir-fork," + filters
	}
	var invokers []base.Invoker
	for n, callee := range callees {
		u := common.NewURLWithOptions(
			common.WithProtocol("tri"), common.WithPath(r.service), common.WithInterface(r.service),
			common.WithIp("127.0.0.1"), common.WithPort(fmt.Sprint(20000+n)), common.WithMethods([]string{"SayHello"}),
			common.WithParamsValue(constant.ReferenceFilterKey, filters),
			common.WithParamsValue(constant.ClusterKey, cluster),
			common.WithParamsValue(constant.LoadbalanceKey, "random"),
		)
		for k, v := range params {
			u.SetParam(k, v)
		}
		u.SetAttribute(retry.AttributeKey, r.ref)
		i := &instance{BaseInvoker: *base.NewBaseInvoker(u), callee: callee(r)}
		r.instances = append(r.instances, i)
		invokers = append(invokers, protocolwrapper.BuildInvokerChain(i, constant.ReferenceFilterKey))
	}
	c, err := extension.GetCluster(cluster)
	require.NoError(t, err)
	r.cluster = c.Join(static.NewDirectory(invokers))
	return r
}

var calls atomic.Int64

func (r *reference) call() error { return r.invoke(r.invocation()) }

func (r *reference) invocation() *invocation.RPCInvocation {
	return invocation.NewRPCInvocation("SayHello", []any{calls.Add(1)}, map[string]any{})
}

func (r *reference) invoke(inv base.Invocation) error {
	return r.cluster.Invoke(context.Background(), inv).Error()
}

func (r *reference) hits() int64 {
	var n int64
	for _, i := range r.instances {
		n += i.hits.Load()
	}
	return n
}

// twice are the calls that some instance got more than once.
func (r *reference) twice() int {
	n := 0
	for _, i := range r.instances {
		i.mu.Lock()
		for _, hits := range i.ids {
			if hits > 1 {
				n++
			}
		}
		i.mu.Unlock()
	}
	return n
}

func serves(*reference) func(base.Invocation) error {
	return func(base.Invocation) error { return nil }
}

func fails(*reference) func(base.Invocation) error {
	return func(base.Invocation) error { return errors.New("connection refused") }
}

func refusal(r *reference) call.RejectError {
	return call.RejectError{Guard: "executes", Resource: r.service + "#SayHello", Reason: "concurrency", Limit: 5, Observed: 5}
}

// full refuses as a provider's Guard does on Triple.
func full(r *reference) func(base.Invocation) error {
	e := refusal(r)
	return func(base.Invocation) error { return wire(e) }
}

func wire(e call.RejectError) error {
	code := triple_protocol.CodeResourceExhausted
	if e.Forwarded {
		code = triple_protocol.CodeBizError
	}
	te := triple_protocol.NewWireError(code, errors.New(e.Error()))
	for _, f := range e.Fields() {
		te.Meta().Set("weir-"+f.Key, f.Value)
	}
	return te
}

// fullWhile refuses as full does while the switch is on, and serves otherwise.
func fullWhile(on *atomic.Bool) func(*reference) func(base.Invocation) error {
	return func(r *reference) func(base.Invocation) error {
		e := refusal(r)
		return func(base.Invocation) error {
			if on.Load() {
				return wire(e)
			}
			return nil
		}
	}
}

// fullDubbo refuses as a provider's Guard does on the dubbo protocol.
func fullDubbo(r *reference) func(base.Invocation) error {
	e := refusal(r)
	return func(base.Invocation) error {
		return &hessian2.GenericException{ExceptionClass: "org.apache.dubbo.rpc.RpcException", ExceptionMessage: e.Error()}
	}
}

func requireTyped(t *testing.T, err error, forwarded bool) {
	t.Helper()
	e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself, not a wrapper
	require.True(t, ok, "%T: %v", err, err)
	require.Equal(t, "executes", e.Guard)
	require.EqualValues(t, 5, e.Limit)
	require.Equal(t, forwarded, e.Forwarded)
	var te *triple_protocol.Error
	require.NotErrorAs(t, err, &te, "a handler that passes it on must not show dubbo a Triple error")
}

func TestARefusedCallHitsTheOnlyInstanceOnce(t *testing.T) { // N16
	for name, callee := range map[string]func(*reference) func(base.Invocation) error{"triple": full, "dubbo": fullDubbo} {
		r := refer(t, "failover", nil, callee)
		for range 50 {
			requireTyped(t, r.call(), false)
		}
		require.EqualValues(t, 50, r.hits(), name)
	}
}

func TestOneFullInstanceOfTwoCostsNobodyACall(t *testing.T) {
	// In registry mode the merged URL says side=provider; the filter is a consumer's
	// all the same (H13).
	r := refer(t, "failover", map[string]string{"side": "provider"}, full, serves)
	for range 500 {
		require.NoError(t, r.call())
	}
	require.Zero(t, r.twice())
	require.Positive(t, r.instances[0].hits.Load())
}

func TestOneFullInstanceOfTwoUnderABurst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for _, n := range []int{2, 5} {
		callees := []func(*reference) func(base.Invocation) error{full}
		gate := make(chan struct{})
		for range n - 1 {
			callees = append(callees, func(*reference) func(base.Invocation) error {
				return func(base.Invocation) error { <-gate; return nil }
			})
		}
		r := refer(t, "failover", nil, callees...)
		var wg sync.WaitGroup
		var failed atomic.Int64
		for range 300 {
			wg.Go(func() {
				if r.call() != nil {
					failed.Add(1)
				}
			})
		}
		// Calls end only after all of them were sent to an instance that keeps them.
		for held := int64(0); held < 300; {
			held = 0
			for _, i := range r.instances[1:] {
				held += i.hits.Load()
			}
			if failed.Load() > 0 {
				break
			}
			runtime.Gosched()
		}
		close(gate)
		wg.Wait()
		require.Zero(t, failed.Load(), "%d instances", n)
		require.Zero(t, r.twice())
	}
}

func TestAllFullIsBoundedByTheBudget(t *testing.T) {
	for _, parallel := range []int{1, 64} {
		r := refer(t, "failover", nil, full, fullDubbo)
		var wg sync.WaitGroup
		const each = 1024
		for range parallel {
			wg.Go(func() {
				for range each / parallel {
					requireTyped(t, r.call(), false)
				}
			})
		}
		wg.Wait()
		require.Zero(t, r.twice(), "an instance that refused a call does not get it again")
		// A tenth of the calls, what the start gives, what runs in parallel before
		// the first refusals are known, and one per second of a slow machine.
		require.LessOrEqual(t, r.hits(), int64(each+each/10+1+parallel+60))
		require.GreaterOrEqual(t, r.hits(), int64(each))
	}
}

func TestTriesOnOtherInstancesCanBeTurnedOff(t *testing.T) {
	r := refer(t, "failover", map[string]string{"weir.retry-refused": "0"}, full, serves)
	refused := 0
	for range 200 {
		if err := r.call(); err != nil {
			requireTyped(t, err, false)
			refused++
		}
	}
	require.EqualValues(t, 200, r.hits())
	require.EqualValues(t, r.instances[0].hits.Load(), refused)
}

func TestRetriesZeroAndFailfastGetNoOtherTry(t *testing.T) {
	for _, tt := range []struct {
		cluster string
		params  map[string]string
	}{
		{"failover", map[string]string{"retries": "0"}},
		{"failover", map[string]string{"methods.SayHello.retries": "0"}},
		{"failfast", nil},
	} {
		r := refer(t, tt.cluster, tt.params, full, full)
		for range 50 {
			requireTyped(t, r.call(), false)
		}
		require.EqualValues(t, 50, r.hits(), "%v", tt)
	}
}

func TestARefusalFromFurtherDownIsNeverRetried(t *testing.T) {
	down := func(r *reference) func(base.Invocation) error {
		e := refusal(r)
		e.Forwarded = true
		return func(base.Invocation) error { return wire(e) }
	}
	elsewhere := func(r *reference) func(base.Invocation) error {
		e := refusal(r)
		e.Resource = "further.Down#Get" // no guard stood to stamp it
		return func(base.Invocation) error { return wire(e) }
	}
	passedOn := func(r *reference) func(base.Invocation) error {
		text := wire(refusal(r)).(*triple_protocol.Error).Message() //nolint:errorlint // made above
		return func(base.Invocation) error {
			return triple_protocol.NewWireError(triple_protocol.CodeBizError, errors.New(text))
		}
	}
	throwable := func(r *reference) func(base.Invocation) error {
		e := refusal(r)
		return func(base.Invocation) error {
			return &hessian2.GenericException{ExceptionClass: "java.lang.Throwable", ExceptionMessage: e.Error()}
		}
	}
	for name, callee := range map[string]func(*reference) func(base.Invocation) error{
		"stamped": down, "another resource": elsewhere, "a business error's text": passedOn, "a throwable's text": throwable,
	} {
		t.Run(name, func(t *testing.T) {
			r := refer(t, "failover", nil, callee, callee)
			for range 20 {
				requireTyped(t, r.call(), true)
			}
			require.EqualValues(t, 20, r.hits())
			require.False(t, r.ref.Full(r.instances[0].GetURL().Location), "no fault of the instance")
		})
	}
}

func TestABusinessErrorThatQuotesARefusalIsNone(t *testing.T) {
	quoting := func(r *reference) func(base.Invocation) error {
		e := refusal(r)
		return func(base.Invocation) error {
			return triple_protocol.NewWireError(triple_protocol.CodeBizError, errors.New("order 7 failed: "+e.Error()))
		}
	}
	r := refer(t, "failover", nil, quoting)
	err := r.call()
	require.Error(t, err)
	require.NotErrorIs(t, err, call.ErrRejected)
	require.ErrorContains(t, err, "order 7 failed")
}

func TestTransportErrorsAreRetriedAsBefore(t *testing.T) {
	r := refer(t, "failover", nil, fails, serves, fails)
	served := 0
	for range 100 {
		if r.call() == nil {
			served++
		}
	}
	require.Equal(t, 100, served, "three attempts reach the one that serves")

	mixed := refer(t, "failover", nil, fails, full, serves)
	for range 200 {
		require.NoError(t, mixed.call(), "a refusal after a broken connection still leaves one try")
	}
	require.Zero(t, mixed.twice())
}

func TestAnInvocationThatIsUsedAgainStartsWithoutAPast(t *testing.T) {
	var refuse atomic.Bool
	refuse.Store(true)
	r := refer(t, "failover", nil, fullWhile(&refuse))
	inv := r.invocation()
	requireTyped(t, r.invoke(inv), false)
	refuse.Store(false)
	require.NoError(t, r.invoke(inv))
	require.EqualValues(t, 2, r.hits())
}

func TestClustersThatCallSeveralInstances(t *testing.T) {
	for _, cluster := range []string{"broadcast", "forking", "available"} {
		t.Run(cluster, func(t *testing.T) {
			r := refer(t, cluster, nil, full, full)
			for range 30 {
				require.ErrorIs(t, r.call(), call.ErrRejected)
			}
			require.Zero(t, r.twice())
		})
	}
	t.Run("broadcast reaches those behind a full one without a budget", func(t *testing.T) {
		r := refer(t, "broadcast", nil, full, serves, full)
		for range 30 {
			require.Error(t, r.call())
		}
		for _, i := range r.instances {
			require.EqualValues(t, 30, i.hits.Load())
		}
	})
}

func TestFullInstancesAreKnownUntilTheyServeAgain(t *testing.T) {
	var refuse atomic.Bool
	refuse.Store(true)
	r := refer(t, "failover", nil, fullWhile(&refuse))
	address := r.instances[0].GetURL().Location
	require.False(t, r.ref.Full(address))
	require.Error(t, r.call())
	require.True(t, r.ref.Full(address))
	refuse.Store(false)
	require.NoError(t, r.call())
	require.False(t, r.ref.Full(address))
}

func TestNestedInterceptorsUnwrapOnce(t *testing.T) {
	r := refer(t, "failover", nil, full)
	outer := clusterpkg.BuildInterceptorChain(r.cluster)
	res := outer.Invoke(context.Background(), r.invocation())
	requireTyped(t, res.Error(), false)
}

func TestWithoutAnInterceptorNothingIsWrapped(t *testing.T) {
	r := refer(t, "failover", nil, full)
	u := r.instances[0].GetURL()
	next := protocolwrapper.BuildInvokerChain(r.instances[0], constant.ReferenceFilterKey)
	requireTyped(t, next.Invoke(context.Background(), r.invocation()).Error(), false)
	require.NotNil(t, u)
}

func TestTheRefusalOfAProvidersGuardInTheSameProcess(t *testing.T) {
	gate, entered := make(chan struct{}), make(chan struct{})
	callee := func(r *reference) func(base.Invocation) error {
		u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(r.service), common.WithInterface(r.service),
			common.WithMethods([]string{"SayHello"}), common.WithParamsValue("executes", "1"))
		g := guard.New(guard.NewRuntime(), conf.Provider)
		return func(inv base.Invocation) error {
			return g.Invoke(context.Background(), &leaf{*base.NewBaseInvoker(u), func(base.Invocation) error {
				close(entered)
				<-gate
				return nil
			}}, inv).Error()
		}
	}
	r := refer(t, "failover", nil, callee)
	done := make(chan error)
	go func() { done <- r.call() }()
	<-entered
	e, ok := call.As(r.call())
	require.True(t, ok)
	require.EqualValues(t, 1, e.Limit)
	require.False(t, e.Forwarded)
	close(gate)
	require.NoError(t, <-done)
}

type leaf struct {
	base.BaseInvoker
	f func(base.Invocation) error
}

func (l *leaf) Invoke(_ context.Context, inv base.Invocation) result.Result {
	return &result.RPCResult{Err: l.f(inv)}
}
