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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/limits/internal/control"
)

const (
	runTimeout    = 90 * time.Second // one program on one protocol
	decideTimeout = 15 * time.Second // every call to be admitted or refused
	answerAll     = 20 * time.Second // every admitted call to end, once released
)

// row is what one program did with the calls of one trial.
type row struct {
	program program
	trial   trial

	admitted int // calls that reached the handler
	peak     int // greatest number of them in the handler at one time
	waited   int // calls that waited for a slot
	answered int // callers that got a greeting
	typed    int // callers that got a refusal which says by its type what it is
	failed   int // callers that got any other error
	empty    int // callers that got neither an error nor a greeting
	text     string
	reasons  map[string]int // of typed refusals: guard and reason
	mixed    bool           // calls reached the handler in another order than they started in

	minHits, maxHits   int           // arrivals at the provider per call that got no greeting
	minWaited          time.Duration // of typed refusals, as are those below
	minRetry, maxRetry time.Duration
}

// refused is how many callers got no greeting.
func (r row) refused() int { return r.typed + r.failed + r.empty }

// measure runs one program on one protocol, once for each set of limits.
func (b *bench) measure(ctx context.Context, p protocol, prog program) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	log, err := os.Create(b.logPath(p, prog))
	if err != nil {
		return nil, err
	}
	defer log.Close()

	var rows []row
	for _, s := range sets {
		got, err := b.measureSet(ctx, log, p, prog, s)
		rows = append(rows, got...)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return rows, nil
}

// measureSet runs a provider and a consumer and calls the method of each trial.
func (b *bench) measureSet(ctx context.Context, log *os.File, p protocol, prog program, s set) ([]row, error) {
	provider, address, err := b.startProvider(ctx, log, p, prog, s)
	if err != nil {
		return nil, err
	}
	defer provider.Stop()
	consumer, err := b.startConsumer(ctx, log, p, prog, s, address)
	if err != nil {
		return nil, err
	}
	defer consumer.Stop()

	var rows []row
	for _, t := range s.trials {
		r := row{program: prog, trial: t}
		if err := r.load(ctx, provider, consumer); err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// startProvider starts a provider and waits until it listens.
func (b *bench) startProvider(ctx context.Context, log *os.File, p protocol, prog program, s set) (*child.Process, string, error) {
	return child.Listening(ctx, func(port string) (*child.Process, error) {
		config, err := writeConfig(b.dir, s, prog, p, "provider", map[string]string{
			"protocol": p.inYAML, "provider-port": port,
		})
		if err != nil {
			return nil, err
		}
		return b.startChild(ctx, log, prog, "provider", p, config)
	})
}

func (b *bench) startConsumer(ctx context.Context, log *os.File, p protocol, prog program, s set, address string) (*child.Process, error) {
	config, err := writeConfig(b.dir, s, prog, p, "consumer", map[string]string{
		"protocol": p.inYAML, "serialization": p.serialization, "provider-url": p.inYAML + "://" + address,
	})
	if err != nil {
		return nil, err
	}
	c, err := b.startChild(ctx, log, prog, "consumer", p, config)
	if err != nil {
		return nil, err
	}
	if err := c.Ask(ctx, nil, control.Ready); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// startChild starts PROGRAM ROLE PROTOCOL CONFIG.
func (b *bench) startChild(ctx context.Context, log *os.File, prog program, role string, p protocol, config string) (*child.Process, error) {
	return child.Start(ctx, child.Command{
		Title: role + " on the " + p.title, Path: prog.binary(b.dir), Args: []string{role, p.name, config}, Config: config, Log: log,
	})
}

// sight is what both sides tell of a method at one moment.
type sight struct {
	inside  control.ProviderStatus
	outside control.ConsumerStatus
}

// look asks both sides.
func (t trial) look(ctx context.Context, provider, consumer *child.Process) (s sight, err error) {
	if err := provider.Ask(ctx, &s.inside, control.Status, t.method); err != nil {
		return s, err
	}
	return s, consumer.Ask(ctx, &s.outside, control.Status, t.method)
}

// decided is how many calls have been turned away, or are in the handler, which
// they do not leave yet, or wait for as long as that takes.
func (t trial) decided(s sight) int {
	n := s.inside.Running + len(s.outside.Calls)
	if t.wait == 0 {
		n += s.outside.Waiting
	}
	return n
}

// load offers the calls, waits until each is decided, releases the handlers,
// waits until each call has ended, and counts. If the calls take too long to be
// decided it goes on: the table shows what there is.
func (r *row) load(ctx context.Context, provider, consumer *child.Process) error {
	t := r.trial
	if t.atOnce == 0 { // nobody has to stay
		if err := provider.Ask(ctx, nil, control.Release, t.method); err != nil {
			return err
		}
	}
	s, err := t.offer(ctx, provider, consumer)
	if err != nil {
		return err
	}
	r.waited = s.outside.Waiting
	if err := t.release(ctx, provider, consumer, s); err != nil {
		return err
	}
	done, err := child.Poll(ctx, time.Now().Add(answerAll), func() (_ bool, err error) {
		s, err = t.look(ctx, provider, consumer)
		return len(s.outside.Calls) >= offered, err
	})
	if err != nil {
		return err
	}
	if !done {
		return fmt.Errorf("%s: %s: %d of %d calls have not ended %s after the release",
			consumer.Title, t.title, offered-len(s.outside.Calls), offered, answerAll)
	}
	r.count(s)
	return nil
}

// offer starts the calls and returns what is seen when they are decided.
func (t trial) offer(ctx context.Context, provider, consumer *child.Process) (s sight, err error) {
	deadline := time.Now().Add(decideTimeout)
	together := offered
	if t.inTurn {
		together = 1
	}
	for started := together; started <= offered; started += together {
		if err := consumer.Ask(ctx, nil, control.Call, t.method, strconv.Itoa(together)); err != nil {
			return s, err
		}
		_, err := child.Poll(ctx, deadline, func() (_ bool, err error) {
			s, err = t.look(ctx, provider, consumer)
			return t.decided(s) >= started, err
		})
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// release lets handlers return one by one while calls wait for their slots, which
// shows the order that these are admitted in, and then all of them.
func (t trial) release(ctx context.Context, provider, consumer *child.Process, s sight) error {
	deadline := time.Now().Add(decideTimeout)
	for range s.outside.Waiting {
		entered := len(s.inside.Entered)
		if err := provider.Ask(ctx, nil, control.Release, t.method, "1"); err != nil {
			return err
		}
		next, err := child.Poll(ctx, deadline, func() (_ bool, err error) {
			s, err = t.look(ctx, provider, consumer)
			return len(s.inside.Entered) > entered, err
		})
		if err != nil {
			return err
		}
		if !next {
			break
		}
	}
	return provider.Ask(ctx, nil, control.Release, t.method)
}

// count fills the row from what is seen when all calls have ended.
func (r *row) count(s sight) {
	r.admitted, r.peak = len(s.inside.Entered), s.inside.Peak
	r.mixed = !slices.IsSortedFunc(s.inside.Entered, func(a, b string) int { return number(a) - number(b) })
	r.reasons = make(map[string]int)
	for _, call := range s.outside.Calls {
		switch call.Outcome {
		case control.Answered:
			r.answered++
			continue // the rest is about the others
		case control.Refused:
			r.typed++
			r.countRefusal(*call.Refusal)
		case control.Failed:
			r.failed++
		case control.Empty:
			r.empty++
		}
		hits := s.inside.Hits[call.ID]
		if r.refused() == 1 {
			r.minHits, r.text = hits, call.Text
		}
		r.minHits, r.maxHits = min(r.minHits, hits), max(r.maxHits, hits)
	}
}

func (r *row) countRefusal(f control.Refusal) {
	if r.typed == 1 {
		r.minWaited, r.minRetry = f.Waited, f.RetryAfter
	}
	r.minWaited = min(r.minWaited, f.Waited)
	r.minRetry, r.maxRetry = min(r.minRetry, f.RetryAfter), max(r.maxRetry, f.RetryAfter)
	r.reasons[f.Guard+" "+f.Reason]++
	if f.Waited > 0 {
		r.waited++
	}
}

// number is a call's place in the order of the starts: the last part of its id.
func number(callID string) int {
	n, _ := strconv.Atoi(callID[strings.LastIndexByte(callID, '-')+1:])
	return n
}
