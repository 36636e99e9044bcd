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

package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
	"github.com/weir-go/weir/internal/transport"
)

// The tests of late replies. A client in a process of its own makes calls that
// time out while the handler holds them ("doomed"), then calls that are patient
// ("innocent") on the same TCP sessions. While the innocent ones are in the
// handler, the doomed ones are answered. Only then are the innocent ones.

const (
	lateClientRole = "late-client"

	// sessions is how many are open before the test begins. dubbo-go opens up to
	// 16, at growing intervals: the third is there after a second.
	sessions = 3
	doomed   = 64 // as many as leave hardly a session unharmed
	innocent = 64
)

// lateClientArgs is what the client is told.
type lateClientArgs struct {
	Provider harness.Endpoint
	Guard    bool
	// Timeout of the innocent calls.
	Timeout time.Duration
}

// lateClientReport is what the client tells after each step.
type lateClientReport struct {
	Ports  []string // own addresses of the sessions
	Failed int      // calls
	First  string   // one of the errors
	Late   uint64   // late replies counted so far
}

func TestLateReplies(t *testing.T) {
	t.Run("without the guard", func(t *testing.T) {
		provider := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: harness.Dubbo})
		c := startLateClient(t, provider, lateClientArgs{Timeout: 5 * time.Second})
		c.callsTimeOut()
		c.innocentCallsRun()
		provider.Open("doomed")
		harness.Eventually(t, "a read loop panics", func() bool {
			return strings.Contains(c.process.Output(), "panic session")
		})
		provider.Open("innocent")
		report := c.report()
		t.Logf("%d of %d innocent calls failed: %s", report.Failed, innocent, report.First)
		assert.Positive(t, report.Failed, "dubbo-go has mended the fault?")
	})
	t.Run("with the guard", func(t *testing.T) {
		provider := harness.SpawnProvider(t, harness.ProviderSpec{Protocol: harness.Dubbo})
		c := startLateClient(t, provider, lateClientArgs{Guard: true, Timeout: harness.Patience})
		c.callsTimeOut()
		c.innocentCallsRun()
		provider.Open("doomed")
		assert.Equal(t, uint64(doomed), c.report().Late, "all late replies are counted")
		provider.Open("innocent")
		report := c.report()
		assert.Zero(t, report.Failed, report.First)
		assert.Subset(t, c.report().Ports, c.ports, "all sessions live on")
		assert.NotContains(t, c.process.Output(), "panic")
		assert.NotContains(t, c.process.Output(), "failed to get pending response")
		assert.NoError(t, c.process.Stop())
	})
}

// lateClient is the client as the test sees it.
type lateClient struct {
	t        *testing.T
	provider *harness.ChildProvider
	process  *harness.Process
	ports    []string // of its sessions, at first
}

func startLateClient(t *testing.T, provider *harness.ChildProvider, args lateClientArgs) *lateClient {
	t.Helper()
	args.Provider = provider.Endpoint
	c := &lateClient{t: t, provider: provider, process: harness.Start(t, lateClientRole, args)}
	c.ports = c.report().Ports
	require.GreaterOrEqual(t, len(c.ports), sessions)
	return c
}

func (c *lateClient) report() (r lateClientReport) {
	c.t.Helper()
	c.process.Recv(&r)
	return r
}

// callsTimeOut waits until all doomed calls have timed out in the client and run
// in the handler.
func (c *lateClient) callsTimeOut() {
	c.t.Helper()
	require.Equal(c.t, doomed, c.report().Failed)
	harness.Eventually(c.t, "doomed calls run", func() bool {
		return c.provider.Running(harness.Hold("doomed")) == doomed
	})
}

func (c *lateClient) innocentCallsRun() {
	c.t.Helper()
	c.process.Send("go on")
	harness.Eventually(c.t, "innocent calls run", func() bool {
		return c.provider.Running(harness.Hold("innocent")) == innocent
	})
}

// runLateClient is the client from inside.
func runLateClient(child *harness.Child) error {
	var args lateClientArgs
	if err := child.Recv(&args); err != nil {
		return err
	}
	if args.Guard {
		extension.SetConfigPostProcessor("transport", installer{})
	}
	consumer, err := harness.TryDial(harness.ConsumerConfig{
		Providers: []harness.Endpoint{args.Provider},
		Reference: []client.ReferenceOption{client.WithRetries(0), client.WithClusterFailFast()},
	})
	if err != nil {
		return err
	}

	before := ports(consumer, func(seen []string) bool { return len(seen) >= sessions })
	if err := child.Send(lateClientReport{Ports: before}); err != nil {
		return err
	}

	hold := func(gate string, n int, timeout time.Duration) *harness.Calls {
		return harness.Go(n, func(int) error {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			_, err := consumer.SayHello(ctx, harness.Hold(gate))
			return err
		})
	}
	if err := child.Send(summary(hold("doomed", doomed, 100*time.Millisecond))); err != nil {
		return err
	}

	var goOn string
	if err := child.Recv(&goOn); err != nil {
		return err
	}
	calls := hold("innocent", innocent, args.Timeout)
	if args.Guard {
		harness.Poll(func() bool { return transport.LateReplies() >= doomed })
		if err := child.Send(lateClientReport{Late: transport.LateReplies()}); err != nil {
			return err
		}
	}
	if err := child.Send(summary(calls)); err != nil {
		return err
	}
	after := ports(consumer, func(seen []string) bool {
		return !slices.ContainsFunc(before, func(port string) bool { return !slices.Contains(seen, port) })
	})
	if err := child.Send(lateClientReport{Ports: after}); err != nil {
		return err
	}
	return child.Recv(&goOn)
}

// installer installs the guard where Weir does.
type installer struct{}

func (installer) PostProcessServiceConfig(*common.URL)   { transport.InstallDubboCodec(nil) }
func (installer) PostProcessReferenceConfig(*common.URL) { transport.InstallDubboCodec(nil) }

// ports calls until it has seen enough sessions, of which dubbo-go picks one at
// random for each call, and returns their addresses.
func ports(consumer *harness.Consumer, enough func(seen []string) bool) (seen []string) {
	harness.Poll(func() bool {
		addr, err := consumer.Echo(context.Background(), harness.Peer)
		if err == nil && !slices.Contains(seen, addr) {
			seen = append(seen, addr)
		}
		return enough(seen)
	})
	return seen
}

func summary(calls *harness.Calls) (r lateClientReport) {
	for _, err := range calls.Errs() {
		if err != nil {
			r.Failed++
			r.First = err.Error()
		}
	}
	return r
}
