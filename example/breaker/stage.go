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
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/graceful_shutdown"
	"dubbo.apache.org/dubbo-go/v3/logger"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/example/internal/child"
	_ "github.com/weir-go/weir/example/internal/dubbo" // what it uses of dubbo-go
	"github.com/weir-go/weir/example/internal/greet"
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
	dir  string // configuration
	logs *os.File

	dependencies map[protocol]*child.Process
	addresses    map[protocol]string
	calls        map[protocol]func(ctx context.Context, name string) (string, error)
}

func newStage() (*stage, error) {
	dir, err := os.MkdirTemp("", "weir-breaker-")
	if err != nil {
		return nil, err
	}
	logs, err := os.CreateTemp("", "weir-breaker-*.log")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &stage{dir: dir, logs: logs, dependencies: make(map[protocol]*child.Process), addresses: make(map[protocol]string)}, nil
}

// close ends the children. It keeps the log, and adds its end, when err is another
// error than an interruption.
func (s *stage) close(ctx context.Context, err error) error {
	const lines, width = 12, 160
	for _, d := range s.dependencies {
		d.Stop()
	}
	_ = s.logs.Close()
	path := s.logs.Name()
	cleanup := os.RemoveAll(s.dir)
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, cleanup, os.Remove(path))
	}
	data, readErr := os.ReadFile(path)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	tail := strings.Split(strings.TrimSpace(string(data)), "\n")
	tail = tail[max(0, len(tail)-lines):]
	for i, line := range tail {
		if len(line) > width {
			tail[i] = line[:width] + "..."
		}
	}
	return fmt.Errorf("%w\nlog: %s, which ends with\n  %s", err, path, strings.Join(tail, "\n  "))
}

// connect starts the dependencies and connects this process to them.
func (s *stage) connect(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, p := range protocols {
		s.dependencies[p], s.addresses[p], err = child.Listening(ctx, func(port string) (*child.Process, error) {
			config, err := s.writeConfig("provider", p.name, map[string]string{"protocol": p.inYAML, "provider-port": port})
			if err != nil {
				return nil, err
			}
			return child.Start(ctx, child.Command{
				Title: "dependency on the " + p.title, Path: self, Args: []string{"dependency", p.name, config}, Config: config, Log: s.logs,
			})
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
	path, err := s.writeConfig("weir", "consumer", nil)
	if err != nil {
		return err
	}
	if err := weir.Load(path); err != nil {
		return err
	}
	// dubbo-go logs to standard output, which is for the time line.
	os.Stdout = s.logs
	instance, err := dubbo.NewInstance(
		dubbo.WithName("breaker-consumer"),
		dubbo.WithLogger(logger.WithZap(), logger.WithLevel("warn")),
		// An interrupted sample ends its children itself, and then with a status of its own.
		dubbo.WithShutdown(graceful_shutdown.WithoutInternalSignal()),
	)
	if err != nil {
		return err
	}
	cli, err := instance.NewClient(client.WithClientRequestTimeout(callTimeout))
	if err != nil {
		return err
	}
	once := client.WithRetries(0) // each call is one attempt, so that what arrives can be counted
	triple, err := greet.NewGreetService(cli, once, client.WithProtocolTriple(), client.WithURL(s.url(protocols[0])))
	if err != nil {
		return err
	}
	other, err := greet.NewDubboGreet(cli, once, client.WithProtocolDubbo(), client.WithSerialization(constant.Hessian2Serialization),
		client.WithURL(s.url(protocols[1])))
	if err != nil {
		return err
	}
	s.calls = map[protocol]func(context.Context, string) (string, error){
		protocols[0]: func(ctx context.Context, name string) (string, error) {
			reply, err := triple.SayHello(ctx, &greet.GreetRequest{Name: name})
			return reply.GetGreeting(), err
		},
		protocols[1]: other.SayHello,
	}
	return nil
}

func (s *stage) url(p protocol) string { return p.inYAML + "://" + s.addresses[p] }

// writeConfig copies a role's file of conf and adds the keys that its placeholders
// name. dubbo-go resolves ${key:default} from keys of the same file.
func (s *stage) writeConfig(role, name string, keys map[string]string) (string, error) {
	data, err := conf.ReadFile("conf/" + role + ".yaml")
	if err != nil {
		return "", err
	}
	text := string(data)
	for key, value := range keys {
		text += fmt.Sprintf("%s: %q\n", key, value)
	}
	path := filepath.Join(s.dir, role+"-"+name+".yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
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
