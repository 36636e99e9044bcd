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
	"fmt"
	"path/filepath"
	"time"

	"dubbo.apache.org/dubbo-go/v3"

	"github.com/weir-go/weir/example/internal/child"
	_ "github.com/weir-go/weir/example/internal/dubbo" // what it uses of dubbo-go
	"github.com/weir-go/weir/example/internal/greet"
	"github.com/weir-go/weir/example/internal/scene"
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
	*scene.Scene // configuration, profiles and log
	// instance makes a client for each provider: options of a reference stay with the
	// client that made it.
	instance *dubbo.Instance
}

func newStage() (*stage, error) {
	sc, err := scene.Open("overload", conf)
	if err != nil {
		return nil, err
	}
	s := &stage{Scene: sc}
	if s.instance, err = sc.Consumer(); err != nil {
		return nil, s.Close(context.Background(), err)
	}
	return s, nil
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
	name := p.inYAML + "-bare"
	files := []string{"provider"}
	if guarded {
		name, files = p.inYAML, []string{"provider", "weir"}
	}
	profiles := filepath.Join(s.Dir, "profiles-"+name)
	process, address, err := child.Listening(ctx, func(port string) (*child.Process, error) {
		config, err := s.Config(files, map[string]string{"protocol": p.inYAML, "provider-port": port})
		if err != nil {
			return nil, err
		}
		return s.Start(ctx, "proxy on the "+p.title, config, "proxy", p.inYAML, config, profiles)
	})
	if err != nil {
		return nil, nil, err
	}
	made, err := greet.Dial(s.instance, p.inYAML, address, callTimeout)
	if err != nil {
		process.Stop()
		return nil, nil, err
	}
	return &story{proxy: process, callers: &callers{do: map[string]greet.Method{methodA: made.SayGoodbye, methodB: made.SayHello}}, profiles: profiles}, process.Stop, nil
}
