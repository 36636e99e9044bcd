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

package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"
	_ "dubbo.apache.org/dubbo-go/v3/filter/active"
	_ "dubbo.apache.org/dubbo-go/v3/filter/exec_limit"
	_ "dubbo.apache.org/dubbo-go/v3/filter/handler"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/afex/hystrix-go/hystrix"
	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/config"
	"github.com/alibaba/sentinel-golang/core/isolation"
	"github.com/alibaba/sentinel-golang/logging"
	"github.com/dubbogo/gost/log/logger"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/semaphore"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	_ "github.com/weir-go/weir/filter/activelimit"
	_ "github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/guard"
	_ "github.com/weir-go/weir/filter/overload"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

func TestMain(m *testing.M) {
	// dubbo-go's default logger, but for where it writes: a line is made and goes
	// nowhere, so no peer is measured by the speed of a terminal.
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02 15:04:05")
	logger.SetLogger(zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.AddSync(io.Discard), zapcore.InfoLevel),
		zap.AddCaller(), zap.AddCallerSkip(1)).Sugar())
	_ = logging.ResetGlobalLogger(silent{})
	dir, err := os.MkdirTemp("", "weir-bench")
	if err != nil {
		panic(err)
	}
	cfg := config.NewDefaultConfig()
	cfg.Sentinel.Log.Dir = dir
	cfg.Sentinel.Log.Metric.FlushIntervalSec = 0
	cfg.Sentinel.Stat.System.CollectIntervalMs = 0
	if err := api.InitWithConfig(cfg); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

type silent struct{ logging.Logger }

func (silent) Debug(string, ...any)        {}
func (silent) DebugEnabled() bool          { return false }
func (silent) Info(string, ...any)         {}
func (silent) InfoEnabled() bool           { return false }
func (silent) Warn(string, ...any)         {}
func (silent) WarnEnabled() bool           { return false }
func (silent) Error(error, string, ...any) {}
func (silent) ErrorEnabled() bool          { return false }

type stub struct {
	base.BaseInvoker
	res result.Result
}

func (s *stub) Invoke(context.Context, base.Invocation) result.Result { return s.res }

func serviceURL(service string, params map[string]string) *common.URL {
	opts := []common.Option{
		common.WithProtocol("tri"), common.WithPath(service), common.WithInterface(service),
		common.WithIp("127.0.0.1"), common.WithPort("20000"),
		common.WithMethods([]string{"SayHello", "SayBye", "List", "Get", "Put", "Delete"}),
	}
	// What dubbo-go puts into the URL of a service without any setting.
	for _, k := range []string{
		"accesslog", "app.version", "auth", "cluster", "environment", "execute.limit.rejected.handler", "loadbalance", "module",
		"organization", "owner", "param.sign", "retries", "serialization", "tps.limit.interval", "tps.limit.rate",
		"tps.limit.rejected.handler", "tps.limit.strategy", "tps.limiter", "tracing.key", "warmup", "IDL-mode",
	} {
		opts = append(opts, common.WithParamsValue(k, ""))
	}
	for k, v := range map[string]string{
		"application": "bench", "name": "bench", "bean.name": "GreetProvider", "export": "true", "metadata-type": "local", "pid": "4711",
		"registry.role": "3", "release": "dubbo-golang-3.3.2", "side": "provider", "timestamp": "1700000000", "weight": "0",
		"service.filter": "echo,token,accesslog,tps,generic_service,execute,pshutdown,weir",
	} {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	for k, v := range params {
		opts = append(opts, common.WithParamsValue(k, v))
	}
	u := common.NewURLWithOptions(opts...)
	own := map[string]string{"weir.stats": u.GetParam("weir.stats", "false")}
	for k, v := range params {
		if strings.HasPrefix(k, "actives") || strings.HasPrefix(k, "tps") || strings.HasPrefix(k, "breaker") {
			own[k] = v
		}
	}
	parsed := conf.ParseParams(conf.Consumer, service, own)
	u.SetAttribute(retry.AttributeKey, retry.NewReference(&parsed.Service))
	return u
}

// peer is one way to limit what runs: pass runs a call that has room, and
// refuse one that has none.
type peer struct {
	name         string
	pass, refuse func() func()
}

// filterPeer runs a call through a filter of dubbo's interface, beside one that
// runs where it is to be refused.
func filterPeer(name string, f func() filter.Filter, pass, full map[string]string) peer {
	return filterPeerWith(name, f, pass, full, holdOne)
}

func filterPeerWith(name string, f func() filter.Filter, pass, full map[string]string, fill func(filter.Filter, *common.URL)) peer {
	call := func(params map[string]string, prepare func(filter.Filter, *common.URL)) func() func() {
		return func() func() {
			u := serviceURL(unique(name), params)
			flt := f()
			next := &stub{*base.NewBaseInvoker(u), &result.RPCResult{}}
			if prepare != nil {
				prepare(flt, u)
			}
			ctx := context.Background()
			inv := invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
			return func() {
				res := flt.Invoke(ctx, next, inv)
				flt.OnResponse(ctx, res, next, inv)
			}
		}
	}
	p := peer{name: name, pass: call(pass, nil)}
	if full != nil {
		p.refuse = call(full, fill)
	}
	return p
}

type holding struct {
	base.BaseInvoker
	entered, gate chan struct{}
}

func (h *holding) Invoke(context.Context, base.Invocation) result.Result {
	close(h.entered)
	<-h.gate
	return &result.RPCResult{}
}

// holdOne keeps a call in the handler for good, so that a limit of 1 is full.
func holdOne(f filter.Filter, u *common.URL) {
	h := &holding{*base.NewBaseInvoker(u), make(chan struct{}), make(chan struct{})}
	inv := invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
	go func() { f.Invoke(context.Background(), h, inv) }()
	<-h.entered
}

// filled makes a call.
func filled(f filter.Filter, u *common.URL) func() {
	next := &stub{*base.NewBaseInvoker(u), &result.RPCResult{}}
	return func() {
		inv := invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
		f.Invoke(context.Background(), next, inv)
	}
}

func named(name string) func() filter.Filter {
	return func() filter.Filter {
		f, ok := extension.GetFilter(name)
		if !ok {
			panic("no filter " + name)
		}
		return f
	}
}

var names atomic.Int64

// unique makes a name that nothing of the process has counted under before.
func unique(name string) string { return fmt.Sprintf("bench.%s.%d", name, names.Add(1)) }

func umbrella() filter.Filter { return guard.New(guard.Process(), conf.Provider) }

func consumer() filter.Filter { return guard.New(guard.Process(), conf.Consumer) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func peers() []peer {
	return []peer{
		{
			name: "baseline/atomic-add-sub",
			pass: func() func() { var n atomic.Int64; return func() { n.Add(1); n.Add(-1) } },
		},
		{
			name: "baseline/clock",
			pass: func() func() { began := time.Now(); var d time.Duration; return func() { d += time.Since(began) } },
		},
		{
			name: "baseline/stub",
			pass: func() func() {
				next := base.Invoker(&stub{*base.NewBaseInvoker(serviceURL("bench.Stub", nil)), &result.RPCResult{}})
				ctx, inv := context.Background(), invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
				return func() { next.Invoke(ctx, inv) }
			},
		},
		filterPeer("weir/idle", umbrella, nil, nil),
		filterPeer("weir/idle-consumer", consumer, nil, nil),
		filterPeer("weir/consumer-with-figures", consumer, map[string]string{"weir.stats": "true"}, nil),
		filterPeer("weir/executes-without-times", umbrella,
			map[string]string{"methods.SayHello.executes": "1000", "weir.stats": "false"},
			map[string]string{"methods.SayHello.executes": "1", "weir.stats": "false"}),
		filterPeer("weir/executes", umbrella,
			map[string]string{"methods.SayHello.executes": "1000"},
			map[string]string{"methods.SayHello.executes": "1"}),
		filterPeer("weir/overload", umbrella,
			map[string]string{"methods.SayHello.overload": "1000"},
			map[string]string{"methods.SayHello.overload": "1", "methods.SayHello.overload.max-expand": "1"}),
		filterPeer("weir/overload-auto", umbrella,
			map[string]string{"methods.SayHello.overload": "auto", "methods.SayHello.overload.floor": "1000"}, nil),
		filterPeer("weir/actives-without-times", consumer,
			map[string]string{"actives": "1000"},
			map[string]string{"actives": "1", "actives.wait": "0"}),
		filterPeer("weir/actives", consumer,
			map[string]string{"actives": "1000", "weir.stats": "true"},
			map[string]string{"actives": "1", "actives.wait": "0", "weir.stats": "true"}),
		{
			name: "weir/queue-bare",
			pass: func() func() {
				q := concurrency.NewQueue(1000)
				return func() {
					if q.TryAcquire() {
						q.Release()
					}
				}
			},
			refuse: func() func() { q := concurrency.NewQueue(1); q.TryAcquire(); return func() { q.TryAcquire() } },
		},
		{
			name: "weir/consumer-refused-before",
			pass: func() func() {
				u := serviceURL(unique("refused"), nil)
				_ = retry.Of(u).Refused(retry.Attempt{}, invocation.NewRPCInvocation("Get", nil, nil), "10.0.0.1:1",
					retry.Policy{}, call.NewRejectError(call.RejectError{Guard: "executes"}, nil))
				flt, next := consumer(), &stub{*base.NewBaseInvoker(u), &result.RPCResult{}}
				ctx, inv := context.Background(), invocation.NewRPCInvocation("SayHello", nil, map[string]any{})
				return func() { flt.OnResponse(ctx, flt.Invoke(ctx, next, inv), next, inv) }
			},
		},
		{
			name: "weir/limiter-bare",
			pass: func() func() {
				l := concurrency.New(1000)
				return func() {
					if l.TryAcquire() {
						l.Release()
					}
				}
			},
			refuse: func() func() { l := concurrency.New(1); l.TryAcquire(); return func() { l.TryAcquire() } },
		},
		filterPeer("dubbo-go/execute", named("execute"),
			map[string]string{"methods.SayHello.execute.limit": "1000"},
			map[string]string{"methods.SayHello.execute.limit": "1", "execute.limit.rejected.handler": "log"}),
		filterPeer("dubbo-go/active", named("active"), nil, nil),
		{
			name: "sentinel/isolation",
			pass: func() func() { return sentinel(unique("pass"), 1000) },
			refuse: func() func() {
				resource := unique("full")
				f := sentinel(resource, 1)
				if _, blocked := api.Entry(resource); blocked != nil {
					panic(blocked)
				}
				return f
			},
		},
		{
			name: "failsafe/bulkhead-bare",
			pass: func() func() {
				b := bulkhead.New[any](1000)
				return func() {
					if b.TryAcquirePermit() {
						b.ReleasePermit()
					}
				}
			},
			refuse: func() func() {
				b := bulkhead.New[any](1)
				b.TryAcquirePermit()
				return func() { b.TryAcquirePermit() }
			},
		},
		{
			name: "failsafe/bulkhead-executor",
			pass: func() func() {
				e := failsafe.With(bulkhead.New[any](1000))
				f := func() error { return nil }
				return func() { _ = e.Run(f) }
			},
			refuse: func() func() {
				b := bulkhead.New[any](1)
				b.TryAcquirePermit()
				e := failsafe.With(b)
				f := func() error { return nil }
				return func() { _ = e.Run(f) }
			},
		},
		{
			name: "hystrix-go/do",
			pass: func() func() {
				hystrix.ConfigureCommand("pass", hystrix.CommandConfig{MaxConcurrentRequests: 1000, Timeout: 60000})
				f := func() error { return nil }
				return func() { _ = hystrix.Do("pass", f, nil) }
			},
			refuse: func() func() {
				name := unique("full")
				hystrix.ConfigureCommand(name, hystrix.CommandConfig{MaxConcurrentRequests: 1, Timeout: 600000, RequestVolumeThreshold: 1 << 30})
				entered := make(chan struct{})
				go func() { _ = hystrix.Do(name, func() error { close(entered); select {} }, nil) }()
				<-entered
				f := func() error { return nil }
				return func() { _ = hystrix.Do(name, f, nil) }
			},
		},
		{
			name: "x-sync/semaphore-bare",
			pass: func() func() {
				s := semaphore.NewWeighted(1000)
				return func() {
					if s.TryAcquire(1) {
						s.Release(1)
					}
				}
			},
			refuse: func() func() { s := semaphore.NewWeighted(1); s.TryAcquire(1); return func() { s.TryAcquire(1) } },
		},
	}
}

func sentinel(resource string, limit uint32) func() {
	must(isolation.LoadRules(append(rules, &isolation.Rule{Resource: resource, MetricType: isolation.Concurrency, Threshold: limit})))
	rules = append(rules, &isolation.Rule{Resource: resource, MetricType: isolation.Concurrency, Threshold: limit})
	return func() {
		if e, blocked := api.Entry(resource); blocked == nil {
			e.Exit()
		}
	}
}

var rules []*isolation.Rule

// BenchmarkPass is a call that has room, on one goroutine.
func BenchmarkPass(b *testing.B) { benchPass(b, peers()) }

// BenchmarkContended is a call that has room while GOMAXPROCS x 1 or x 32
// others make theirs: what a peer shares between calls shows here. ns/op is wall
// time over all goroutines; times the processors it is the time of one.
func BenchmarkContended(b *testing.B) { benchContended(b, peers()) }

// BenchmarkRefuse is a call that has no room.
func BenchmarkRefuse(b *testing.B) { benchRefuse(b, peers()) }

func benchPass(b *testing.B, peers []peer) {
	for _, p := range peers {
		b.Run(p.name, func(b *testing.B) {
			f := p.pass()
			f()
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}

func benchContended(b *testing.B, peers []peer) {
	for _, parallelism := range []int{1, 32} {
		for _, p := range peers {
			b.Run(fmt.Sprintf("%s/goroutines-x%02d", p.name, parallelism), func(b *testing.B) {
				f := p.pass()
				f()
				b.SetParallelism(parallelism)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						f()
					}
				})
			})
		}
	}
}

func benchRefuse(b *testing.B, peers []peer) {
	for _, p := range peers {
		if p.refuse == nil {
			continue
		}
		b.Run(p.name, func(b *testing.B) {
			f := p.refuse()
			f()
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
