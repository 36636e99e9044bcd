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
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/group"
	"github.com/weir-go/weir/group/tag"
)

var ctx = context.Background()

func TestCallsGoToTheirGroup(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		params    map[string]string
		providers []string
		want      string
	}{
		{"the application's", "weir: {group: core}", nil, []string{"a:core", "b:", "c:core", "d:noncore"}, "ac"},
		{"levels", "weir: {group: 'core|pay|vip'}", nil, []string{"a:core", "b:core|pay", "c:"}, "b"},
		{"none of it: untagged", "weir: {group: core}", nil, []string{"a:noncore", "b:", "c:"}, "bc"},
		{"none of it: any", "weir: {group: {name: core, fallback: any}}", nil, []string{"a:noncore", "b:"}, "ab"},
		{"a reference's own", "weir: {group: core}", map[string]string{"weir.group": "noncore"}, []string{"a:core", "b:noncore", "c:"}, "b"},
		{"only a reference's own", "weir: {}", map[string]string{"weir.group": "noncore"}, []string{"a:core", "b:noncore", "c:"}, "b"},
		{"a method's", "weir: {group: core, consumer: {group.match: strict}}", map[string]string{"methods.Get.weir.group": "noncore"}, []string{"a:core", "b:noncore", "c:"}, "b"},
		{"without a group", "weir: {group: core}", map[string]string{"weir.group": "none"}, []string{"a:core", "b:"}, "b"},
		{"without a group, any", "weir: {group: {ungrouped: any}}", nil, []string{"a:core", "b:noncore"}, "ab"},
		{"a provider that says none", "weir: {group: core}", nil, []string{"a:none"}, "a"},
		{"off", "weir: {group: {name: core, mode: off}}", nil, []string{"a:core", "b:", "c:noncore"}, "abc"},
		{"all off", "weir: {mode: off, group: core}", nil, []string{"a:core", "b:"}, "ab"},
		{"nothing configured", "weir: {}", nil, []string{"a:core", "b:"}, "ab"},
		{"the untagged beside the reference's group are no members", "weir: {}", map[string]string{"weir.group": "core"}, []string{"a:core", "b:"}, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			configured(t, tt.doc)
			c := refer(t, tt.params, tt.providers...)
			assert.Equal(t, tt.want, c.goes(t, ctx, nil))
		})
	}
}

// Providers core and none, request tag core: only core. No match and strict: an error
// that says so, at an address that is written down, with every cluster; never a panic,
// never an untagged provider.
func TestNobodyOfTheGroup(t *testing.T) {
	for _, cluster := range []string{"failover", "failfast", "forking", "broadcast", "available"} {
		for _, balance := range []string{"weir-p2c", "random", "roundrobin"} {
			configured(t, "weir: {group: {name: core, match: strict}}")
			c := refer(t, map[string]string{constant.ClusterKey: cluster, constant.LoadbalanceKey: balance}, "a:noncore", "b:", "c:core|pay")
			for range 3 {
				err := c.call(ctx, nil)
				e, ok := call.As(err)
				require.True(t, ok, "%s %v", cluster, err)
				require.ErrorIs(t, err, call.ErrRejected)
				require.ErrorIs(t, err, tag.ErrNoProvider)
				assert.Equal(t, group.Policy, e.Guard)
				assert.Equal(t, group.ReasonNoProvider, e.Reason)
				assert.Equal(t, call.Resource(c.service, "Get"), e.Resource)
				assert.False(t, e.Forwarded)
				assert.Contains(t, err.Error(), `no provider for group "core", there are 1 of group "core|pay", 1 of group "noncore", 1 without a group`)
			}
			assert.Empty(t, c.hit(), cluster)
		}
	}
}

// failsafe answers with nothing where others fail.
func TestNobodyWithFailsafe(t *testing.T) {
	configured(t, "weir: {group: {name: core, match: strict}}")
	c := refer(t, map[string]string{constant.ClusterKey: "failsafe"}, "a:", "b:noncore")
	require.NoError(t, c.call(ctx, nil))
	assert.Empty(t, c.hit())
}

func TestNobodyWithoutAGroup(t *testing.T) {
	configured(t, "weir: {group: {match: strict}}")
	c := refer(t, nil, "a:core")
	err := c.call(ctx, nil)
	require.ErrorIs(t, err, call.ErrRejected)
	assert.Contains(t, err.Error(), `no provider for a call without a group, there are 1 of group "core"`)
}

// Observing refuses nobody: the call goes on to those without a group, or to all.
func TestObserving(t *testing.T) {
	configured(t, "weir: {group: {name: core, match: strict, mode: observe}}")
	assert.Equal(t, "b", refer(t, nil, "a:noncore", "b:").goes(t, ctx, nil))
	c := refer(t, nil, "a:noncore", "b:noncore")
	assert.Equal(t, "ab", c.goes(t, ctx, nil))
	assert.Equal(t, "a", refer(t, nil, "a:core", "b:").goes(t, ctx, nil))
}

// Attachments in all of the forms that dubbo and its users give them.
func TestAttachmentsOfAllForms(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, nil, "a:core", "b:noncore", "c:")
	for name, value := range map[string]any{"a string": "noncore", "strings": []string{"noncore"}, "what hessian reads": []any{"noncore"}} {
		assert.Equal(t, "b", c.goes(t, ctx, map[string]any{group.AttachmentKey: value}), name)
		assert.Contains(t, c.carried(), "noncore", "as a text, which both protocols can carry")
	}
	for name, value := range map[string]any{
		"map[string]string": map[string]string{group.AttachmentKey: "noncore"}, "map[string]any": map[string]any{group.AttachmentKey: "noncore"},
		"[]string": map[string]any{group.AttachmentKey: []string{"noncore"}}, "map[string][]string": map[string][]string{group.AttachmentKey: {"noncore"}},
	} {
		in := context.WithValue(ctx, constant.AttachmentKey, value)
		assert.Equal(t, "b", c.goes(t, in, nil), name)
		assert.Equal(t, "noncore", group.From(in), name)
	}
	for name, value := range map[string]any{"a number": 5, "nothing": nil, "no strings": []string{}, "empty": "", "others": []any{5}} {
		assert.Equal(t, "a", c.goes(t, ctx, map[string]any{group.AttachmentKey: value}), name)
	}
}

// A group set for one call holds for that call only.
func TestOneCallsGroup(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, nil, "a:core", "b:noncore", "c:")
	assert.Equal(t, "b", c.goes(t, group.With(ctx, "noncore"), nil))
	assert.Equal(t, "a", c.goes(t, ctx, nil), "the next call of the goroutine")
	assert.Equal(t, "b", c.goes(t, group.With(ctx, "noncore"), map[string]any{group.AttachmentKey: "core"}), "over what the call came with")
	assert.Equal(t, "c", c.goes(t, group.With(ctx, conf.GroupNone), map[string]any{group.AttachmentKey: "core"}))
	assert.Equal(t, "c", c.goes(t, group.With(ctx, "no group|"), nil))
	assert.Equal(t, "noncore", group.From(group.With(ctx, "noncore")))
	assert.Empty(t, group.From(group.With(ctx, "none")))
	assert.Empty(t, group.From(ctx))
}

// An invocation that the program uses again: what was configured for its former call
// is not the next one's own.
func TestAnInvocationThatIsUsedAgain(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, nil, "a:core", "b:noncore", "c:")
	inv := invocation.NewRPCInvocation("Get", []any{1}, nil)
	invoke := func(in context.Context) string {
		require.NoError(t, c.invoke(in, inv))
		return c.hit()
	}
	assert.Equal(t, "a", invoke(ctx))
	configured(t, "weir: {group: noncore}")
	assert.Equal(t, "b", invoke(ctx), "the configuration has changed")
	configured(t, "weir: {group: {match: fallback}}")
	assert.Equal(t, "c", invoke(ctx), "none is configured any more")
	configured(t, "weir: {group: core}")
	assert.Equal(t, "a", invoke(ctx))
	assert.Equal(t, "b", invoke(group.With(ctx, "noncore")))
}

// A retry is sent to the call's group too.
func TestRetriesStayInTheGroup(t *testing.T) {
	configured(t, "weir: {group: core}")
	c := refer(t, map[string]string{constant.RetriesKey: "3"}, "a:core", "b:core", "c:", "d:noncore")
	for _, i := range c.instances {
		i.err = assert.AnError
	}
	for range 20 {
		require.Error(t, c.call(ctx, nil))
	}
	assert.Equal(t, "ab", c.hit())
}

// dubbo's own tag router goes on beside ours: each goes by its own, and what both allow
// is left. dubbo-go panics on a forced tag that nobody has at an address that is written
// down; a reference that goes by groups says it.
func TestDubbosTagsGoOn(t *testing.T) {
	configured(t, "weir: {group: core}")
	// The first is untagged: dubbo takes the first address for the reference's own URL.
	c := refer(t, nil, "a:core", "b:core#gray", "c:#gray", "d:")
	assert.Equal(t, "a", c.goes(t, ctx, nil))
	assert.Equal(t, "b", c.goes(t, ctx, map[string]any{constant.Tagkey: "gray"}))
	err := c.call(ctx, map[string]any{constant.Tagkey: "blue", constant.ForceUseTag: "true"})
	require.ErrorIs(t, err, call.ErrRejected)
	assert.Contains(t, err.Error(), `no provider for group "core", the routers before have left none`)
	assert.Equal(t, "b", refer(t, nil, "a:noncore", "b:").goes(t, ctx, map[string]any{constant.Tagkey: "blue"}), "dubbo falls back, and so do we")
	assert.Empty(t, c.hit(), "nobody was called")
}

// Too few of the group: its calls go to the fallback too.
func TestTooFewOfTheGroup(t *testing.T) {
	configured(t, "weir: {group: {name: core, min-providers: 2}}")
	assert.Equal(t, "ac", refer(t, nil, "a:core", "b:noncore", "c:").goes(t, ctx, nil))
	assert.Equal(t, "ab", refer(t, nil, "a:core", "b:core", "c:").goes(t, ctx, nil))
}
