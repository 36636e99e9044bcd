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
	"maps"
	"strings"
	"sync/atomic"

	"github.com/weir-go/weir/group/tag"
)

const (
	// maxGroups bounds the groups that are counted by themselves because they are
	// configured or some provider is of them.
	maxGroups = 64
	// maxStrangers bounds those that only calls say they are of: whoever calls may make
	// up as many as he likes, and they must not hide the others.
	maxStrangers = 16
	// OtherGroups is the name of those that are not counted by themselves.
	OtherGroups = "other"
)

// counts are how calls of a group were routed.
type counts [tag.Results]atomic.Int64

// tally has the counts of groups by their names. It is immutable but for the counts.
type tally struct {
	byName           map[string]*counts
	known, strangers int
}

// count counts a call of a group; known tells whether it is more than a name that a call
// came with.
func (c *consumer) count(group string, known bool, r tag.Result) {
	if t := c.counts.Load(); t != nil {
		if n := t.of(group, known); n != nil {
			n[r].Add(1)
			return
		}
	}
	c.counter(group, known)[r].Add(1)
}

// full reports whether no more groups are counted by themselves.
func (t *tally) full(group string, known bool) bool {
	if known {
		return t.known >= maxGroups
	}
	return t.strangers >= maxStrangers && group != "" && group != OtherGroups
}

// of are the counts that a group's calls go into, nil where there are none yet.
func (t *tally) of(group string, known bool) *counts {
	n := t.byName[group]
	if n == nil && t.full(group, known) {
		n = t.byName[OtherGroups]
	}
	return n
}

func (c *consumer) counter(group string, known bool) *counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := &tally{byName: map[string]*counts{}}
	if t := c.counts.Load(); t != nil {
		if n := t.of(group, known); n != nil {
			return n
		}
		*next = tally{maps.Clone(t.byName), t.known, t.strangers}
	}
	switch {
	case next.full(group, known):
		group = OtherGroups
	case known:
		next.known++
	case group != "" && group != OtherGroups:
		next.strangers++
	}
	n := &counts{}
	next.byName[strings.Clone(group)] = n // it may be a part of something large
	c.counts.Store(next)
	return n
}
