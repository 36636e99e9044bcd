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

// maxEvents bounds those that nobody has been told of yet.
const maxEvents = 256

func (c *Cap) noteLocked(e Event) (kept bool) {
	if c.listen == nil || len(c.events) >= maxEvents {
		return false
	}
	c.events = append(c.events, e)
	return true
}

// group are events of the same kind that one look at the entries finds. So many of them
// are told one by one, and the last of these has the number of the others: they must not
// leave no room for what is decided next.
type group struct {
	each int
	last int // 1 more than the place of the last one in Cap.events
}

func (g *group) noteLocked(c *Cap, e Event) {
	switch {
	case g.each > 0:
		g.each--
		if c.noteLocked(e) {
			g.last = len(c.events)
		}
	case g.last > 0:
		c.events[g.last-1].More++
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
		_ = recover() // a listener's fault is not the call's
		c.mu.Lock()
		c.telling = false
		c.mu.Unlock()
	}()
	for _, e := range list {
		c.listen(e)
	}
}
