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

package bulkhead_test

import (
	"context"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
)

// fixed answers with one result, so that only the guard's own allocations count.
func fixed(b testing.TB, c *chain) func() {
	res := &result.RPCResult{}
	next := &end{*base.NewBaseInvoker(c.url), func(context.Context, base.Invocation) result.Result { return res }}
	inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{})
	ctx := context.Background()
	b.Helper()
	return func() { c.guard.Invoke(ctx, next, inv) }
}

var measured = map[string]params{
	"now":            {"bulkhead": "100", "weir.stats": "false"},
	"queue":          {"bulkhead": "100", "bulkhead.queue": "10", "weir.stats": "false"},
	"stats":          {"bulkhead": "100", "bulkhead.queue": "10"},
	"group":          {"bulkhead": "100", "bulkhead.group": "g", "weir.stats": "false"},
	"observe":        {"bulkhead": "100", "bulkhead.mode": "observe", "weir.stats": "false"},
	"with executes":  {"bulkhead": "100", "bulkhead.queue": "10", "executes": "100", "weir.stats": "false"},
	"executes alone": {"executes": "100", "weir.stats": "false"},
}

func TestAnAdmittedCallAllocatesNothing(t *testing.T) {
	for name, own := range measured {
		for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
			if side == conf.Consumer && own["executes"] != "" {
				continue
			}
			invoke := fixed(t, newChain(t, side, "tri", own))
			require.Zero(t, testing.AllocsPerRun(100, invoke), "%s %s", side, name)
		}
	}
}

func BenchmarkAdmitted(b *testing.B) {
	for _, name := range []string{"executes alone", "now", "queue", "stats", "group", "observe", "with executes"} {
		for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
			if side == conf.Consumer && measured[name]["executes"] != "" {
				continue
			}
			b.Run(name+"/"+side.String(), func(b *testing.B) {
				invoke := fixed(b, newChain(b, side, "tri", measured[name]))
				b.ReportAllocs()
				for b.Loop() {
					invoke()
				}
			})
		}
	}
}

func BenchmarkRefused(b *testing.B) {
	for name, own := range map[string]params{
		"executes": {"executes": "1"},
		"now":      {"bulkhead": "1"},
		"full":     {"bulkhead": "1", "bulkhead.queue": "1", "bulkhead.max-wait": "1h"},
	} {
		b.Run(name, func(b *testing.B) {
			c := newChain(b, conf.Provider, "tri", own)
			release := c.hold(b, "Echo")
			waited := make(chan error, 1)
			if name == "full" {
				go func() { waited <- c.echo() }()
				for c.queue(b, "Echo", "").Waiting() == 0 {
					continue
				}
			} else {
				waited <- nil
			}
			invoke := fixed(b, c)
			b.ReportAllocs()
			for b.Loop() {
				invoke()
			}
			release()
			require.NoError(b, <-waited)
		})
	}
}
