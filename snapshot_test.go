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

package weir

import (
	"encoding/json"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/loadbalance"
)

// A snapshot shows every limit, whose it is, and what of it is used.
func TestSnapshotShowsTheLimits(t *testing.T) {
	rt := guard.NewRuntime()
	url := func(params map[string]string) *common.URL {
		u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("snap.B"), common.WithInterface("snap.B"),
			common.WithIp("127.0.0.1"), common.WithPort("1"), common.WithMethods([]string{"Get"}))
		u.Location = "127.0.0.1:1"
		for k, v := range params {
			u.SetParam(k, v)
		}
		return u
	}
	provider, consumer := guard.New(rt, conf.Provider), guard.New(rt, conf.Consumer)
	pu := url(map[string]string{"executes": "3", "tps.rate": "5/1h"})
	own := map[string]string{"actives": "2", "tps": "7", "tps.interval": "1h", "tps.algorithm": "bucket", "tps.burst": "4"}
	cu := url(own)
	parsed := conf.ParseParams(conf.Consumer, "snap.B", own)
	require.Empty(t, parsed.Faults)
	ref := retry.NewReference(&parsed.Service)
	cu.SetAttribute(retry.AttributeKey, ref)
	holdOne(t, provider, pu, "Get")
	holdOne(t, consumer, cu, "Get")

	var got []LimitState
	for _, l := range snapshot(rt).Limits {
		if l.Method == "Get" || l.Guard == "tps" {
			got = append(got, l)
		}
	}
	require.Equal(t, []LimitState{
		{
			Guard: "tps", Side: "consumer", Service: "snap.B", Method: "*", Reference: ref.ID,
			Limit: 7, Inflight: 1, Interval: time.Hour, Algorithm: conf.AlgorithmBucket, Burst: 4,
		},
		{Guard: "actives", Side: "consumer", Service: "snap.B", Method: "Get", Reference: ref.ID, Address: "127.0.0.1:1", Limit: 2, Inflight: 1},
		{
			Guard: "tps", Side: "provider", Service: "snap.B", Method: "*",
			Limit: 5, Inflight: 1, Interval: time.Hour, Algorithm: conf.AlgorithmSliding,
		},
		{Guard: "executes", Side: "provider", Service: "snap.B", Method: "Get", Scope: conf.ScopeMethod, Limit: 3, Inflight: 1},
	}, got)
	runtime.KeepAlive(provider)
	runtime.KeepAlive(consumer)
}

// A bulkhead is its method's, or that of its group.
func TestSnapshotShowsBulkheads(t *testing.T) {
	rt := guard.NewRuntime()
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("snap.Bulk"), common.WithInterface("snap.Bulk"),
		common.WithMethods([]string{"Get", "List", "Find"}))
	for k, v := range map[string]string{"bulkhead": "3", "bulkhead.queue": "2", "methods.List.bulkhead.group": "heavy", "methods.Find.bulkhead.group": "heavy"} {
		u.SetParam(k, v)
	}
	g := guard.New(rt, conf.Provider)
	for _, method := range []string{"Get", "List", "List", "Find"} {
		holdOne(t, g, u, method)
	}
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		attackCall(g, u, "Find", func() {})
	}()
	bulkheads := func() (out []LimitState) {
		for _, l := range snapshot(rt).Limits {
			if l.Guard == "bulkhead" && l.Method != "*" {
				out = append(out, l)
			}
		}
		return out
	}
	require.Eventually(t, func() bool { return bulkheads()[0].Waiting == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, []LimitState{
		{Guard: "bulkhead", Side: "provider", Group: "heavy", Limit: 3, Inflight: 3, Waiting: 1},
		{Guard: "bulkhead", Side: "provider", Service: "snap.Bulk", Method: "Get", Limit: 3, Inflight: 1},
	}, bulkheads())
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: conf.Off})
	<-waiting
	runtime.KeepAlive(g)
}

// A limit that was taken back is not told as one in force, though nothing has been
// called since and the garbage collector has not been there.
func TestSnapshotForgetsWhatWasTakenBack(t *testing.T) {
	rt := guard.NewRuntime()
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("snap.Gone"), common.WithInterface("snap.Gone"),
		common.WithMethods([]string{"Get"}))
	g := guard.New(rt, conf.Provider)
	limits := conf.Policies{Executes: &conf.Executes{Limit: conf.Of(5)}, TPS: &conf.TPS{Limit: conf.Of(60)}}
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Policies: limits}})
	attackCall(g, u, "Get", func() {})
	require.NotEmpty(t, snapshot(rt).Limits)
	rt.Store.Set(conf.FromCode, "code", &conf.Config{})
	require.Empty(t, snapshot(rt).Limits)
	rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Policies: limits}})
	require.NotEmpty(t, snapshot(rt).Limits, "again, without a call")
	runtime.KeepAlive(g)
}

// A snapshot shows every breaker, whose it is and what it has counted, and changes none.
func TestSnapshotShowsTheBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := guard.NewRuntime()
		u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("snap.Breakers"), common.WithInterface("snap.Breakers"),
			common.WithMethods([]string{"Get"}))
		g := guard.New(rt, conf.Provider)
		rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Policies: conf.Policies{Breaker: &conf.Breaker{
			ErrorRatio: conf.Of(conf.WholeRatio / 2), MinCalls: conf.Of(2), OpenJitter: conf.Of(conf.Ratio(0)),
		}}}})
		of := BreakerState{Side: "provider", Service: "snap.Breakers", Method: "Get"}
		is := func(change func(*BreakerState)) {
			t.Helper()
			want := of
			change(&want)
			var got []BreakerState
			for range 2 {
				got = snapshot(rt).Breakers
				require.Len(t, got, 2)
				require.Equal(t, want, got[1])
			}
			require.Equal(t, "*", got[0].Method)
		}
		attackCall(g, u, "Get", func() {})
		is(func(b *BreakerState) { b.State, b.Calls = "closed", 1 })
		require.Panics(t, func() { attackCall(g, u, "Get", func() { panic("broken") }) })
		time.Sleep(time.Second) //nolint:forbidigo // synctest
		open := func(b *BreakerState) { b.State, b.Reason, b.Limit, b.Observed = "open", "error-ratio", 50, 50 }
		is(func(b *BreakerState) { open(b); b.NextProbe = 4 * time.Second })
		time.Sleep(time.Hour) //nolint:forbidigo // synctest
		is(open)
		attackCall(g, u, "Get", func() { is(func(b *BreakerState) { open(b); b.State, b.Probes = "half-open", 1 }) })
		is(func(b *BreakerState) { b.State = "closed" })
		rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Policies: conf.Policies{Breaker: &conf.Breaker{Force: conf.ForceOpen}}}})
		is(func(b *BreakerState) { b.State, b.Forced, b.Reason = "open", true, "forced" })
		rt.Store.Set(conf.FromCode, "code", &conf.Config{})
		require.Empty(t, snapshot(rt).Breakers)
		runtime.KeepAlive(g)
	})
}

// balancedRuns tells the runs of a test apart: the balancers belong to the process.
var balancedRuns atomic.Int64

func TestSnapshotShowsTheBalances(t *testing.T) {
	service := "snapshot.Balanced" + strconv.FormatInt(balancedRuns.Add(1), 10)
	none := conf.ParseParams(conf.Consumer, "", nil).Service
	ref := retry.NewReference(&none)
	var invokers []base.Invoker
	for _, port := range []string{"1", "2"} {
		u := common.NewURLWithOptions(common.WithInterface(service), common.WithPath(service), common.WithIp("10.0.0.1"),
			common.WithPort(port), common.WithParamsValue(constant.WeightKey, "40"))
		u.SetAttribute(retry.AttributeKey, ref)
		invokers = append(invokers, base.NewBaseInvoker(u))
	}
	extension.GetLoadbalance(loadbalance.FewChoices).Select(invokers, invocation.NewRPCInvocation("Get", nil, nil))
	ref.Peers.Instance("10.0.0.1:2").Begin()
	i := slices.IndexFunc(Snapshot().Balances, func(b BalanceState) bool { return b.Service == service })
	require.GreaterOrEqual(t, i, 0)
	b := Snapshot().Balances[i]
	require.Equal(t, []string{"weir-p2c"}, b.Balancers)
	require.Len(t, b.Providers, 2)
	methods := []BalancedMethod{{Method: "get", Succeeding: 1}}
	require.Equal(t, BalancedProvider{Address: "10.0.0.1:1", Weight: 40, Score: 1.0 / 40, Methods: methods}, b.Providers[0])
	require.Equal(t, BalancedProvider{Address: "10.0.0.1:2", Weight: 40, Inflight: 1, Picks: 1, Score: 2.0 / 40, Methods: methods}, b.Providers[1])
	_, err := json.Marshal(Snapshot())
	require.NoError(t, err)
	runtime.KeepAlive(invokers)
}
