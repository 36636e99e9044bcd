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

// Package otherprotocols tests that limits hold on those protocols of dubbo-go
// that Weir does nothing special for, and what a refused caller sees there.
package otherprotocols

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/metadata"
	"dubbo.apache.org/dubbo-go/v3/protocol"
	"dubbo.apache.org/dubbo-go/v3/server"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, nil) }

var background = context.Background()

// held and heldAgain are the arguments of calls that wait at the handler's gates.
const held, heldAgain = "held", "held again"

// limitOfOne are the parameters of the services under test.
var limitOfOne = map[string]string{"methods.SayHello.executes": "1"}

// handler is what all greeters do, and counts.
type handler struct {
	gate, secondGate     chan struct{}
	running, most, total atomic.Int32
}

func newHandler() *handler {
	return &handler{gate: make(chan struct{}), secondGate: make(chan struct{})}
}

func (h *handler) greet(name string) string {
	h.total.Add(1)
	n := h.running.Add(1)
	defer h.running.Add(-1)
	for m := h.most.Load(); n > m && !h.most.CompareAndSwap(m, n); m = h.most.Load() {
	}
	switch name {
	case held:
		<-h.gate
	case heldAgain:
		<-h.secondGate
	}
	return "hello " + name
}

// Greeter serves plain strings. dubbo-go insists that the types of handlers are
// exported.
type Greeter struct{ h *handler }

func (*Greeter) Reference() string { return greet.GreetServiceName }

func (g *Greeter) SayHello(_ context.Context, name string) (string, error) {
	return g.h.greet(name), nil
}

// serve exports a service with the given limits and returns its address and group.
func serve(t *testing.T, name string, service any, params map[string]string, opts ...server.ServerOption) (addr, group string) {
	t.Helper()
	// Without this the first server would export a metadata service over a protocol of its own.
	require.NoError(t, metadata.NewOptions(metadata.WithMetadataType(constant.RemoteMetadataStorageType)).Init())
	port := harness.FreePort()
	srv, err := server.NewServer(append(opts, server.WithServerProtocol(
		protocol.WithProtocol(name), protocol.WithIp("127.0.0.1"), protocol.WithPort(port),
	))...)
	require.NoError(t, err)
	group = harness.NewGroup()
	serviceOpts := []server.ServiceOption{server.WithInterface(greet.GreetServiceName), server.WithGroup(group)}
	for key, value := range params {
		serviceOpts = append(serviceOpts, server.WithParam(key, value))
	}
	require.NoError(t, srv.Register(service, nil, serviceOpts...))
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve() }()
	exported := srv.GetServiceOptions(greet.GreetServiceName)
	t.Cleanup(exported.Unexport)
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	harness.Eventually(t, "the server listens", func() bool {
		select {
		case err := <-ended:
			require.NoError(t, err)
			t.Fatal("the server has ended")
		default:
		}
		if !exported.IsExport() {
			return false
		}
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	})
	return addr, group
}

// dial refers to the service with dubbo-go's default of two retries, and gives
// calls a minute.
func dial(t *testing.T, name, addr, group string, service any, opts ...client.ReferenceOption) *client.Connection {
	t.Helper()
	cli, err := client.NewClient(client.WithClientRequestTimeout(time.Minute))
	require.NoError(t, err)
	opts = append([]client.ReferenceOption{
		client.WithURL(name + "://" + addr), client.WithProtocol(name), client.WithGroup(group),
	}, opts...)
	var conn *client.Connection
	if service == nil {
		conn, err = cli.Dial(greet.GreetServiceName, opts...)
	} else {
		conn, err = cli.DialWithService(greet.GreetServiceName, service, opts...)
	}
	require.NoError(t, err)
	return conn
}

// unary calls SayHello over a connection, with plain strings.
func unary(conn *client.Connection) func(string) (string, error) {
	return func(name string) (reply string, err error) {
		err = conn.CallUnary(background, []any{name}, &reply, "SayHello")
		return reply, err
	}
}

// refused fills a service whose limit is one, and returns what the caller of the
// next call sees. It checks that the limit held and that nothing is left behind.
func refused(t *testing.T, h *handler, group string, sayHello func(name string) (string, error)) error {
	t.Helper()
	first := harness.Go(1, func(int) error {
		reply, err := sayHello(held)
		if err == nil && reply != "hello "+held {
			err = fmt.Errorf("the reply is %q", reply)
		}
		return err
	})
	harness.Eventually(t, "a call is held", func() bool { return h.running.Load() == 1 })
	require.Equal(t, 1, metric(t, "weir_inflight", group))
	reply, refusal := sayHello("x")
	require.Error(t, refusal, "a refusal is no success, answered with %q", reply)
	require.Empty(t, reply)
	require.EqualValues(t, 1, h.total.Load(), "a refused call never reaches the handler")
	require.Equal(t, 1, metric(t, "weir_rejected_total", group))
	close(h.gate)
	require.Empty(t, text(first.Wait(t)))
	for range 3 {
		reply, err := sayHello("x")
		require.NoError(t, err)
		require.Equal(t, "hello x", reply)
	}
	require.EqualValues(t, 1, h.most.Load())
	require.EqualValues(t, 4, h.total.Load())
	harness.Eventually(t, "nothing is left in flight", func() bool { return metric(t, "weir_inflight", group) == 0 })
	return refusal
}

// refusesOverTPS gives a running service a budget of three calls, and checks that
// the provider's refusal is the same typed error on any protocol.
func refusesOverTPS(t *testing.T, h *handler, group string, sayHello func(name string) (string, error)) {
	t.Helper()
	limit, interval := 3, time.Hour
	require.NoError(t, weir.Configure(conf.Config{Provider: conf.Section{Services: map[string]conf.Service{
		group + "/" + greet.GreetServiceName: {Policies: conf.Policies{TPS: &conf.TPS{Limit: &limit, Interval: &interval}}},
	}}}))
	defer func() { require.NoError(t, weir.Configure(conf.Config{})) }()
	ran, rejected := h.total.Load(), metric(t, "weir_rejected_total", group)
	for n := range 9 {
		reply, err := sayHello("x")
		if n < limit {
			require.NoError(t, err)
			require.Equal(t, "hello x", reply)
			continue
		}
		require.Empty(t, reply)
		e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
		require.True(t, ok, "%T %v", err, err)
		require.Equal(t, "tps", e.Guard)
		require.Equal(t, call.Resource(group+"/"+greet.GreetServiceName, call.AnyMethod), e.Resource)
		require.Equal(t, call.ReasonRate, e.Reason)
		require.EqualValues(t, limit, e.Limit)
		require.Positive(t, e.RetryAfter)
		require.False(t, e.Forwarded)
	}
	require.EqualValues(t, 3, h.total.Load()-ran, "a refused call never reaches the handler")
	require.Equal(t, 6, metric(t, "weir_rejected_total", group)-rejected, "it reaches the provider once")
}

// refusesByBreaker holds breakers open, the provider's and then the reference's, and
// checks that their refusals are errors, and typed, on any protocol.
func refusesByBreaker(t *testing.T, h *handler, group string, sayHello func(name string) (string, error)) {
	t.Helper()
	defer func() { require.NoError(t, weir.Configure(conf.Config{})) }()
	section := conf.Section{Services: map[string]conf.Service{
		group + "/" + greet.GreetServiceName: {Policies: conf.Policies{Breaker: &conf.Breaker{Force: conf.ForceOpen}}},
	}}
	for _, c := range []conf.Config{{Provider: section}, {Consumer: section}} {
		require.NoError(t, weir.Configure(c))
		ran := h.total.Load()
		reply, err := sayHello("x")
		require.Empty(t, reply)
		e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
		require.True(t, ok, "%T %v", err, err)
		require.Equal(t, "breaker", e.Guard)
		require.Equal(t, call.Resource(group+"/"+greet.GreetServiceName, "SayHello"), e.Resource)
		require.Equal(t, call.ReasonForced, e.Reason)
		require.False(t, e.Forwarded)
		require.Equal(t, ran, h.total.Load(), "a refused call never reaches the handler")
	}
	require.NoError(t, weir.Configure(conf.Config{}))
	reply, err := sayHello("x")
	require.NoError(t, err)
	require.Equal(t, "hello x", reply)
}

// waitsForActives has two calls come over a reference with a limit of one: the
// second waits, and runs when the first is over. One that may not wait, or no
// longer, is refused here.
func waitsForActives(t *testing.T, h *handler, group string, sayHello, impatient func(name string) (string, error)) {
	t.Helper()
	limits := func() (running, waiting int64) {
		for _, l := range weir.Snapshot().Limits {
			if l.Guard == "actives" && strings.HasPrefix(l.Service, group+"/") {
				running += l.Inflight
				waiting += l.Waiting
			}
		}
		return running, waiting
	}
	unlimited := 0 // the service's own limit
	require.NoError(t, weir.Configure(conf.Config{Provider: conf.Section{Services: map[string]conf.Service{
		group + "/" + greet.GreetServiceName: {Methods: map[string]conf.Policies{"SayHello": {Executes: &conf.Executes{Limit: &unlimited}}}},
	}}}))
	defer func() { require.NoError(t, weir.Configure(conf.Config{})) }()
	h.most.Store(0) // no call runs
	ran := h.total.Load()
	hold := func(int) error { _, err := sayHello(heldAgain); return err }
	first := harness.Go(1, hold)
	harness.Eventually(t, "a call is held", func() bool { return h.running.Load() == 1 })
	second := harness.Go(1, hold)
	harness.Eventually(t, "a call waits", func() bool { _, waiting := limits(); return waiting == 1 })

	alone := harness.Go(1, func(int) error { _, err := impatient(heldAgain); return err })
	harness.Eventually(t, "a call is held", func() bool { return h.running.Load() == 2 })
	_, err := impatient("x")
	e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
	require.True(t, ok, "%T %v", err, err)
	require.Equal(t, "actives", e.Guard)
	require.Equal(t, call.ReasonWaitTimeout, e.Reason)
	require.Equal(t, 20*time.Millisecond, e.MaxWait)
	require.GreaterOrEqual(t, e.Waited, e.MaxWait)
	require.EqualValues(t, 2, h.total.Load()-ran, "neither the waiting nor the refused call reaches the provider")

	close(h.secondGate)
	require.Empty(t, text(first.Wait(t)))
	require.Empty(t, text(second.Wait(t)))
	require.Empty(t, text(alone.Wait(t)))
	require.EqualValues(t, 2, h.most.Load(), "one of each reference")
	harness.Eventually(t, "no slot is taken", func() bool { running, waiting := limits(); return running == 0 && waiting == 0 })
}

// activesOfOne are the parameters of a reference under test, and impatience those
// of one that does not wait for long.
var (
	activesOfOne = client.WithParam("actives", "1")
	impatience   = client.WithParam("actives.wait", "20")
)

func text(errs []error) (texts []string) {
	for _, err := range errs {
		if err != nil {
			texts = append(texts, err.Error())
		}
	}
	return texts
}

// refusalText is what a provider of the group says when its limit of one is reached.
func refusalText(group string) string {
	return "weir: call refused: guard=executes resource=" + group + "/" + greet.GreetServiceName +
		"#SayHello reason=concurrency limit=1 observed=1"
}

// metric sums up what the provider of a group says of SayHello.
func metric(t *testing.T, name, group string) int {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	require.NoError(t, err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			have := map[string]string{}
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			if have["side"] == "provider" && strings.HasPrefix(have["service"], group+"/") && have["method"] == "SayHello" {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return int(sum)
}

// typed requires that the caller got the provider's own refusal, rebuilt from the
// text that the protocol carries.
func typed(t *testing.T, err error, group string) {
	t.Helper()
	e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
	require.True(t, ok, "%T %v", err, err)
	require.Equal(t, refusalText(group), e.Error())
	require.False(t, e.Forwarded)
	require.True(t, weir.IsRejected(err))
}
