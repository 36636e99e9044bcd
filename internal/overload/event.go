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

package overload

import "time"

// Kind is what an event tells of.
type Kind uint8

// Kinds.
const (
	// Changed is that the cap is another now.
	Changed Kind = iota
	// Held is that calls are refused and the cap is not expanded. It is told once for
	// each reason until the cap changes or calls are no longer refused.
	Held
	// Overdue is that a call was set aside.
	Overdue
	// Slow is that a call runs for longer than the rules say. It is told once.
	Slow
)

// Event is a decision of a cap.
type Event struct {
	Kind Kind
	At   time.Duration
	// From and To are the cap before and after.
	From, To int64
	Reason   Reason
	// Signal is the one that is tight.
	Signal string
	// Age and Caller are those of the call that an event is about.
	Age    time.Duration
	Caller string
	// More is how many calls besides became slow, or were set aside, at the same time.
	More int64
}

// maxEvents bounds those that nobody has been told of yet. There is as much room again
// for those that are not about one call.
const maxEvents = 256

func (c *Cap) noteLocked(e Event) {
	switch one := e.Kind == Overdue || e.Kind == Slow; {
	case c.listen == nil:
	case len(c.events) < maxEvents || !one && len(c.events) < 2*maxEvents:
		e.More, c.untold[e.Kind] = e.More+c.untold[e.Kind], 0
		c.events = append(c.events, e)
	case one:
		c.moreLocked(e.Kind, 1)
	}
}

// moreLocked has calls that are not told of one by one stand with the last that is.
func (c *Cap) moreLocked(kind Kind, n int64) {
	for i := len(c.events) - 1; i >= 0; i-- {
		if c.events[i].Kind == kind {
			c.events[i].More += n
			return
		}
	}
	if c.listen != nil {
		c.untold[kind] += n
	}
}

// tell tells what there is to tell, unless somebody is at it: that one goes on.
func (c *Cap) tell() {
	for {
		c.mu.Lock()
		if c.telling || len(c.events) == 0 {
			c.mu.Unlock()
			return
		}
		list := c.events
		c.events, c.telling = nil, true
		c.mu.Unlock()
		c.tellAll(list)
	}
}

func (c *Cap) tellAll(list []Event) {
	defer func() {
		c.mu.Lock()
		c.telling = false
		c.mu.Unlock()
	}()
	for _, e := range list {
		c.tellOne(e)
	}
}

func (c *Cap) tellOne(e Event) {
	defer func() { _ = recover() }() // a listener's fault is not the call's
	c.listen(e)
}
