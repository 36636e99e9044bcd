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

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/example/internal/child"
)

const (
	phaseTimeout = 20 * time.Second // for anything that a phase waits for
	enough       = 80               // calls that show how a phase is
	rounds       = 2                // of probes that fail, before the dependency is well again
	method       = "SayHello"
	attempts     = 5 // of a phase that a slow machine disturbed
)

// phase is a time in which the dependency is in one condition.
type phase struct {
	title  string
	is     condition
	reason string // why the breaker opens; "" if it must not
	began  time.Time
	ended  time.Time

	// Of a phase in which the breaker opens:

	opened    time.Time // when that was heard of
	before    int       // id of the last call that had begun then
	last      int       // id of the last call of the phase
	rounds    int       // of probes that had begun by its end
	through   int       // calls after before that had passed the breaker by its end
	disturbed bool      // the breaker opened for another reason first
	stopped   time.Time // when the dependency did, if it hangs

	// Of one in which it must not, the most that its window had counted:

	counted, failures int64
}

// change is one of the breaker's state.
type change struct {
	weir.BreakerEvent
	heard time.Time // after it
}

// tale is all that was seen on one protocol.
type tale struct {
	protocol protocol
	address  string // of the dependency
	began    time.Time
	phases   []phase
	events   []change
	calls    []seen
	visits   []visit
}

// story is a tale that is being made.
type story struct {
	tale // events and calls are filled in by sofar

	dependency *child.Process
	callers    *callers
	show       func(tale) // is called now and then
	shown      time.Time

	mu   sync.Mutex
	told []change // guarded by mu
}

// tell makes the tale of one protocol: callers call all the time, and the
// dependency goes through its phases, each of which ends when what it shows has
// been seen.
func (s *story) tell(ctx context.Context) (tale, error) {
	stop := weir.OnBreakerChange(s.hear)
	defer stop()
	calling, hangUp := context.WithCancel(ctx)
	defer hangUp()
	s.began = time.Now()
	go s.callers.run(calling)

	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return s.good(ctx, "healthy") },
		func(ctx context.Context) error { return s.bad(ctx, slow, "slow-ratio") },
		func(ctx context.Context) error { return s.good(ctx, "healthy") },
		s.unwilling,
		func(ctx context.Context) error { return s.bad(ctx, failing, "error-ratio") },
		func(ctx context.Context) error { return s.good(ctx, "healthy") },
		func(ctx context.Context) error { return s.bad(ctx, hanging, "slow-ratio") },
		func(ctx context.Context) error { return s.good(ctx, "recovering") },
		s.end,
	} {
		err := step(ctx)
		if err != nil {
			return s.sofar(), err
		}
	}
	return s.sofar(), nil
}

func (s *story) hear(e weir.BreakerEvent) {
	if e.Address != s.address || e.Method != method {
		return // the other protocol's
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, change{e, time.Now()})
}

func (s *story) heard() []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[:len(s.told):len(s.told)]
}

// heardAll reports whether the last change that was told is that to a state:
// changes are told a little later than they happen.
func (s *story) heardAll(state string) bool {
	all := s.heard()
	if len(all) == 0 {
		return state == "closed"
	}
	return all[len(all)-1].To == state
}

func (s *story) sofar() tale {
	t := s.tale
	t.events, t.calls = s.heard(), s.callers.all()
	return t
}

// breaker is what Weir tells of it.
func (s *story) breaker() weir.BreakerState {
	for _, b := range weir.Snapshot().Breakers {
		// Each method has one, and "*" the one of names that the service does not have.
		if b.Address == s.address && b.Method == method {
			return b
		}
	}
	return weir.BreakerState{} // before the first call
}

// enter begins a phase.
func (s *story) enter(ctx context.Context, p phase) (*phase, error) {
	mode := p.is
	if mode == hanging {
		mode = healthy // it is as it was, but stopped
	}
	p.began = time.Now()
	if err := s.dependency.Ask(ctx, nil, be, string(mode)); err != nil {
		return nil, err
	}
	if n := len(s.phases); n > 0 {
		// For a moment nobody knows which of the two it is.
		s.phases[n-1].ended = time.Now()
	}
	s.callers.enter(len(s.phases))
	s.phases = append(s.phases, p)
	return &s.phases[len(s.phases)-1], nil
}

// until waits.
func (s *story) until(ctx context.Context, what string, so func() (bool, error)) error {
	p := s.phases[len(s.phases)-1]
	done, err := child.Poll(ctx, time.Now().Add(phaseTimeout), func() (bool, error) {
		if now := time.Now(); now.After(s.shown.Add(slice)) {
			s.shown = now
			s.show(s.sofar())
		}
		return so()
	})
	if err == nil && !done {
		b := s.breaker()
		is := "there is no breaker"
		if b.State != "" {
			is = fmt.Sprintf("the breaker is %s %s, %d calls in its window, %d failures, %d slow, %d hung", b.State, b.Reason, b.Calls, b.Failures, b.Slow, b.Hung)
		}
		err = fmt.Errorf("%s, %s: not within %s: %s; %s", s.protocol.title, p.title, phaseTimeout, what, is)
	}
	return err
}

// good is a phase in which the dependency answers: it ends when the breaker is
// closed and enough calls were answered.
func (s *story) good(ctx context.Context, title string) error {
	p, err := s.enter(ctx, phase{title: title, is: healthy})
	if err != nil {
		return err
	}
	return s.untilClosed(ctx, p, answered)
}

// unwilling is a phase in which every answer is an error of the business.
func (s *story) unwilling(ctx context.Context) error {
	p, err := s.enter(ctx, phase{title: "business errors", is: declining})
	if err != nil {
		return err
	}
	return s.untilClosed(ctx, p, no)
}

func (s *story) untilClosed(ctx context.Context, p *phase, want outcome) error {
	n := len(s.phases) - 1
	return s.until(ctx, fmt.Sprintf("%d calls %s, and the breaker closed", enough, want), func() (bool, error) {
		b := s.breaker()
		if b.State != "closed" {
			return false, nil
		}
		p.counted, p.failures = max(p.counted, b.Calls), max(p.failures, b.Failures)
		some := s.callers.count(func(c seen) bool { return c.phase == n && c.outcome == want })
		return some >= enough && p.counted >= minCalls && s.heardAll(b.State), nil
	})
}

// bad is a phase in which the breaker opens, for a reason. Where it opens for
// another first, because the machine was slow, the phase begins again.
func (s *story) bad(ctx context.Context, is condition, reason string) error {
	for range attempts {
		mark := len(s.heard())
		p, err := s.enter(ctx, phase{title: string(is), is: is, reason: reason})
		if err != nil {
			return err
		}
		if is == hanging {
			if err := s.dependency.Suspend(); err != nil {
				return err
			}
			p.stopped = time.Now()
		}
		err = s.untilProbed(ctx, p, mark)
		if is == hanging {
			// Also when something is wrong: nobody else can end a process that is stopped.
			err = errors.Join(err, s.dependency.Resume())
		}
		if err != nil || !p.disturbed {
			return err
		}
		if err := s.good(ctx, "healthy"); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s, %s: the breaker opened for another reason %d times", s.protocol.title, is, attempts)
}

// untilProbed waits until the breaker is open and so many rounds of probes have
// failed. It counts what passed the breaker meanwhile: the dependency is not well
// yet, so nothing has closed it.
func (s *story) untilProbed(ctx context.Context, p *phase, mark int) error {
	var opened change
	err := s.until(ctx, "the breaker opens", func() (bool, error) {
		events := s.heard()[mark:]
		if len(events) == 0 {
			return false, nil
		}
		opened = events[0]
		return true, nil
	})
	if err != nil {
		return err
	}
	p.opened, p.before = time.Now(), s.callers.last()
	if opened.From != "closed" || opened.Reason != p.reason || opened.At.Before(p.began) {
		p.disturbed = true
		s.callers.pause()
		return nil
	}
	err = s.until(ctx, fmt.Sprintf("%d rounds of probes fail", rounds), func() (bool, error) {
		return count(s.heard()[mark:], "half-open", "open") >= rounds, nil
	})
	if err != nil {
		return err
	}
	p.last = s.callers.pause()
	after := func(c seen) bool { return c.id > p.before && c.id <= p.last }
	err = s.until(ctx, "each call was refused or was a probe", func() (bool, error) {
		begun := s.callers.count(after)
		ended := s.callers.count(func(c seen) bool { return after(c) && c.outcome == refused })
		p.through = begun - ended
		if p.is != hanging {
			if err := s.dependency.Ask(ctx, &p.through, entered, strconv.Itoa(p.before)); err != nil {
				return false, err
			}
		}
		p.rounds = count(s.heard()[mark:], "open", "half-open")
		return p.through+ended == begun && p.through <= p.rounds*probes, nil
	})
	if err != nil {
		err = fmt.Errorf("%w; %d calls passed in %d rounds", err, p.through, p.rounds)
	}
	return err
}

// count counts changes of state.
func count(events []change, from, to string) int {
	n := 0
	for _, e := range events {
		if e.From == from && e.To == to {
			n++
		}
	}
	return n
}

// end waits for the last calls. On a slow machine the breaker may have opened once
// more by then, and closes only when somebody calls.
func (s *story) end(ctx context.Context) error {
	for range attempts {
		s.callers.pause()
		err := s.until(ctx, "every call ends, and every change is told", func() (bool, error) {
			return s.callers.count(func(c seen) bool { return !c.ended() }) == 0 && s.heardAll(s.breaker().State), nil
		})
		if err != nil {
			return err
		}
		if s.heardAll("closed") {
			s.phases[len(s.phases)-1].ended = time.Now()
			return s.dependency.Ask(ctx, &s.visits, visits)
		}
		if err := s.good(ctx, "recovering"); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: the breaker was not closed in the end, %d times", s.protocol.title, attempts)
}
