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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/greet"
)

// condition is how the dependency is.
type condition string

const (
	healthy   condition = "healthy"
	slow      condition = "slow"      // every answer takes slowAnswer
	declining condition = "declining" // every answer is an error of the business
	failing   condition = "failing"   // every call ends as when the system fails
	hanging   condition = "hanging"   // nothing answers: the process is stopped
)

// slowAnswer is ten times what breaker.slow-call allows.
const slowAnswer = 2 * time.Second

// declined is in the text of each error of the business.
const declined = "nobody of that name"

// Commands that the driver gives to the dependency.
const (
	be      = "be"      // be CONDITION
	visits  = "visits"  // -> []visit
	entered = "entered" // entered AFTER -> int, how many calls with greater ids have reached the handler
)

// visit is a call that reached the handler.
type visit struct {
	Call int
	At   time.Time
}

// dependency is what the breaker keeps calls from.
type dependency struct {
	protocol string

	mu     sync.Mutex
	now    condition // guarded by mu
	visits []visit   // guarded by mu
}

// greet is what the handler does.
func (d *dependency) greet(name string) (string, error) {
	now, id, err := d.enter(name)
	if err != nil {
		return "", err
	}
	switch now {
	case slow:
		time.Sleep(slowAnswer)
	case declining:
		return "", d.decline(id)
	case failing:
		return "", d.fail(id)
	}
	return "Hello, " + name, nil
}

func (d *dependency) enter(name string) (now condition, id int, err error) {
	id, err = strconv.Atoi(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.visits = append(d.visits, visit{id, time.Now()})
	return d.now, id, err
}

// decline is an answer that is an error: the business said no, the system is well.
func (d *dependency) decline(id int) error {
	err := errors.New(declined)
	if d.protocol == "triple" && id%2 == 0 {
		return triple_protocol.NewError(triple_protocol.CodeNotFound, err)
	}
	return err
}

// fail is what a call meets when the system is not well.
func (d *dependency) fail(id int) error {
	switch {
	case d.protocol == "dubbo":
		// What Java throws when it cannot serve. A panic of a Go handler comes to
		// consumers of this protocol as an exception like any other.
		return &hessian2.GenericException{ExceptionClass: "org.apache.dubbo.rpc.RpcException", ExceptionMessage: "the database is gone"}
	case id%2 == 0:
		panic("the database is gone")
	}
	return triple_protocol.NewError(triple_protocol.CodeUnavailable, errors.New("the database is gone"))
}

// GreetProvider serves greet.GreetService over Triple.
type GreetProvider struct {
	*dependency
}

func (p *GreetProvider) SayHello(_ context.Context, req *greet.GreetRequest) (*greet.GreetReply, error) {
	greeting, err := p.greet(req.GetName())
	if err != nil {
		return nil, err
	}
	return &greet.GreetReply{Greeting: greeting}, nil
}

func (p *GreetProvider) SayGoodbye(context.Context, *greet.GreetRequest) (*greet.GreetReply, error) {
	return nil, errors.New("not part of this sample")
}

// DubboGreetProvider serves the same interface over the dubbo protocol.
type DubboGreetProvider struct {
	*dependency
}

// Reference is the interface that this service is found by.
func (p *DubboGreetProvider) Reference() string { return greet.GreetServiceName }

func (p *DubboGreetProvider) SayHello(_ context.Context, name string) (string, error) {
	return p.greet(name)
}

// runDependency is the child process. It serves until the driver goes away.
func runDependency(protocol, config string, in io.Reader) error {
	answers := child.Answers()
	d := &dependency{protocol: protocol, now: healthy}
	switch protocol {
	case "triple":
		greet.SetProviderGreetService(&GreetProvider{d})
	case "dubbo":
		dubbo.SetProviderService(&DubboGreetProvider{d})
	default:
		return fmt.Errorf("unknown protocol %q: want triple or dubbo", protocol)
	}
	if err := dubbo.Load(dubbo.WithPath(config)); err != nil {
		return fmt.Errorf("load %s: %w", config, err)
	}
	return child.Serve(in, answers, d.obey)
}

func (d *dependency) obey(command string, args []string) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case command == be && len(args) == 1:
		d.now = condition(args[0])
		return struct{}{}, nil
	case command == visits && len(args) == 0:
		return slices.Clone(d.visits), nil
	case command == entered && len(args) == 1:
		after, err := strconv.Atoi(args[0])
		n := 0
		for _, v := range d.visits {
			if v.Call > after {
				n++
			}
		}
		return n, err
	default:
		return nil, errors.New("not a command: " + strings.Join(append([]string{command}, args...), " "))
	}
}
