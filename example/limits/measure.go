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
	"strconv"
	"time"

	"github.com/weir-go/weir/example/limits/internal/control"
)

const (
	runTimeout    = 90 * time.Second      // one program on one protocol
	listenTimeout = 20 * time.Second      // a provider to come up
	decideTimeout = 15 * time.Second      // every call to be admitted or refused
	answerAll     = 20 * time.Second      // every admitted call to end, once released
	pollEvery     = 10 * time.Millisecond // between two looks
)

// row is what one program did with the calls of one method.
type row struct {
	program  program
	method   string
	limit    int // configured
	admitted int // calls that reached the handler
	peak     int // greatest number of them in the handler at one time
	answered int // callers that got a greeting
	typed    int // callers that got a refusal which says by its type what it is
	failed   int // callers that got any other error
	empty    int // callers that got neither an error nor a greeting
	text     string
	guards   map[string]int // of typed refusals

	minHits, maxHits int // arrivals at the provider per call that got no greeting
}

// refused is how many callers got no greeting.
func (r row) refused() int { return r.typed + r.failed + r.empty }

// measure runs one program on one protocol and calls each method.
func (b *bench) measure(ctx context.Context, p protocol, prog program) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	log, err := os.Create(b.logPath(p, prog))
	if err != nil {
		return nil, err
	}
	defer log.Close()

	provider, address, err := b.startProvider(ctx, log, p, prog)
	if err != nil {
		return nil, err
	}
	defer provider.stop()
	consumer, err := b.startConsumer(ctx, log, p, prog, address)
	if err != nil {
		return nil, err
	}
	defer consumer.stop()

	var rows []row
	for _, m := range methods {
		r := row{program: prog, method: m.name, limit: m.limit}
		if err := r.load(ctx, provider, consumer); err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// startProvider starts a provider on a free port and waits until it listens.
// Somebody else may take the port in between, hence more than one attempt.
func (b *bench) startProvider(ctx context.Context, log *os.File, p protocol, prog program) (*child, string, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return nil, "", err
		}
		config, err := writeConfig(b.dir, "provider-"+p.name+"-"+prog.conf+".yaml", "provider-port", port)
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

func (b *bench) startConsumer(ctx context.Context, log *os.File, p protocol, prog program, address string) (*child, error) {
	config, err := writeConfig(b.dir, "consumer-"+p.name+".yaml", "provider-url", p.scheme+"://"+address)
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

// load offers the calls, waits until each is decided, releases the handlers,
// waits until each call has ended, and counts.
func (r *row) load(ctx context.Context, provider, consumer *child) error {
	if err := consumer.ask(ctx, nil, control.Call, r.method, strconv.Itoa(offered)); err != nil {
		return err
	}
	// A call is decided when its caller has been turned away or when it is in
	// the handler, which it does not leave yet. If that takes too long, go on:
	// the table shows what there is.
	_, err := poll(ctx, decideTimeout, func() (bool, error) {
		inside, err1 := askProvider(ctx, provider, r.method)
		outside, err2 := askConsumer(ctx, consumer)
		return inside.Running+len(outside.Calls) >= offered, errors.Join(err1, err2)
	})
	if err != nil {
		return err
	}
	if err := provider.ask(ctx, nil, control.Release, r.method); err != nil {
		return err
	}
	var outside control.ConsumerStatus
	done, err := poll(ctx, answerAll, func() (_ bool, err error) {
		outside, err = askConsumer(ctx, consumer)
		return len(outside.Calls) >= offered, err
	})
	if err != nil {
		return err
	}
	if !done {
		return fmt.Errorf("%s: %s: %d of %d calls have not ended %s after the release",
			consumer.title, r.method, offered-len(outside.Calls), offered, answerAll)
	}
	inside, err := askProvider(ctx, provider, r.method)
	if err != nil {
		return err
	}
	r.count(inside, outside)
	return nil
}

func askProvider(ctx context.Context, c *child, method string) (status control.ProviderStatus, err error) {
	err = c.ask(ctx, &status, control.Status, method)
	return status, err
}

func askConsumer(ctx context.Context, c *child) (status control.ConsumerStatus, err error) {
	err = c.ask(ctx, &status, control.Status)
	return status, err
}

// poll looks until look is satisfied or the time is over.
func poll(ctx context.Context, limit time.Duration, look func() (bool, error)) (bool, error) {
	for deadline := time.Now().Add(limit); ; {
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

// count fills the row from what the provider and the consumer have seen.
func (r *row) count(inside control.ProviderStatus, outside control.ConsumerStatus) {
	r.admitted, r.peak = inside.Entered, inside.Peak
	r.guards = make(map[string]int)
	for _, call := range outside.Calls {
		switch call.Outcome {
		case control.Answered:
			r.answered++
			continue // hits are counted for the others
		case control.Refused:
			r.typed++
			r.guards[call.Guard]++
		case control.Failed:
			r.failed++
		case control.Empty:
			r.empty++
		}
		hits := inside.Hits[call.ID]
		if r.refused() == 1 {
			r.minHits, r.text = hits, call.Text
		}
		r.minHits, r.maxHits = min(r.minHits, hits), max(r.maxHits, hits)
	}
}
