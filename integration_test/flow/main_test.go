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

// Package flow tests what Weir's users see of flow control on real servers and
// clients over loopback, on both protocols: who passes, in which order and how many,
// and never how fast.
package flow

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/global"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, nil) }

// atEither runs a test over each protocol, with the flow on each side.
func atEither(t *testing.T, f func(t *testing.T, side conf.Side, protocol string)) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		for _, protocol := range harness.Protocols {
			t.Run(side.String()+"/"+protocol, func(t *testing.T) { f(t, side, protocol) })
		}
	}
}

// long is a context whose deadline is later than any turn here.
func long(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	t.Cleanup(cancel)
	return ctx
}

func serviceOf(group string) string { return group + "/" + greet.GreetServiceName }

// start starts a provider and refers to it, with params on one of the sides.
func start(t *testing.T, side conf.Side, protocol string, handler *harness.Handler, keyValues ...string) (*harness.Provider, *harness.Consumer) {
	t.Helper()
	params := map[string]string{}
	for i := 0; i < len(keyValues); i += 2 {
		params[keyValues[i]] = keyValues[i+1]
	}
	at := map[conf.Side]map[string]string{side: params}
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Handler: handler, Params: at[conf.Provider]})
	return p, harness.Dial(t, harness.ConsumerConfig{
		Providers: []harness.Endpoint{p.Endpoint}, Params: at[conf.Consumer],
		Client: []client.ClientOption{client.WithClientRequestTimeout(24 * time.Hour)},
	})
}

// named refers to a provider as an application, by a URL with a query.
func named(t *testing.T, p *harness.Provider, application, query string) *harness.Consumer {
	t.Helper()
	app := global.DefaultApplicationConfig()
	app.Name = application
	return harness.Dial(t, harness.ConsumerConfig{
		Providers: []harness.Endpoint{p.Endpoint},
		Client:    []client.ClientOption{client.SetClientApplication(app)},
		Reference: []client.ReferenceOption{client.WithURL(p.URL() + query)},
	})
}

// refused requires that an error is the very refusal of a flow, and returns it.
func refused(t *testing.T, err error, group, reason string, limit int64) call.RejectError {
	t.Helper()
	require.Error(t, err)
	e, ok := err.(*call.RejectError) //nolint:errorlint // the caller gets the refusal itself
	require.True(t, ok, "%T %v", err, err)
	require.ErrorIs(t, err, call.ErrRejected)
	require.Equal(t, "flow", e.Guard)
	require.Equal(t, call.Resource(serviceOf(group), call.AnyMethod), e.Resource)
	require.Equal(t, reason, e.Reason)
	require.Equal(t, limit, e.Limit)
	require.Equal(t, limit, e.Observed)
	require.False(t, e.Forwarded)
	require.NotContains(t, err.Error(), "127.0.0.1")
	return *e
}

// spend makes calls one after the other and parts them.
func spend(t *testing.T, c *harness.Consumer, n int) (served int, refusals []error) {
	t.Helper()
	ctx := long(t)
	for range n {
		if _, err := c.SayHello(ctx, "x"); err == nil {
			served++
		} else {
			refusals = append(refusals, err)
		}
	}
	return served, refusals
}

// wait makes calls one after the other that have to wait for their turns.
func wait(t *testing.T, c *harness.Consumer, group string, args ...string) []*harness.Calls {
	t.Helper()
	ctx := long(t)
	before := waiting(group)
	var calls []*harness.Calls
	for i, arg := range args {
		calls = append(calls, harness.Go(1, func(int) error {
			_, err := c.SayHello(ctx, arg)
			return err
		}))
		eventuallyWait(t, group, before+int64(i)+1)
	}
	return calls
}

func limitsOf(group string) (out []weir.LimitState) {
	for _, l := range weir.Snapshot().Limits {
		if l.Guard == "flow" && l.Service == serviceOf(group) {
			out = append(out, l)
		}
	}
	return out
}

func waiting(group string) (n int64) {
	for _, l := range limitsOf(group) {
		n += l.Waiting
	}
	return n
}

func eventuallyWait(t *testing.T, group string, n int64) {
	t.Helper()
	harness.Eventually(t, "so many wait", func() bool { return waiting(group) == n })
}

// configure sets a flow for a group's service, and none for the next test.
func configure(t *testing.T, side conf.Side, group string, flow conf.Flow) {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, weir.Configure(conf.Config{})) })
	section := conf.Section{Services: map[string]conf.Service{serviceOf(group): {Policies: conf.Policies{Flow: &flow}}}}
	cfg := conf.Config{Provider: section}
	if side == conf.Consumer {
		cfg = conf.Config{Consumer: section}
	}
	require.NoError(t, weir.Configure(cfg))
}

// metric sums up the samples of a group's service that have these labels.
func metric(t *testing.T, name, group string, want map[string]string) float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	require.NoError(t, err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	samples:
		for _, m := range f.GetMetric() {
			have := map[string]string{}
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			for k, v := range want {
				if have[k] != v {
					continue samples
				}
			}
			if strings.HasPrefix(have["service"], group+"/") {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// succeed requires that all calls do.
func succeed(t *testing.T, calls []*harness.Calls) {
	t.Helper()
	for _, c := range calls {
		require.NoError(t, c.Wait(t)[0])
	}
}

// keep keeps consumers: the limits of a reference go with it.
func keep(consumers ...*harness.Consumer) { runtime.KeepAlive(consumers) }
