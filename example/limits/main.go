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

// Command limits shows that Weir keeps the limits that a dubbo YAML file sets,
// executes, actives and tps, on the Triple protocol and on the dubbo protocol,
// and what dubbo-go's own filters make of the same limits.
//
//	go run ./limits
//
// It builds two programs, one with Weir and one without, runs a provider and a
// consumer of each, and makes more calls than the limits allow. It exits with 1
// if Weir did not keep a limit. Read next: trials.go for what is promised, conf
// for the limits, withweir/main.go for the import, internal/app for the rest.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	// Every path out of here ends the child processes: a signal ends ctx, which
	// kills them, and they end by themselves when this process is gone.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	b, err := newBench()
	if err != nil {
		return err
	}
	defer b.close()

	fmt.Printf("%d calls meet each limit, with Weir and with dubbo-go's own filters. Where running calls\n", offered)
	fmt.Print("are limited, no handler returns before each call has been admitted, made to wait or refused.\n\n")

	err = step("building the two programs, with Weir and without", func() error { return build(ctx, b.dir) })
	if err != nil {
		return err
	}
	rows := make(map[protocol][]row)
	for _, p := range protocols {
		for _, prog := range programs {
			err := step("running "+prog.title+" on the "+p.title, func() error {
				got, err := b.measure(ctx, p, prog)
				rows[p] = append(rows[p], got...)
				return err
			})
			if err != nil {
				return b.withLog(ctx, p, prog, err)
			}
		}
	}

	var broken []error
	for _, p := range protocols {
		printTable(os.Stdout, p, rows[p])
		broken = append(broken, b.check(ctx, p, rows[p]))
	}
	if err := errors.Join(broken...); err != nil {
		if mode := os.Getenv("WEIR_MODE"); mode != "" {
			return fmt.Errorf("not kept, with WEIR_MODE=%s:\n%w", mode, err)
		}
		return fmt.Errorf("not kept:\n%w", err)
	}
	fmt.Println("\nWeir kept every limit on both protocols.")
	return nil
}

// step shows what is being done and how long it took.
func step(title string, do func() error) error {
	fmt.Printf("%-62s", title+" ...")
	start := time.Now()
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Printf(" %.0fs", time.Since(start).Seconds())
			case <-done:
				return
			}
		}
	}()
	if err := do(); err != nil {
		fmt.Println(" failed")
		return err
	}
	fmt.Printf(" %5.1fs\n", time.Since(start).Seconds())
	return nil
}
