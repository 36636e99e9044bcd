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
	"slices"
	"strings"
	"time"
)

// strategyKeys are what a breaker may trip by.
var strategyKeys = []string{BreakerErrorRatioKey, BreakerErrorCountKey, BreakerConsecutiveErrorsKey, BreakerSlowRatioKey}

// breaker resolves each key by itself. off takes away the preset and what would
// trip at its own level and at wider ones.
func (r *resolver) breaker(e *Effective) {
	if !r.some(func(p *Policies) bool { return p.Breaker != nil }) {
		return // most methods; there is no need to ask for each key
	}
	var p Policies
	for _, k := range breakerKeys {
		if k.on(r.side) {
			r.apply(e, k.name, &p, anywhere)
		}
	}
	if p.Breaker == nil {
		return
	}
	b := *p.Breaker
	off := b.Preset == PresetOff
	if off {
		reach := exactness(e.setting(BreakerKey).Level)
		for _, name := range append([]string{BreakerForceKey}, strategyKeys...) {
			if exactness(e.setting(name).Level) <= reach {
				b.disarm(name)
			}
		}
		b.Preset = ""
	}
	if b.Preset == "" && !b.armed() {
		if !off {
			r.unusedBreaker(e)
		}
		return
	}
	e.Breaker = b.effective()
	if r.side == Consumer && e.Breaker.Scope == "" {
		e.Breaker.Scope = ScopeInstance
	}
	global, _ := r.view.Mode()
	e.Breaker.Mode = b.Mode.And(global)
	e.Breaker.part(e)
	r.breakerNotes(e, b)
}

// some tells whether has is true of a level that counts for the method.
func (r *resolver) some(has func(*Policies) bool) bool {
	of := func(s *Service) bool {
		m, ok := s.Methods[r.method]
		return has(&s.Policies) || ok && has(&m)
	}
	for i := range r.view.layers {
		if cfg := r.view.layers[i].cfg; cfg != nil && (has(&cfg.section(r.side).Policies) || slices.ContainsFunc(r.services[i], of)) {
			return true
		}
	}
	return r.params != nil && of(r.params)
}

// disarm takes a strategy away.
func (b *Breaker) disarm(name string) {
	switch name {
	case BreakerErrorRatioKey:
		b.ErrorRatio = nil
	case BreakerErrorCountKey:
		b.ErrorCount = nil
	case BreakerConsecutiveErrorsKey:
		b.ConsecutiveErrors = nil
	case BreakerSlowRatioKey:
		b.SlowRatio = nil
	case BreakerForceKey:
		b.Force = ""
	}
}

// armed tells whether there is a strategy, or somebody who holds the breaker open.
func (b *Breaker) armed() bool {
	return b.Force == ForceOpen || or(b.ErrorRatio) > 0 || or(b.ErrorCount) > 0 || or(b.ConsecutiveErrors) > 0 || or(b.SlowRatio) > 0
}

// effective fills in the preset and the defaults, and puts right what does not
// go together.
func (b Breaker) effective() BreakerPolicy {
	v := b.Preset.values()
	out := BreakerPolicy{
		Set: true, Preset: b.Preset,
		ErrorRatio: first(0, b.ErrorRatio, v.ErrorRatio), SlowRatio: or(b.SlowRatio),
		ErrorCount: or(b.ErrorCount), ConsecutiveErrors: or(b.ConsecutiveErrors),
		SlowCall: first(DefaultSlowCall, b.SlowCall),
		MinCalls: first(DefaultMinCalls, b.MinCalls, v.MinCalls), MinCallsSet: b.MinCalls != nil,
		Buckets: first(DefaultBuckets, b.Buckets, v.Buckets),
		Above:   b.Boundary == BoundaryAbove || b.Boundary == "" && v.Boundary == BoundaryAbove,
		OpenFor: first(DefaultOpenFor, b.OpenFor, v.OpenFor), OpenJitter: first(DefaultOpenJitter, b.OpenJitter, v.OpenJitter),
		OpenGrowth: first(DefaultOpenGrowth, b.OpenGrowth), OpenMax: first(DefaultOpenMax, b.OpenMax),
		Probes: first(DefaultProbes, b.Probes, v.Probes), ProbeTimeout: DefaultProbeTimeout,
		Failures: b.Failures, Ignore: b.Ignore, Scope: b.Scope, Force: b.Force,
	}
	buckets := time.Duration(out.Buckets)
	window := first(DefaultWindow, b.Window, v.Window)
	width := (window + buckets*time.Millisecond - 1) / (buckets * time.Millisecond) * time.Millisecond
	out.Window = width * buckets
	out.OpenMax = max(out.OpenMax, out.OpenFor)
	out.ProbeSuccesses = min(first(out.Probes, b.ProbeSuccesses), out.Probes)
	var under time.Duration
	if out.SlowRatio > 0 {
		under = out.SlowCall + 1
		out.ProbeTimeout = max(out.ProbeTimeout, 2*out.SlowCall)
	}
	out.ProbeUnder = first(under, b.ProbeUnder, v.ProbeUnder)
	out.ProbeTimeout = first(out.ProbeTimeout, b.ProbeTimeout)
	if out.Force == "" {
		out.Force = ForceNone
	}
	return out
}

// first is the first value that is there, else def.
func first[T any](def T, values ...*T) T {
	for _, v := range values {
		if v != nil {
			return *v
		}
	}
	return def
}

// part takes a word that stands in both lists out of the one at the wider level,
// or out of those to ignore where the level is the same.
func (b *BreakerPolicy) part(e *Effective) {
	failures, ignore := e.setting(BreakerFailuresKey), e.setting(BreakerIgnoreKey)
	from, name, other := &b.Ignore, ignore, failures
	if exactness(ignore.Level) > exactness(failures.Level) {
		from, name, other = &b.Failures, failures, ignore
	}
	both := func(w string) bool { return slices.Contains(b.Failures, w) && slices.Contains(b.Ignore, w) }
	var left, gone []string
	for _, w := range *from {
		if both(w) {
			gone = append(gone, w)
		} else {
			left = append(left, w)
		}
	}
	if len(gone) == 0 {
		return
	}
	*from = left
	e.note(BreakerKey, fmt.Sprintf("%s=%s has no effect for %s, which stands in %s=%s", name.Key, name.Value, strings.Join(gone, ","), other.Key, other.Value))
}

// breakerNotes tell what was put right, and what has no effect.
func (r *resolver) breakerNotes(e *Effective, b Breaker) {
	got := &e.Breaker
	note := func(format string, args ...any) { e.note(BreakerKey, fmt.Sprintf(format, args...)) }
	if b.ProbeSuccesses != nil && *b.ProbeSuccesses > got.Probes {
		note("%s=%d is taken as %d: %s=%d lets no more through", BreakerProbeSuccessesKey, *b.ProbeSuccesses, got.ProbeSuccesses, BreakerProbesKey, got.Probes)
	}
	if b.OpenMax != nil && *b.OpenMax < got.OpenFor {
		note("%s=%v is taken as %v: it cannot be less than %s", BreakerOpenMaxKey, *b.OpenMax, got.OpenMax, BreakerOpenForKey)
	}
	if window := first(DefaultWindow, b.Window, b.Preset.values().Window); window != got.Window {
		note("%s=%v is taken as %v: each of the %d %s is a whole number of milliseconds, %v", BreakerWindowKey, window, got.Window, got.Buckets, "buckets", got.BucketWidth())
	}
	if slow := e.setting(BreakerSlowCallKey); slow.Value != "" && e.setting(BreakerSlowRatioKey).Value == "" && !r.setBelow(slow.Level, BreakerSlowRatioKey) {
		e.noteIdle(BreakerKey, fmt.Sprintf("%s=%s has no effect without %s", BreakerSlowCallKey, slow.Value, BreakerSlowRatioKey))
	}
	for _, ratio := range [...]struct {
		name  string
		value Ratio
	}{{BreakerErrorRatioKey, got.ErrorRatio}, {BreakerSlowRatioKey, got.SlowRatio}} {
		if got.Above && ratio.value == WholeRatio {
			note("%s=1 trips when it is just met, although %s is %s: nothing is above it", ratio.name, BreakerBoundaryKey, BoundaryAbove)
		}
	}
	if got.ErrorRatio == 0 && got.SlowRatio == 0 && got.ErrorCount == 0 && got.ConsecutiveErrors == 0 && got.Preset != "" {
		note("%s=%s never trips: %s is 0", BreakerKey, got.Preset, BreakerErrorRatioKey)
	}
	if got.Force == ForceOpen && got.Mode == Enforce {
		note("%s=%s refuses every call until it is taken away", BreakerForceKey, ForceOpen)
	}
}

// unusedBreaker tells that settings of a breaker are there and none that trips.
// Those of a level below which another one trips are of use there. A strategy
// that is 0 was turned off on purpose.
func (r *resolver) unusedBreaker(e *Effective) {
	for _, name := range strategyKeys {
		if e.setting(name).Value != "" {
			return
		}
	}
	trips := append([]string{BreakerKey}, strategyKeys...)
	for _, k := range breakerKeys {
		if s := e.setting(k.name); s.Value != "" && !r.setBelow(s.Level, trips...) {
			e.noteIdle(BreakerKey, fmt.Sprintf("%s=%s has no effect: nothing trips without one of %s", s.Key, s.Value, strings.Join(trips, ", ")))
		}
	}
}

// unused tells of those of the keys that are set and have no effect without one of
// those that they need. Those of a level below which another one has it are of use
// there.
func (r *resolver) unused(e *Effective, names []string, needs ...string) {
	for _, name := range names {
		if s := e.setting(name); s.Value != "" && !r.setBelow(s.Level, needs...) {
			e.noteIdle(needs[0], fmt.Sprintf("%s=%s has no effect without %s", s.Key, s.Value, strings.Join(needs, " or ")))
		}
	}
}

// setBelow tells whether a level that is more exact than the given one has one of
// the keys, for whichever method or, below a side, service.
func (r *resolver) setBelow(at string, names ...string) bool {
	return r.below(at, func(p *Policies) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			value, ok := keyNamed(name).get(p)
			return ok && value != "0" && value != "off" && value != "0s" && !strings.HasPrefix(value, "0/") && !strings.HasPrefix(value, "-")
		})
	})
}

// below tells whether has is true of such a level.
func (r *resolver) below(at string, has func(*Policies) bool) bool {
	below := func(s *Service) bool {
		if s == nil {
			return false
		}
		if at == levelName(atDefaults) && has(&s.Policies) {
			return true
		}
		for _, m := range s.Methods {
			if has(&m) {
				return true
			}
		}
		return false
	}
	switch at {
	case levelName(atMethod):
		return false
	case levelName(atService):
		for i := range r.services {
			if slices.ContainsFunc(r.services[i], below) {
				return true
			}
		}
	default:
		for i := range r.view.layers {
			if cfg := r.view.layers[i].cfg; cfg != nil {
				for _, s := range cfg.section(r.side).Services {
					if below(&s) {
						return true
					}
				}
			}
		}
	}
	return below(r.params)
}

// exactness orders the levels; it is 0 for none.
func exactness(level string) int {
	return slices.Index([]string{"", "side", "service", "method"}, level)
}
