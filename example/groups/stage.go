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
	"strconv"
	"strings"
	"sync"

	_ "dubbo.apache.org/dubbo-go/v3/registry/directory" // what a program imports for a registry
	_ "dubbo.apache.org/dubbo-go/v3/registry/etcdv3"
	_ "dubbo.apache.org/dubbo-go/v3/registry/protocol"
	_ "dubbo.apache.org/dubbo-go/v3/registry/zookeeper"

	"github.com/weir-go/weir/example/internal/child"
	_ "github.com/weir-go/weir/example/internal/dubbo" // what else it uses of dubbo-go
)

// settings holds the dubbo configuration of both sides.
//
//go:embed conf
var settings embed.FS

// stage is where it happens: a registry, and the providers and consumers of one way after
// the other, each a process.
type stage struct {
	dir      string // configuration and log
	logs     *os.File
	registry registry

	mu       sync.Mutex
	children []*child.Process // guarded by mu
	written  int              // guarded by mu: configurations
}

// openStage opens one with the registry of an address, or with etcd.
func openStage(address string) (_ *stage, err error) {
	s := &stage{}
	if s.dir, err = os.MkdirTemp("", "weir-groups-"); err != nil {
		return nil, err
	}
	if s.logs, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if s.registry, err = openRegistry(address, s.logs.Name()); err != nil {
		return nil, s.close(context.Background(), err)
	}
	return s, nil
}

// clear ends the children.
func (s *stage) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range s.children {
		all.Go(p.Stop)
	}
	all.Wait()
	s.children = nil
}

// close ends the children and the registry. It keeps the log, and adds its end, when err
// is another error than an interruption.
func (s *stage) close(ctx context.Context, err error) error {
	const lines, width = 8, 200
	s.clear()
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

// provide starts a provider of a group, and returns when it has registered.
func (s *stage) provide(ctx context.Context, w way, group, name string) error {
	p, _, err := child.Listening(ctx, func(port string) (*child.Process, error) {
		return s.start(ctx, w, group, "provider", map[string]string{"port": port}, name)
	})
	if err == nil {
		err = p.Ask(ctx, nil, registered)
	}
	if err != nil {
		return fmt.Errorf("provider %s: %w", name, err)
	}
	return nil
}

// consume starts a consumer of a group, "" for none.
func (s *stage) consume(ctx context.Context, w way, group string) (*child.Process, error) {
	return s.start(ctx, w, group, "consumer", map[string]string{})
}

func (s *stage) start(ctx context.Context, w way, group, kind string, keys map[string]string, args ...string) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	where := ""
	if w == byRegistry {
		where = group
	}
	at, err := s.registry.place(where)
	if err != nil {
		return nil, err
	}
	keys["registry"], keys["address"], keys["path"] = at.protocol, at.address, at.path
	// A ZooKeeper lists providers for some seconds after they were ended.
	keys["run"] = strconv.Itoa(os.Getpid()) + "." + strconv.Itoa(int(w))
	files := []string{kind}
	if w == byTag && group != "" {
		files = append(files, "tag-"+group)
	}
	config, err := s.writeConfig(files, keys)
	if err != nil {
		return nil, err
	}
	p, err := child.Start(ctx, child.Command{
		Title: group + " " + kind, Path: self, Args: append([]string{kind, config}, args...), Config: config, Log: s.logs,
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children = append(s.children, p)
	return p, nil
}

// writeConfig puts files of conf together and adds the keys that their placeholders name.
func (s *stage) writeConfig(files []string, keys map[string]string) (string, error) {
	var text strings.Builder
	for _, file := range files {
		data, err := settings.ReadFile("conf/" + file + ".yaml")
		if err != nil {
			return "", err
		}
		text.Write(data)
	}
	for key, value := range keys {
		fmt.Fprintf(&text, "%s: %q\n", key, value)
	}
	s.mu.Lock()
	s.written++
	path := filepath.Join(s.dir, fmt.Sprintf("%s-%d.yaml", files[0], s.written))
	s.mu.Unlock()
	return path, os.WriteFile(path, []byte(text.String()), 0o600)
}
