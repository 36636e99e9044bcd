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

package executelimit_test

import (
	"context"
	"strings"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

type instant struct {
	base.BaseInvoker
	res result.Result
}

func (i *instant) Invoke(context.Context, base.Invocation) result.Result { return i.res }

func bench(b *testing.B, service string, params map[string]string) (*guard.Guard, base.Invoker, base.Invocation) {
	b.Helper()
	u := benchURL(service, params)
	inv := &instant{BaseInvoker: *base.NewBaseInvoker(u), res: &result.RPCResult{}}
	return guard.New(guard.Process(), conf.Provider), inv, invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
}

func benchURL(service string, params map[string]string) *common.URL {
	opts := []common.Option{
		common.WithProtocol("tri"), common.WithPath(service), common.WithIp("127.0.0.1"), common.WithPort("20000"),
		common.WithMethods(strings.Split("SayHello,SayBye,List,Get,Put,Delete", ",")), common.WithInterface(service),
	}
	for k, v := range params {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	return common.NewURLWithOptions(opts...)
}

func run(b *testing.B, g *guard.Guard, next base.Invoker, inv base.Invocation) {
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		g.Invoke(ctx, next, inv)
	}
}

func BenchmarkStub(b *testing.B) {
	_, next, inv := bench(b, "bench.Stub", nil)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		next.Invoke(ctx, inv)
	}
}

func BenchmarkIdle(b *testing.B) {
	g, next, inv := bench(b, "bench.Idle", nil)
	run(b, g, next, inv)
}

func BenchmarkAdmitted(b *testing.B) {
	g, next, inv := bench(b, "bench.Admitted", map[string]string{"methods.SayHello.executes": "100", "weir.stats": "false"})
	run(b, g, next, inv)
}

func BenchmarkAdmittedWithStats(b *testing.B) {
	g, next, inv := bench(b, "bench.AdmittedStats", map[string]string{"methods.SayHello.executes": "100"})
	run(b, g, next, inv)
}

func BenchmarkAdmittedParallel(b *testing.B) {
	g, next, _ := bench(b, "bench.AdmittedParallel", map[string]string{"methods.SayHello.executes": "100000", "weir.stats": "false"})
	ctx := context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		inv := invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
		for pb.Next() {
			g.Invoke(ctx, next, inv)
		}
	})
}

type blocking struct {
	base.BaseInvoker
	entered, release chan struct{}
}

func (i *blocking) Invoke(context.Context, base.Invocation) result.Result {
	i.entered <- struct{}{}
	<-i.release
	return &result.RPCResult{}
}

func BenchmarkRefused(b *testing.B) {
	g, next, inv := bench(b, "bench.Refused", map[string]string{"methods.SayHello.executes": "1"})
	hold := &blocking{BaseInvoker: *base.NewBaseInvoker(next.GetURL()), entered: make(chan struct{}), release: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		g.Invoke(context.Background(), hold, inv)
		close(done)
	}()
	<-hold.entered
	run(b, g, next, inv)
	require.ErrorIs(b, g.Invoke(context.Background(), next, inv).Error(), call.ErrRejected)
	close(hold.release)
	<-done
}

func BenchmarkCoreAdmitted(b *testing.B) {
	l := concurrency.New(10)
	b.ReportAllocs()
	for b.Loop() {
		if l.TryAcquire() {
			l.Release()
		}
	}
}

func BenchmarkCoreRefused(b *testing.B) {
	l := concurrency.New(1)
	l.TryAcquire()
	b.ReportAllocs()
	for b.Loop() {
		if l.TryAcquire() {
			b.Fatal("admitted")
		}
	}
}
