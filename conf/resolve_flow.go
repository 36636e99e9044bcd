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

import "fmt"

// flow resolves each key by itself. Where the method has none of its own, that is
// the service's value, and its methods share the budget.
func (r *resolver) flow(e *Effective) {
	if !r.some(func(p *Policies) bool { return p.Flow != nil }) {
		return
	}
	var p Policies
	own := false
	for _, name := range flowBudgetKeys {
		own = r.apply(e, name, &p, anywhere) && e.setting(name).Level == levelName(atMethod) || own
	}
	r.apply(e, FlowModeKey, &p, anywhere)
	f := or(p.Flow)
	if !f.limits() {
		if f.Rate == nil && f.Callers == nil { // else it was turned off on purpose
			r.unused(e, []string{FlowBehaviorKey, FlowMaxQueueKey, FlowWarmUpKey, FlowColdFactorKey, FlowModeKey}, FlowKey, FlowCallersKey)
		}
		return
	}
	global, _ := r.view.Mode()
	e.Flow = FlowPolicy{
		Set: true, Behavior: f.Behavior, MaxQueue: first(DefaultMaxQueue, f.MaxQueue),
		WarmUp: first(DefaultWarmUp, f.WarmUp), ColdFactor: first(DefaultColdFactor, f.ColdFactor),
		Callers: f.Callers, Mode: f.Mode.And(global), Own: own,
	}
	if or(f.Rate).Calls > 0 {
		e.Flow.Rate = *f.Rate
	}
	if f.Behavior == "" {
		e.Flow.Behavior = BehaviorReject
	}
	r.flowNotes(e)
}

// limits tells whether anything is limited.
func (f *Flow) limits() bool {
	if or(f.Rate).Calls > 0 {
		return true
	}
	for _, r := range f.Callers {
		if r.Calls > 0 {
			return true
		}
	}
	return false
}

// flowNotes tell what has no effect, and what may not do what it seems to.
func (r *resolver) flowNotes(e *Effective) {
	got := &e.Flow
	for _, part := range [...]struct {
		name, only string
		of         func(Behavior) bool
	}{
		{FlowMaxQueueKey, onlyQueues + " wait", Behavior.Queues},
		{FlowWarmUpKey, onlyWarms + " start cold", Behavior.WarmsUp},
		{FlowColdFactorKey, onlyWarms + " start cold", Behavior.WarmsUp},
	} {
		s := e.setting(part.name)
		switch {
		case s.Value == "" || part.of(got.Behavior):
		case exactness(e.setting(FlowBehaviorKey).Level) > exactness(s.Level):
			// A more exact level goes without what a wider one has.
		case r.below(s.Level, func(p *Policies) bool { return part.of(or(p.Flow).Behavior) }):
		default:
			e.noteIdle(FlowKey, fmt.Sprintf("%s=%s has no effect with %s=%s: only %s", s.Key, s.Value, FlowBehaviorKey, got.Behavior, part.only))
		}
	}
	if !got.Behavior.Queues() {
		return
	}
	if got.MaxQueue == 0 {
		instead := BehaviorReject
		if got.Behavior.WarmsUp() {
			instead = BehaviorWarmUp
		}
		e.note(FlowKey, fmt.Sprintf("%s=%s with %s=0s refuses whatever would wait, as %s would, but lets calls through evenly spaced", FlowBehaviorKey, got.Behavior, FlowMaxQueueKey, instead))
		return
	}
	if got.Rate.Calls == 0 {
		return
	}
	if spacing := got.Rate.spacing(); got.MaxQueue < spacing {
		e.note(FlowKey, fmt.Sprintf("%s=%v is shorter than the %v from one call to the next at %s=%v: of calls that come together one goes on and none waits", FlowMaxQueueKey, got.MaxQueue, spacing, FlowKey, got.Rate))
	}
}
