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

// bulkhead resolves each key by itself.
func (r *resolver) bulkhead(e *Effective) {
	if !r.some(func(p *Policies) bool { return p.Bulkhead != nil }) {
		return
	}
	var p Policies
	for _, k := range bulkheadKeys {
		if k.on(r.side) {
			r.apply(e, k.name, &p, anywhere)
		}
	}
	b := or(p.Bulkhead)
	if b.Max == nil {
		r.unused(e, []string{BulkheadQueueKey, BulkheadMaxWaitKey, BulkheadGroupKey}, BulkheadKey)
	}
	run := or(b.RunTimeout)
	if b.Max == nil && run == 0 {
		switch {
		case r.side == Consumer:
			r.unused(e, []string{BulkheadModeKey}, BulkheadKey)
		case b.RunTimeout == nil: // else it was turned off on purpose
			r.unused(e, []string{BulkheadModeKey}, BulkheadKey, BulkheadRunTimeoutKey)
		}
		return
	}
	global, _ := r.view.Mode()
	e.Bulkhead = BulkheadPolicy{
		Set: true, Max: max(or(b.Max), 0), Queue: or(b.Queue), MaxWait: first(DefaultMaxWait, b.MaxWait),
		RunTimeout: run, Group: b.Group, Mode: b.Mode.And(global),
	}
	if b.Group == GroupNone {
		e.Bulkhead.Group = ""
	}
	r.bulkheadNotes(e, b)
}

// bulkheadNotes tell what has no effect.
func (r *resolver) bulkheadNotes(e *Effective, b Bulkhead) {
	queue, wait := e.setting(BulkheadQueueKey), e.setting(BulkheadMaxWaitKey)
	switch {
	case e.Bulkhead.Max == 0: // not there, which was told, or turned off on purpose
	case wait.Value != "" && e.Bulkhead.Queue == 0:
		if exactness(queue.Level) <= exactness(wait.Level) && !r.setBelow(wait.Level, BulkheadQueueKey) {
			e.noteIdle(BulkheadKey, fmt.Sprintf("%s=%s has no effect with %s=0: nobody waits", BulkheadMaxWaitKey, wait.Value, BulkheadQueueKey))
		}
	case e.Bulkhead.Queue > 0 && e.Bulkhead.MaxWait == 0:
		if exactness(wait.Level) <= exactness(queue.Level) {
			e.note(BulkheadKey, fmt.Sprintf("%s=%s has no effect with %s=0s: nobody waits", BulkheadQueueKey, queue.Value, BulkheadMaxWaitKey))
		}
	}
}
