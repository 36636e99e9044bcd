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

	"github.com/weir-go/weir/example/internal/child"
	"github.com/weir-go/weir/example/internal/greet"
)

// takes is how long a provider takes for an answer. With executes: 6 in provider.yaml it
// can do 30 calls in a second.
const takes = 200 * time.Millisecond

// registered is a command of the driver's to a provider, which answers it once it has
// registered.
const registered = "registered"

// GreetProvider serves greet.GreetService. Its greeting is who it is.
type GreetProvider struct{ name string }

func (p *GreetProvider) SayHello(context.Context, *greet.GreetRequest) (*greet.GreetReply, error) {
	time.Sleep(takes)
	return &greet.GreetReply{Greeting: p.name}, nil
}

func (p *GreetProvider) SayGoodbye(context.Context, *greet.GreetRequest) (*greet.GreetReply, error) {
	return nil, errors.New("not part of this sample")
}

// runProvider is a child process. It serves until the driver goes away.
func runProvider(args []string, in io.Reader) error {
	if len(args) != 2 {
		return fmt.Errorf("arguments %q: want CONFIG NAME", args)
	}
	greet.SetProviderGreetService(&GreetProvider{name: args[1]})
	answers := child.Answers()
	if err := dubbo.Load(dubbo.WithPath(args[0])); err != nil {
		return fmt.Errorf("load %s: %w", args[0], err)
	}
	return child.Serve(in, answers, func(command string, _ []string) (any, error) {
		if command != registered {
			return nil, errors.New("not a command: " + command)
		}
		return struct{}{}, nil
	})
}
