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
	"cmp"
	"fmt"
	"time"
)

const (
	maxExpand       = 16
	maxSlowOverload = time.Hour
	maxEntry        = 24 * time.Hour

	// autoWord is the limit that is found out.
	autoWord = "auto"

	allowedOverload  = "a whole number from -2147483648 to 2147483647, 0 and less is unlimited, or auto"
	allowedExpand    = "a whole number from 1 to 16, 1 does not expand"
	allowedSlow      = "a whole number of milliseconds or a Go duration such as 1s, from 0 to 1h; 0 is off"
	allowedEntry     = "a whole number of milliseconds or a Go duration such as 1m, from 0 to 24h; 0 is never"
	allowedOverdue   = "a whole number from 0 to 2147483647, 0 is none"
	allowedCalm      = "a whole number of milliseconds or a Go duration such as 30s, from 0 to 24h; 0 goes back at once"
	allowedFoundOut  = "a whole number from 1 to 2147483647"
	allowedSlowShare = allowedShare
)

// overloadKeys cap the running calls of a method with a cap that breathes.
var overloadKeys = []*key{
	{
		name: OverloadKey, sides: both, levels: anywhere,
		kind: "limit", min: minLimit, max: maxLimit, allowed: allowedOverload, def: "0, unlimited",
		doc: "Running calls allowed per method when all is well; over it the cap expands, or calls are refused. auto finds the limit out. 0 and less is unlimited.",
		set: setter(parseOverload, func(p *Policies, n *int) {
			o := made(&p.Overload)
			o.Limit, o.Auto = n, n == nil
		}),
		get: func(p *Policies) (string, bool) { return or(p.Overload).limitText() },
	},
	overloadCount(OverloadMaxExpandKey, 1, maxExpand, allowedExpand, "4", "The cap doubles while machine and method are well, to at most so many times the limit. 1 does not expand.",
		func(o *Overload) **int { return &o.MaxExpand }),
	overloadTime(OverloadSlowCallKey, maxSlowOverload, allowedSlow, "1s, not longer than overload.entry-timeout", "A call that runs for longer is slow. 0 is off.",
		func(o *Overload) **time.Duration { return &o.SlowCall }),
	{
		name: OverloadSlowShareKey, sides: both, levels: anywhere, kind: "ratio", min: 0, max: 1, allowed: allowedSlowShare, def: "0.2",
		doc: "With this share of the running calls slow the cap does not expand, and goes back. 0 is with one of them.",
		set: setter(parseShare, func(p *Policies, r Ratio) { made(&p.Overload).SlowShare = &r }),
		get: func(p *Policies) (string, bool) { return share(or(p.Overload).SlowShare) },
	},
	overloadTime(OverloadEntryTimeoutKey, maxEntry, allowedEntry, "60s, not shorter than overload.slow-call", "Running calls that are older are set aside when the cap is met: their slots come back. 0 is never.",
		func(o *Overload) **time.Duration { return &o.EntryTimeout }),
	overloadCount(OverloadMaxOverdueKey, 0, maxLimit, allowedOverdue, "as many as the limit, with auto overload.ceiling", "Calls that may be set aside at the same time. 0 is none.",
		func(o *Overload) **int { return &o.MaxOverdue }),
	overloadTime(OverloadCalmKey, maxEntry, allowedCalm, "30s", "How long no more than three quarters of the next lower cap may have run until the cap goes back to that.",
		func(o *Overload) **time.Duration { return &o.Calm }),
	overloadCount(OverloadFloorKey, 1, maxLimit, allowedFoundOut, "20, not more than overload.ceiling", "The lowest limit that auto finds, with which it begins.",
		func(o *Overload) **int { return &o.Floor }),
	overloadCount(OverloadCeilingKey, 1, maxLimit, allowedFoundOut, "2000, not less than overload.floor", "The highest limit that auto finds.",
		func(o *Overload) **int { return &o.Ceiling }),
	overloadTime(OverloadDumpIntervalKey, maxEntry, allowedEntry, "10m", "How often a profile of goroutines may be written for the method while it has slow calls. 0 is never.",
		func(o *Overload) **time.Duration { return &o.DumpInterval }),
	modeRow(OverloadModeKey, both,
		func(p *Policies) *Mode { return &made(&p.Overload).Mode },
		func(p *Policies) Mode { return or(p.Overload).Mode }),
}

// overloadCount and overloadTime are rows whose value is the field at.
func overloadCount(name string, least, most int, allowed, def, doc string, at func(*Overload) **int) *key {
	return &key{
		name: name, sides: both, levels: anywhere, kind: "integer", min: float64(least), max: float64(most), allowed: allowed, def: def, doc: doc, fits: overloadFits,
		set: setter(countIn(least, most), func(p *Policies, n int) { *at(made(&p.Overload)) = &n }),
		get: func(p *Policies) (string, bool) { o := or(p.Overload); return whole(*at(&o)) },
	}
}

func overloadTime(name string, most time.Duration, allowed, def, doc string, at func(*Overload) **time.Duration) *key {
	return &key{
		name: name, sides: both, levels: anywhere, kind: "duration", min: 0, max: float64(most), allowed: allowed, def: def, doc: doc, fits: overloadFits,
		set: setter(durationIn(0, most), func(p *Policies, d time.Duration) { *at(made(&p.Overload)) = &d }),
		get: func(p *Policies) (string, bool) { o := or(p.Overload); return span(*at(&o)) },
	}
}

// parseOverload reads a limit; nil is auto.
func parseOverload(s string) (*int, error) {
	if s == autoWord {
		return nil, nil
	}
	n, err := parseLimit(s)
	return &n, err
}

// limitText is the text of the limit. One that is found out and set as well, which
// only code can say, has a text that stays wrong.
func (o Overload) limitText() (string, bool) {
	text, set := whole(o.Limit)
	switch {
	case o.Auto && set:
		return autoWord + " and " + text, true
	case o.Auto:
		return autoWord, true
	}
	return text, set
}

// overloadFits turns down what does not go together at one place: own is what is set
// there and beside what stands there already.
func overloadFits(own, beside *Policies) error {
	o, b := or(own.Overload), or(beside.Overload)
	floor, ceiling := cmp.Or(o.Floor, b.Floor), cmp.Or(o.Ceiling, b.Ceiling)
	if floor != nil && ceiling != nil && *floor > *ceiling {
		return &valueError{fmt.Sprintf("%s=%d is more than %s=%d", OverloadFloorKey, *floor, OverloadCeilingKey, *ceiling), "a floor that is not more than the ceiling", -1}
	}
	slow, entry := cmp.Or(o.SlowCall, b.SlowCall), cmp.Or(o.EntryTimeout, b.EntryTimeout)
	if slow != nil && or(entry) > 0 && *entry < *slow {
		return &valueError{fmt.Sprintf("%s=%v is shorter than %s=%v", OverloadEntryTimeoutKey, *entry, OverloadSlowCallKey, *slow), "an entry-timeout that is not shorter than slow-call, or 0", -1}
	}
	return nil
}
