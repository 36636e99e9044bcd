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
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/example/internal/child"
)

// What conf/weir.yaml says.
const (
	limit        = 8
	highest      = 4 * limit
	maxOverdue   = limit
	slowCall     = 200 * time.Millisecond
	entryTimeout = 2 * time.Second
)

const (
	crowd       = 3 * limit // calls of a burst
	bigCrowd    = 28        // of one that does not fill the highest cap, so that there is a warning before a refusal
	stepTimeout = 20 * time.Second
	attempts    = 5                     // of a burst that a slow machine has drawn out
	lookEvery   = 20 * time.Millisecond // between two looks at a proxy
	everyA      = 25 * time.Millisecond // between two calls of A
	everyB      = 10 * time.Millisecond // and of B
	enoughB     = 200                   // calls of B that show how they are while A hangs
	fewWait     = 50                    // of them that wait, without a guard
	enoughA     = 40                    // calls of A that show how it is
	someRefused = 10
)

// kind is what a step shows.
type kind string

const (
	bare   kind = "A hangs, and there is no guard"
	crowds kind = "a burst, as after a restart"
	tight  kind = "a burst while the database is tight"
	hangs  kind = "A hangs"
	leaks  kind = "calls that never return"
	warns  kind = "A hangs under a burst"
)

// step is a part of a story.
type step struct {
	kind  kind
	began time.Time
	back  time.Time // when A answered again, where it did not
	ended time.Time
	// drawn is set when the burst was none: the machine took so long for it that calls
	// of it had become slow or had ended. spread is how long it was.
	drawn  bool
	spread time.Duration
	// aside are the calls that were set aside, before they came back.
	aside int64
	// stacks tells how many goroutines a profile has where A hangs.
	stacks int
}

// part is what happened before one proxy.
type part struct {
	steps []step
	calls []seen
	record
}

// tale is what happened on one protocol.
type tale struct {
	protocol protocol
	began    time.Time
	bare     part
	part     // with the guard
}

// story makes the steps happen.
type story struct {
	part
	proxy    *child.Process
	callers  *callers
	profiles string
}

// bare is what happens without a guard.
func (s *story) bare(ctx context.Context) error {
	err := s.hang(ctx, bare)
	s.calls = s.callers.all()
	return err
}

// guarded is what happens with it.
func (s *story) guarded(ctx context.Context) (err error) {
	defer func() { s.calls = s.callers.all() }()
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return s.burst(ctx, crowds, crowd, nothing, nothing) },
		s.tight,
		func(ctx context.Context) error { return s.hang(ctx, hangs) },
		s.leak,
		s.warn,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func nothing(context.Context) error { return nil }

// hang has A hang under traffic of both methods.
func (s *story) hang(ctx context.Context, k kind) error {
	p := s.enter(k)
	if err := s.ask(ctx, hang); err != nil {
		return err
	}
	stop := []func(){s.callers.keep(ctx, methodA, everyA), s.callers.keep(ctx, methodB, everyB)}
	err := s.until(ctx, "enough calls show how it is", func() bool {
		b := s.count(methodB, func(seen) bool { return true })
		if k == bare {
			return b >= enoughB && s.Working == workers && s.count(methodB, is(waiting)) >= fewWait
		}
		p.stacks = max(p.stacks, s.profiled())
		held := s.count(methodA, func(c seen) bool { return c.outcome == refused && c.refusal.Reason == "slow-calls" })
		return b >= enoughB && held >= someRefused && p.stacks > 0 && s.alarmed(weir.AlarmReached)
	})
	p.back = time.Now()
	for _, f := range stop {
		f()
	}
	if err != nil {
		return err
	}
	if err := s.ask(ctx, answer); err != nil {
		return err
	}
	return s.rest(ctx)
}

// burst has n calls of A come at once, and does before and while what else there is to.
func (s *story) burst(ctx context.Context, k kind, n int, before, while func(context.Context) error) error {
	for range attempts {
		p := s.enter(k)
		if err := before(ctx); err != nil {
			return err
		}
		if err := s.ask(ctx, gather, strconv.Itoa(n)); err != nil {
			return err
		}
		s.callers.start(ctx, methodA, n)
		err := s.until(ctx, "every call of the burst is let in or refused", func() bool { return s.Burst.Decided == n })
		if err != nil {
			return err
		}
		p.spread = s.Burst.Spread
		if p.drawn = p.spread > shortA*3/4; !p.drawn {
			err = while(ctx)
		}
		p.back = time.Now()
		if err != nil {
			return err
		}
		if err := s.ask(ctx, answer); err != nil {
			return err
		}
		if err := s.rest(ctx); err != nil {
			return err
		}
		if k == crowds && some(s.eventsOf(p.began, p.ended), "slow", "") > 0 {
			p.drawn = true
		}
		if !p.drawn {
			return nil
		}
	}
	return fmt.Errorf("%s: the machine was too slow for a burst, %d times", k, attempts)
}

// tight has a burst come while the program's own signal is tight.
func (s *story) tight(ctx context.Context) error {
	if err := s.ask(ctx, database, "0.97"); err != nil {
		return err
	}
	err := s.burst(ctx, tight, crowd, func(ctx context.Context) error {
		return s.until(ctx, "the signal is tight", func() bool { return slices.Contains(s.Tight, databaseSignal) })
	}, nothing)
	if err != nil {
		return err
	}
	if err := s.ask(ctx, database, "0.1"); err != nil {
		return err
	}
	return s.until(ctx, "the signal is not tight any more", func() bool { return len(s.Tight) == 0 })
}

// leak has as many calls hang as the limit is, and then others come that do not.
func (s *story) leak(ctx context.Context) error {
	p := s.enter(leaks)
	if err := s.ask(ctx, hang); err != nil {
		return err
	}
	s.callers.start(ctx, methodA, limit)
	if err := s.until(ctx, "all slots are held by slow calls", func() bool { return s.A.Slow == limit }); err != nil {
		return err
	}
	if err := s.ask(ctx, mend); err != nil {
		return err
	}
	stop := s.callers.keep(ctx, methodA, everyA)
	err := s.until(ctx, "calls are served again", func() bool {
		last, n := s.overdue()
		return n >= limit && s.count(methodA, func(c seen) bool { return c.outcome == answered && c.began.After(last) }) >= enoughA
	})
	stop()
	if err != nil {
		return err
	}
	p.aside = s.A.Aside
	p.back = time.Now()
	if err := s.ask(ctx, answer); err != nil {
		return err
	}
	return s.rest(ctx)
}

// warn has A hang with so many calls that there is a warning, before any is refused.
func (s *story) warn(ctx context.Context) error {
	return s.burst(ctx, warns, bigCrowd, func(ctx context.Context) error { return s.ask(ctx, hang) }, func(ctx context.Context) error {
		if err := s.until(ctx, "there is a warning", func() bool { return s.alarmed(weir.AlarmNear) }); err != nil {
			return err
		}
		stop := s.callers.keep(ctx, methodA, everyA)
		defer stop()
		return s.until(ctx, "it is told that the bound is reached", func() bool { return s.alarmed(weir.AlarmReached) })
	})
}

// enter begins a step.
func (s *story) enter(k kind) *step {
	s.callers.enter(len(s.steps))
	s.steps = append(s.steps, step{kind: k, began: time.Now()})
	return &s.steps[len(s.steps)-1]
}

// rest waits until all calls have ended, the cap is what it was, and it has been told
// that all is calm.
func (s *story) rest(ctx context.Context) error {
	step := &s.steps[len(s.steps)-1]
	err := s.until(ctx, "all is as it was before", func() bool {
		if s.callers.count(func(c seen) bool { return !c.ended() }) > 0 {
			return false
		}
		if step.kind == bare {
			return s.Working == 0
		}
		told := s.count(methodA, is(refused)) == 0 || s.alarmed(weir.AlarmReached)
		return told && s.level() == weir.AlarmCalm && s.A.Running == 0 && s.A.Aside == 0 && s.A.Cap == limit
	})
	step.ended = time.Now()
	return err
}

// until looks at the proxy until something is so.
func (s *story) until(ctx context.Context, what string, so func() bool) error {
	step := s.steps[len(s.steps)-1]
	done, err := child.Poll(ctx, time.Now().Add(stepTimeout), func() (bool, error) {
		s.record = record{}
		if err := s.proxy.Ask(ctx, &s.record, tell); err != nil {
			return false, err
		}
		if so() {
			return true, nil
		}
		time.Sleep(lookEvery)
		return false, nil
	})
	if err == nil && !done {
		err = fmt.Errorf("not within %s: %s; the cap is %d of %d, %d calls run, %d of them are slow, %d were set aside, and the alarm is %s",
			stepTimeout, what, s.A.Cap, s.A.Highest, s.A.Running, s.A.Slow, s.A.Aside, s.level())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", step.kind, err)
	}
	return nil
}

func (s *story) ask(ctx context.Context, words ...string) error {
	return s.proxy.Ask(ctx, nil, words...)
}

// count counts the calls of the step and the method that are so.
func (s *story) count(method string, so func(seen) bool) int {
	n := len(s.steps) - 1
	return s.callers.count(func(c seen) bool { return c.step == n && c.method == method && so(c) })
}

func is(o outcome) func(seen) bool { return func(c seen) bool { return c.outcome == o } }

// bound are the alarms of the cap of A.
func (p part) bound() (out []weir.Alarm) {
	for _, a := range p.Alarms {
		if a.Guard == "overload" && a.Method == methodA && a.Subject == "limit" {
			out = append(out, a)
		}
	}
	return out
}

// alarmed reports whether that level has been told since the step began.
func (s *story) alarmed(level weir.AlarmLevel) bool {
	began := s.steps[len(s.steps)-1].began.Round(0) // of another process: only the wall clock is common
	return slices.ContainsFunc(s.bound(), func(a weir.Alarm) bool { return a.Level == level && a.At.After(began) })
}

func (s *story) level() weir.AlarmLevel {
	all := s.bound()
	if len(all) == 0 {
		return weir.AlarmCalm
	}
	return all[len(all)-1].Level
}

// overdue tells how many calls of the step were set aside, and when the last one was.
func (s *story) overdue() (last time.Time, n int) {
	began := s.steps[len(s.steps)-1].began.Round(0)
	for _, e := range s.Events {
		if e.Kind == "overdue" && e.At.After(began) {
			last, n = e.At, n+1
		}
	}
	return last, n
}

// profiled tells how many goroutines a profile has where A hangs, 0 when there is none.
func (s *story) profiled() (most int) {
	files, _ := filepath.Glob(filepath.Join(s.profiles, "*"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil { // else it is removed for a newer one
			most = max(most, goroutinesIn(string(data), hangsIn))
		}
	}
	return most
}

// goroutinesIn counts the goroutines of a profile that are in a function. Of stacks that
// are the same there is one, after a line that begins with their number.
func goroutinesIn(profile, function string) (n int) {
	same := 0
	for line := range strings.Lines(profile) {
		if number, _, ok := strings.Cut(line, " @ "); ok {
			same, _ = strconv.Atoi(number)
		}
		if strings.HasPrefix(line, "#") && strings.Contains(line, function+"+") {
			n += same
		}
	}
	return n
}

// eventsOf are the events of A's cap in a time.
func (p part) eventsOf(from, to time.Time) (out []weir.OverloadEvent) {
	from, to = from.Round(0), to.Round(0)
	for _, e := range p.Events {
		if e.Method == methodA && e.At.After(from) && !e.At.After(to) {
			out = append(out, e)
		}
	}
	return out
}
