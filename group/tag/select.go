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

package tag

import (
	"errors"

	"github.com/weir-go/weir/conf"
)

// ErrNoProvider is a call for whose group there is no provider.
var ErrNoProvider = errors.New("no provider of the call's group")

// Rule says where a call may go. The zero value lets a call without a provider of its
// group go to the untagged.
type Rule struct {
	// Strict lets a call go to providers of its very group only. What follows has then
	// no effect but for calls without a group.
	Strict bool
	// Any lets a call without a provider of its group go to all, not only to the untagged.
	Any bool
	// UngroupedAny lets a call without a group go to all where there are no untagged;
	// otherwise it goes nowhere then.
	UngroupedAny bool
	// MinShare is the share of a group's members that must be available, and MinMembers
	// how many: with fewer the call may go to the fallback too, so that the rest is not
	// crushed. 0 is no bound.
	MinShare   conf.Ratio
	MinMembers int
}

// Bounded reports whether it matters how many members are available.
func (r Rule) Bounded() bool { return !r.Strict && (r.MinShare > 0 || r.MinMembers > 0) }

// enough tells whether as many members of a group are available as there must be.
func enough[T any](r Rule, g *Group[T], available func(*Group[T]) int) bool {
	n := len(g.Members)
	if available != nil {
		n = available(g)
	}
	return n >= r.MinMembers && int64(n)*int64(conf.WholeRatio) >= int64(r.MinShare)*int64(len(g.Members))
}

// Result tells where a call goes, and why.
type Result uint8

// Results. Those of calls without a group are Untagged, Any and None.
const (
	// None is nobody.
	None Result = iota
	// Own are the providers of the call's very group.
	Own
	// ByWider are those of the deepest of its wider groups that is there.
	ByWider
	// Untagged are those without a group, for want of any of its own.
	Untagged
	// Any are all, for want of any of its own.
	Any
	// ThinUntagged are those of its group, of which too few are available, and those
	// without one.
	ThinUntagged
	// ThinAny are all, because too few of its group are available.
	ThinAny
	// Results is how many there are.
	Results
)

var resultNames = [Results]string{"none", "own", "wider", "untagged", "any", "thin-untagged", "thin-any"}

// String is the result in the words of the docs.
func (r Result) String() string {
	if r >= Results {
		return "unknown"
	}
	return resultNames[r]
}

// Select returns the members that a call of the group may go to, "" for a call without
// one. available tells how many of a group's members can take calls now, nil for all;
// it is asked only where the rule is [Rule.Bounded]. It allocates nothing, but for the
// first time that too few of a group are there.
//
// The cost does not grow with the number of members, only with the levels of the group.
func (l *List[T]) Select(group string, r Rule, available func(*Group[T]) int) ([]T, Result) {
	if group == "" {
		return l.ungrouped(r)
	}
	own, bounded := l.byName[group], r.Bounded()
	if own != nil && (!bounded || enough(r, own, available)) {
		return own.Members, Own
	}
	if r.Strict {
		return nil, None
	}
	deepest, found := own, Own
	for wider := Wider(group); wider != ""; wider = Wider(wider) {
		g := l.byName[wider]
		if g == nil {
			continue
		}
		if !bounded || enough(r, g, available) {
			return g.Members, ByWider
		}
		if deepest == nil {
			deepest, found = g, ByWider
		}
	}
	untagged := l.groups[0].Members
	switch {
	case deepest == nil && r.Any:
		return all(l.all, Any)
	case deepest == nil:
		return all(untagged, Untagged)
	case r.Any && len(deepest.Members) < len(l.all):
		return l.all, ThinAny
	case !r.Any && len(untagged) > 0:
		return l.relieved(deepest), ThinUntagged
	}
	return deepest.Members, found // there is nobody to relieve them
}

func (l *List[T]) ungrouped(r Rule) ([]T, Result) {
	if untagged := l.groups[0].Members; len(untagged) > 0 {
		return untagged, Untagged
	}
	if r.UngroupedAny {
		return all(l.all, Any)
	}
	return nil, None
}

// all is the result where there may be nobody.
func all[T any](members []T, r Result) ([]T, Result) {
	if len(members) == 0 {
		return nil, None
	}
	return members, r
}
