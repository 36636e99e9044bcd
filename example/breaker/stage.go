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
	"embed"
	"io"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/example/internal/child"
	_ "github.com/weir-go/weir/example/internal/dubbo" // what it uses of dubbo-go
	"github.com/weir-go/weir/example/internal/greet"
	"github.com/weir-go/weir/example/internal/scene"
)

// runTimeout bounds the tale of one protocol.
const runTimeout = 90 * time.Second

// conf holds the dubbo configuration of both sides.
//
//go:embed conf
var conf embed.FS

// protocol is one of the two that the sample runs on.
type protocol struct {
	name, title, inYAML string
}

var protocols = []protocol{
	{name: "triple", title: "Triple protocol", inYAML: "tri"},
	{name: "dubbo", title: "dubbo protocol", inYAML: "dubbo"},
}

// stage is where the tales happen: a dependency on each protocol, and this process,
// which calls both.
type stage struct {
	*scene.Scene // configuration and log

	dependencies map[protocol]*child.Process
	addresses    map[protocol]string
	calls        map[protocol]greet.Method
}

func newStage() (*stage, error) {
	sc, err := scene.Open("breaker", conf)
	if err != nil {
		return nil, err
	}
	return &stage{Scene: sc, dependencies: map[protocol]*child.Process{}, addresses: map[protocol]string{}}, nil
}

// connect starts the dependencies and connects this process to them.
func (s *stage) connect(ctx context.Context) error {
	for _, p := range protocols {
		var err error
		s.dependencies[p], s.addresses[p], err = child.Listening(ctx, func(port string) (*child.Process, error) {
			config, err := s.Config([]string{"provider"}, map[string]string{"protocol": p.inYAML, "provider-port": port})
			if err != nil {
				return nil, err
			}
			return s.Start(ctx, "dependency on the "+p.title, config, "dependency", p.name, config)
		})
		if err != nil {
			delete(s.dependencies, p)
			return err
		}
	}
	return s.dial()
}

// dial makes the clients. One process cannot have two consumers of one interface
// from YAML, so these are made in code.
func (s *stage) dial() error {
	path, err := s.Config([]string{"weir"}, nil)
	if err != nil {
		return err
	}
	if err := weir.Load(path); err != nil {
		return err
	}
	instance, err := s.Consumer()
	if err != nil {
		return err
	}
	s.calls = map[protocol]greet.Method{}
	for _, p := range protocols {
		made, err := greet.Dial(instance, p.inYAML, s.addresses[p], callTimeout)
		if err != nil {
			return err
		}
		s.calls[p] = made.SayHello
	}
	return nil
}

// tell makes the tale of one protocol and prints it meanwhile.
func (s *stage) tell(ctx context.Context, out io.Writer, p protocol) (tale, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	line := &timeline{out: out}
	st := &story{
		tale:       tale{protocol: p, address: s.addresses[p]},
		dependency: s.dependencies[p],
		callers:    &callers{do: s.calls[p]},
		show:       line.show,
	}
	t, err := st.tell(ctx)
	line.finish(t)
	return t, err
}
