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

// Command breaker shows what a circuit breaker does for the callers of a dependency
// that is healthy, slow, failing and hanging by turns, on the Triple protocol and
// on the dubbo protocol.
//
//	go run ./breaker [-o FILE.svg]
//
// It runs the dependency as a child process, calls it, prints what callers saw and
// what the breaker did, and draws both. It exits with 1 if the breaker did not do
// what it should. Read next: conf for the breaker, story.go for what happens,
// check.go for what is promised, dependency.go for what fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "dependency" {
		if err := runDependency(os.Args[2], os.Args[3], os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "breaker:", err)
			os.Exit(1)
		}
		return
	}
	output := flag.String("o", "", "the `file` to draw to, an SVG; by default one in the folder for temporary files")
	flag.Parse()

	// Every path out of here ends the child processes: a signal ends ctx, which
	// kills them, and they end by themselves when this process is gone.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *output)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "breaker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, output string) (err error) {
	s, err := newStage()
	if err != nil {
		return err
	}
	defer func() { err = s.Close(ctx, err) }()
	if err := s.connect(ctx); err != nil {
		return err
	}

	var tales []tale
	var broken []error
	for _, p := range protocols {
		t, err := s.tell(ctx, out, p)
		tales = append(tales, t)
		if err != nil {
			broken = append(broken, err)
			break // it is drawn as far as it went
		}
		broken = append(broken, t.check()...)
	}
	path, err := drawTo(output, tales)
	if err != nil {
		broken = append(broken, err)
	} else {
		fmt.Fprintln(out, "\ndrawn:", path)
	}
	if err := errors.Join(broken...); err != nil {
		if mode := os.Getenv("WEIR_MODE"); mode != "" {
			return fmt.Errorf("not kept, with WEIR_MODE=%s:\n%w", mode, err)
		}
		return fmt.Errorf("not kept:\n%w", err)
	}
	fmt.Fprintln(out, "The breaker did what it should on both protocols.")
	return nil
}
