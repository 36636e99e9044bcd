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

// Command flow shows what becomes of calls over a rate, on real servers: a limit
// that warms up, one that queues, and one that does both while its rate is raised; and
// what a bulkhead makes of calls that take their time.
//
//	go run ./flow [-o FOLDER] [-only NAME]
//
// It runs each provider as a child process, offers it more calls than may pass,
// prints what came of them in every second, and draws it. It exits with 1 if a limit
// did not do what it should. Read next: conf for the limits, scenario.go for what
// happens, check.go for what is promised, provider.go for what is measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "provider" {
		if err := runProvider(os.Args[2:], os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "flow:", err)
			os.Exit(1)
		}
		return
	}
	output := flag.String("o", "", "the `folder` to draw to; by default a new one in that for temporary files")
	only := flag.String("only", "", "the `name` of the one scenario to run")
	flag.Parse()

	// Every path out of here ends the child processes: a signal ends ctx, which
	// kills them, and they end by themselves when this process is gone.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *output, *only)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "flow:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, folder, only string) (err error) {
	s, err := newStage()
	if err != nil {
		return err
	}
	defer func() { err = s.Close(ctx, err) }()
	if folder == "" {
		if folder, err = os.MkdirTemp("", "weir-flow-"); err != nil {
			return err
		}
	}

	var broken []error
	ran := 0
	for _, sc := range scenarios() {
		if only != "" && sc.name != only {
			continue
		}
		ran++
		var tales []tale
		for _, p := range sc.protocols {
			t, err := s.tell(ctx, out, sc, p)
			if err != nil {
				broken = append(broken, fmt.Errorf("%s, %s: %w", sc.name, p.title, err))
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			tales = append(tales, t)
		}
		path, err := drawTo(folder, sc, tales)
		if err != nil {
			broken = append(broken, err)
			continue
		}
		fmt.Fprintln(out, "drawn:", path)
	}
	if ran == 0 {
		return fmt.Errorf("there is no scenario %q", only)
	}
	if err := errors.Join(broken...); err != nil {
		if mode := os.Getenv("WEIR_MODE"); mode != "" {
			return fmt.Errorf("not kept, with WEIR_MODE=%s:\n%w", mode, err)
		}
		return fmt.Errorf("not kept:\n%w", err)
	}
	fmt.Fprintln(out, "\nEvery limit did what it should.")
	if len(s.unseen) > 0 {
		fmt.Fprintln(out, "The machine was too busy to see all of it:", strings.Join(s.unseen, "; "))
	}
	return nil
}
