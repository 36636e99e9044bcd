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
	"net/http"
	"runtime"
	"strings"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group"
	"github.com/weir-go/weir/group/tag"
	"github.com/weir-go/weir/internal/chain"
	"github.com/weir-go/weir/internal/logtest"
	"github.com/weir-go/weir/internal/retry"
)

// noGroups are texts that no group can be called.
var noGroups = []string{
	" core", "core ", "core,noncore", "core, noncore", "core|", "|core", "core||pay", "|", "core\x00", "core\n", "core\r\nx: y", "c\xffre", "cöre",
	"true", "False", "a|b|c|d|e|f|g|h|i", strings.Repeat("x", 65), strings.Repeat("core|", 1<<16), "*", "core;noncore",
}

// What a call comes with that cannot be a group is none: it goes by the configured one,
// and nothing of it goes on, as Triple would fail on a header with a line break in it.
func TestWhatIsNoGroupIsNotCarried(t *testing.T) {
	for doc, want := range map[string][2]string{"weir: {group: core}": {"a", "core"}, "weir: {group: {match: fallback}}": {"c", ""}} {
		configured(t, doc)
		c := refer(t, nil, "a:core", "b:noncore", "c:")
		for _, text := range noGroups {
			for _, value := range []any{text, []string{text}, []any{text}} {
				require.NoError(t, c.call(ctx, map[string]any{group.AttachmentKey: value}))
				require.Equal(t, want[0], c.hit(), "%T %.40q", value, text)
			}
			in := context.WithValue(ctx, constant.AttachmentKey, map[string]any{group.AttachmentKey: text})
			require.NoError(t, c.call(in, nil))
			require.Equal(t, want[0], c.hit(), "%.40q", text)
			require.Empty(t, group.From(in), "%.40q", text)
		}
		for _, got := range c.carried() {
			require.Contains(t, []string{want[1], "<nil>"}, got)
		}
	}
}

// A provider whose address says something that no group can be called is of a group of
// which no call is: who wrote that did not mean it to be for everybody.
func TestAProviderWithAMisspeltGroupIsForNobody(t *testing.T) {
	configured(t, "weir: {group: core}")
	for _, text := range noGroups {
		if strings.TrimSpace(text) == "core" {
			continue // blanks around it are not part of it
		}
		c := refer(t, nil, "a:core", "b:", "c:")
		c.instances[2].GetURL().SetParam(conf.GroupKey, text)
		for _, own := range []string{"core", "none", "noncore", group.Misnamed} {
			require.NotContains(t, c.goes(t, group.With(ctx, own), nil), "c", "%.40q %s", text, own)
		}
		var seen []string
		for _, s := range group.States(guard.Process()) {
			if s.Service == c.service && s.Providers > 0 {
				seen = append(seen, s.Group)
			}
		}
		require.ElementsMatch(t, []string{"core", "none", group.Misnamed}, seen)
		runtime.KeepAlive(c)
	}
	c := refer(t, nil, "a: core ", "b:")
	assert.Equal(t, "a", c.goes(t, ctx, nil))
}

// Triple makes all names of attachments lower case, and the dubbo protocol keeps them:
// an attachment is the same in any case, and there is one of it when the call goes on.
func TestTheCaseOfTheAttachment(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, nil, "a:core", "b:noncore", "c:")
	for _, key := range []string{"Weir-Group", "WEIR-GROUP", "weir-Group"} {
		for range 10 {
			attachments := map[string]any{key: "noncore", "x": "y"}
			inv := invocation.NewRPCInvocation("Get", nil, attachments)
			require.NoError(t, c.invoke(ctx, inv))
			require.Equal(t, "b", c.hit(), key)
			require.Equal(t, map[string]any{group.AttachmentKey: "noncore", "x": "y"}, inv.Attachments())

			inv = invocation.NewRPCInvocation("Get", nil, map[string]any{key: "noncore", group.AttachmentKey: "core"})
			require.NoError(t, c.invoke(ctx, inv))
			require.Equal(t, "a", c.hit(), "the very name wins")
			require.Equal(t, map[string]any{group.AttachmentKey: "core"}, inv.Attachments())

			in := group.With(ctx, "core")
			inv = invocation.NewRPCInvocation("Get", nil, map[string]any{key: "noncore"})
			require.NoError(t, c.invoke(in, inv))
			require.Equal(t, "a", c.hit(), "what is set for this call wins")
			require.Equal(t, map[string]any{group.AttachmentKey: "core"}, inv.Attachments())
		}
		for _, m := range []any{map[string]any{key: "noncore"}, map[string]string{key: "noncore"}, map[string][]string{key: {"noncore"}}} {
			in := context.WithValue(ctx, constant.AttachmentKey, m)
			assert.Equal(t, "noncore", group.From(in))
			assert.Equal(t, "b", c.goes(t, in, nil))
		}
		assert.Equal(t, "noncore", group.Of(invocation.NewRPCInvocation("Get", nil, map[string]any{key: "noncore"})))
	}
}

// On Triple a program may write headers by themselves. They go out beside the attachments.
func TestAHeaderOfTriple(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, nil, "a:core", "b:noncore", "c:")
	for _, key := range []string{"weir-group", "Weir-Group"} {
		in := triple_protocol.NewOutgoingContext(ctx, http.Header{key: {"noncore"}})
		assert.Equal(t, "b", c.goes(t, in, nil))
		assert.Equal(t, "noncore", group.From(in))
		assert.Equal(t, "a", c.goes(t, in, map[string]any{group.AttachmentKey: "core"}), "it goes out over the header")
		inv := invocation.NewRPCInvocation("Get", nil, nil)
		require.NoError(t, c.invoke(group.With(in, "none"), inv))
		assert.Equal(t, "c", c.hit())
		assert.Equal(t, map[string]any{group.AttachmentKey: ""}, inv.Attachments(), "the header says otherwise")
	}
}

// Callers that send random groups fill up what is told apart, but the groups that are
// configured, or that providers are of, are told apart whoever came first.
func TestRandomGroupsDoNotHideThoseThatAreThere(t *testing.T) {
	configured(t, "weir: {group: {name: mine, fallback: any}}")
	c := refer(t, nil, "a:core", "b:noncore", "c:zone|1", "d:")
	for i := range 500 {
		require.NoError(t, c.call(ctx, map[string]any{group.AttachmentKey: fmt.Sprintf("random%d", i)}))
	}
	for _, own := range []string{"core", "noncore", "zone|1", "none", ""} {
		require.NoError(t, c.call(ctx, map[string]any{group.AttachmentKey: own}))
	}
	got := map[string]group.State{}
	for _, s := range group.States(guard.Process()) {
		if s.Service == c.service {
			got[s.Group] = s
		}
	}
	runtime.KeepAlive(c)
	for _, own := range []string{"core", "noncore", "zone|1"} {
		assert.Equal(t, int64(1), got[own].Routed[tag.Own], own)
		assert.Equal(t, 1, got[own].Providers, own)
	}
	assert.Equal(t, int64(1), got["none"].Routed[tag.Untagged])
	assert.Equal(t, 1, got["none"].Providers)
	assert.Equal(t, int64(1), got["mine"].Routed[tag.Any])
	assert.LessOrEqual(t, len(got), 16+5+1)
	sum := int64(0)
	for _, s := range got {
		for _, n := range s.Routed {
			sum += n
		}
	}
	assert.Equal(t, int64(505), sum)
}

// Whoever makes providers may make up groups, too.
func TestTheGroupsOfProvidersAreBounded(t *testing.T) {
	configured(t, "weir: {group: core}")
	providers := []string{"x:", "x:core"}
	for i := range 300 {
		providers = append(providers, fmt.Sprintf("x:made-up%d", i))
	}
	c := refer(t, nil, providers...)
	for i := range 300 {
		require.NoError(t, c.call(ctx, map[string]any{group.AttachmentKey: fmt.Sprintf("made-up%d", i)}))
	}
	require.NoError(t, c.call(ctx, nil))
	n, sum, known := 0, int64(0), 0
	for _, s := range group.States(guard.Process()) {
		if s.Service == c.service {
			n++
			known += s.Providers
			sum += s.Routed[tag.Own]
		}
	}
	runtime.KeepAlive(c)
	assert.LessOrEqual(t, n, 64+16+3)
	assert.Equal(t, [2]int64{301, 302}, [2]int64{sum, int64(known)})
}

// A group that is configured when references are there is told to come late for those.
func TestAGroupThatComesLate(t *testing.T) {
	lines := logtest.Warnings(t)
	rt := guard.NewRuntime()
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("group.Late"), common.WithInterface("group.Late"))
	chain.NewProcessor(rt, func() error { return nil }).PostProcessReferenceConfig(u)
	assert.Nil(t, retry.Of(u).Grouper)
	for range 3 {
		rt.Store.Set(conf.FromCode, "code", &conf.Config{Consumer: conf.Section{Policies: conf.Policies{Group: &conf.Group{Name: "core"}}}})
	}
	assert.Nil(t, retry.Of(u).Grouper)
	require.Equal(t, 1, lines.FilterMessageSnippet("go by no groups until the next start").Len())
}

// Whatever a call comes with: it carries one attachment of that name when it goes on, which
// is a group or nothing, and goes to a provider of it or to one without a group.
func FuzzCarried(f *testing.F) {
	for n, text := range append([]string{"core", "noncore", "none", "", "core|pay"}, noGroups[:12]...) {
		f.Add(text, "noncore", uint8(n))
	}
	f.Add("0", " ", uint8(42)) // nothing, by a name in another case
	store := guard.Process().Store
	cfg, _, _ := conf.ParseYAML("test", []byte("weir: {group: core}"))
	store.Set(conf.FromCode, "test", cfg)
	f.Cleanup(func() { store.Set(conf.FromCode, "", nil) })
	c := refer(f, nil, "a:core", "b:noncore", "c:")
	f.Fuzz(func(t *testing.T, text, other string, how uint8) {
		in := ctx
		attachments := map[string]any{"x": "y"}
		key := []string{group.AttachmentKey, "Weir-Group", "WEIR-GROUP", "weir-group "}[how%4]
		attachments[key] = []any{text, []string{text, other}, []any{text}, 5, nil, []string(nil)}[how/4%6]
		switch how / 24 % 4 {
		case 1:
			in = group.With(in, other)
		case 2:
			in = context.WithValue(in, constant.AttachmentKey, map[string]any{key: other})
		case 3:
			in = triple_protocol.NewOutgoingContext(in, http.Header{key: {other}})
		}
		inv := invocation.NewRPCInvocation("Get", nil, attachments)
		require.NoError(t, c.invoke(in, inv))
		require.Len(t, c.hit(), 1)
		for k, v := range inv.Attachments() {
			if !strings.EqualFold(k, group.AttachmentKey) {
				continue
			}
			require.Equal(t, group.AttachmentKey, k)
			own, ok := v.(string)
			require.True(t, ok, "%T", v)
			require.True(t, own == "" || conf.IsGroup(own), "%q", own)
			require.Equal(t, own, group.Of(inv))
		}
	})
}
