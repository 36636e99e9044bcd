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
	"slices"
	"time"

	"github.com/weir-go/weir/internal/dagor"
)

// Call is one that a task makes.
type Call struct {
	Priority dagor.Priority
	Class    int
	// Deadline is when its task is over.
	Deadline time.Duration
	Report   dagor.Report

	arrived, accepted, began time.Duration
	caller                   caller
	waiter                   dagor.Waiter
}

// caller hears what becomes of a call.
type caller interface {
	answered(c *Call, s *Server)
	refused(c *Call, s *Server)
}

// Policy decides about the calls of a server.
type Policy interface {
	// Arrive has a call Accepted or Refused, or keeps it to do so later.
	Arrive(s *Server, c *Call)
	// Begin is asked when a call has come to a slot, whether it is still to run.
	Begin(s *Server, c *Call) bool
	// Done is told of a call's end.
	Done(s *Server, c *Call)
	// Advert is what goes along with replies.
	Advert() (dagor.Advert, bool)
}

// Order is a Policy that has a say in which of the calls that wait comes to a slot.
type Order interface {
	// Newest tells whether it is the one that came last; else it is the one that came first.
	Newest(s *Server) bool
}

// Server serves calls.
type Server struct {
	*World
	Policy
	// Slots work at once, each call for Service in the mean; then it waits for Downstream, without
	// a slot. A refusal costs RefuseCost of a slot's time.
	Slots                           int
	Service, Downstream, RefuseCost time.Duration
	// Down servers answer nothing, and what they are sent is lost.
	Down bool
	// StalledUntil is when a server that works on nothing goes on.
	StalledUntil time.Duration

	chance *rand.Rand
	queue  ring[*Call]
	busy   int
	debt   time.Duration
	life   int
	stats  *Stats
}

// Restart has a server begin anew with a policy: what it had is lost, and not answered.
func (s *Server) Restart(p Policy) {
	s.Policy = p
	s.life++
	s.queue, s.busy, s.debt = ring[*Call]{}, 0, 0
}

// Accept lets a call past the policy.
func (s *Server) Accept(c *Call) {
	c.accepted = s.now
	if s.busy < s.Slots {
		s.work(c)
		return
	}
	s.queue.push(c)
}

// Queued is how many calls wait for a slot.
func (s *Server) Queued() int { return s.queue.len() }

// Busy is how many slots are.
func (s *Server) Busy() int { return s.busy }

// Refuse answers a call with a refusal.
func (s *Server) Refuse(c *Call) {
	s.debt += s.RefuseCost
	s.stats.refused(c)
	c.caller.refused(c, s)
}

func (s *Server) arrive(c *Call) {
	c.arrived = s.now
	s.stats.arrived(c)
	if s.Down {
		return
	}
	s.Arrive(s, c)
}

// work gives a call a slot.
func (s *Server) work(c *Call) {
	c.began = s.now
	if !s.Begin(s, c) {
		s.Refuse(c)
		return
	}
	s.stats.began(c)
	s.busy++
	took := exponential(s.chance, s.Service) + s.debt
	s.debt = 0
	took += max(0, s.StalledUntil-s.now)
	life := s.life
	s.After(took, func() {
		if s.life != life {
			return
		}
		s.busy--
		// Before its end is told: who gets its place in the policy stands behind these.
		for s.busy < s.Slots && s.queue.len() > 0 {
			s.work(s.next())
		}
		if s.Downstream > 0 {
			s.After(s.Downstream, func() {
				if s.life == life {
					s.done(c)
				}
			})
			return
		}
		s.done(c)
	})
}

// next takes the call out of the queue whose turn it is.
func (s *Server) next() *Call {
	if o, ok := s.Policy.(Order); ok && o.Newest(s) {
		return s.queue.popLast()
	}
	return s.queue.pop()
}

func (s *Server) done(c *Call) {
	s.Done(s, c)
	c.caller.answered(c, s)
}

// ring is a queue in order of arrival.
type ring[T comparable] struct {
	calls []T
	head  int
}

func (r *ring[T]) len() int { return len(r.calls) - r.head }

func (r *ring[T]) push(c T) { r.calls = append(r.calls, c) }

func (r *ring[T]) pop() T {
	var none T
	c := r.calls[r.head]
	r.calls[r.head] = none
	if r.head++; r.head > 1024 && 2*r.head > len(r.calls) {
		r.calls = append(r.calls[:0], r.calls[r.head:]...)
		r.head = 0
	}
	return c
}

// popLast takes the newest.
func (r *ring[T]) popLast() T {
	var none T
	last := len(r.calls) - 1
	c := r.calls[last]
	r.calls[last] = none
	r.calls = r.calls[:last]
	return c
}

// remove takes a call out, and tells whether it was in.
func (r *ring[T]) remove(c T) bool {
	i := slices.Index(r.calls[r.head:], c)
	if i >= 0 {
		r.calls = slices.Delete(r.calls, r.head+i, r.head+i+1)
	}
	return i >= 0
}
