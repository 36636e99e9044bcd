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

package breaker

import (
	"sync"
	"time"
)

// Event is a change of state.
type Event struct {
	From, To State
	// Cause is why the breaker opened or, for one that begins to probe, had opened.
	Cause Cause
	// At is when it changed.
	At time.Duration
	// OpenFor is how long it will be open.
	OpenFor time.Duration
	// Calls, Failures and Slow are what the window, or the round of probes, has
	// counted when the breaker opened.
	Calls, Failures, Slow int64
}

// maxEvents bounds those that wait because a listener does not come back. The
// oldest are dropped.
const maxEvents = 1024

// events are those that a listener has not heard of yet.
type events struct {
	mu      sync.Mutex
	queue   []Event // guarded by mu
	telling bool    // guarded by mu
}

func (q *events) add(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) >= maxEvents {
		q.queue = q.queue[1:]
	}
	q.queue = append(q.queue, e)
}

// deliver tells the listener what there is to tell, unless somebody is at it
// already: then that one goes on. A listener that panics or exits loses nothing
// but the event that it was told of.
func (q *events) deliver(listener func(Event)) {
	for {
		q.mu.Lock()
		if q.telling || len(q.queue) == 0 {
			q.mu.Unlock()
			return
		}
		e := q.queue[0]
		q.queue = q.queue[1:]
		q.telling = true
		q.mu.Unlock()
		q.tell(listener, e)
	}
}

func (q *events) tell(listener func(Event), e Event) {
	returned := false
	defer func() {
		_ = recover() // a listener's fault is not the call's
		q.mu.Lock()
		q.telling = false
		more := len(q.queue) > 0
		q.mu.Unlock()
		if !returned && more {
			go q.deliver(listener) // the goroutine may be exiting
		}
	}()
	listener(e)
	returned = true
}
