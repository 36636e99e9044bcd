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

// TODO doc
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
	child, err := asChild()
	if !child {
		err = drive()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "groups:", err)
		os.Exit(1)
	}
}

// asChild is this process if it is a child of another.
func asChild() (bool, error) {
	if len(os.Args) < 2 {
		return false, nil
	}
	switch as, args := os.Args[1], os.Args[2:]; as {
	case "provider":
		return true, runProvider(args, os.Stdin)
	case "consumer":
		return true, runConsumer(args, os.Stdin)
	}
	return false, nil
}

func drive() error {
	output := flag.String("out", "", "the `file` to draw to, an SVG; without it nothing is drawn")
	address := flag.String("registry", "", "the `address` of a ZooKeeper, as zookeeper://127.0.0.1:2181; without it an etcd in this process")
	flag.Parse()

	// Every path out of here ends the child processes: a signal ends ctx, which kills
	// them, and they end by themselves when this process is gone.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Stdout, *address, *output)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

func run(ctx context.Context, out io.Writer, address, output string) error {
	tales, err := told(ctx, out, address)
	if err != nil {
		return err
	}
	var broken []error
	for _, t := range tales {
		broken = append(broken, t.check())
	}
	if output != "" {
		if err := drawTo(output, tales); err != nil {
			return err
		}
		fmt.Fprintln(out, "\ndrawn:", output)
	}
	if err := errors.Join(broken...); err != nil {
		return fmt.Errorf("not kept:\n  %w", err)
	}
	fmt.Fprintln(out, "\nNo core call was refused or lost in either way. Without groups the flood had them refused.")
	return nil
}

// told is what happens in each way, one after the other.
func told(ctx context.Context, out io.Writer, address string) (tales []tale, err error) {
	s, err := openStage(address)
	if err != nil {
		return nil, err
	}
	defer func() { err = s.close(ctx, err) }()
	for _, w := range ways {
		t, err := (&story{stage: s, way: w}).tell(ctx)
		if err != nil {
			return nil, err
		}
		t.print(out)
		tales = append(tales, t)
		s.clear()
	}
	return tales, nil
}
