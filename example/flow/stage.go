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
	"strconv"
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

const (
	// attempts is how often a scenario is run at most.
	attempts = 3
	// spareTime is how much all attempts but the first may take that the machine
	// disturbed.
	spareTime = 30 * time.Second
)

// settings holds the dubbo configuration of the providers.
//
//go:embed conf
var settings embed.FS

// protocol is one of the two that the sample runs on.
type protocol struct {
	title, inYAML string
}

var (
	triple     = protocol{title: "Triple protocol", inYAML: "tri"}
	dubboProto = protocol{title: "dubbo protocol", inYAML: "dubbo"}
)

// stage is where the scenarios run: a provider for each attempt, so that each begins
// cold, and this process, which calls them.
type stage struct {
	dir  string // configuration
	logs *os.File
	// instance makes a client for each provider: options of a reference stay with the
	// client that made it.
	instance *dubbo.Instance
	ran      int // providers
	spare    time.Duration
	// unseen are the scenarios that the machine was too busy to show.
	unseen []string
}

func newStage() (_ *stage, err error) {
	s := &stage{spare: spareTime}
	if s.dir, err = os.MkdirTemp("", "weir-flow-conf-"); err != nil {
		return nil, err
	}
	if s.logs, err = os.CreateTemp("", "weir-flow-*.log"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	// dubbo-go logs to standard output, which is for the tables.
	os.Stdout = s.logs
	s.instance, err = dubbo.NewInstance(
		dubbo.WithName("flow-consumer"),
		dubbo.WithLogger(logger.WithZap(), logger.WithLevel("warn")),
		// An interrupted sample ends its children itself, and then with a status of its own.
		dubbo.WithShutdown(graceful_shutdown.WithoutInternalSignal()),
	)
	if err != nil {
		return nil, s.close(context.Background(), err)
	}
	return s, nil
}

// close keeps the log, and adds its end, when err is another error than an
// interruption.
func (s *stage) close(ctx context.Context, err error) error {
	const lines, width = 6, 160
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

// tell runs a scenario until it has shown what it is there to show, and prints each
// attempt. What must hold on any machine must hold in every attempt. It is no error
// that the machine is too busy.
func (s *stage) tell(ctx context.Context, out io.Writer, sc scenario, p protocol) (t tale, err error) {
	for attempt := 1; ; attempt++ {
		fmt.Fprintf(out, "\n%s, %s\n", sc.title, p.title)
		t, err = s.once(ctx, sc, p)
		if err != nil {
			return t, err
		}
		t.print(out)
		if err := errors.Join(t.check()...); err != nil {
			return t, err
		}
		missing := t.shown()
		unseen := errors.Join(missing...)
		switch busy := onlyBusy(missing); {
		case unseen == nil:
			return t, nil
		case busy && (attempt == attempts || s.spare < sc.lasts()):
			fmt.Fprintf(out, "  Not all could be seen:\n    %s\n", indented(unseen))
			s.unseen = append(s.unseen, sc.name+", "+p.title)
			return t, nil
		case attempt == attempts:
			return t, fmt.Errorf("in %d runs; in the last one:\n%w", attempts, unseen)
		}
		fmt.Fprintf(out, "  Once more:\n    %s\n", indented(unseen))
		s.spare -= sc.lasts()
	}
}

func indented(err error) string { return strings.ReplaceAll(err.Error(), "\n", "\n    ") }

// once runs a scenario.
func (s *stage) once(ctx context.Context, sc scenario, p protocol) (tale, error) {
	t := tale{scenario: sc, protocol: p}
	self, err := os.Executable()
	if err != nil {
		return t, err
	}
	process, address, err := child.Listening(ctx, func(port string) (*child.Process, error) {
		config, err := s.writeConfig(sc, p, port)
		if err != nil {
			return nil, err
		}
		return child.Start(ctx, child.Command{
			Title: "provider of " + sc.name, Path: self, Args: []string{"provider", p.inYAML, config, sc.guard, sc.hold.String()}, Config: config, Log: s.logs,
		})
	})
	if err != nil {
		return t, err
	}
	defer process.Stop()
	do, err := s.dial(p, p.inYAML+"://"+address)
	if err != nil {
		return t, err
	}
	c := &callers{do: do}
	for _, step := range sc.steps {
		if step.raise > 0 {
			if err := process.Ask(ctx, nil, raise, strconv.Itoa(step.raise)); err != nil {
				return t, err
			}
		}
		c.run(ctx, step.perSecond, step.lasts)
	}
	t.calls = c.end()
	return t, process.Ask(ctx, &t.record, tell)
}

// dial makes a client. One process cannot have several consumers of one interface
// from YAML, so these are made in code.
func (s *stage) dial(p protocol, url string) (func(ctx context.Context, name string) (string, error), error) {
	made, err := s.instance.NewClient(client.WithClientRequestTimeout(callTimeout))
	if err != nil {
		return nil, err
	}
	once := client.WithRetries(0) // each call is one attempt, so that what arrives can be counted
	if p == dubboProto {
		cli, err := greet.NewDubboGreet(made, once, client.WithProtocolDubbo(), client.WithSerialization(constant.Hessian2Serialization), client.WithURL(url))
		if err != nil {
			return nil, err
		}
		return cli.SayHello, nil
	}
	cli, err := greet.NewGreetService(made, once, client.WithProtocolTriple(), client.WithURL(url))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, name string) (string, error) {
		reply, err := cli.SayHello(ctx, &greet.GreetRequest{Name: name})
		return reply.GetGreeting(), err
	}, nil
}

// writeConfig joins what all providers have with the limit of the scenario, and adds
// the keys that the placeholders name. dubbo-go resolves ${key:default} from keys of
// the same file.
func (s *stage) writeConfig(sc scenario, p protocol, port string) (string, error) {
	var text strings.Builder
	for _, name := range []string{"provider", sc.name} {
		data, err := settings.ReadFile("conf/" + name + ".yaml")
		if err != nil {
			return "", err
		}
		text.Write(data)
	}
	fmt.Fprintf(&text, "protocol: %q\nprovider-port: %q\n", p.inYAML, port)
	s.ran++
	path := filepath.Join(s.dir, fmt.Sprintf("provider-%d.yaml", s.ran))
	return path, os.WriteFile(path, []byte(text.String()), 0o600)
}

// lasts is how long a scenario takes.
func (sc scenario) lasts() (d time.Duration) {
	for _, s := range sc.steps {
		d += s.lasts
	}
	return d
}
