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
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/example/limits/internal/control"
)

const (
	runTimeout    = 90 * time.Second     // one program on one protocol
	listenTimeout = 20 * time.Second     // a provider to come up
	decideTimeout = 15 * time.Second     // every call to be admitted or refused
	answerAll     = 20 * time.Second     // every admitted call to end, once released
	pollEvery     = 2 * time.Millisecond // between two looks
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
	defer provider.stop()
	consumer, err := b.startConsumer(ctx, log, p, prog, s, address)
	if err != nil {
		return nil, err
	}
	defer consumer.stop()

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

// startProvider starts a provider on a free port and waits until it listens.
// Somebody else may take the port in between, hence more than one attempt.
func (b *bench) startProvider(ctx context.Context, log *os.File, p protocol, prog program, s set) (*child, string, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return nil, "", err
		}
		config, err := writeConfig(b.dir, s, prog, p, "provider", map[string]string{
			"protocol": p.inYAML, "provider-port": port,
		})
		if err != nil {
			return nil, "", err
		}
		c, err := startChild(ctx, log, prog.binary(b.dir), "provider", p, config)
		if err != nil {
			return nil, "", err
		}
		address := net.JoinHostPort("127.0.0.1", port)
		err = waitListening(ctx, c, address)
		if err == nil {
			return c, address, nil
		}
		c.stop()
		if attempt == attempts || !errors.Is(err, errEnded) {
			return nil, "", err
		}
	}
}

func (b *bench) startConsumer(ctx context.Context, log *os.File, p protocol, prog program, s set, address string) (*child, error) {
	config, err := writeConfig(b.dir, s, prog, p, "consumer", map[string]string{
		"protocol": p.inYAML, "serialization": p.serialization, "provider-url": p.inYAML + "://" + address,
	})
	if err != nil {
		return nil, err
	}
	c, err := startChild(ctx, log, prog.binary(b.dir), "consumer", p, config)
	if err != nil {
		return nil, err
	}
	if err := c.ask(ctx, nil, control.Ready); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

var errEnded = errors.New("the process has ended")

// waitListening returns when a provider accepts connections.
func waitListening(ctx context.Context, c *child, address string) error {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-c.exited:
			if ctx.Err() == nil {
				return fmt.Errorf("%s: %w before it listened on %s", c.title, errEnded, address)
			}
			return ctx.Err()
		case <-ctx.Done():
			return fmt.Errorf("%s: it does not listen on %s: %w", c.title, address, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// sight is what both sides tell of a method at one moment.
type sight struct {
	inside  control.ProviderStatus
	outside control.ConsumerStatus
}

// look asks both sides.
func (t trial) look(ctx context.Context, provider, consumer *child) (s sight, err error) {
	if err := provider.ask(ctx, &s.inside, control.Status, t.method); err != nil {
		return s, err
	}
	return s, consumer.ask(ctx, &s.outside, control.Status, t.method)
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
func (r *row) load(ctx context.Context, provider, consumer *child) error {
	t := r.trial
	if t.atOnce == 0 { // nobody has to stay
		if err := provider.ask(ctx, nil, control.Release, t.method); err != nil {
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
	done, err := poll(ctx, time.Now().Add(answerAll), func() (_ bool, err error) {
		s, err = t.look(ctx, provider, consumer)
		return len(s.outside.Calls) >= offered, err
	})
	if err != nil {
		return err
	}
	if !done {
		return fmt.Errorf("%s: %s: %d of %d calls have not ended %s after the release",
			consumer.title, t.title, offered-len(s.outside.Calls), offered, answerAll)
	}
	r.count(s)
	return nil
}

// offer starts the calls and returns what is seen when they are decided.
func (t trial) offer(ctx context.Context, provider, consumer *child) (s sight, err error) {
	deadline := time.Now().Add(decideTimeout)
	together := offered
	if t.inTurn {
		together = 1
	}
	for started := together; started <= offered; started += together {
		if err := consumer.ask(ctx, nil, control.Call, t.method, strconv.Itoa(together)); err != nil {
			return s, err
		}
		_, err := poll(ctx, deadline, func() (_ bool, err error) {
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
func (t trial) release(ctx context.Context, provider, consumer *child, s sight) error {
	deadline := time.Now().Add(decideTimeout)
	for range s.outside.Waiting {
		entered := len(s.inside.Entered)
		if err := provider.ask(ctx, nil, control.Release, t.method, "1"); err != nil {
			return err
		}
		next, err := poll(ctx, deadline, func() (_ bool, err error) {
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
	return provider.ask(ctx, nil, control.Release, t.method)
}

// poll looks until look is satisfied or the deadline has passed.
func poll(ctx context.Context, deadline time.Time, look func() (bool, error)) (bool, error) {
	for {
		done, err := look()
		if done || err != nil || time.Now().After(deadline) {
			return done, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
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
