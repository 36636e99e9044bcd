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
	"strconv"
	"strings"
	"time"

	"dubbo.apache.org/dubbo-go/v3"

	"github.com/weir-go/weir/example/internal/child"
	_ "github.com/weir-go/weir/example/internal/dubbo" // what it uses of dubbo-go
	"github.com/weir-go/weir/example/internal/greet"
	"github.com/weir-go/weir/example/internal/scene"
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
	*scene.Scene // configuration and log
	// instance makes a client for each provider: options of a reference stay with the
	// client that made it.
	instance *dubbo.Instance
	spare    time.Duration
	// unseen are the scenarios that the machine was too busy to show.
	unseen []string
}

func newStage() (*stage, error) {
	sc, err := scene.Open("flow", settings)
	if err != nil {
		return nil, err
	}
	s := &stage{Scene: sc, spare: spareTime}
	if s.instance, err = sc.Consumer(); err != nil {
		return nil, s.Close(context.Background(), err)
	}
	return s, nil
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
	process, address, err := child.Listening(ctx, func(port string) (*child.Process, error) {
		config, err := s.Config([]string{"provider", sc.name}, map[string]string{"protocol": p.inYAML, "provider-port": port})
		if err != nil {
			return nil, err
		}
		return s.Start(ctx, "provider of "+sc.name, config, "provider", p.inYAML, config, sc.guard, sc.hold.String())
	})
	if err != nil {
		return t, err
	}
	defer process.Stop()
	made, err := greet.Dial(s.instance, p.inYAML, address, callTimeout)
	if err != nil {
		return t, err
	}
	c := &callers{do: made.SayHello}
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

// lasts is how long a scenario takes.
func (sc scenario) lasts() (d time.Duration) {
	for _, s := range sc.steps {
		d += s.lasts
	}
	return d
}
