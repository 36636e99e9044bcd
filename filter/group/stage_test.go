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

package group_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/group"
	"github.com/weir-go/weir/filter/guard"
	carried "github.com/weir-go/weir/group"
	"github.com/weir-go/weir/internal/logtest"
)

// server is a provider's chain.
type server struct {
	base.BaseInvoker
	rt      *guard.Runtime
	guard   *guard.Guard
	service string
	saw     map[string]any // the attachments of the last call
	res     result.Result
}

func (s *server) Invoke(_ context.Context, inv base.Invocation) result.Result {
	s.saw = inv.Attachments()
	return s.res
}

var services atomic.Int64

func serve(t testing.TB, filter string, params map[string]string, doc string) *server {
	t.Helper()
	s := &server{rt: guard.NewRuntime(), service: fmt.Sprintf("group.Provider%d", services.Add(1)), res: &result.RPCResult{}}
	if doc != "" {
		cfg, _, faults := conf.ParseYAML("test", []byte(doc))
		require.Empty(t, faults)
		s.rt.Store.Set(conf.FromCode, "test", cfg)
	}
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath(s.service), common.WithInterface(s.service),
		common.WithMethods([]string{"Get"}), common.WithParamsValue(constant.ServiceFilterKey, filter))
	for k, v := range params {
		u.SetParam(k, v)
	}
	s.BaseInvoker = *base.NewBaseInvoker(u)
	s.guard = guard.New(s.rt, conf.Provider)
	if filter != guard.ProviderFilter {
		s.guard = guard.NewAlone(s.rt, conf.Provider, filter, group.Policy)
	}
	return s
}

// call is the reason for which a call is refused, "" when it is let in.
func (s *server) call(t testing.TB, attachments map[string]any) string {
	t.Helper()
	res := s.guard.Invoke(context.Background(), s, invocation.NewRPCInvocation("Get", nil, attachments))
	if res.Error() == nil {
		return ""
	}
	e, ok := call.As(res.Error())
	require.True(t, ok)
	require.ErrorIs(t, res.Error(), group.ErrOther)
	require.Equal(t, group.Policy, e.Guard)
	require.Equal(t, call.Resource(s.service, "Get"), e.Resource)
	return e.Reason
}

func of(name any) map[string]any { return map[string]any{carried.AttachmentKey: name} }

func TestOtherGroupsAreRefused(t *testing.T) {
	for _, filter := range []string{guard.ProviderFilter, group.FilterName} {
		s := serve(t, filter, map[string]string{"weir.group": "core", "weir.group.mode": "enforce", "weir.group.callers": "billing, audit"}, "")
		for _, tt := range []struct {
			name        string
			attachments map[string]any
			want        string
		}{
			{"its group", of("core"), ""},
			{"strings, as of Triple", of([]string{"core"}), ""},
			{"what hessian reads", of([]any{"core"}), ""},
			{"a narrower one", of("core|pay"), ""},
			{"another", of("noncore"), group.ReasonOther},
			{"a name that begins alike", of("corex"), group.ReasonOther},
			{"none", nil, group.ReasonNone},
			{"the word none", of("none"), group.ReasonNone},
			{"no text", of(5), group.ReasonNone},
			{"in other letters, as the dubbo protocol keeps them", map[string]any{"Weir-Group": "core"}, ""},
			{"the very name first", map[string]any{"Weir-Group": "core", carried.AttachmentKey: "noncore"}, group.ReasonOther},
			{"a group in other letters", of("CORE"), group.ReasonOther},
			{"two of them, as a proxy joins them", of("core,noncore"), group.ReasonNone},
			{"blanks", of(" core"), group.ReasonNone},
			{"a level of nothing", of("core|"), group.ReasonNone},
			{"a zero byte", of("core\x00"), group.ReasonNone},
			{"very long", of(strings.Repeat("core|", 1<<18)), group.ReasonNone},
			{"the first of several", of([]string{"noncore", "core"}), group.ReasonOther},
			{"no strings", of([]string{}), group.ReasonNone},
			{"a map", of(map[string]string{"core": "core"}), group.ReasonNone},
			{"bytes", of([]byte("core")), group.ReasonNone},
			{"an application that is listed", map[string]any{"remote.application": "audit"}, ""},
			{"the same, of another group", map[string]any{"remote.application": "audit", carried.AttachmentKey: "noncore"}, ""},
			{"as Weir tells it", map[string]any{"weir-caller": "billing@" + s.service}, ""},
			{"told to another service", map[string]any{"weir-caller": "billing@x.Y"}, group.ReasonNone},
			{"another application", map[string]any{"remote.application": "shop"}, group.ReasonNone},
		} {
			assert.Equal(t, tt.want, s.call(t, tt.attachments), "%s %s", filter, tt.name)
		}
	}
}

func TestItObservesUntilItIsTold(t *testing.T) {
	s := serve(t, guard.ProviderFilter, map[string]string{"weir.group": "core"}, "")
	for range 3 {
		assert.Empty(t, s.call(t, of("noncore")))
	}
	assert.Empty(t, s.call(t, of("core")))
	would := map[string]int64{}
	s.rt.Rejections(func(k guard.RejectionKey, r *guard.Rejections) {
		assert.Zero(t, r.Rejected())
		would[k.Guard+" "+k.Reason] += r.WouldReject()
	})
	assert.Equal(t, map[string]int64{"group other-group": 3, "group no-group": 0}, would)
}

func TestNobodyIsRefusedWithoutAGroup(t *testing.T) {
	for doc, params := range map[string]map[string]string{
		"": nil, "weir: {group: {mode: enforce}}": nil, "weir: {group: {name: core, mode: enforce}}": {"weir.group": "none"},
		"weir: {group: {name: core, mode: off}}": nil, "weir: {mode: observe, group: {name: core, mode: enforce}}": nil,
		"weir: {mode: off, group: {name: core, mode: enforce}}": nil,
	} {
		assert.Empty(t, serve(t, guard.ProviderFilter, params, doc).call(t, of("noncore")), doc)
	}
}

// The configuration changes while it runs.
func TestAChangeTakesHold(t *testing.T) {
	s := serve(t, guard.ProviderFilter, nil, "weir: {group: {name: core, mode: enforce}}")
	assert.Equal(t, group.ReasonOther, s.call(t, of("noncore")))
	s.rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Policies: conf.Policies{Group: &conf.Group{Name: "noncore", Mode: conf.Enforce}}}})
	assert.Empty(t, s.call(t, of("noncore")))
	assert.Equal(t, group.ReasonOther, s.call(t, of("core")))
}

// Consumers route by what was exported: a change of that is told.
func TestAChangeIsToldWhereConsumersKnowBetter(t *testing.T) {
	told := func(published, doc string) []string {
		lines := logtest.Warnings(t)
		s := serve(t, guard.ProviderFilter, nil, "weir: {group: core}")
		if published != "not looked at" {
			declared := map[string]guard.Declared{}
			if published != "" {
				declared[conf.GroupKey] = guard.Declared{Value: published}
			}
			s.GetURL().SetAttribute(guard.DeclaredKey, declared)
		}
		assert.Empty(t, s.call(t, of("core")))
		cfg, _, faults := conf.ParseYAML("test", []byte(doc))
		require.Empty(t, faults)
		s.rt.Store.Set(conf.FromCode, "test", cfg)
		for range 3 {
			s.call(t, of("core"))
		}
		var out []string
		for _, l := range lines.All() {
			_, text, _ := strings.Cut(l.Message, "weir.group=")
			out = append(out, text)
		}
		return out
	}
	const text = ` has changed while the program runs: consumers know it as "core" until it is exported again, and the guard goes by what is new`
	assert.Equal(t, []string{`"noncore"` + text}, told("core", "weir: {group: noncore}"))
	assert.Empty(t, told("core", "weir: {group: {name: core, mode: enforce}}"))
	assert.Empty(t, told("core", "weir: {group: {name: core}, provider: {services: {x.Y: {group: noncore}}}}"))
	assert.Empty(t, told("not looked at", "weir: {group: noncore}"))
	assert.Len(t, told("", "weir: {group: noncore}"), 2, "it was none, and is core, and noncore then")
}

// An entry strips what comes from outside, whatever the mode.
func TestAnEntryStrips(t *testing.T) {
	for _, doc := range []string{"weir: {group: {role: entry}}", "weir: {group: {name: core, role: entry, mode: enforce}}"} {
		s := serve(t, guard.ProviderFilter, nil, doc)
		for _, value := range []any{"core", []string{"noncore"}, ""} {
			assert.Empty(t, s.call(t, map[string]any{carried.AttachmentKey: value, "other": "stays"}))
			assert.Equal(t, map[string]any{"other": "stays"}, s.saw, doc)
			// The dubbo protocol keeps the case, and the next hop may be Triple, which does not.
			assert.Empty(t, s.call(t, map[string]any{"Weir-Group": value, "WEIR-GROUP": value, carried.AttachmentKey: value, "other": "stays"}))
			assert.Equal(t, map[string]any{"other": "stays"}, s.saw, doc)
			assert.Empty(t, s.call(t, map[string]any{"Weir-Group": value, "other": "stays"}))
			assert.Equal(t, map[string]any{"other": "stays"}, s.saw, doc)
		}
		assert.Empty(t, s.call(t, nil))
	}
	s := serve(t, guard.ProviderFilter, nil, "weir: {group: {name: core, role: entry, mode: enforce, callers: [gate]}}")
	assert.Empty(t, s.call(t, map[string]any{"remote.application": "gate"}))
	assert.Equal(t, group.ReasonNone, s.call(t, map[string]any{"remote.application": "shop", carried.AttachmentKey: "core"}))
	s = serve(t, guard.ProviderFilter, nil, "weir: {group: core}")
	assert.Empty(t, s.call(t, of("core|pay")))
	assert.Equal(t, of("core|pay"), s.saw, "an inner one passes on what it got")
}

func TestNothingIsAllocated(t *testing.T) {
	s := serve(t, guard.ProviderFilter, map[string]string{"weir.group": "core", "weir.group.mode": "enforce", "weir.stats": "false"}, "")
	inv := invocation.NewRPCInvocation("Get", nil, of("core|pay"))
	s.guard.Invoke(context.Background(), s, inv)
	assert.Zero(t, testing.AllocsPerRun(100, func() { s.guard.Invoke(context.Background(), s, inv) }))
	other := invocation.NewRPCInvocation("Get", nil, of("noncore"))
	for range 2000 { // past the callers that are told apart one by one
		s.guard.Invoke(context.Background(), s, other)
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { s.guard.Invoke(context.Background(), s, other) }), 1.0)
}

func BenchmarkAdmitted(b *testing.B) {
	s := serve(b, guard.ProviderFilter, map[string]string{"weir.group": "core", "weir.group.mode": "enforce", "weir.stats": "false"}, "")
	inv := invocation.NewRPCInvocation("Get", nil, of("core"))
	b.ReportAllocs()
	for b.Loop() {
		s.guard.Invoke(context.Background(), s, inv)
	}
}
