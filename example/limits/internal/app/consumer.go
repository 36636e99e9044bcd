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

	"github.com/weir-go/weir/example/limits/internal/control"
	"github.com/weir-go/weir/example/limits/internal/greet"
)

// callTimeout is longer than a handler is ever held.
const callTimeout = 30 * time.Second

// call makes one call of a method and returns its greeting.
type call func(ctx context.Context, name string) (string, error)

// runConsumer makes the calls that the driver asks for, until it goes away.
func runConsumer(protocol, config string, judge Judge, in io.Reader, out io.Writer) error {
	methods, err := connect(protocol, config)
	if err != nil {
		return err
	}
	var last *round
	return control.Serve(in, out, func(command string, args []string) (any, error) {
		switch {
		case command == control.Ready:
			return struct{}{}, nil
		case command == control.Call && len(args) == 2:
			n, err := strconv.Atoi(args[1])
			if err != nil || methods[args[0]] == nil {
				return nil, errors.New("want a method and a number of callers")
			}
			last = startRound(args[0], n, methods[args[0]], judge)
			return struct{}{}, nil
		case command == control.Status && last != nil:
			return last.status(), nil
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

// round is a number of calls that start together.
type round struct {
	mu      sync.Mutex
	results []control.CallResult // guarded by mu
}

func startRound(method string, callers int, do call, judge Judge) *round {
	r := new(round)
	start := make(chan struct{})
	for i := range callers {
		id := fmt.Sprintf("%s-%d", method, i+1)
		go func() {
			<-start
			res := callOnce(id, do, judge)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.results = append(r.results, res)
		}()
	}
	close(start)
	return r
}

// callOnce makes one call and says how it ended.
func callOnce(id string, do call, judge Judge) control.CallResult {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	ctx = context.WithValue(ctx, constant.AttachmentKey, map[string]any{callIDKey: id})

	greeting, err := do(ctx, id)
	switch {
	case err == nil && greeting != "":
		return control.CallResult{ID: id, Outcome: control.Answered}
	case err == nil:
		return control.CallResult{ID: id, Outcome: control.Empty}
	}
	if guard, ok := judge(err); ok {
		return control.CallResult{ID: id, Outcome: control.Refused, Guard: guard, Text: err.Error()}
	}
	return control.CallResult{ID: id, Outcome: control.Failed, Text: err.Error()}
}

func (r *round) status() control.ConsumerStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return control.ConsumerStatus{Calls: slices.Clone(r.results)}
}
