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

package conf

import (
	"fmt"
)

// overload resolves each key by itself.
func (r *resolver) overload(e *Effective) {
	if !r.some(func(p *Policies) bool { return p.Overload != nil }) {
		return
	}
	var p Policies
	for _, k := range overloadKeys {
		r.apply(e, k.name, &p, anywhere)
	}
	o := or(p.Overload)
	if !o.Auto && o.Limit == nil {
		var names []string
		for _, k := range overloadKeys[1:] {
			names = append(names, k.name)
		}
		r.unused(e, names, OverloadKey)
	}
	if !o.Auto && or(o.Limit) <= 0 {
		return // not there, which was told, or turned off on purpose
	}
	global, _ := r.view.Mode()
	e.Overload = OverloadPolicy{
		Set: true, Mode: o.Mode.And(global), Limit: or(o.Limit), Auto: o.Auto, MaxExpand: first(DefaultMaxExpand, o.MaxExpand),
		SlowShare: first(DefaultSlowShare, o.SlowShare), Calm: first(DefaultCalm, o.Calm), DumpInterval: first(DefaultDumpInterval, o.DumpInterval),
	}
	got := &e.Overload
	r.overloadTimes(e, o)
	most := got.Limit
	if o.Auto {
		r.overloadBounds(e, o)
		got.Limit, got.MaxExpand = got.Floor, 1
		most = got.Ceiling
	}
	got.MaxOverdue = first(most, o.MaxOverdue)
	r.overloadNotes(e)
}

// overloadTimes fills in from when on a call is slow, and from when on it is set aside,
// which is not before. Where two levels do not agree the more exact one holds.
func (r *resolver) overloadTimes(e *Effective, o Overload) {
	slow, entry := first(DefaultOverloadSlowCall, o.SlowCall), first(DefaultEntryTimeout, o.EntryTimeout)
	e.Overload.SlowCall, e.Overload.EntryTimeout = slow, entry
	if entry == 0 || entry >= slow {
		return
	}
	if o.SlowCall == nil || o.EntryTimeout != nil && r.moreExact(e, OverloadEntryTimeoutKey, OverloadSlowCallKey) {
		e.Overload.SlowCall = entry
	} else {
		e.Overload.EntryTimeout = slow
	}
	if o.SlowCall != nil && o.EntryTimeout != nil {
		r.putRight(e, OverloadEntryTimeoutKey, OverloadSlowCallKey, e.Overload.EntryTimeout, e.Overload.SlowCall, "no call is set aside before it is slow")
	}
}

// overloadBounds fills in the bounds of what auto finds, of which floor is not more
// than ceiling. Where two levels do not agree the more exact one holds.
func (r *resolver) overloadBounds(e *Effective, o Overload) {
	floor, ceiling := first(DefaultFloor, o.Floor), first(DefaultCeiling, o.Ceiling)
	e.Overload.Floor, e.Overload.Ceiling = floor, ceiling
	if floor <= ceiling {
		return
	}
	if o.Floor == nil || o.Ceiling != nil && r.moreExact(e, OverloadCeilingKey, OverloadFloorKey) {
		e.Overload.Floor = ceiling
	} else {
		e.Overload.Ceiling = floor
	}
	if o.Floor != nil && o.Ceiling != nil {
		r.putRight(e, OverloadCeilingKey, OverloadFloorKey, e.Overload.Ceiling, e.Overload.Floor, "a floor is not more than its ceiling")
	}
}

// moreExact tells whether a key is set at a more exact level than another one.
func (r *resolver) moreExact(e *Effective, name, other string) bool {
	return exactness(e.setting(name).Level) > exactness(e.setting(other).Level)
}

// putRight tells which of two settings is taken as something else: the one that is not
// at the more exact level, or else the first.
func (r *resolver) putRight(e *Effective, name, other string, taken, otherTaken any, why string) {
	s, t := e.setting(name), e.setting(other)
	if r.moreExact(e, name, other) {
		s, t, taken = t, s, otherTaken
	}
	e.note(OverloadKey, fmt.Sprintf("%s=%s is taken as %v beside %s=%s: %s", s.Key, s.Value, taken, t.Key, t.Value, why))
}

// overloadNotes tell what has no effect.
func (r *resolver) overloadNotes(e *Effective) {
	got := &e.Overload
	auto := func(p *Policies) bool { return or(p.Overload).Auto }
	number := func(p *Policies) bool { return or(or(p.Overload).Limit) > 0 }
	expands := func(p *Policies) bool { return or(or(p.Overload).MaxExpand) > 1 }
	limit := e.setting(OverloadKey).Value
	if got.Auto {
		for _, name := range [...]string{OverloadMaxExpandKey, OverloadSlowShareKey, OverloadCalmKey} {
			r.idleWith(e, name, OverloadKey, limit, "a limit that is found out does not expand", number)
		}
	} else {
		for _, name := range [...]string{OverloadFloorKey, OverloadCeilingKey} {
			r.idleWith(e, name, OverloadKey, limit, "they are bounds of what auto finds", auto)
		}
		if got.MaxExpand == 1 {
			for _, name := range [...]string{OverloadSlowShareKey, OverloadCalmKey} {
				r.idleWith(e, name, OverloadMaxExpandKey, "1", "the cap does not expand", expands)
			}
		}
	}
	if got.SlowCall == 0 {
		slow := func(p *Policies) bool { return or(or(p.Overload).SlowCall) > 0 }
		if !got.Auto && got.MaxExpand > 1 {
			r.idleWith(e, OverloadSlowShareKey, OverloadSlowCallKey, "0s", "no call is slow", slow)
		}
		if got.DumpInterval > 0 {
			r.idleWith(e, OverloadDumpIntervalKey, OverloadSlowCallKey, "0s", "no call is slow", slow)
		}
	}
	if got.EntryTimeout == 0 && got.MaxOverdue > 0 {
		r.idleWith(e, OverloadMaxOverdueKey, OverloadEntryTimeoutKey, "0s", "no call is set aside", func(p *Policies) bool { return or(or(p.Overload).EntryTimeout) > 0 })
	}
	r.overloadUnderExecutes(e)
}

// idleWith tells that a key has no effect because of what another one says, unless that
// stands at a more exact level, which goes without what a wider one has, or a more exact
// level has a use for it.
func (r *resolver) idleWith(e *Effective, name, other, value, why string, of func(*Policies) bool) {
	s := e.setting(name)
	if s.Value == "" || r.moreExact(e, other, name) || r.below(s.Level, of) {
		return
	}
	e.noteIdle(OverloadKey, fmt.Sprintf("%s=%s has no effect with %s=%s: %s", s.Key, s.Value, other, value, why))
}

// overloadUnderExecutes tells of a limit that is met before the cap ever is.
func (r *resolver) overloadUnderExecutes(e *Effective) {
	if e.Overload.Mode == Off {
		return
	}
	for _, l := range [...]Limit{e.Executes, e.SharedExecutes} {
		if l.Set && l.Limit > 0 && l.Mode == Enforce && l.Limit < e.Overload.Limit {
			what, limit := OverloadKey, e.Overload.Limit
			if e.Overload.Auto {
				what = OverloadFloorKey
			}
			e.note(OverloadKey, fmt.Sprintf("%s=%d is never met: %s=%d lets fewer calls run, so the cap neither refuses nor expands", what, limit, ExecutesKey, l.Limit))
			return
		}
	}
}
