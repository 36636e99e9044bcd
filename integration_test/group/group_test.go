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

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/global"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/harness"
)

const calls = 20

// three are a core instance, a non-core one, and one of no group.
var three = map[string]map[string]string{
	"core": {conf.GroupKey: "core", conf.GroupModeKey: "enforce"}, "noncore": {conf.GroupKey: "noncore"}, "open": nil,
}

func TestCallsGoToTheirGroup(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		f := spawn(t, protocol, three)
		configured(t, conf.Group{Name: "core"})
		core := f.dial(t, three, nil)
		noncore := f.dial(t, three, map[string]string{conf.GroupKey: "noncore"})
		strict := f.dial(t, three, map[string]string{conf.GroupKey: "batch", conf.GroupMatchKey: "strict"})
		batch := f.dial(t, three, map[string]string{conf.GroupKey: "batch"})
		say := func(c *harness.Consumer, ctx context.Context) {
			t.Helper()
			for range calls {
				_, err := c.SayHello(ctx, "x")
				require.NoError(t, err)
			}
		}
		say(core, background)
		assert.Equal(t, map[string]int{"core": calls, "noncore": 0, "open": 0}, f.totals())
		say(noncore, background)
		assert.Equal(t, map[string]int{"core": calls, "noncore": calls, "open": 0}, f.totals())
		say(batch, background)
		assert.Equal(t, map[string]int{"core": calls, "noncore": calls, "open": calls}, f.totals(), "none of its group: untagged")
		// For one call, by Weir and by an attachment, and not for the next.
		say(noncore, weir.WithGroup(background, "core"))
		assert.Equal(t, 2*calls, f.totals()["core"])
		for _, attachments := range []any{map[string]string{"weir-group": "core|pay"}, map[string]any{"weir-group": "core|pay"}, map[string]any{"weir-group": []string{"core|pay"}}} {
			say(noncore, context.WithValue(background, constant.AttachmentKey, attachments))
		}
		assert.Equal(t, 5*calls, f.totals()["core"])
		say(noncore, background)
		assert.Equal(t, map[string]int{"core": 5 * calls, "noncore": 2 * calls, "open": calls}, f.totals())

		_, err := strict.SayHello(background, "x")
		e, ok := weir.AsRejected(err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, [2]string{"group", "no-provider"}, [2]string{e.Guard, e.Reason})
		assert.Contains(t, err.Error(), `no provider for group "batch", there are 1 of group "core", 1 of group "noncore", 1 without a group`)
		assert.Equal(t, map[string]int{"core": 5 * calls, "noncore": 2 * calls, "open": calls}, f.totals(), "nobody was called")
	})
}

// A consumer with a wrong configuration does not break in: the instance refuses it, the
// call goes to another instance once, and a call that nobody takes fails with the refusal.
func TestAnInstanceHoldsItsGroup(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		params := map[string]map[string]string{
			"a": {conf.GroupKey: "core", conf.GroupModeKey: "enforce", conf.GroupCallersKey: "billing"}, "b": nil,
		}
		f := spawn(t, protocol, params)
		configured(t, conf.Group{Name: "noncore", Fallback: conf.FallbackAny})
		stray := f.dial(t, params, nil)
		for range calls {
			_, err := stray.SayHello(background, "x")
			require.NoError(t, err)
		}
		assert.Equal(t, map[string]int{"a": 0, "b": calls}, f.totals())

		alone := fleet{"a": f["a"]}.dial(t, params, nil)
		_, err := alone.SayHello(background, "x")
		e, ok := weir.AsRejected(err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, [2]string{"group", "other-group"}, [2]string{e.Guard, e.Reason})
		assert.False(t, e.Forwarded)
		none := fleet{"a": f["a"]}.dial(t, nil, map[string]string{conf.GroupKey: "none"})
		_, err = none.SayHello(background, "x")
		e, ok = weir.AsRejected(err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, "no-group", e.Reason)
		// By the name of its application, for which the provider asks.
		app := global.DefaultApplicationConfig()
		app.Name = "billing"
		billing := harness.Dial(t, harness.ConsumerConfig{
			Providers: []harness.Endpoint{f["a"].Endpoint}, Client: []client.ClientOption{client.SetClientApplication(app)},
			Reference: []client.ReferenceOption{client.WithURL(f["a"].URL() + "?weir.tell-caller=true")},
		})
		_, err = billing.SayHello(background, "x")
		require.NoError(t, err)
		assert.Equal(t, 1, f.totals()["a"])
	})
}

// Three hops, with the protocol changed at each: the group is that of the first caller,
// whatever those in between are of, but for a call that is given another, and an entry
// strips it.
func TestThreeHopsKeepTheGroup(t *testing.T) {
	for name, protocols := range map[string][3]string{
		"tri dubbo tri":   {harness.Triple, harness.Dubbo, harness.Triple},
		"dubbo tri dubbo": {harness.Dubbo, harness.Triple, harness.Dubbo},
		"tri":             {harness.Triple, harness.Triple, harness.Triple},
		"dubbo":           {harness.Dubbo, harness.Dubbo, harness.Dubbo},
	} {
		t.Run(name, func(t *testing.T) {
			configured(t, conf.Group{Match: conf.MatchFallback})
			instances := map[string]map[string]string{"core": {conf.GroupKey: "core"}, "noncore": {conf.GroupKey: "noncore"}}
			last := spawn(t, protocols[2], instances)
			toLast := last.dial(t, instances, map[string]string{conf.GroupKey: "noncore"}) // what is between says otherwise
			relay := func(protocol string, next *harness.Consumer, params map[string]string) *harness.Provider {
				h := &harness.Handler{}
				h.Func = func(ctx context.Context, _, arg string) (string, error) {
					if arg == "other" {
						ctx = weir.WithGroup(ctx, "noncore")
					}
					return next.SayHello(ctx, arg)
				}
				return harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Handler: h, Params: params})
			}
			second := relay(protocols[1], toLast, nil)
			first := relay(protocols[0], second.Dial(t), nil)
			entry := relay(protocols[0], second.Dial(t), map[string]string{conf.GroupRoleKey: "entry"})
			own := func(params map[string]string, p *harness.Provider) *harness.Consumer {
				return p.Dial(t, client.WithParam(conf.GroupKey, params[conf.GroupKey]))
			}
			core := own(map[string]string{conf.GroupKey: "core"}, first)
			for range calls {
				_, err := core.SayHello(background, "x")
				require.NoError(t, err)
			}
			assert.Equal(t, map[string]int{"core": calls, "noncore": 0}, last.totals())
			plain := own(map[string]string{conf.GroupKey: "none"}, first)
			_, err := plain.SayHello(background, "x")
			require.NoError(t, err)
			assert.Equal(t, map[string]int{"core": calls, "noncore": 1}, last.totals(), "nobody has given it one before")
			_, err = core.SayHello(background, "other")
			require.NoError(t, err)
			assert.Equal(t, map[string]int{"core": calls, "noncore": 2}, last.totals(), "for this call")
			_, err = own(map[string]string{conf.GroupKey: "core"}, entry).SayHello(background, "x")
			require.NoError(t, err)
			assert.Equal(t, map[string]int{"core": calls, "noncore": 3}, last.totals(), "an entry strips it")
		})
	}
}
