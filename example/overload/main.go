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

// overload shows what the guard of the same name does for a service whose dependency
// hangs, on both protocols: the calls of one method are cut, those of the others go on,
// and a burst that does no harm is let through. It prints what happened and exits with 1
// unless all was as it should be. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "proxy" {
		if err := runProxy(os.Args[2:], os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "overload:", err)
			os.Exit(1)
		}
		return
	}
	// Every path out of here ends the child processes: a signal ends ctx, which
	// kills them, and they end by themselves when this process is gone.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	s, err := newStage()
	if err != nil {
		return err
	}
	defer func() { err = s.Close(ctx, err) }()

	fmt.Fprintln(out, "On both protocols at the same time, about half a minute ...")
	tales, broken := make([]tale, len(protocols)), make([]error, len(protocols))
	var both sync.WaitGroup
	for i, p := range protocols {
		both.Go(func() { tales[i], broken[i] = s.tell(ctx, p) })
	}
	both.Wait()
	for i, t := range tales {
		t.print(out)
		if broken[i] == nil {
			broken[i] = errors.Join(t.check()...)
		}
	}
	if err := errors.Join(broken...); err != nil {
		if mode := os.Getenv("WEIR_MODE"); mode != "" {
			return fmt.Errorf("not kept, with WEIR_MODE=%s:\n%w", mode, err)
		}
		return fmt.Errorf("not kept:\n%w", err)
	}
	fmt.Fprintln(out, "\nThe guard did what it should on both protocols.")
	return nil
}
