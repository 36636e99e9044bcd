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
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/internal/dagor"
)

// errand is a task of a Topology.
type errand struct {
	class           int
	hot             bool
	start, deadline time.Duration
	priority        dagor.Priority
}

// How a call ends.
type ending uint8

const (
	answered ending = iota
	refused         // it was not begun, and may be sent again
	failed
)

// rpc is a call of a Topology, each time it is sent one of its own.
type rpc struct {
	*errand
	service *service
	caller  *node // who makes it,
	parent  *rpc  // while it serves that; nil at a gateway
	sent    int
	step    int // which of the calls is made that it needs
	up      *dagor.Upstream
	entered time.Duration
	waiter  dagor.Waiter
}

// node is an instance of a service. A call that is admitted waits for a slot, works, and then
// has its calls made one after the other, without a slot.
type node struct {
	*topology
	service *service
	slots   int
	takes   time.Duration
	chance  *rand.Rand
	control *dagor.Controller

	busy   int
	queue  ring[*rpc]
	known  [][]*dagor.Upstream // by the number of the service, and the instance
	budget float64

	came, admitted, refusals int // in this second
}

// upstream is what is known of an instance.
func (n *node) upstream(s *service, i int) *dagor.Upstream {
	if n.known == nil {
		n.known = make([][]*dagor.Upstream, len(n.services))
	}
	if n.known[s.index] == nil {
		n.known[s.index] = make([]*dagor.Upstream, len(s.nodes))
	}
	u := n.known[s.index][i]
	if u == nil {
		var err error
		if u, err = dagor.NewUpstream(dagor.UpstreamRules{}); err != nil {
			panic(err) // the defaults are right
		}
		n.known[s.index][i] = u
	}
	return u
}

// send sends a call, or has it fail.
func (n *node) send(c *rpc) {
	if c.sent == 0 {
		n.budget = min(budgetMost, n.budget+n.Budget)
		n.stats.call(c)
	}
	for {
		if n.now >= c.deadline {
			n.stats.late(c)
			n.ended(c, failed)
			return
		}
		i := n.chance.IntN(len(c.service.nodes))
		c.sent++
		c.up = n.upstream(c.service, i)
		if !n.Blind && c.up.Admit(c.priority, n.now) == dagor.Shed {
			n.stats.shed(c)
			if n.again(c) {
				continue
			}
			n.ended(c, failed)
			return
		}
		n.stats.send(c)
		report, _ := c.up.Report()
		to := c.service.nodes[i]
		n.After(n.Network, func() { to.arrive(c, report) })
		return
	}
}

// again tells whether a call is sent again.
func (n *node) again(c *rpc) bool {
	if c.sent > n.Resends || n.budget < 1 {
		return false
	}
	n.budget--
	n.stats.again(c)
	return true
}

func (n *node) arrive(c *rpc, report dagor.Report) {
	n.came++
	n.control.Learn(report)
	c.waiter.Until, c.waiter.Owner = c.deadline, c
	v, told := n.control.Enter(c.priority, n.now)
	if v == dagor.Waits {
		n.tell(told)
		v, told = n.control.Queue(c.priority, n.now, &c.waiter)
	}
	switch v {
	case dagor.Admitted:
		n.start(c)
	case dagor.Waits:
		n.At(c.waiter.Until, func() {
			if n.control.Expire(&c.waiter) {
				n.refuse(c)
			}
		})
	default:
		n.refuse(c)
	}
	n.tell(told)
}

func (n *node) tell(told dagor.Decided) {
	for w := told.Next(); w != nil; w = told.Next() {
		c := w.Owner.(*rpc)
		if w.Verdict == dagor.Admitted {
			n.start(c)
		} else {
			n.refuse(c)
		}
	}
}

func (n *node) refuse(c *rpc) {
	n.refusals++
	n.stats.refused(c)
	n.reply(c, refused)
}

func (n *node) start(c *rpc) {
	n.admitted++
	c.entered = n.now
	if n.busy < n.slots {
		n.work(c)
		return
	}
	n.queue.push(c)
}

func (n *node) work(c *rpc) {
	if n.now >= c.deadline {
		n.end(c, failed)
		return
	}
	n.busy++
	n.After(exponential(n.chance, n.takes), func() {
		n.busy--
		for n.busy < n.slots && n.queue.len() > 0 {
			n.work(n.queue.pop())
		}
		n.proceed(c)
	})
}

// proceed has the next of the calls made that a call needs.
func (n *node) proceed(c *rpc) {
	if c.step == len(n.service.calls) {
		n.end(c, answered)
		return
	}
	n.send(&rpc{errand: c.errand, service: n.service.calls[c.step], caller: n, parent: c})
}

// end ends a call that was admitted.
func (n *node) end(c *rpc, how ending) {
	n.tell(n.control.Leave(n.now, n.now-c.entered))
	n.reply(c, how)
}

func (n *node) reply(c *rpc, how ending) {
	advert := n.control.Advert()
	n.After(n.Network, func() {
		c.up.Learn(advert, n.now)
		if how == refused && c.caller.again(c) {
			c.caller.send(&rpc{errand: c.errand, service: c.service, caller: c.caller, parent: c.parent, sent: c.sent})
			return
		}
		c.caller.ended(c, how)
	})
}

// ended is told to the caller of a call.
func (n *node) ended(c *rpc, how ending) {
	n.stats.ended(c, how)
	p := c.parent
	switch {
	case p == nil:
		n.stats.done(c.errand, how == answered && n.now <= c.deadline)
	case how != answered || n.now >= c.deadline:
		n.end(p, failed) // What has failed below is not sent again from above.
	default:
		p.step++
		n.proceed(p)
	}
}
