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
	"os"
	"path/filepath"
	"strings"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/graceful_shutdown"
	"dubbo.apache.org/dubbo-go/v3/logger"

	"github.com/weir-go/weir/example/internal/child"
	_ "github.com/weir-go/weir/example/internal/dubbo" // what it uses of dubbo-go
	"github.com/weir-go/weir/example/internal/greet"
)

// runTimeout is for all that happens on one protocol, and takes about 25 seconds.
const runTimeout = 100 * time.Second

//go:embed conf/*.yaml
var conf embed.FS

type protocol struct {
	title, inYAML string
}

var protocols = []protocol{
	{title: "Triple protocol", inYAML: "tri"},
	{title: "dubbo protocol", inYAML: "dubbo"},
}

// stage is what the sample runs on.
type stage struct {
	dir  string // configuration and profiles
	logs *os.File
	// instance makes a client for each provider: options of a reference stay with the
	// client that made it.
	instance *dubbo.Instance
}

func newStage() (_ *stage, err error) {
	s := &stage{}
	if s.dir, err = os.MkdirTemp("", "weir-overload-"); err != nil {
		return nil, err
	}
	if s.logs, err = os.CreateTemp("", "weir-overload-*.log"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	// dubbo-go logs to standard output, which is for the tables.
	os.Stdout = s.logs
	s.instance, err = dubbo.NewInstance(
		dubbo.WithName("overload-consumer"),
		dubbo.WithLogger(logger.WithZap(), logger.WithLevel("warn")),
		// An interrupted sample ends its children itself, and then with a status of its own.
		dubbo.WithShutdown(graceful_shutdown.WithoutInternalSignal()),
	)
	if err != nil {
		return nil, s.close(context.Background(), err)
	}
	return s, nil
}

// close ends what the stage has. When something went wrong it keeps the log.
func (s *stage) close(ctx context.Context, err error) error {
	const lines, width = 6, 160
	path := s.logs.Name()
	cleanup := os.RemoveAll(s.dir)
	if err == nil || ctx.Err() != nil {
		_ = s.logs.Close() // else calls that hang still write to it, until the process ends
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

// tell has the story happen on a protocol: first without a guard, then with it.
func (s *stage) tell(ctx context.Context, p protocol) (tale, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	t := tale{protocol: p, began: time.Now()}
	for _, guarded := range []bool{false, true} {
		st, stop, err := s.begin(ctx, p, guarded)
		if err != nil {
			return t, err
		}
		if guarded {
			err = st.guarded(ctx)
			t.part = st.part
		} else {
			err = st.bare(ctx)
			t.bare = st.part
		}
		stop()
		if err != nil {
			return t, fmt.Errorf("%s, %w", p.title, err)
		}
	}
	return t, nil
}

// begin starts a proxy, with a guard or without, and connects to it.
func (s *stage) begin(ctx context.Context, p protocol, guarded bool) (st *story, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	name := p.inYAML + "-bare"
	files := []string{"provider"}
	if guarded {
		name, files = p.inYAML, []string{"provider", "weir"}
	}
	profiles := filepath.Join(s.dir, "profiles-"+name)
	process, address, err := child.Listening(ctx, func(port string) (*child.Process, error) {
		config, err := s.writeConfig(name, files, map[string]string{"protocol": p.inYAML, "provider-port": port})
		if err != nil {
			return nil, err
		}
		return child.Start(ctx, child.Command{
			Title: "proxy on the " + p.title, Path: self, Args: []string{"proxy", p.inYAML, config, profiles}, Config: config, Log: s.logs,
		})
	})
	if err != nil {
		return nil, nil, err
	}
	do, err := s.dial(p, p.inYAML+"://"+address)
	if err != nil {
		process.Stop()
		return nil, nil, err
	}
	return &story{proxy: process, callers: &callers{do: do}, profiles: profiles}, process.Stop, nil
}

type method = func(ctx context.Context, name string) (string, error)

func (s *stage) dial(p protocol, url string) (map[string]method, error) {
	made, err := s.instance.NewClient(client.WithClientRequestTimeout(callTimeout))
	if err != nil {
		return nil, err
	}
	once := client.WithRetries(0) // each call is one attempt, so that what arrives can be counted
	if p.inYAML == "dubbo" {
		cli, err := greet.NewDubboGreet(made, once, client.WithProtocolDubbo(), client.WithSerialization(constant.Hessian2Serialization), client.WithURL(url))
		if err != nil {
			return nil, err
		}
		return map[string]method{methodA: cli.SayGoodbye, methodB: cli.SayHello}, nil
	}
	cli, err := greet.NewGreetService(made, once, client.WithProtocolTriple(), client.WithURL(url))
	if err != nil {
		return nil, err
	}
	return map[string]method{
		methodA: func(ctx context.Context, name string) (string, error) {
			reply, err := cli.SayGoodbye(ctx, &greet.GreetRequest{Name: name})
			return reply.GetGreeting(), err
		},
		methodB: func(ctx context.Context, name string) (string, error) {
			reply, err := cli.SayHello(ctx, &greet.GreetRequest{Name: name})
			return reply.GetGreeting(), err
		},
	}, nil
}

// writeConfig writes files of conf as one, with keys that they use.
func (s *stage) writeConfig(name string, files []string, keys map[string]string) (string, error) {
	var text strings.Builder
	for _, file := range files {
		data, err := conf.ReadFile("conf/" + file + ".yaml")
		if err != nil {
			return "", err
		}
		text.Write(data)
	}
	for key, value := range keys {
		fmt.Fprintf(&text, "%s: %q\n", key, value)
	}
	path := filepath.Join(s.dir, name+".yaml")
	return path, os.WriteFile(path, []byte(text.String()), 0o600)
}
