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
	"strconv"

	"dubbo.apache.org/dubbo-go/v3"

	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/greet"
	"github.com/weir-go/weir/example/limits/internal/control"
)

// GreetProvider serves greet.GreetService over Triple. No limit is in its
// code: they are in the YAML files under ../../conf.
type GreetProvider struct {
	work *board
}

// SayHello greets.
func (p *GreetProvider) SayHello(_ context.Context, req *greet.GreetRequest) (*greet.GreetReply, error) {
	if err := p.work.hold("SayHello", req.GetName()); err != nil {
		return nil, err
	}
	return &greet.GreetReply{Greeting: "Hello, " + req.GetName()}, nil
}

// SayGoodbye takes leave.
func (p *GreetProvider) SayGoodbye(_ context.Context, req *greet.GreetRequest) (*greet.GreetReply, error) {
	if err := p.work.hold("SayGoodbye", req.GetName()); err != nil {
		return nil, err
	}
	return &greet.GreetReply{Greeting: "Goodbye, " + req.GetName()}, nil
}

// DubboGreetProvider serves the same interface over the dubbo protocol, where
// arguments and results are plain Go values, encoded with hessian.
type DubboGreetProvider struct {
	work *board
}

// Reference is the interface that this service is found by.
func (p *DubboGreetProvider) Reference() string { return greet.GreetServiceName }

// SayHello greets.
func (p *DubboGreetProvider) SayHello(_ context.Context, name string) (string, error) {
	if err := p.work.hold("SayHello", name); err != nil {
		return "", err
	}
	return "Hello, " + name, nil
}

// SayGoodbye takes leave.
func (p *DubboGreetProvider) SayGoodbye(_ context.Context, name string) (string, error) {
	if err := p.work.hold("SayGoodbye", name); err != nil {
		return "", err
	}
	return "Goodbye, " + name, nil
}

// runProvider serves until the driver goes away.
func runProvider(protocol, config string, in io.Reader, out io.Writer) error {
	work := newBoard("SayHello", "SayGoodbye")
	countHits(work)

	switch protocol {
	case "triple":
		greet.SetProviderGreetService(&GreetProvider{work: work})
	case "dubbo":
		dubbo.SetProviderService(&DubboGreetProvider{work: work})
	default:
		return fmt.Errorf("unknown protocol %q: want triple or dubbo", protocol)
	}
	if err := dubbo.Load(dubbo.WithPath(config)); err != nil {
		return fmt.Errorf("load %s: %w", config, err)
	}

	return child.Serve(in, out, func(command string, args []string) (any, error) {
		switch {
		case command == control.Ready:
			return struct{}{}, nil
		case command == control.Status && len(args) == 1:
			return work.status(args[0])
		case command == control.Release && len(args) == 1:
			return struct{}{}, work.release(args[0])
		case command == control.Release && len(args) == 2:
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return nil, err
			}
			return struct{}{}, work.release(args[0], n)
		default:
			return nil, errors.New("not a command of a provider")
		}
	})
}
