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
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/example/limits/internal/control"
)

// answerTimeout bounds the wait for one answer of a child.
const answerTimeout = 30 * time.Second

// child is a provider or a consumer process.
type child struct {
	title   string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan []byte   // closed when the child's output ends
	exited  chan struct{} // closed when the child has ended
}

// startChild starts PROGRAM ROLE PROTOCOL CONFIG. The child is killed when ctx
// ends, and ends by itself when this process does.
func startChild(ctx context.Context, log *os.File, path, role string, p protocol, config string) (*child, error) {
	cmd := exec.CommandContext(ctx, path, role, p.name, config)
	cmd.Env = append(environment(), "DUBBO_GO_CONFIG_PATH="+config)
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", role, err)
	}
	c := &child{
		title:   role + " on the " + p.title,
		cmd:     cmd,
		stdin:   stdin,
		answers: make(chan []byte, 1),
		exited:  make(chan struct{}),
	}
	go c.read(stdout, log)
	return c, nil
}

// environment is this process's, without what would lead Weir to another file
// than the one that dubbo reads.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "WEIR_CONFIG_PATH=")
	})
}

// read sorts the child's output into answers and log lines.
func (c *child) read(stdout io.Reader, log io.Writer) {
	defer close(c.exited)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if answer, ok := bytes.CutPrefix(line, []byte(control.AnswerPrefix)); ok {
			c.answers <- answer
		} else {
			_, _ = log.Write(line)
		}
		if err != nil {
			break
		}
	}
	close(c.answers)
	_ = c.cmd.Wait() // how it ended is in the log
}

// ask gives a command and reads the answer into reply, which may be nil.
func (c *child) ask(ctx context.Context, reply any, words ...string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	command := strings.Join(words, " ")
	if _, err := fmt.Fprintln(c.stdin, command); err != nil {
		return fmt.Errorf("%s: command %q: %w", c.title, command, err)
	}
	select {
	case answer, ok := <-c.answers:
		switch {
		case !ok && ctx.Err() != nil:
			return fmt.Errorf("%s: command %q: %w", c.title, command, ctx.Err())
		case !ok:
			return fmt.Errorf("%s: command %q: the process has ended", c.title, command)
		case reply == nil:
			return nil
		}
		return json.Unmarshal(answer, reply)
	case <-ctx.Done():
		return fmt.Errorf("%s: command %q: %w", c.title, command, ctx.Err())
	}
}

// stop ends the child: it leaves when its standard input is closed.
func (c *child) stop() {
	_ = c.stdin.Close()
	select {
	case <-c.exited:
		return
	case <-time.After(3 * time.Second):
	}
	_ = c.cmd.Process.Kill()
	<-c.exited
}
