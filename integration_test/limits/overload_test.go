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

package limits

import (
	"context"
	"runtime"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

func capOf(t *testing.T, side, group, method string) weir.OverloadState {
	t.Helper()
	for _, s := range weir.Snapshot().Overloads {
		if s.Side == side && s.Service == serviceOf(group) && s.Method == method {
			return s
		}
	}
	t.Fatalf("no cap of %s on the side of the %s", method, side)
	return weir.OverloadState{}
}

// What auto goes by is how long answers take: on a provider of all calls, on a consumer of
// those that are answered. An asynchronous call of the dubbo protocol is over there when it
// is sent; Triple has none, and answers.
func TestAutoGoesByAnswers(t *testing.T) {
	const takes = 50 * time.Millisecond
	auto := map[string]string{"overload": "auto", "overload.floor": "200"}
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: auto})
		c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{p.Endpoint}, Params: auto})
		ask := func(ctx context.Context) {
			t.Helper()
			require.Zero(t, harness.Failed(harness.Go(50, func(int) error {
				_, err := c.SayHello(ctx, harness.Sleep(takes))
				return err
			}).Wait(t)))
		}
		ask(context.WithValue(background, constant.AttachmentKey, map[string]any{constant.AsyncKey: "true"}))
		harness.Eventually(t, "all were run", func() bool {
			s := p.Handler.Stats("SayHello")
			return s.Total == 50 && s.Running == 0
		})
		ask(background)
		for _, side := range []string{"provider", "consumer"} {
			harness.Eventually(t, "it was measured", func() bool { return capOf(t, side, p.Group, "SayHello").Alone > 0 })
			s := capOf(t, side, p.Group, "SayHello")
			require.GreaterOrEqual(t, s.Alone, takes, side)
			require.True(t, s.Auto)
			harness.Eventually(t, "all have left", func() bool { return capOf(t, side, p.Group, "SayHello").Running == 0 })
		}
		runtime.KeepAlive(c) // its cap goes with it
	})
}

// Nothing is found out by streams, so the ceiling is their limit, and each holds its slot
// until it ends. A consumer's are left alone.
func TestStreamsWithAutoHaveTheCeiling(t *testing.T) {
	auto := map[string]string{"overload": "auto", "overload.floor": "1", "overload.ceiling": "3"}
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Triple, Params: auto})
	c := harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{p.Endpoint}, Params: map[string]string{"overload": "auto", "overload.floor": "1", "overload.ceiling": "1"}})
	chat := func() (greet.GreetService_ChatClient, error) {
		stream, err := c.Stub().Chat(background)
		if err == nil {
			_ = stream.Send(&greet.HelloRequest{Name: "a"})
			_, err = stream.Recv()
		}
		return stream, err
	}
	var open []greet.GreetService_ChatClient
	for range 3 {
		stream, err := chat()
		require.NoError(t, err)
		open = append(open, stream)
	}
	_, err := chat()
	e, ok := weir.AsRejected(err)
	require.True(t, ok, "%T %v", err, err)
	require.Equal(t, call.ReasonConcurrency, e.Reason)
	require.Equal(t, int64(3), e.Limit)
	require.False(t, capOf(t, "provider", p.Group, "Chat").Auto)
	for _, stream := range open {
		require.NoError(t, stream.CloseRequest())
	}
	harness.Eventually(t, "their slots are free", func() bool { return capOf(t, "provider", p.Group, "Chat").Running == 0 })
}
