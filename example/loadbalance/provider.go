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
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/greet"
)

// provider is the handler of a child process.
type provider struct {
	takes time.Duration // for an answer
	fails error
}

func (p *provider) greet(name string) (string, error) {
	if p.fails != nil {
		return "", p.fails
	}
	time.Sleep(p.takes)
	return "Hello, " + name, nil
}

// GreetProvider serves greet.GreetService over Triple.
type GreetProvider struct{ *provider }

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
type DubboGreetProvider struct{ *provider }

// Reference is the interface that this service is found by.
func (p *DubboGreetProvider) Reference() string { return greet.GreetServiceName }

func (p *DubboGreetProvider) SayHello(_ context.Context, name string) (string, error) {
	return p.greet(name)
}

func (p *DubboGreetProvider) SayGoodbye(context.Context, string) (string, error) {
	return "", errors.New("not part of this sample")
}

// never is what stands in the place of a duration for a provider that fails.
const never = "never"

// runProvider is a child process. It serves until the driver goes away.
func runProvider(args []string, in io.Reader) error {
	if len(args) != 3 {
		return fmt.Errorf("arguments %q: want PROTOCOL CONFIG DURATION", args)
	}
	p := &provider{}
	var fails error
	// An error of the system, as failover tries again after: a Go error without a code is
	// one of the business on Triple.
	switch args[0] {
	case triple.inYAML:
		fails = triple_protocol.NewError(triple_protocol.CodeUnavailable, errors.New("the database is gone"))
		greet.SetProviderGreetService(&GreetProvider{p})
	case dubboProto.inYAML:
		fails = &hessian2.GenericException{ExceptionClass: "org.apache.dubbo.rpc.RpcException", ExceptionMessage: "the database is gone"}
		dubbo.SetProviderService(&DubboGreetProvider{p})
	default:
		return fmt.Errorf("unknown protocol %q: want tri or dubbo", args[0])
	}
	var err error
	if args[2] == never {
		p.fails = fails
	} else if p.takes, err = time.ParseDuration(args[2]); err != nil {
		return err
	}
	answers := child.Answers()
	if err := dubbo.Load(dubbo.WithPath(args[1])); err != nil {
		return fmt.Errorf("load %s: %w", args[1], err)
	}
	return child.Serve(in, answers, func(command string, _ []string) (any, error) {
		return nil, errors.New("not a command: " + command)
	})
}
