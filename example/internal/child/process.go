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

// Package child runs the processes that a sample measures, and is the line to
// them: the driver writes one command per line to a child's standard input; the
// child answers each with one line of JSON on its standard output. It has nothing
// to do with dubbo: in a program of your own nothing of it is needed.
package child

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
)

// answerTimeout bounds the wait for one answer of a child.
const answerTimeout = 30 * time.Second

// Command is a child to start.
type Command struct {
	Title string // for people
	Path  string
	Args  []string
	// Config is the dubbo configuration that it runs with.
	Config string
	// Log gets the standard error, and the standard output but the answers.
	Log *os.File
}

// Process is a child.
type Process struct {
	Title string

	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan []byte   // closed when the child's output ends
	exited  chan struct{} // closed when the child has ended
}

// Start starts a child. It is killed when ctx ends, and ends by itself when this
// process does.
func Start(ctx context.Context, c Command) (*Process, error) {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Env = append(environment(), "DUBBO_GO_CONFIG_PATH="+c.Config)
	cmd.Stderr = c.Log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", c.Title, err)
	}
	p := &Process{
		Title:   c.Title,
		cmd:     cmd,
		stdin:   stdin,
		answers: make(chan []byte, 1),
		exited:  make(chan struct{}),
	}
	go p.read(stdout, c.Log)
	return p, nil
}

// environment is this process's, without what would lead Weir to another file
// than the one that dubbo reads.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "WEIR_CONFIG_PATH=")
	})
}

// read sorts the child's output into answers and log lines.
func (p *Process) read(stdout io.Reader, log io.Writer) {
	defer close(p.exited)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if answer, ok := bytes.CutPrefix(line, []byte(answerPrefix)); ok {
			p.answers <- answer
		} else {
			_, _ = log.Write(line)
		}
		if err != nil {
			break
		}
	}
	close(p.answers)
	_ = p.cmd.Wait() // how it ended is in the log
}

// Exited is closed when the child has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Ask gives a command and reads the answer into reply, which may be nil. One
// goroutine asks at a time.
func (p *Process) Ask(ctx context.Context, reply any, words ...string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	command := strings.Join(words, " ")
	if _, err := fmt.Fprintln(p.stdin, command); err != nil {
		return fmt.Errorf("%s: command %q: %w", p.Title, command, err)
	}
	select {
	case answer, ok := <-p.answers:
		switch {
		case !ok && ctx.Err() != nil:
			return fmt.Errorf("%s: command %q: %w", p.Title, command, ctx.Err())
		case !ok:
			return fmt.Errorf("%s: command %q: the process has ended", p.Title, command)
		case reply == nil:
			return nil
		}
		return json.Unmarshal(answer, reply)
	case <-ctx.Done():
		return fmt.Errorf("%s: command %q: %w", p.Title, command, ctx.Err())
	}
}

// Kill ends the child at once, without a chance to say so to anybody.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Stop ends the child: it leaves when its standard input is closed.
func (p *Process) Stop() {
	_ = p.stdin.Close()
	select {
	case <-p.exited:
		return
	case <-time.After(3 * time.Second):
	}
	p.Kill()
}
