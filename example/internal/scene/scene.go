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

// Package scene is what a sample needs around its story: its processes, a folder for their
// configuration, their log, and how it ends. It has nothing to do with Weir: in a program of
// your own nothing of it is needed.
package scene

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/graceful_shutdown"
	"dubbo.apache.org/dubbo-go/v3/logger"

	"github.com/weir-go/weir/example/internal/child"
)

// Scene is what a sample runs on. It may be used concurrently.
type Scene struct {
	Dir string   // gone when the sample ends
	Log *os.File // stays when something went wrong

	name  string
	files fs.FS

	mu       sync.Mutex
	written  int              // guarded by mu: configurations
	children []*child.Process // guarded by mu
}

// Open begins one for the sample of a name, with the dubbo configuration of its processes,
// which stands below conf.
func Open(name string, files fs.FS) (*Scene, error) {
	dir, err := os.MkdirTemp("", "weir-"+name+"-")
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp("", "weir-"+name+"-*.log")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Scene{Dir: dir, Log: log, name: name, files: files}, nil
}

// Config joins files of conf, named without .yaml, adds the keys that their placeholders name,
// and returns where that is. dubbo-go resolves ${key:default} from keys of the same file.
func (s *Scene) Config(names []string, keys map[string]string) (string, error) {
	var text strings.Builder
	for _, name := range names {
		data, err := fs.ReadFile(s.files, "conf/"+name+".yaml")
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
	path := filepath.Join(s.Dir, fmt.Sprintf("%s-%d.yaml", names[0], s.written))
	s.mu.Unlock()
	return path, os.WriteFile(path, []byte(text.String()), 0o600)
}

// Start starts this program once more, as a child with a configuration and arguments. It is
// ended with the others, if not before.
func (s *Scene) Start(ctx context.Context, title, config string, args ...string) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := child.Start(ctx, child.Command{Title: title, Path: self, Args: args, Config: config, Log: s.Log})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children = append(s.children, p)
	return p, nil
}

// Clear ends the children.
func (s *Scene) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range s.children {
		all.Go(p.Stop)
	}
	all.Wait()
	s.children = nil
}

// Consumer is a dubbo instance of this process, for clients that are made in code. What
// dubbo-go logs to standard output goes into the log from then on.
func (s *Scene) Consumer() (*dubbo.Instance, error) {
	os.Stdout = s.Log
	return dubbo.NewInstance(
		dubbo.WithName(s.name+"-consumer"),
		dubbo.WithLogger(logger.WithZap(), logger.WithLevel("warn")),
		// An interrupted sample ends its children itself, and then with a status of its own.
		dubbo.WithShutdown(graceful_shutdown.WithoutInternalSignal()),
	)
}

// Close ends it, and the children. It keeps the log, and adds its end to err, when that is
// another error than an interruption.
func (s *Scene) Close(ctx context.Context, err error) error {
	s.Clear()
	path := s.Log.Name()
	_ = s.Log.Close() // else calls that hang still write to it
	cleanup := os.RemoveAll(s.Dir)
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, cleanup, os.Remove(path))
	}
	return errors.Join(WithLog(err, path), cleanup)
}

// WithLog adds the end of a log to an error.
func WithLog(err error, path string) error {
	const lines, width = 12, 200
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

// Each does something for several at the same time.
func Each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for i, one := range all {
		done.Go(func() { errs[i] = do(one) })
	}
	done.Wait()
	return errors.Join(errs...)
}
