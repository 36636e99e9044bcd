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

package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dubbogetty "dubbo.apache.org/dubbo-go/v3/remoting/getty"
	"github.com/apache/dubbo-getty"
	"github.com/dubbogo/gost/log/logger"
)

const (
	roleEnv = "WEIR_TEST_ROLE"
	logEnv  = "WEIR_TEST_LOG" // level of dubbo-go's log in tests, default error
)

// Roles are what a child process can do, by name. A role returns when its work is
// done; the process then exits, with 1 if there was an error.
type Roles map[string]func(*Child) error

// Main is what TestMain calls: it runs the tests or, in a child process, the role
// that Start named.
func Main(m *testing.M, roles Roles) {
	setLogLevel()
	if raceDetector {
		fewHeartbeats()
	}
	name := os.Getenv(roleEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	roles = maps.Clone(roles)
	if roles == nil {
		roles = make(Roles)
	}
	roles[providerRole] = runProvider
	role, ok := roles[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "unknown role", name)
		os.Exit(2)
	}
	if err := role(newChild()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func setLogLevel() {
	level := os.Getenv(logEnv)
	if level == "" {
		level = "error"
	}
	logger.SetLoggerLevel(level)
	if level == "error" {
		_ = getty.SetLoggerLevel(getty.LoggerLevelError)
	}
}

// fewHeartbeats keeps servers of the dubbo protocol from asking their clients whether
// they are there before the tests are over. dubbo-go does so for the first time after a
// minute, for all sessions at once, and their answers race by themselves
// (RpcServerHandler.OnCron).
func fewHeartbeats() {
	c := dubbogetty.GetServerConfig()
	c.HeartbeatPeriod = "14m" // it takes less than 15
	dubbogetty.SetServerConfig(c)
}

// Child is the inside of a child process.
type Child struct {
	in  <-chan []byte
	out *json.Encoder
}

func newChild() *Child {
	in := make(chan []byte)
	go func() {
		_ = readLines(os.NewFile(3, "from parent"), in)
		os.Exit(0) // the parent is gone or wants us to go
	}()
	return &Child{in: in, out: json.NewEncoder(os.NewFile(4, "to parent"))}
}

// Recv waits for the parent's next message; the first one has the arguments that
// Start was given. The process exits when the parent has closed or died.
func (c *Child) Recv(v any) error { return json.Unmarshal(<-c.in, v) }

// Send sends a message to the parent.
func (c *Child) Send(v any) error { return c.out.Encode(v) }

// Process is the outside of a child process. Its methods end the test if the
// child does not do its part within Patience.
type Process struct {
	t      testing.TB
	role   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    <-chan []byte
	exited chan struct{}
	err    error // how it exited; read only after exited is closed
	output output
}

// Start runs the test binary again, in a role that was passed to Main. The child
// is killed when the test ends, and its output is logged if the test has failed.
func Start(t testing.TB, role string, args any) *Process {
	t.Helper()
	return start(t, role, args, false, nil)
}

// lasting are the children that end with this process. What the list holds
// keeps their pipes open.
var lasting struct {
	sync.Mutex
	children []*Process
}

// start runs a child; one that lasts is not killed before this process ends.
func start(t testing.TB, role string, args any, lasts bool, env map[string]string) *Process {
	t.Helper()
	p := &Process{t: t, role: role, exited: make(chan struct{})}
	childIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromChild, childOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in = in
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role)
	for name, value := range env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.ExtraFiles = []*os.File{childIn, childOut}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", role, err)
	}
	_, _ = childIn.Close(), childOut.Close()
	out := make(chan []byte, 64)
	p.out = out
	go func() {
		_ = readLines(fromChild, out)
		close(out)
		_ = fromChild.Close()
	}()
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	if lasts {
		lasting.Lock()
		defer lasting.Unlock()
		lasting.children = append(lasting.children, p)
	}
	t.Cleanup(func() {
		if !lasts {
			p.Kill()
			_ = in.Close()
		}
		if t.Failed() {
			t.Logf("output of %s:\n%s", role, p.Output())
		}
	})
	p.Send(args)
	return p
}

// Send sends a message to the child.
func (p *Process) Send(v any) {
	p.t.Helper()
	if err := json.NewEncoder(p.in).Encode(v); err != nil {
		p.t.Fatalf("send to %s: %v", p.role, err)
	}
}

// Recv waits for the child's next message.
func (p *Process) Recv(v any) {
	p.t.Helper()
	select {
	case line, ok := <-p.out:
		if !ok {
			p.t.Fatalf("%s has ended", p.role)
		}
		if err := json.Unmarshal(line, v); err != nil {
			p.t.Fatalf("%s sent %q: %v", p.role, line, err)
		}
	case <-time.After(Patience):
		p.t.Fatalf("%s is silent", p.role)
	}
}

// Stop asks the child to exit and waits for it.
func (p *Process) Stop() error {
	p.t.Helper()
	_ = p.in.Close()
	return p.Wait()
}

// Wait waits until the child has exited by itself. An exit code other than 0 is
// an error; under the race detector a data race in the child is one.
func (p *Process) Wait() error {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(Patience):
		p.t.Fatalf("%s does not exit", p.role)
	}
	return p.err
}

// Kill kills the child (kill -9) and waits until it is gone.
func (p *Process) Kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("kill %s: %v", p.role, err)
	}
	<-p.exited
}

// Terminate sends the child SIGTERM, on which dubbo-go shuts down, and does not wait.
func (p *Process) Terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
}

// Pause stops the child as it is (SIGSTOP), and waits until it has stopped: its
// sockets stay open and nobody reads them. Resume lets it go on.
func (p *Process) Pause() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	Eventually(p.t, p.role+" has stopped", p.stopped)
}

// stopped looks at each thread: a process is said to have stopped as soon as its
// first one has. Where there is nothing to look at it has to be believed.
func (p *Process) stopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		// The state is what follows the name, which is in parentheses.
		if i := strings.LastIndexByte(string(text), ')'); !strings.HasPrefix(string(text)[i+1:], " T") {
			return false
		}
	}
	return true
}

// Resume ends a Pause.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("send %v to %s: %v", s, p.role, err)
	}
}

// Output returns what the child has written to its standard output and error.
func (p *Process) Output() string { return p.output.String() }

// output is a buffer that is safe for concurrent use.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func readLines(r io.Reader, lines chan<- []byte) error {
	br := bufio.NewReader(r)
	for {
		line, err := br.ReadBytes('\n')
		if err != nil {
			return err
		}
		lines <- line
	}
}
