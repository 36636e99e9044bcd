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

package alarms_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/alarms"
	"github.com/weir-go/weir/internal/retry"
)

type inner struct {
	base.BaseInvoker
	f func() error
}

func (e *inner) Invoke(context.Context, base.Invocation) result.Result {
	return &result.RPCResult{Err: e.f()}
}

// world is a runtime with chains, and a watch with its alarms, in a bubble.
type world struct {
	rt    *guard.Runtime
	watch *alarms.Watch
	keep  []any

	mu   sync.Mutex
	told []alarms.Alarm // guarded by mu
}

func in(t *testing.T, yaml string, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{rt: guard.NewRuntime()}
		w.configure(t, yaml)
		// How the machine is that the tests run on must not matter.
		off, _, faults := conf.ParseYAML("test", []byte("weir: {health: {cpu: off, memory: off}}"))
		require.Empty(t, faults)
		w.rt.Store.Set(conf.FromFile, "file", off)
		w.watch = alarms.New(w.rt)
		stop := w.watch.Subscribe(func(a alarms.Alarm) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, a)
		})
		defer runtime.KeepAlive(w)
		defer stop()
		synctest.Wait()
		f(t, w)
	})
}

func (w *world) configure(t *testing.T, yaml string) {
	t.Helper()
	c, _, faults := conf.ParseYAML("test", []byte(yaml))
	require.Empty(t, faults)
	w.rt.Store.Set(conf.FromCode, "code", c)
}

// chain returns a function that makes one call.
func (w *world) chain(t *testing.T, side conf.Side) func(f func() error) error {
	t.Helper()
	return w.chainTo(t, side, "a.B", "1")
}

func (w *world) chainTo(t *testing.T, side conf.Side, service, port string) func(f func() error) error {
	t.Helper()
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(service), common.WithIp("127.0.0.1"), common.WithPort(port),
		common.WithInterface(service), common.WithMethods([]string{"Get"}))
	u.Location = "127.0.0.1:" + port
	if side == conf.Consumer {
		parsed := conf.ParseParams(side, service, nil)
		u.SetAttribute(retry.AttributeKey, retry.NewReference(&parsed.Service))
	}
	g := guard.New(w.rt, side)
	w.keep = append(w.keep, g, u)
	return func(f func() error) error {
		return g.Invoke(context.Background(), &inner{*base.NewBaseInvoker(u), f}, invocation.NewRPCInvocation("Get", nil, map[string]any{})).Error()
	}
}

// hold makes n calls that run or wait until end.
func hold(n int, call func(func() error) error) (end func()) {
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { _ = call(func() error { <-gate; return nil }) })
	}
	synctest.Wait()
	return func() { close(gate); wg.Wait() }
}

func sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // synctest
	synctest.Wait()
}

// take returns what was told since the last take, in short.
func (w *world) take() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, a := range w.told {
		text := fmt.Sprintf("%s %s %s %d/%d", a.Guard, a.Subject, a.Level, a.Observed, a.Limit)
		if a.Refused > 0 {
			text += fmt.Sprintf(" refused %d", a.Refused)
		}
		if a.Observing {
			text += " observing"
		}
		if a.Gone {
			text += " gone"
		}
		out = append(out, text)
	}
	w.told = nil
	return out
}

func pass() error { return nil }
