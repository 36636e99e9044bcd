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
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clusterpkg "dubbo.apache.org/dubbo-go/v3/cluster/cluster"
	_ "dubbo.apache.org/dubbo-go/v3/cluster/cluster/failsafe"
	"dubbo.apache.org/dubbo-go/v3/cluster/directory/static"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	_ "dubbo.apache.org/dubbo-go/v3/filter/generic"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/protocolwrapper"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/apache/dubbo-go-hessian2"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/retry"
)

// Once: dubbo's generic filter makes a new invocation per attempt, so what the
// first attempt left on it is gone: instances that refused are called again, and
// no budget bounds it. Weir's place is behind that filter by default.
func TestAttackAGenericCallIsNotSentTwice(t *testing.T) {
	for name, inv := range map[string]func(id int64) base.Invocation{
		"generic call": func(id int64) base.Invocation {
			return invocation.NewRPCInvocation(constant.Generic, []any{"SayHello", []string{"long"}, []hessian.Object{id}}, map[string]any{})
		},
		"typed call of a generic service": func(id int64) base.Invocation {
			return invocation.NewRPCInvocation("SayHello", []any{id}, map[string]any{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := refer(t, "failover", map[string]string{
				constant.GenericKey: "true", constant.ReferenceFilterKey: "weir-consumer,generic", // as internal/chain places it
			}, full, full)
			const n = 100
			for id := range int64(n) {
				require.ErrorIs(t, r.invoke(inv(id)), call.ErrRejected)
			}
			require.LessOrEqual(t, r.hits(), int64(n+n/10+1+60))
		})
	}
}

// Once: a reference to several groups ("a,b" or "*") is a cluster of clusters
// (registry/directory toGroupInvokers). The inner interceptor unwraps the
// refusal and closes the call, and the outer failover starts all over.
func TestAttackClustersOfClusters(t *testing.T) {
	r := refer(t, "failover", nil, full, full, full, full)
	var groups []base.Invoker
	c, err := extension.GetCluster("failover")
	require.NoError(t, err)
	for g := range 2 {
		var members []base.Invoker
		for _, i := range r.instances[2*g : 2*g+2] {
			members = append(members, protocolwrapper.BuildInvokerChain(i, constant.ReferenceFilterKey))
		}
		groups = append(groups, c.Join(static.NewDirectory(members)))
	}
	r.cluster = c.Join(static.NewDirectory(groups))
	const n = 100
	for range n {
		requireTyped(t, r.call(), false)
	}
	require.Zero(t, r.twice(), "an instance that refused a call got it again")
	require.LessOrEqual(t, r.hits(), int64(n+n/10+1+60))
}

// A reference that turns from one group into several: the outer interceptor has
// been alone until now.
func TestAttackAReferenceThatTurnsIntoAClusterOfClusters(t *testing.T) {
	r := refer(t, "failover", nil, full, full)
	requireTyped(t, r.call(), false)
	c, err := extension.GetCluster("failover")
	require.NoError(t, err)
	var members []base.Invoker
	for _, i := range r.instances {
		members = append(members, protocolwrapper.BuildInvokerChain(i, constant.ReferenceFilterKey))
	}
	inner := c.Join(static.NewDirectory(members))
	before := r.hits()
	inv := r.invocation()
	// The outer one does not know yet that it is not alone, so it has not marked
	// the call; what is inside must not end it.
	res := inner.Invoke(context.Background(), inv)
	var last *retry.Last
	require.ErrorAs(t, res.Error(), &last, "the loop around must end, too")
	require.LessOrEqual(t, r.hits()-before, int64(2))
	require.Zero(t, r.twice())
}

// Once: free tries that are refused at the same time make a debt without a
// bound; until it is paid, one full instance of two costs calls again.
func TestAttackADebtDoesNotCostCallsThatAnotherInstanceServes(t *testing.T) {
	gate := make(chan struct{})
	var recovered atomic.Bool
	r := refer(t, "failover", nil, full, func(r *reference) func(base.Invocation) error {
		e := refusal(r)
		return func(base.Invocation) error {
			if recovered.Load() {
				return nil
			}
			<-gate
			return wire(e)
		}
	})
	// A burst in which the second instance is slower to refuse than the first.
	require.Error(t, r.callOn(0), "the reference has met a refusal before")
	var wg sync.WaitGroup
	const burst = 400
	for range burst {
		wg.Go(func() { _ = r.call() })
	}
	for r.instances[1].hits.Load() < burst {
		runtime.Gosched()
	}
	close(gate)
	wg.Wait()

	recovered.Store(true)
	for r.ref.Full(r.instances[1].GetURL().Location) {
		_ = r.call()
	}
	failed := 0
	for range 200 {
		if r.call() != nil {
			failed++
		}
	}
	require.Zero(t, failed, "of 200 calls; the second instance serves them all")
}

// callOn sends a call to one instance.
func (r *reference) callOn(n int) error { return r.sendOn(n, r.invocation()) }

func (r *reference) sendOn(n int, inv base.Invocation) error {
	next := protocolwrapper.BuildInvokerChain(r.instances[n], constant.ReferenceFilterKey)
	return next.Invoke(context.Background(), inv).Error()
}

// Once: in registry mode a provider's own cluster param (failover by default)
// wins over the reference's in the merged URL when the reference knows no
// methods, as for all references without generated client info. Weir then takes
// a broadcast for a failover and keeps it from instances.
func TestAttackTheClusterIsTheReferencesOwn(t *testing.T) {
	r := refer(t, "broadcast", nil, full, full, serves, serves)
	r.ref.Cluster = "broadcast" // as internal/chain keeps it
	reference := common.NewURLWithOptions(common.WithPath(r.service), common.WithInterface(r.service), common.WithMethods(nil),
		common.WithParamsValue(constant.ClusterKey, "broadcast"), common.WithParamsValue(constant.ReferenceFilterKey, "weir-consumer"),
		common.WithParamsValue(constant.LoadbalanceKey, "random"))
	reference.SetAttribute(retry.AttributeKey, r.ref)
	var invokers []base.Invoker
	for n, i := range r.instances {
		provider := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(r.service), common.WithInterface(r.service),
			common.WithIp("127.0.0.1"), common.WithPort(fmt.Sprint(20000+n)), common.WithMethods([]string{"SayHello"}),
			common.WithParamsValue(constant.ClusterKey, "failover")) // server/action.go writes it
		i.BaseInvoker = *base.NewBaseInvoker(provider.MergeURL(reference))
		invokers = append(invokers, protocolwrapper.BuildInvokerChain(i, constant.ReferenceFilterKey))
	}
	c, err := extension.GetCluster("broadcast")
	require.NoError(t, err)
	r.cluster = c.Join(static.NewDirectory(invokers))
	for range 30 {
		require.Error(t, r.call())
	}
	for n, i := range r.instances {
		require.EqualValues(t, 30, i.hits.Load(), "instance %d", n)
	}
}

// Once: where no Guard stood in the middle, a refusal by another group or
// version of the interface is taken for the called instance's own.
func TestAttackARefusalOfAnotherGroupOrVersionIsForwarded(t *testing.T) {
	for _, other := range []string{"backend/%s", "%s:2.0.0", "backend/%s:2.0.0"} {
		callee := func(r *reference) func(base.Invocation) error {
			e := refusal(r)
			e.Resource = call.Resource(fmt.Sprintf(other, r.service), "SayHello")
			return func(base.Invocation) error { return wire(e) }
		}
		r := refer(t, "failover", map[string]string{"group": "gateway", "version": "1.0.0"}, callee, callee)
		for range 20 {
			requireTyped(t, r.call(), true)
		}
		require.EqualValues(t, 20, r.hits(), other)
	}
}

// Once: a fork that is refused after its call is over leaves a past on the
// invocation, which a program may use again.
func TestAttackALateForkLeavesNoPast(t *testing.T) {
	gate, answered := make(chan struct{}), make(chan struct{})
	var refuse atomic.Bool
	refuse.Store(true)
	r := refer(t, "forking", nil, fullWhile(&refuse), func(r *reference) func(base.Invocation) error {
		e := refusal(r)
		return func(base.Invocation) error {
			if !refuse.Load() {
				return nil
			}
			<-gate
			defer close(answered)
			return wire(e)
		}
	})
	require.Error(t, r.callOn(0), "the reference has met a refusal before")
	inv := r.invocation()
	require.ErrorIs(t, r.invoke(inv), call.ErrRejected)
	close(gate)
	<-answered
	address := r.instances[1].GetURL().Location
	for !r.ref.Full(address) { // the late fork has been noted
		runtime.Gosched()
	}
	for range 1000 {
		runtime.Gosched()
	}
	refuse.Store(false)
	require.NoError(t, r.invoke(inv), "the invocation is used again")
}

// Once: the larger of the two gains is taken per refill, not over time, so a
// rhythm of bursts gets both.
func TestAttackTheBudgetIsTheLargerOfTheTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := refer(t, "failover", nil, full, full)
		const seconds, each = 300, 10
		for range seconds {
			for range each {
				_ = r.call()
			}
			time.Sleep(time.Second) //nolint:forbidigo // synctest
		}
		const n = seconds * each
		extra := r.hits() - n
		t.Logf("%d calls, %d second tries", n, extra)
		require.LessOrEqual(t, extra, int64(n/10+15))
	})
}

func TestAttackMarksOfChurningAddressesArePruned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref := retry.NewReference(&conf.Service{})
		e := call.NewRejectError(call.RejectError{Guard: "executes"}, nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for n := range 5000 {
			inv := invocation.NewRPCInvocation("m", nil, nil)
			_ = ref.Refused(retry.Attempt{}, inv, fmt.Sprintf("10.0.%d.%d:1", n/256, n%256), retry.Policy{Failover: true, Retries: 2}, e)
			if n%50 == 49 {
				time.Sleep(2 * retry.AvoidFor) //nolint:forbidigo // synctest
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<20))
		require.False(t, ref.Full("10.0.0.1:1"))
	})
}

func TestAttackStickyAndRetriesAttachments(t *testing.T) {
	r := refer(t, "failover", map[string]string{"sticky": "true"}, full, full)
	for range 100 {
		requireTyped(t, r.call(), false)
	}
	require.Zero(t, r.twice())
	for _, retries := range []any{"0", []string{"0"}, "-1"} {
		r = refer(t, "failover", nil, full, full)
		for range 30 {
			inv := r.invocation()
			inv.SetAttachment(constant.RetriesKey, retries)
			require.Error(t, r.invoke(inv))
		}
		require.LessOrEqual(t, r.hits(), int64(30), "%v", retries)
	}
}

// Once: every interceptor of a nest (zone-aware over several registries,
// clusters of groups) counts the call, which doubles the budget.
func TestAttackNestedInterceptorsDoNotDoubleTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := refer(t, "failover", nil, full, full)
		outer := clusterpkg.BuildInterceptorChain(r.cluster)
		const n = 3000
		for range n {
			require.Error(t, outer.Invoke(context.Background(), r.invocation()).Error())
		}
		require.LessOrEqual(t, r.hits(), int64(n+n/10+2))
	})
}

func TestAttackAfterARefusalAnAttemptAllocatesNothing(t *testing.T) {
	for _, params := range []map[string]string{nil, {"weir.stats": "true"}} {
		r := refer(t, "failover", params, full, serves)
		require.Error(t, r.callOn(0))
		inv := r.invocation()
		end := &fixed{*base.NewBaseInvoker(r.instances[1].GetURL()), &result.RPCResult{}}
		next := protocolwrapper.BuildInvokerChain(end, constant.ReferenceFilterKey)
		require.Zero(t, testing.AllocsPerRun(100, func() { next.Invoke(context.Background(), inv) }))
	}
}

type fixed struct {
	base.BaseInvoker
	res result.Result
}

func (f *fixed) Invoke(context.Context, base.Invocation) result.Result { return f.res }

func TestAttackFailsafeAndFailbackKeepFromInstancesThatRefused(t *testing.T) {
	for _, cluster := range []string{"failsafe", "failback"} {
		r := refer(t, cluster, nil, full, full)
		for range 20 {
			inv := r.invocation()
			// Otherwise failback puts the call back into its list after its own timer
			// has run it, a second from now, and writes to what it reads there.
			inv.SetAttachment(constant.RetriesKey, "0")
			_ = r.invoke(inv)
		}
		require.Zero(t, r.twice(), cluster)
		require.EqualValues(t, 20, r.hits(), cluster)
	}
}
