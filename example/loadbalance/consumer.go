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
	"maps"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	_ "github.com/weir-go/weir" // registers its load balances
	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/greet"
)

// Commands that the driver gives to a consumer.
const (
	begin = "begin" // has its callers begin
	sent  = "sent"  // -> map[string]int: calls sent to each address
	tell  = "tell"  // -> record
)

const (
	// callersEach is how many callers a consumer has. Each makes its next call when
	// the one before has ended.
	callersEach = 6
	// pause is how long a caller waits that got an error.
	pause = 5 * time.Millisecond
)

// try is a call that was sent to a provider.
type try struct {
	To     string // address
	At     int64  // in microseconds since 1970: all processes run on one machine
	Took   int64  // in microseconds
	First  bool   // not after an error of another
	Failed bool
}

// ask is a call as its caller sees it.
type ask struct {
	At, Took int64  // in microseconds
	Lost     string `json:",omitempty"` // the error that it ended with
}

// record is all that a consumer has seen.
type record struct {
	Tries []try
	Asks  []ask
}

// consumer is the callers of a child process.
type consumer struct {
	do      func(ctx context.Context, name string) (string, error)
	timeout time.Duration // of a call

	mu     sync.Mutex
	record record         // guarded by mu
	sent   map[string]int // guarded by mu
}

type triesKey struct{}

// call makes calls until the process ends.
func (c *consumer) call() {
	for {
		tries := 0
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), triesKey{}, &tries), c.timeout)
		began := time.Now()
		greeting, err := c.do(ctx, "you")
		cancel()
		if err == nil && greeting != "Hello, you" {
			err = fmt.Errorf("the answer is %q", greeting)
		}
		a := ask{At: began.UnixMicro(), Took: time.Since(began).Microseconds()}
		if err != nil {
			a.Lost = err.Error()
		}
		c.mu.Lock()
		c.record.Asks = append(c.record.Asks, a)
		c.mu.Unlock()
		if err != nil {
			time.Sleep(pause)
		}
	}
}

// watch notes where calls are sent. It stands behind Weir's filter.
type watch struct{ *consumer }

func (w *watch) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	t := try{To: next.GetURL().Location}
	if tries, ok := ctx.Value(triesKey{}).(*int); ok {
		t.First = *tries == 0
		*tries++
	}
	began := time.Now()
	res := next.Invoke(ctx, inv)
	t.At, t.Took, t.Failed = began.UnixMicro(), time.Since(began).Microseconds(), res.Error() != nil

	w.mu.Lock()
	defer w.mu.Unlock()
	w.record.Tries = append(w.record.Tries, t)
	w.sent[t.To]++
	return res
}

func (w *watch) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}

// runConsumer is a child process. It calls until the driver goes away.
func runConsumer(args []string, in io.Reader) error {
	if len(args) != 2 {
		return fmt.Errorf("arguments %q: want PROTOCOL CONFIG", args)
	}
	answers := child.Answers()
	c := &consumer{sent: map[string]int{}}
	extension.SetFilter("watch", func() filter.Filter { return &watch{c} })
	switch args[0] {
	case triple.inYAML:
		c.timeout = 10 * time.Second
		stub := &greet.GreetServiceImpl{}
		greet.SetConsumerGreetService(stub)
		c.do = func(ctx context.Context, name string) (string, error) {
			reply, err := stub.SayHello(ctx, &greet.GreetRequest{Name: name})
			return reply.GetGreeting(), err
		}
	case dubboProto.inYAML:
		// It bounds the first try only. So long a call waits that is under way when its
		// provider is killed, for dubbo-go does not end it.
		c.timeout = time.Second
		stub := &greet.DubboGreetClient{}
		greet.SetConsumerDubboGreet(stub)
		c.do = stub.SayHello
	default:
		return fmt.Errorf("unknown protocol %q: want tri or dubbo", args[0])
	}
	if err := dubbo.Load(dubbo.WithPath(args[1])); err != nil {
		return fmt.Errorf("load %s: %w", args[1], err)
	}
	return child.Serve(in, answers, c.obey)
}

func (c *consumer) obey(command string, _ []string) (any, error) {
	switch command {
	case begin:
		for range callersEach {
			go c.call()
		}
		return struct{}{}, nil
	case sent:
		c.mu.Lock()
		defer c.mu.Unlock()
		return maps.Clone(c.sent), nil
	case tell:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.record, nil
	}
	return nil, errors.New("not a command: " + command)
}
