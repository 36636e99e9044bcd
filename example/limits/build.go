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
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// conf holds the dubbo configuration of the children.
//
//go:embed conf
var conf embed.FS

// buildTimeout is long because a first build compiles dubbo-go.
const buildTimeout = 20 * time.Minute

// protocol is one of the two that the demo runs on.
type protocol struct {
	name, title           string
	inYAML, serialization string
}

var protocols = []protocol{
	{name: "triple", title: "Triple protocol", inYAML: "tri", serialization: "protobuf"},
	{name: "dubbo", title: "dubbo protocol", inYAML: "dubbo", serialization: "hessian2"},
}

// program is one of the two that the demo builds.
type program struct {
	dir, title, conf string
	weir             bool
}

var programs = []program{
	{dir: "withweir", title: "Weir", conf: "weir", weir: true},
	{dir: "plain", title: "dubbo-go", conf: "plain"},
}

// build compiles both programs into dir.
func build(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	source, err := sourceDir()
	if err != nil {
		return err
	}
	// Without debugging symbols linking takes half as long.
	args := []string{"build", "-ldflags=-w", "-o", dir + string(filepath.Separator)}
	for _, p := range programs {
		args = append(args, "./"+p.dir)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = source
	cmd.Cancel = func() error { // an interrupted build cleans up behind itself
		if cmd.Process.Signal(os.Interrupt) != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("build: %w", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}

// sourceDir is the folder of this file, from wherever the demo is started.
func sourceDir() (string, error) {
	candidates := []string{"limits", "."}
	if _, file, _, ok := runtime.Caller(0); ok {
		candidates = append([]string{filepath.Dir(file)}, candidates...)
	}
	for _, dir := range candidates {
		if _, err := os.Stat(filepath.Join(dir, programs[0].dir, "main.go")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("source not found: run it in the checkout with 'cd example && go run ./limits'")
}

// binary is the path of a program that was built into dir.
func (p program) binary(dir string) string {
	path := filepath.Join(dir, p.dir)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	return path
}

// writeConfig copies a role's file of conf into dir and adds the keys that its
// placeholders name. dubbo-go resolves ${key:default} from keys of the same file.
func writeConfig(dir string, s set, prog program, p protocol, role string, keys map[string]string) (string, error) {
	data, err := conf.ReadFile("conf/" + s.name + "/" + role + "-" + prog.conf + ".yaml")
	if errors.Is(err, fs.ErrNotExist) {
		data, err = conf.ReadFile("conf/" + role + ".yaml") // no limit on this side
	}
	if err != nil {
		return "", err
	}
	text := string(data)
	for key, value := range keys {
		text += fmt.Sprintf("%s: %q\n", key, value)
	}
	path := filepath.Join(dir, strings.Join([]string{s.name, p.name, role, prog.conf}, "-")+".yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}
