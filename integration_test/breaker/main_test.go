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

// Package breaker tests the circuit breaker with real providers, most of them in
// processes of their own, and real consumers over loopback, on both protocols.
package breaker

import (
	"context"
	"runtime"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
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

const (
	closed   = "closed"
	open     = "open"
	halfOpen = "half-open"
)

// eachProtocol runs a test over each.
func eachProtocol(t *testing.T, f func(t *testing.T, protocol string)) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) { f(t, protocol) })
	}
}

// serviceOf is the key of a group's service.
func serviceOf(group string) string { return group + "/" + greet.GreetServiceName }

// params are the parameters of a reference or a service whose breaker, once open,
// stays so until the test wants it to probe.
func params(more ...string) map[string]string {
	m := map[string]string{"breaker.open-for": "1h", "breaker.probe-timeout": "1h", "breaker.window": "1h", "weir.stats": "true"}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

// pair are two providers in processes of their own, and a reference to both.
type pair struct {
	*harness.Consumer
	t         *testing.T
	group     string
	providers [2]*harness.ChildProvider
}

func newPair(t *testing.T, protocol string, params map[string]string) *pair {
	t.Helper()
	p := &pair{t: t, group: harness.NewGroup()}
	for i := range p.providers {
		p.providers[i] = harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: p.group})
	}
	p.Consumer = p.dial(harness.ConsumerConfig{Params: params})
	return p
}

// dial refers to both once more.
func (p *pair) dial(cfg harness.ConsumerConfig) *harness.Consumer {
	p.t.Helper()
	cfg.Providers = []harness.Endpoint{p.providers[0].Endpoint, p.providers[1].Endpoint}
	c := harness.Dial(p.t, cfg)
	p.t.Cleanup(func() { runtime.KeepAlive(c) }) // the breakers of a reference go with it
	return c
}

// total is how many calls of SayHello both have begun.
func (p *pair) total() (n int) {
	for _, provider := range p.providers {
		n += provider.Stats("SayHello").Total
	}
	return n
}

// dial refers to one provider.
func dial(t *testing.T, e harness.Endpoint, params map[string]string) *harness.Consumer {
	t.Helper()
	c := harness.Dial(t, harness.ConsumerConfig{
		Providers: []harness.Endpoint{e}, Params: params, Reference: []client.ReferenceOption{client.WithRetries(0)},
	})
	t.Cleanup(func() { runtime.KeepAlive(c) })
	return c
}

// breakersOf are those of a method of a group's service.
func breakersOf(group, method string) (out []weir.BreakerState) {
	for _, b := range weir.Snapshot().Breakers {
		if b.Service == serviceOf(group) && b.Method == method {
			out = append(out, b)
		}
	}
	return out
}

// breakerOf is that of SayHello at an address, or the only one where that is "". A
// reference has none at an address that it has never called.
func breakerOf(t *testing.T, group, address string) (found weir.BreakerState) {
	t.Helper()
	n := 0
	for _, b := range breakersOf(group, "SayHello") {
		if address == "" || b.Address == address {
			found = b
			n++
		}
	}
	require.LessOrEqual(t, n, 1, "breakers of %s at %q", group, address)
	return found
}

func state(t *testing.T, group, address string) string {
	t.Helper()
	return breakerOf(t, group, address).State
}

// refused requires that an error is the very refusal of a breaker.
func refused(t *testing.T, err error, group, reason string) call.RejectError {
	t.Helper()
	require.Error(t, err)
	e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
	require.True(t, ok, "%T %v", err, err)
	require.ErrorIs(t, err, call.ErrRejected)
	found, ok := weir.AsRejected(err)
	require.True(t, ok)
	require.Same(t, e, found)
	require.Equal(t, "breaker", e.Guard)
	require.Equal(t, call.Resource(serviceOf(group), "SayHello"), e.Resource)
	require.Equal(t, reason, e.Reason)
	require.Zero(t, e.Waited)
	require.False(t, e.Forwarded)
	require.NotContains(t, err.Error(), "127.0.0.1")
	return *e
}

// opened is refused, by one that is open and tells when it will probe.
func opened(t *testing.T, err error, group, reason string) {
	t.Helper()
	e := refused(t, err, group, reason)
	require.Positive(t, e.RetryAfter)
	require.LessOrEqual(t, e.RetryAfter, 70*time.Minute) // with jitter, rounded up
}

// configure has code say something of the breaker of one service, and takes it
// back when the test ends.
func configure(t *testing.T, side conf.Side, group string, b conf.Breaker) {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
	section := conf.Section{Services: map[string]conf.Service{serviceOf(group): {Policies: conf.Policies{Breaker: &b}}}}
	c := conf.Config{Provider: section}
	if side == conf.Consumer {
		c = conf.Config{Consumer: section}
	}
	require.NoError(t, weir.Configure(c))
	weir.Snapshot() // breakers that nobody calls hear of it too
}

// probeNow has the breakers of a reference probe with their next call, however
// long they have still to be open: one that was held open is due when it is let go.
func probeNow(t *testing.T, side conf.Side, group string) {
	t.Helper()
	configure(t, side, group, conf.Breaker{Force: conf.ForceOpen})
	require.NoError(t, weir.Configure(conf.Config{}))
	for _, b := range breakersOf(group, "SayHello") {
		require.Equal(t, open, b.State)
		require.Zero(t, b.NextProbe)
	}
}

// rejected is how many attempts of SayHello breakers of a side refused.
func rejected(t *testing.T, side conf.Side, group string) (n int) {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "weir_rejected_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["side"] == side.String() && labels["service"] == serviceOf(group) && labels["method"] == "SayHello" && labels["guard"] == "breaker" {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

// configureForced holds the breakers of the references to a service open.
func configureForced(t *testing.T, group string) {
	t.Helper()
	configure(t, conf.Consumer, group, conf.Breaker{Force: conf.ForceOpen})
}
