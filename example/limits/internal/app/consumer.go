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

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/common/constant"

	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/greet"
	"github.com/weir-go/weir/example/limits/internal/control"
)

// callTimeout is longer than a handler is ever held.
const callTimeout = 30 * time.Second

// call makes one call of a method and returns its greeting.
type call func(ctx context.Context, name string) (string, error)

// runConsumer makes the calls that the driver asks for, until it goes away.
func runConsumer(protocol, config string, p Protection, in io.Reader, out io.Writer) error {
	methods, err := connect(protocol, config)
	if err != nil {
		return err
	}
	rounds := make(map[string]*round)
	for m, do := range methods {
		rounds[m] = &round{method: m, do: do, protection: p}
	}
	return child.Serve(in, out, func(command string, args []string) (any, error) {
		switch {
		case command == control.Ready:
			return struct{}{}, nil
		case command == control.Call && len(args) == 2 && rounds[args[0]] != nil:
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return nil, err
			}
			rounds[args[0]].start(n)
			return struct{}{}, nil
		case command == control.Status && len(args) == 1 && rounds[args[0]] != nil:
			return rounds[args[0]].status(), nil
		default:
			return nil, errors.New("not a command of a consumer")
		}
	})
}

// connect loads the configuration and returns the calls by method.
func connect(protocol, config string) (map[string]call, error) {
	switch protocol {
	case "triple":
		svc := new(greet.GreetServiceImpl)
		greet.SetConsumerGreetService(svc)
		text := func(reply *greet.GreetReply, err error) (string, error) { return reply.GetGreeting(), err }
		return map[string]call{
			"SayHello": func(ctx context.Context, name string) (string, error) {
				return text(svc.SayHello(ctx, &greet.GreetRequest{Name: name}))
			},
			"SayGoodbye": func(ctx context.Context, name string) (string, error) {
				return text(svc.SayGoodbye(ctx, &greet.GreetRequest{Name: name}))
			},
		}, load(config)
	case "dubbo":
		svc := new(greet.DubboGreetClient)
		greet.SetConsumerDubboGreet(svc)
		return map[string]call{"SayHello": svc.SayHello, "SayGoodbye": svc.SayGoodbye}, load(config)
	default:
		return nil, fmt.Errorf("unknown protocol %q: want triple or dubbo", protocol)
	}
}

func load(config string) error {
	if err := dubbo.Load(dubbo.WithPath(config)); err != nil {
		return fmt.Errorf("load %s: %w", config, err)
	}
	return nil
}

// round is the calls of one method.
type round struct {
	method     string
	do         call
	protection Protection
	started    int // used by one goroutine

	mu      sync.Mutex
	results []control.CallResult // guarded by mu
}

// start starts calls together.
func (r *round) start(callers int) {
	start := make(chan struct{})
	for range callers {
		r.started++
		id := fmt.Sprintf("%s-%d", r.method, r.started)
		go func() {
			<-start
			res := r.call(id)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.results = append(r.results, res)
		}()
	}
	close(start)
}

// call makes one call and says how it ended.
func (r *round) call(id string) control.CallResult {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	ctx = context.WithValue(ctx, constant.AttachmentKey, map[string]any{callIDKey: id})

	greeting, err := r.do(ctx, id)
	switch {
	case err == nil && greeting != "":
		return control.CallResult{ID: id, Outcome: control.Answered}
	case err == nil:
		return control.CallResult{ID: id, Outcome: control.Empty}
	}
	if r.protection.Refusal != nil {
		if refusal := r.protection.Refusal(err); refusal != nil {
			return control.CallResult{ID: id, Outcome: control.Refused, Refusal: refusal, Text: err.Error()}
		}
	}
	return control.CallResult{ID: id, Outcome: control.Failed, Text: err.Error()}
}

func (r *round) status() control.ConsumerStatus {
	r.mu.Lock()
	s := control.ConsumerStatus{Calls: slices.Clone(r.results)}
	r.mu.Unlock()
	// Last, so that a call which leaves the queue meanwhile is missing for a moment
	// and never counted twice.
	if r.protection.Waiting != nil {
		s.Waiting = r.protection.Waiting()
	}
	return s
}
