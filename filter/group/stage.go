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
	"errors"
	"fmt"
	"slices"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	carried "github.com/weir-go/weir/group"
	"github.com/weir-go/weir/group/tag"
)

const (
	// FilterName is the filter's name in a chain.
	FilterName = "group"
	// Policy is the policy's name, and the guard's in a refusal.
	Policy = carried.Policy
	// ReasonOther is a call of another group.
	ReasonOther = "other-group"
	// ReasonNone is a call without a group.
	ReasonNone = "no-group"
)

// ErrOther is a call that does not belong to the instance's group.
var ErrOther = errors.New("the call is not of this instance's group")

// set tells whether the policy holds for a method.
func set(e conf.Effective) bool {
	g := e.Group
	return g.Mode != conf.Off && (g.Entry || g.Name != "")
}

// stage is the policy as a plan uses it. It is immutable.
type stage struct {
	site        guard.Site
	group       string
	entry       bool
	callers     []string
	other, none *guard.Refusal
}

// steps builds the stage for a site.
func steps(site guard.Site) []guard.Step {
	if !set(site.Policy) {
		return nil
	}
	g := site.Policy.Group
	moved(site)
	reject := call.RejectError{Guard: Policy, Resource: call.Resource(site.Service, site.Method), Reason: ReasonOther}
	s := &stage{site: site, group: g.Name, entry: g.Entry, callers: g.Callers, other: site.NewRefusal(reject, ErrOther)}
	reject.Reason = ReasonNone
	s.none = site.NewRefusal(reject, ErrOther)
	return []guard.Step{{Policy: Policy, Rank: guard.RankGroup, Observe: g.Mode == conf.Observe, Take: s.take}}
}

// moved tells of a service whose group has changed since consumers were told of it. They
// go by what they know, and this guard would refuse them.
func moved(site guard.Site) {
	known, ok := site.Declared(conf.GroupKey)
	if known == conf.GroupNone {
		known = ""
	}
	if now := site.Policy.Group.Name; ok && site.Method == call.AnyMethod && now != known {
		site.Runtime().Warn(fmt.Sprintf("service=%s side=%s %s=%q has changed while the program runs: consumers know it as %q until it is exported again, and the guard goes by what is new",
			site.Service, conf.Provider, conf.GroupKey, now, known))
	}
}

func (s *stage) take(c guard.Call) (guard.Permit, *guard.Refusal) {
	if s.entry {
		carried.Strip(c.Inv) // its attachments are those of the handler's context
		if s.group == "" || len(s.callers) == 0 {
			return guard.Permit{}, nil
		}
	}
	group := carried.Of(c.Inv)
	switch {
	case tag.Within(s.group, group), s.listed(c):
		return guard.Permit{}, nil
	case group == "":
		return guard.Permit{}, s.none
	}
	return guard.Permit{}, s.other
}

func (s *stage) listed(c guard.Call) bool {
	if len(s.callers) == 0 {
		return false
	}
	name, ok := s.site.Caller(c.Inv)
	return ok && slices.Contains(s.callers, name)
}
