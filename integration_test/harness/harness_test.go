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

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/greet"
)

func TestMain(m *testing.M) {
	extension.SetConfigPostProcessor("faulty", faulty{})
	Main(m, Roles{
		"adder": func(c *Child) error {
			for sum := 0; ; {
				var n int
				if err := c.Recv(&n); err != nil {
					return err
				}
				if n < 0 {
					return errors.New("negative")
				}
				sum += n
				if err := c.Send(sum); err != nil {
					return err
				}
			}
		},
	})
}

var errFaulty = errors.New("faulty")

// faulty is a post-processor that panics where it is told to.
type faulty struct{}

func (faulty) PostProcessServiceConfig(url *common.URL) {
	if url.GetParam("faulty", "") != "" {
		panic(errFaulty)
	}
}

func (f faulty) PostProcessReferenceConfig(url *common.URL) { f.PostProcessServiceConfig(url) }

func TestUnary(t *testing.T) {
	for _, protocol := range Protocols {
		t.Run(protocol, func(t *testing.T) {
			provider := StartProvider(t, ProviderConfig{Protocol: protocol})
			consumer := provider.Dial(t, client.WithRetries(0))

			got, err := consumer.SayHello(t.Context(), "weir")
			require.NoError(t, err)
			assert.Equal(t, "hello weir", got)
			got, err = consumer.Echo(t.Context(), "weir")
			require.NoError(t, err)
			assert.Equal(t, "weir", got)
			_, err = consumer.SayHello(t.Context(), Fail("out of order"))
			require.ErrorContains(t, err, "out of order")
			got, err = consumer.SayHello(t.Context(), Sleep(time.Millisecond))
			require.NoError(t, err)
			assert.Equal(t, "hello sleep:1ms", got)

			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err = consumer.SayHello(ctx, Hold("never"))
			require.Error(t, err)
			provider.Handler.Open("never")
			Eventually(t, "all calls end", func() bool { return provider.Handler.Stats("").Running == 0 })
			assert.Equal(t, 4, provider.Handler.Stats("SayHello").Total)
			assert.Equal(t, 5, provider.Handler.Stats("").Total)
			assert.Equal(t, 1, provider.Handler.Stats("").MaxRunning)
		})
	}
}

func TestHold(t *testing.T) {
	for _, protocol := range Protocols {
		t.Run(protocol, func(t *testing.T) {
			provider := StartProvider(t, ProviderConfig{Protocol: protocol})
			consumer := provider.Dial(t, client.WithRetries(0))
			calls := Go(20, func(int) error {
				_, err := consumer.SayHello(t.Context(), Hold("gate"))
				return err
			})
			Eventually(t, "20 calls run", func() bool { return provider.Handler.Running(Hold("gate")) == 20 })
			select {
			case <-calls.Done():
				t.Fatal("calls did not wait")
			default:
			}
			provider.Handler.Open("gate")
			assert.Zero(t, Failed(calls.Wait(t)))
			assert.Equal(t, Stats{MaxRunning: 20, Total: 20}, provider.Handler.Stats(""))
		})
	}
}

func TestStreams(t *testing.T) {
	provider := StartProvider(t, ProviderConfig{Protocol: Triple})
	stub := provider.Dial(t).Stub()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()

	repeat, err := stub.Repeat(ctx, &greet.RepeatRequest{Name: Hold("stream"), Times: 3})
	require.NoError(t, err)
	require.True(t, repeat.Recv())
	assert.Equal(t, "0 hold:stream", repeat.Msg().GetGreeting())
	assert.Equal(t, 1, provider.Handler.Stats("Repeat").Running)
	provider.Handler.Open("stream")
	require.True(t, repeat.Recv())
	require.True(t, repeat.Recv())
	require.False(t, repeat.Recv())
	require.NoError(t, repeat.Err())
	require.NoError(t, repeat.Close())

	collect, err := stub.Collect(ctx)
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, collect.Send(&greet.HelloRequest{Name: name}))
	}
	all, err := collect.CloseAndRecv()
	require.NoError(t, err)
	assert.Equal(t, "a,b,c", all.GetGreeting())

	chat, err := stub.Chat(ctx)
	require.NoError(t, err)
	for i := range 3 {
		name := fmt.Sprint(i)
		require.NoError(t, chat.Send(&greet.HelloRequest{Name: name}))
		reply, err := chat.Recv()
		require.NoError(t, err)
		assert.Equal(t, "hello "+name, reply.GetGreeting())
	}
	require.NoError(t, chat.CloseRequest())
	_, err = chat.Recv()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, chat.CloseResponse())
	Eventually(t, "streams end", func() bool { return provider.Handler.Stats("").Running == 0 })
}

func TestSeveralProviders(t *testing.T) {
	for _, protocol := range Protocols {
		t.Run(protocol, func(t *testing.T) {
			group := NewGroup()
			first := StartProvider(t, ProviderConfig{Protocol: protocol, Group: group})
			second := SpawnProvider(t, ProviderSpec{Protocol: protocol, Group: group})
			consumer := Dial(t, ConsumerConfig{
				Providers: []Endpoint{first.Endpoint, second.Endpoint},
				Reference: []client.ReferenceOption{client.WithLoadBalanceRoundRobin(), client.WithRetries(0)},
			})
			for range 10 {
				_, err := consumer.SayHello(t.Context(), "weir")
				require.NoError(t, err)
			}
			assert.Positive(t, first.Handler.Stats("").Total)
			assert.Positive(t, second.Stats("").Total)
			assert.Equal(t, 10, first.Handler.Stats("").Total+second.Stats("").Total)
		})
	}
}

func TestFailureToStart(t *testing.T) {
	for _, protocol := range Protocols {
		t.Run(protocol, func(t *testing.T) {
			params := map[string]string{"faulty": "yes"}
			_, err := TryStartProvider(t, ProviderConfig{Protocol: protocol, Params: params})
			require.ErrorIs(t, err, errFaulty)

			provider := StartProvider(t, ProviderConfig{Protocol: protocol})
			_, err = TryDial(ConsumerConfig{Providers: []Endpoint{provider.Endpoint}, Params: params})
			require.ErrorIs(t, err, errFaulty)
		})
	}
}

func TestKillProvider(t *testing.T) {
	for _, protocol := range Protocols {
		t.Run(protocol, func(t *testing.T) {
			SkipUnderRaceDetector(t, protocol)
			provider := SpawnProvider(t, ProviderSpec{Protocol: protocol})
			consumer := provider.Dial(t, client.WithRetries(0))
			calls := Go(1, func(int) error {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				_, err := consumer.SayHello(ctx, Hold("busy"))
				return err
			})
			Eventually(t, "the call runs", func() bool { return provider.Running(Hold("busy")) == 1 })
			provider.Kill()
			assert.Equal(t, 1, Failed(calls.Wait(t)))

			again := SpawnProvider(t, ProviderSpec{Protocol: protocol, Group: provider.Group})
			_, err := again.Dial(t).SayHello(t.Context(), "weir")
			require.NoError(t, err)
			assert.Equal(t, 1, again.Stats("SayHello").Total)
			assert.NoError(t, again.Stop())
		})
	}
}

func TestProcess(t *testing.T) {
	p := Start(t, "adder", 1)
	var sum int
	p.Recv(&sum)
	p.Send(41)
	p.Recv(&sum)
	assert.Equal(t, 42, sum)
	p.Send(-1)
	assert.Error(t, p.Wait())
	assert.Contains(t, p.Output(), "adder: negative")

	assert.NoError(t, Start(t, "adder", 1).Stop())
	assert.Empty(t, os.Getenv(roleEnv))
}
