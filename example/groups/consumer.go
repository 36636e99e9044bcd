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
	"io"
	"strconv"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/greet"
)

// Commands that the driver gives to a consumer.
const (
	try  = "try"  // calls once -> ask
	load = "load" // PHASE RATE MOST: makes calls from now on, see pace
	turn = "turn" // PHASE: they are of another one from now on
	calm = "calm" // makes no more
	look = "look" // -> progress
	tell = "tell" // -> []ask
)

// Both are far more than a call takes, so that none is lost because a machine is slow.
const (
	timeout    = 60 * time.Second
	tryTimeout = 20 * time.Second // the driver waits for the answer, and not forever
)

// ask is a call as its caller sees it.
type ask struct {
	Phase    string
	At, Took int64  // in microseconds: since 1970, when it was due; and from then to its end
	By       string `json:",omitempty"` // who answered
	Refused  string `json:",omitempty"` // by which guard, and its reason
	Failed   string `json:",omitempty"` // any other error
}

// pace is how a consumer makes calls: so many a second, whatever becomes of them, but
// with no more than so many under way. A call that has to wait for that is late, and the
// wait counts.
type pace struct{ rate, most int }

// progress is what a consumer has done since it was told to load.
type progress struct {
	Busy           bool // it makes calls, or has calls under way
	Ended, Refused int  // calls
}

// consumer is the calls of a child process.
type consumer struct {
	do func(ctx context.Context) (by string, err error)

	mu       sync.Mutex
	phase    string   // guarded by mu
	asks     []ask    // guarded by mu
	progress progress // guarded by mu
	halt     func()   // guarded by mu: ends what load began
}

// once makes a call.
func (c *consumer) once(timeout time.Duration) (a ask) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	by, err := c.do(ctx)
	if r, ok := weir.AsRejected(err); ok {
		a.Refused = r.Guard + " " + r.Reason
	} else if err != nil {
		a.Failed = err.Error()
	} else {
		a.By = by
	}
	return a
}

// call makes a call that is due.
func (c *consumer) call(phase string, due time.Time) {
	a := c.once(timeout)
	a.Phase, a.At, a.Took = phase, due.UnixMicro(), time.Since(due).Microseconds()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = append(c.asks, a)
	c.progress.Ended++
	if a.Refused != "" {
		c.progress.Refused++
	}
}

// start makes calls until ctx ends, and returns when they have ended.
func (c *consumer) start(ctx context.Context, p pace) {
	var all sync.WaitGroup
	slots := make(chan struct{}, p.most)
	begin := time.Now()
	for n := 0; ; n++ {
		due := begin.Add(time.Duration(n) * time.Second / time.Duration(p.rate))
		if sleep(ctx, time.Until(due)) != nil {
			break
		}
		slots <- struct{}{}
		c.mu.Lock()
		phase := c.phase
		c.mu.Unlock()
		all.Go(func() {
			c.call(phase, due)
			<-slots
		})
	}
	all.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress.Busy = false
}

// runConsumer is a child process. It calls as it is told until the driver goes away.
func runConsumer(args []string, in io.Reader) error {
	if len(args) != 1 {
		return fmt.Errorf("arguments %q: want CONFIG", args)
	}
	answers := child.Answers()
	stub := &greet.GreetServiceImpl{}
	greet.SetConsumerGreetService(stub)
	c := &consumer{halt: func() {}, do: func(ctx context.Context) (string, error) {
		reply, err := stub.SayHello(ctx, &greet.GreetRequest{Name: "you"})
		return reply.GetGreeting(), err
	}}
	if err := dubbo.Load(dubbo.WithPath(args[0])); err != nil {
		return fmt.Errorf("load %s: %w", args[0], err)
	}
	return child.Serve(in, answers, c.obey)
}

func (c *consumer) obey(command string, args []string) (any, error) {
	switch command {
	case try:
		return c.once(tryTimeout), nil
	case load:
		return struct{}{}, c.load(args)
	case turn:
		return struct{}{}, c.turn(args)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch command {
	case calm:
		c.halt()
		return struct{}{}, nil
	case look:
		return c.progress, nil
	case tell:
		return c.asks, nil
	}
	return nil, errors.New("not a command: " + command)
}

func (c *consumer) load(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%q: want PHASE RATE MOST", args)
	}
	rate, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	most, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase, c.halt, c.progress = args[0], cancel, progress{Busy: true}
	go c.start(ctx, pace{rate: rate, most: most})
	return nil
}

func (c *consumer) turn(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%q: want PHASE", args)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = args[0]
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
