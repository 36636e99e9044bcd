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

package tag_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/group/tag"
)

// provider is "name:group".
type provider string

func groupOf(p provider) string { _, group, _ := strings.Cut(string(p), ":"); return group }

func names(members []provider) string {
	var out []string
	for _, m := range members {
		name, _, _ := strings.Cut(string(m), ":")
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func listOf(members ...provider) *tag.List[provider] { return tag.New(members, groupOf) }

// The cases of Java Dubbo's tag routers, G1 and G5 to G10, and what goes beyond them.
func TestSelect(t *testing.T) {
	levels := []provider{"a:beta", "b:beta|team1", "c:beta|team1|partner1"}
	none := func(*tag.Group[provider]) int { return 0 }
	one := func(*tag.Group[provider]) int { return 1 }
	half := tag.Rule{MinShare: conf.WholeRatio / 2}
	for _, tt := range []struct {
		name      string
		providers []provider
		group     string
		rule      tag.Rule
		available func(*tag.Group[provider]) int
		want      string
		result    tag.Result
	}{
		{"G1 tagged only", []provider{"a:tag2", "b:", "c:"}, "tag2", tag.Rule{}, nil, "a", tag.Own},
		{"G5 the deepest there is", levels, "beta|team1|partner1", tag.Rule{}, nil, "c", tag.Own},
		{"G5 unknown", levels, "beta2", tag.Rule{}, nil, "", tag.None},
		{"G5 unknown level", levels, "beta|team2", tag.Rule{}, nil, "a", tag.ByWider},
		{"G5 unknown deepest level", levels, "beta|team1|partner2", tag.Rule{}, nil, "b", tag.ByWider},
		{"G6 forced, exact", levels, "beta|team1|partner1", tag.Rule{Strict: true}, nil, "c", tag.Own},
		{"G6 forced, not there", levels, "beta|team1|partner2", tag.Rule{Strict: true}, nil, "", tag.None},
		{"G7 red to red", []provider{"a:red", "b:yellow", "c:"}, "red", tag.Rule{}, nil, "a", tag.Own},
		{"G8 default to default", []provider{"a:red", "b:yellow", "c:"}, "", tag.Rule{}, nil, "c", tag.Untagged},
		{"G9 downgrade", []provider{"a:red", "b:yellow", "c:", "d:"}, "black", tag.Rule{}, nil, "c d", tag.Untagged},
		{"G10 only tagged, no tag", []provider{"a:red", "b:yellow"}, "", tag.Rule{}, nil, "", tag.None},
		{"only tagged, no tag, any", []provider{"a:red", "b:yellow"}, "", tag.Rule{UngroupedAny: true}, nil, "a b", tag.Any},
		{"untagged before any", []provider{"a:red", "b:"}, "", tag.Rule{UngroupedAny: true}, nil, "b", tag.Untagged},
		{"only tagged, other tag", []provider{"a:red", "b:yellow"}, "black", tag.Rule{}, nil, "", tag.None},
		{"any", []provider{"a:red", "b:"}, "black", tag.Rule{Any: true}, nil, "a b", tag.Any},
		{"any of nobody", nil, "black", tag.Rule{Any: true}, nil, "", tag.None},
		{"ungrouped of nobody", nil, "", tag.Rule{UngroupedAny: true}, nil, "", tag.None},
		{"H18 core only", []provider{"a:core", "b:"}, "core", tag.Rule{}, nil, "a", tag.Own},
		{"H18 forced, never untagged", []provider{"a:noncore", "b:"}, "core", tag.Rule{Strict: true, Any: true}, nil, "", tag.None},
		{"no group is no level", []provider{"a:", "b:|x"}, "|x", tag.Rule{}, nil, "b", tag.Own},
		{"half is enough", []provider{"a:core", "b:core", "c:"}, "core", half, one, "a b", tag.Own},
		{"less is not", []provider{"a:core", "b:core", "e:other", "c:", "d:core"}, "core", half, one, "a b c d", tag.ThinUntagged},
		{"less is not, any", []provider{"a:core", "b:core", "e:other", "c:", "d:core"}, "core", tag.Rule{MinShare: half.MinShare, Any: true}, one, "a b e c d", tag.ThinAny},
		{"nobody relieves", []provider{"a:core", "e:other"}, "core", half, none, "a", tag.Own},
		{"nobody relieves, any", []provider{"a:core"}, "core", tag.Rule{MinShare: half.MinShare, Any: true}, none, "a", tag.Own},
		{"strict is not relieved", []provider{"a:core", "c:"}, "core", tag.Rule{Strict: true, MinMembers: 2}, none, "a", tag.Own},
		{"too few members", []provider{"a:core", "c:"}, "core", tag.Rule{MinMembers: 2}, nil, "a c", tag.ThinUntagged},
		{"the wider relieves", []provider{"a:core|pay", "b:core", "d:core", "c:"}, "core|pay", tag.Rule{MinMembers: 2}, nil, "b d", tag.ByWider},
		{"no wider one does", []provider{"a:core|pay", "b:core", "c:"}, "core|pay|vip", tag.Rule{MinMembers: 2}, nil, "a c", tag.ThinUntagged},
		{"wider, nobody relieves", []provider{"a:core|pay", "b:core"}, "core|pay|vip", tag.Rule{MinMembers: 2}, nil, "a", tag.ByWider},
	} {
		t.Run(tt.name, func(t *testing.T) {
			members, result := listOf(tt.providers...).Select(tt.group, tt.rule, tt.available)
			assert.Equal(t, tt.want, names(members))
			assert.Equal(t, tt.result, result, result.String())
		})
	}
}

// G2 to G4 are about dynamic rules of dubbo's own router, which go on beside ours; of
// G4 the rule that a key which is not there matches nobody holds here too.

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		own, group string
		want       bool
	}{
		{"core", "core", true}, {"core", "core|pay", true}, {"core|pay", "core", false}, {"core", "corex", false},
		{"core", "noncore", false}, {"core", "", false}, {"", "core", false}, {"core|p", "core|pay", false}, {"core|pay", "core|pay|vip", true},
	} {
		assert.Equal(t, tt.want, tag.Within(tt.own, tt.group), "%q %q", tt.own, tt.group)
	}
	assert.Equal(t, "core|pay", tag.Wider("core|pay|vip"))
	assert.Empty(t, tag.Wider("core"))
	assert.Empty(t, tag.Wider(""))
	assert.Empty(t, tag.Wider("|x"))
}

func TestTheListTellsWhoIsThere(t *testing.T) {
	l := listOf("a:core", "b:core", "c:noncore", "d:")
	assert.Equal(t, `2 of group "core", 1 of group "noncore", 1 without a group`, l.String())
	assert.Equal(t, "none at all", listOf().String())
	var many []provider
	for i := range 8 {
		many = append(many, provider(fmt.Sprintf("p:g%d", i)))
	}
	assert.Contains(t, listOf(many...).String(), "others of 3 more groups")
	require.Equal(t, 3, l.Groups())
	assert.Equal(t, "noncore", l.Group(2).Name)
	assert.Equal(t, 4, l.Len())
}

func TestResultsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range tag.Results {
		assert.False(t, seen[r.String()], r.String())
		seen[r.String()] = true
	}
	assert.Equal(t, "unknown", tag.Results.String())
}

// naive is the rule written down without a thought for speed.
func naive(members []provider, group string, r tag.Rule, available map[string]int) []provider {
	of := func(group string) (out []provider) {
		for _, m := range members {
			if groupOf(m) == group {
				out = append(out, m)
			}
		}
		return out
	}
	untagged := of("")
	if group == "" {
		if len(untagged) == 0 && r.UngroupedAny {
			return members
		}
		return untagged
	}
	if r.Strict {
		return of(group)
	}
	deepest := ""
	for at := group; at != ""; at = tag.Wider(at) {
		n := len(of(at))
		if n == 0 {
			continue
		}
		if available[at] >= r.MinMembers && float64(available[at]) >= float64(r.MinShare)/float64(conf.WholeRatio)*float64(n) {
			return of(at)
		}
		if deepest == "" {
			deepest = at
		}
	}
	if r.Any {
		return members
	}
	var out []provider
	for _, m := range members {
		if g := groupOf(m); g == "" || g == deepest {
			out = append(out, m)
		}
	}
	return out
}

func FuzzSelect(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		rnd := rand.New(rand.NewPCG(a, b))
		groups := []string{"", "core", "core|pay", "core|pay|vip", "noncore", "x|y", "|", "core|"}
		var members []provider
		for i := range rnd.IntN(12) {
			members = append(members, provider(fmt.Sprintf("%d:%s", i, groups[rnd.IntN(len(groups))])))
		}
		before := slices.Clone(members)
		l := listOf(members...)
		for range 20 {
			r := tag.Rule{Strict: rnd.IntN(4) == 0, Any: rnd.IntN(2) == 0, UngroupedAny: rnd.IntN(2) == 0}
			if rnd.IntN(2) == 0 {
				r.MinShare, r.MinMembers = conf.Ratio(rnd.IntN(3))*conf.WholeRatio/4, rnd.IntN(3)
			}
			available := map[string]int{}
			for i := range l.Groups() {
				g := l.Group(i)
				available[g.Name] = len(g.Members)
				if n := len(g.Members); n > 0 && rnd.IntN(2) == 0 {
					available[g.Name] = rnd.IntN(n + 1)
				}
			}
			group := groups[rnd.IntN(len(groups))]
			got, result := l.Select(group, r, func(g *tag.Group[provider]) int { return available[g.Name] })
			want := naive(members, group, r, available)
			if !slices.Equal(want, got) {
				t.Fatalf("%v of %v by %+v available %v: want %v, got %v", group, members, r, available, want, got)
			}
			if (len(got) == 0) != (result == tag.None) {
				t.Fatalf("%v is %v", got, result)
			}
		}
		if !slices.Equal(before, members) {
			t.Fatal("the members have changed")
		}
	})
}

func TestSelectAllocatesNothing(t *testing.T) {
	l := listOf("a:core", "b:core|pay", "c:", "d:noncore")
	thin := tag.Rule{MinMembers: 2}
	one := func(*tag.Group[provider]) int { return 1 }
	for _, group := range []string{"", "core", "core|pay|vip", "other"} {
		for _, r := range []tag.Rule{{}, {Strict: true}, {Any: true}, thin} {
			l.Select(group, r, one)
			assert.Zero(t, testing.AllocsPerRun(100, func() { l.Select(group, r, one) }), "%q %+v", group, r)
		}
	}
}
