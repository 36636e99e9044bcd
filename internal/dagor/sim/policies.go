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

// admitAll is a Policy that lets all pass.
type admitAll struct{}

// None protects nothing.
func None(*Server) Policy { return admitAll{} }

func (admitAll) Arrive(s *Server, c *Call)    { s.Accept(c) }
func (admitAll) Begin(*Server, *Call) bool    { return true }
func (admitAll) Done(*Server, *Call)          {}
func (admitAll) Advert() (dagor.Advert, bool) { return dagor.Advert{}, false }

// PaperPolicy is the published controller.
type PaperPolicy struct {
	*dagor.Paper
	// Tells has its level go along with replies, Reports has it count what was shed by it.
	Tells, Reports bool
	// ByResponse takes the response time for the queueing time.
	ByResponse bool
}

// Arrive asks the controller.
func (p *PaperPolicy) Arrive(s *Server, c *Call) {
	if p.Reports {
		p.Learn(c.Report)
	}
	if !p.Admit(c.Priority, s.now) {
		s.Refuse(c)
		return
	}
	s.Accept(c)
}

// Begin tells it how long the call waited.
func (p *PaperPolicy) Begin(_ *Server, c *Call) bool {
	if !p.ByResponse {
		p.Waited(c.began - c.accepted)
	}
	return true
}

// Done tells it how long the call took.
func (p *PaperPolicy) Done(s *Server, c *Call) {
	if p.ByResponse {
		p.Waited(s.now - c.accepted)
	}
}

// Advert is its level.
func (p *PaperPolicy) Advert() (dagor.Advert, bool) { return p.Paper.Advert(), p.Tells }

// WeirPolicy is the controller of ours.
type WeirPolicy struct {
	*dagor.Controller
	Tells bool
	// Sees has it told how long calls wait for a slot, as the scheduler's latency tells of handlers
	// that need a CPU.
	Sees bool
	// Life is how often the server was started before.
	Life uint64

	delays time.Duration
	began  int
	ticks  time.Duration
}

// Arrive asks the controller.
func (p *WeirPolicy) Arrive(s *Server, c *Call) {
	p.Learn(c.Report)
	c.waiter.Until, c.waiter.Owner = c.Deadline, c
	v, told := p.Enter(c.Priority, s.now)
	if v == dagor.Waits {
		p.tell(s, told)
		v, told = p.Queue(c.Priority, s.now, &c.waiter)
	}
	switch v {
	case dagor.Admitted:
		s.Accept(c)
	case dagor.Waits:
		life := s.life
		s.At(c.waiter.Until, func() {
			if s.life == life && p.Expire(&c.waiter) {
				s.Refuse(c)
			}
		})
	default:
		s.Refuse(c)
	}
	p.tell(s, told)
}

func (p *WeirPolicy) tell(s *Server, told dagor.Decided) {
	for w := told.Next(); w != nil; w = told.Next() {
		c := w.Owner.(*Call)
		if w.Verdict == dagor.Admitted {
			s.Accept(c)
		} else {
			s.Refuse(c)
		}
	}
}

// Begin notes how long the call waited for its slot.
func (p *WeirPolicy) Begin(s *Server, c *Call) bool {
	p.delays += c.began - c.accepted
	p.began++
	if p.Sees && s.now-p.ticks >= 100*time.Millisecond {
		p.Scheduler(p.delays / time.Duration(p.began))
		p.delays, p.began, p.ticks = 0, 0, s.now
	}
	return true
}

// Done gives the call's place to another.
func (p *WeirPolicy) Done(s *Server, c *Call) { p.tell(s, p.Leave(s.now, s.now-c.accepted)) }

// Advert is its level.
func (p *WeirPolicy) Advert() (dagor.Advert, bool) {
	a := p.Controller.Advert()
	a.Run = p.Life
	return a, p.Tells
}

// RandomPolicy refuses by chance, with a probability that moves as the published cursor does.
type RandomPolicy struct {
	admitAll
	chance       *rand.Rand
	pass         float64
	ends         time.Duration
	calls, waits int
	sum          time.Duration
}

// Random makes one.
func Random(s *Server) Policy { return &RandomPolicy{chance: stream(7, uint64(s.Slots)), pass: 1} }

// Arrive decides by chance.
func (p *RandomPolicy) Arrive(s *Server, c *Call) {
	ok := p.chance.Float64() < p.pass
	if p.calls++; p.calls >= 2000 || s.now >= p.ends {
		if p.waits > 0 && p.sum/time.Duration(p.waits) > 20*time.Millisecond {
			p.pass *= 0.95
		} else {
			p.pass = min(1, p.pass+0.01)
		}
		p.calls, p.waits, p.sum, p.ends = 0, 0, 0, s.now+time.Second
	}
	if !ok {
		s.Refuse(c)
		return
	}
	s.Accept(c)
}

// Begin notes how long the call waited.
func (p *RandomPolicy) Begin(_ *Server, c *Call) bool {
	p.waits++
	p.sum += c.began - c.accepted
	return true
}
