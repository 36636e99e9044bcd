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

package group

import (
	"context"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

// two are a core instance and a non-core one.
var two = map[string]map[string]string{"core": {conf.GroupKey: "core"}, "noncore": {conf.GroupKey: "noncore"}}

// plain are the params of a reference that leaves the calls as they are, as one of an
// application without Weir would.
var plain = map[string]string{conf.GroupModeKey: "off"}

// relay starts a provider whose handler calls on.
func relay(t *testing.T, protocol string, params map[string]string, answer func(context.Context, string) (string, error)) *harness.Provider {
	t.Helper()
	h := &harness.Handler{}
	h.Func = func(ctx context.Context, _, arg string) (string, error) { return answer(ctx, arg) }
	return harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Handler: h, Params: params})
}

// mixed are the protocols of two hops.
var mixed = map[string][2]string{
	"tri_dubbo": {harness.Triple, harness.Dubbo}, "dubbo_tri": {harness.Dubbo, harness.Triple},
	"tri": {harness.Triple, harness.Triple}, "dubbo": {harness.Dubbo, harness.Dubbo},
}

// dialPlain refers to a provider without groups.
func dialPlain(t *testing.T, p *harness.Provider) *harness.Consumer {
	t.Helper()
	return harness.Dial(t, harness.ConsumerConfig{Providers: []harness.Endpoint{p.Endpoint}, Params: plain})
}

func with(key string, value any) context.Context {
	return context.WithValue(background, constant.AttachmentKey, map[string]any{key: value})
}

// What a handler sets for one of its calls is not carried by the next that it makes.
func TestOneCallOfAHandler(t *testing.T) {
	for name, protocols := range mixed {
		t.Run(name, func(t *testing.T) {
			configured(t, conf.Group{Match: conf.MatchStrict})
			last := spawn(t, protocols[1], two)
			next := last.dial(t, two, nil)
			first := relay(t, protocols[0], nil, func(ctx context.Context, arg string) (string, error) {
				for _, own := range []string{"", "noncore", "none", ""} {
					in := ctx
					if own != "" {
						in = weir.WithGroup(ctx, own)
					}
					if _, err := next.SayHello(in, arg); (err != nil) != (own == "none") {
						return "", err
					}
					if got := weir.Group(ctx); got != "core" {
						return got, nil
					}
				}
				return weir.Group(ctx), nil
			})
			got, err := dialPlain(t, first).SayHello(with("weir-group", "core"), "x")
			require.NoError(t, err)
			assert.Equal(t, "core", got)
			assert.Equal(t, map[string]int{"core": 2, "noncore": 1}, last.totals())
		})
	}
}

// An entry lets nothing in, in whatever case the attachment comes: the dubbo protocol
// keeps it, and the next hop on Triple would not.
func TestAnEntryStripsAnyCase(t *testing.T) {
	for name, protocols := range mixed {
		t.Run(name, func(t *testing.T) {
			configured(t, conf.Group{Match: conf.MatchFallback})
			last := spawn(t, protocols[1], two)
			own := last.dial(t, two, map[string]string{conf.GroupKey: "noncore"})
			raw := last.dial(t, two, plain)
			through := map[bool]*harness.Consumer{true: own, false: raw}
			for grouped, next := range through {
				before := last.totals()["core"]
				entry := relay(t, protocols[0], map[string]string{conf.GroupRoleKey: "entry"}, func(ctx context.Context, arg string) (string, error) {
					_, err := next.SayHello(ctx, arg)
					return weir.Group(ctx), err
				})
				from := dialPlain(t, entry)
				for _, key := range []string{"weir-group", "Weir-Group", "WEIR-GROUP"} {
					for range calls {
						got, err := from.SayHello(with(key, "core"), "x")
						require.NoError(t, err)
						require.Empty(t, got, key)
					}
				}
				if grouped {
					assert.Equal(t, before, last.totals()["core"])
				}
			}
			// Without an entry it is the call's group, by whichever name.
			before := last.totals()
			inner := relay(t, protocols[0], nil, func(ctx context.Context, arg string) (string, error) {
				_, err := own.SayHello(ctx, arg)
				return weir.Group(ctx), err
			})
			from := dialPlain(t, inner)
			for range calls {
				got, err := from.SayHello(with("Weir-Group", "core"), "x")
				require.NoError(t, err)
				require.Equal(t, "core", got)
			}
			assert.Equal(t, before["core"]+calls, last.totals()["core"])
		})
	}
}

// What no group can be called goes no further: on Triple a header with a line break would
// fail the call.
func TestWhatIsNoGroupGoesNoFurther(t *testing.T) {
	configured(t, conf.Group{Match: conf.MatchFallback})
	last := spawn(t, harness.Triple, two)
	next := last.dial(t, two, map[string]string{conf.GroupKey: "noncore"})
	middle := relay(t, harness.Dubbo, nil, func(ctx context.Context, arg string) (string, error) {
		_, err := next.SayHello(ctx, arg)
		return weir.Group(ctx), err
	})
	from := dialPlain(t, middle)
	values := []any{"core\nx: y", "core\x00", "core,noncore", "cöre", int32(5), []string{"core\n"}, []any{"core\n", "core"}, map[any]any{"core": "core"}, true}
	for _, value := range values {
		got, err := from.SayHello(with("weir-group", value), "x")
		require.NoError(t, err, "%v", value)
		assert.Empty(t, got, "%v", value)
	}
	assert.Equal(t, map[string]int{"core": 0, "noncore": len(values)}, last.totals())
}

// Streams go to their group, hand it on, and are stripped of it by an entry.
func TestStreams(t *testing.T) {
	configured(t, conf.Group{Match: conf.MatchStrict})
	last := spawn(t, harness.Triple, two)
	open := func(ctx context.Context, stub greet.GreetService) error {
		chat, err := stub.Chat(ctx)
		if err != nil {
			return err
		}
		if err := chat.Send(&greet.HelloRequest{Name: "x"}); err != nil {
			return err
		}
		_, err = chat.Recv()
		_ = chat.CloseRequest()
		_ = chat.CloseResponse()
		return err
	}
	opened := func() map[string]int {
		out := map[string]int{}
		for name, p := range last {
			out[name] = p.Stats("Chat").Total + p.Stats("Repeat").Total + p.Stats("Collect").Total
		}
		return out
	}
	core := last.dial(t, two, map[string]string{conf.GroupKey: "core"})
	for range calls {
		require.NoError(t, open(background, core.Stub()))
	}
	require.NoError(t, open(weir.WithGroup(background, "noncore"), core.Stub()))
	repeat, err := core.Stub().Repeat(background, &greet.RepeatRequest{Name: "x", Times: 2})
	require.NoError(t, err)
	require.True(t, repeat.Recv())
	require.NoError(t, repeat.Close())
	collect, err := core.Stub().Collect(background)
	require.NoError(t, err)
	require.NoError(t, collect.Send(&greet.HelloRequest{Name: "x"}))
	_, err = collect.CloseAndRecv()
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"core": calls + 2, "noncore": 1}, opened())

	err = open(weir.WithGroup(background, "batch"), core.Stub())
	e, ok := weir.AsRejected(err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, [2]string{"group", "no-provider"}, [2]string{e.Guard, e.Reason})

	// A stream to a relay, a stream from there.
	for _, tt := range []struct {
		role string
		want string
	}{{"inner", "core"}, {"entry", "noncore"}} {
		next := last.dial(t, two, map[string]string{conf.GroupKey: "noncore"})
		middle := relay(t, harness.Triple, map[string]string{conf.GroupRoleKey: tt.role}, func(ctx context.Context, _ string) (string, error) {
			return "x", open(ctx, next.Stub())
		})
		before := opened()[tt.want]
		from := dialPlain(t, middle)
		for range calls {
			require.NoError(t, open(with("weir-group", "core"), from.Stub()))
		}
		assert.Equal(t, before+calls, opened()[tt.want], tt.role)
	}
}
