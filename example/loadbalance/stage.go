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
	"sync"
	"time"

	_ "dubbo.apache.org/dubbo-go/v3/registry/directory" // what a program imports for a registry
	_ "dubbo.apache.org/dubbo-go/v3/registry/etcdv3"
	_ "dubbo.apache.org/dubbo-go/v3/registry/protocol"

	"github.com/weir-go/weir/example/internal/child"
	_ "github.com/weir-go/weir/example/internal/dubbo" // what else it uses of dubbo-go
)

// settings holds the dubbo configuration of both sides.
//
//go:embed conf
var settings embed.FS

// protocol is one of the two that the sample runs on.
type protocol struct {
	title, inYAML, serialization string
}

var (
	triple     = protocol{"Triple protocol", "tri", "protobuf"}
	dubboProto = protocol{"dubbo protocol", "dubbo", "hessian2"}
)

// stage is where the story of one protocol happens: a registry, providers and
// consumers, each a process but the registry.
type stage struct {
	protocol protocol
	dir      string // configuration and log
	logs     *os.File
	registry *registry

	mu        sync.Mutex
	children  []*child.Process // guarded by mu
	addresses map[string]role  // guarded by mu
	written   int              // guarded by mu: configurations
}

func newStage(p protocol) (_ *stage, err error) {
	s := &stage{protocol: p, addresses: map[string]role{}}
	if s.dir, err = os.MkdirTemp("", "weir-loadbalance-"); err != nil {
		return nil, err
	}
	if s.logs, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if s.registry, err = startRegistry(s.logs.Name()); err != nil {
		return nil, s.close(context.Background(), err)
	}
	return s, nil
}

// close ends the children and the registry. It keeps the log, and adds its end, when err
// is another error than an interruption.
func (s *stage) close(ctx context.Context, err error) error {
	const lines, width = 8, 200
	var all sync.WaitGroup
	for _, p := range s.children {
		all.Go(p.Stop)
	}
	all.Wait()
	if s.registry != nil {
		s.registry.stop()
	}
	_ = s.logs.Close()
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, os.RemoveAll(s.dir))
	}
	data, readErr := os.ReadFile(s.logs.Name())
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
	return fmt.Errorf("%w\nlog: %s, which ends with\n  %s", err, s.logs.Name(), strings.Join(tail, "\n  "))
}

// each does something for several at the same time.
func each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for i, one := range all {
		done.Go(func() { errs[i] = do(one) })
	}
	done.Wait()
	return errors.Join(errs...)
}

// provide starts a provider, and returns when it accepts connections.
func (s *stage) provide(ctx context.Context, r role) (*child.Process, error) {
	p, address, err := child.Listening(ctx, func(port string) (*child.Process, error) {
		return s.start(ctx, "provider", r.takes(), map[string]string{"provider-port": port, "warmup": r.warmUpInYAML()})
	})
	if err != nil {
		return nil, fmt.Errorf("the provider that is %s: %w", r, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses[address] = r
	return p, nil
}

// consume starts a consumer.
func (s *stage) consume(ctx context.Context, balance string) (*child.Process, error) {
	return s.start(ctx, "consumer", "", map[string]string{"loadbalance": balance, "serialization": s.protocol.serialization})
}

func (s *stage) start(ctx context.Context, kind, arg string, keys map[string]string) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	keys["protocol"], keys["etcd"] = s.protocol.inYAML, s.registry.address()
	config, err := s.writeConfig(kind, keys)
	if err != nil {
		return nil, err
	}
	args := []string{kind, s.protocol.inYAML, config}
	if arg != "" {
		args = append(args, arg)
	}
	p, err := child.Start(ctx, child.Command{Title: kind, Path: self, Args: args, Config: config, Log: s.logs})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children = append(s.children, p)
	return p, nil
}

// writeConfig copies a file of conf and adds the keys that its placeholders name.
func (s *stage) writeConfig(kind string, keys map[string]string) (string, error) {
	data, err := settings.ReadFile("conf/" + kind + ".yaml")
	if err != nil {
		return "", err
	}
	text := string(data)
	for key, value := range keys {
		text += fmt.Sprintf("%s: %q\n", key, value)
	}
	s.mu.Lock()
	s.written++
	path := filepath.Join(s.dir, fmt.Sprintf("%s-%d.yaml", kind, s.written))
	s.mu.Unlock()
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// known waits until consumers have sent calls to the providers of all these roles.
func (s *stage) known(ctx context.Context, consumers map[string]*child.Process, roles ...role) error {
	for balance, c := range consumers {
		var missing []role
		ok, err := child.Poll(ctx, time.Now().Add(knownWithin), func() (bool, error) {
			counts := map[string]int{}
			if err := c.Ask(ctx, &counts, sent); err != nil {
				return false, err
			}
			missing = s.missing(counts, roles)
			return len(missing) == 0, nil
		})
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s has sent no call to %v within %s", balance, missing, knownWithin)
		}
	}
	return nil
}

func (s *stage) missing(counts map[string]int, roles []role) (out []role) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[role]bool{}
	for address := range counts {
		there[s.addresses[address]] = true
	}
	for _, r := range roles {
		if !there[r] {
			out = append(out, r)
		}
	}
	return out
}
