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

package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/internal/dagor"
	"github.com/weir-go/weir/internal/retry/budget"
)

// Class is a kind of task.
type Class struct {
	// Share is how much of the tasks it makes up, in proportion to the others.
	Share float64
	// Calls is how many calls such a task makes.
	Calls int
	// Business is its business level.
	Business uint8
	// OneLevel tells that all of it has one user level: the middle one.
	OneLevel bool
}

// Load is what arrives.
type Load struct {
	// Tasks is how many tasks arrive in a second, by the time.
	Tasks func(now time.Duration) float64
	// Classes are the kinds, by the time.
	Classes func(now time.Duration) []Class
	// Deadline is for a whole task, Resends how often a call is sent again that was refused.
	Deadline time.Duration
	Resends  int
	// Users is how many users there are; a task is one's by chance.
	Users int
	// Begun has the later calls of a task go before its first.
	Begun bool
	// Timeout is for one try of a call, the deadline by default. What is not answered by then is
	// sent again like what is refused, while the server goes on with it.
	Timeout time.Duration
	// Budget is for what is sent again.
	Budget Budget
}

// Budget bounds what is sent again.
type Budget struct {
	On bool
	// RefusalsOnly has it count what is sent again after a refusal only.
	RefusalsOnly bool
	// Ratio is what it gains for a call.
	Ratio float64
}

// client makes tasks.
type client struct {
	*World
	load      Load
	servers   []*Server
	upstreams []*upstream
	arrivals  *rand.Rand
	chance    *rand.Rand
	stats     *Stats
	tasks     uint64
	budget    budget.Budget
	calls     int64
}

// again tells whether a call may be sent again.
func (c *client) again(refused bool) bool {
	b := c.load.Budget
	if !b.On {
		return true
	}
	p := budget.Policy{Scope: budget.All, Ratio: b.Ratio}
	if b.RefusalsOnly {
		p.Scope = budget.Refusals
	}
	g, ok := c.budget.Ask(p, budget.Try{Refused: refused, Full: refused}, c.now, c.calls)
	if ok {
		c.budget.End(g, true)
	}
	return ok
}

// task is one that makes calls.
type task struct {
	c        *client
	up       *upstream
	class    int
	left     int
	calls    int
	start    time.Duration
	priority dagor.Priority
	sent     int // of the present call
	try      *Call
	over     bool
}

// peak bounds the rate for thinning: the largest that a load has in the next second.
func (c *client) peak() float64 {
	p := 0.0
	for i := range 21 {
		p = math.Max(p, c.load.Tasks(c.now+time.Duration(i)*50*time.Millisecond))
	}
	return p
}

// next has the next task arrive: a Poisson process whose rate changes, by thinning.
func (c *client) next() {
	peak := c.peak()
	if peak <= 0 {
		c.After(100*time.Millisecond, c.next)
		return
	}
	gap := time.Duration(c.arrivals.ExpFloat64() / peak * float64(time.Second))
	if gap > time.Second {
		c.After(time.Second, c.next)
		return
	}
	c.After(gap, func() {
		if c.arrivals.Float64()*peak < c.load.Tasks(c.now) {
			c.begin()
		}
		c.next()
	})
}

// mix spreads the bits of a number.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (c *client) begin() {
	classes := c.load.Classes(c.now)
	sum := 0.0
	for _, k := range classes {
		sum += k.Share
	}
	at, i := c.arrivals.Float64()*sum, 0
	for i < len(classes)-1 && at >= classes[i].Share {
		at -= classes[i].Share
		i++
	}
	k := classes[i]
	user := c.arrivals.Uint64N(uint64(max(1, c.load.Users)))
	c.tasks++
	level := uint8(mix(user+1) % dagor.Users)
	if k.OneLevel {
		level = dagor.Users / 2
	}
	t := &task{
		c: c, class: i, left: k.Calls, calls: k.Calls, start: c.now,
		up:       c.upstreams[c.arrivals.IntN(len(c.upstreams))],
		priority: dagor.NewPriority(dagor.NewLevel(k.Business, level), uint16(mix(c.tasks<<20))),
	}
	c.stats.offered(t)
	t.send()
}

// send sends the present call.
func (t *task) send() {
	for !t.over {
		if t.c.now >= t.start+t.c.load.Deadline {
			t.fail()
			return
		}
		s := t.c.chance.IntN(len(t.c.servers))
		t.sent++
		p := t.priority
		if t.c.load.Begun && t.left < t.calls {
			p = p.Begun()
		}
		if !t.up.admits(s, p, t.c.now) {
			t.c.stats.shed(t)
			if t.sent > t.c.load.Resends || !t.c.again(true) {
				t.fail()
			}
			continue
		}
		t.first()
		until := t.start + t.c.load.Deadline
		if d := t.c.load.Timeout; d > 0 {
			until = min(until, t.c.now+d)
		}
		call := &Call{Priority: p, Class: t.class, Deadline: until, caller: t}
		call.Report = t.up.report(s)
		t.try = call
		if t.c.load.Timeout > 0 {
			t.c.At(until, func() {
				if t.try == call && !t.over {
					t.again(false)
				}
			})
		}
		t.c.servers[s].arrive(call)
		return
	}
}

// first counts a call, and what is sent again.
func (t *task) first() {
	if t.sent == 1 {
		t.c.calls++
		return
	}
	t.c.stats.again(t)
}

// again sends the present call again, if it may be.
func (t *task) again(refused bool) {
	t.try = nil
	if t.sent > t.c.load.Resends || !t.c.again(refused) {
		t.fail()
		return
	}
	t.send()
}

func (t *task) answered(c *Call, s *Server) {
	t.up.learn(t.c.index(s), s, t.c.now)
	if t.over || t.try != c {
		return
	}
	if t.c.now > c.Deadline {
		t.fail()
		return
	}
	t.sent, t.try = 0, nil
	if t.left--; t.left > 0 {
		t.send()
		return
	}
	t.over = true
	t.c.stats.succeeded(t)
}

func (t *task) refused(c *Call, s *Server) {
	t.up.learn(t.c.index(s), s, t.c.now)
	if t.over || t.try != c {
		return
	}
	// Not at once: the policy that refused is not to be asked again before it is done.
	t.c.After(0, func() {
		if !t.over && t.try == c {
			t.again(true)
		}
	})
}

func (t *task) fail() {
	t.over = true
	t.c.stats.failed(t)
}

func (c *client) index(s *Server) int {
	for i, x := range c.servers {
		if x == s {
			return i
		}
	}
	panic("sim: a server of another run")
}
