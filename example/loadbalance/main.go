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

// Command loadbalance shows how Weir's load balances deal with providers that are not
// alike, in a registry: one is slow, one fails, two join while calls run, and one is
// killed.
//
//	cd example/loadbalance
//	go run . [-draw FILE.svg]
//
// Only Go is needed. It takes about 40 seconds, and exits with 1 if a load balance did not
// do what it should. It is a module of its own because of the registry, an etcd server in
// this process (go.etcd.io/etcd/server/v3/embed), on free ports of the loopback
// interface, with its data in a temporary folder. The first build takes a few minutes.
//
// # What it does
//
// On each protocol, Triple and dubbo, it starts etcd, three providers as processes of
// their own (conf/provider.yaml), and four consumers (conf/consumer.yaml). The consumers
// differ in one line of YAML, loadbalance: weir-leastactive, weir-shortestresponse,
// weir-p2c and dubbo-go's default, random. Each has six callers; a caller makes its next
// call when the one before has ended, so those who wait for a slow provider call
// nobody else. Then, for all consumers at the same time:
//
//   - Three providers: a normal one (5 ms for an answer), a slow one (200 ms) and one that
//     fails at once. They have warmup: "0", as if they were there for long.
//   - Two as fast as the normal one join. One has warmup: "6", in seconds, so its weight
//     grows from 1 to 100 in that time. The other has dubbo's default of ten minutes and
//     still is nearly cold at the end.
//   - The normal one is killed (SIGKILL). It stays in the list: etcd keeps its key for as
//     long as the lease of 30 s, and dubbo-go's etcd registry overlooks that keys go.
//
// The rest is dubbo-go's: failover with two retries, and the registry by interface. By
// application dubbo-go 3.3.2 does not hear from etcd of those who join later: it looks
// only at keys that change, not at new ones.
//
// # What it prints
//
// A table for each load balance and protocol: a row for each part of the story, a column
// for each provider with the calls that it got, tries after errors included, its share of
// what the load balance chose first, and in brackets how many of the calls failed.
// Behind it: the calls that the callers made, how many they lost to an error, and the
// median of how long they took. With -draw it draws the shares over time, as in
// docs/loadbalance.md.
//
// # What is asserted
//
// All of it is in check.go, and none of it depends on how fast the machine is. Of Weir's:
//
//   - The slow provider gets under 15 % of the calls (more only where the machine is so
//     slow that the others hardly answer sooner), the failing one under 10 %, the one that
//     is killed under 15 % from then on.
//   - The one that joins gets some calls at first, less than its share, and about as many as
//     the normal one when it is warm. The one with the default gets under 6 %.
//   - Callers lose hardly any call to an error, the killed provider's included: failover
//     finds another provider.
//
// What dubbo-go's random does is shown: each provider gets the same part, also the slow,
// the failing and the dead one, and those that join at once, as dubbo-go 3.3.2 never
// warms up. A story that does not hold what it should is told once more: the machine may
// have been busy with something else.
//
// Read next: conf for the configuration, story.go for what happens, consumer.go for what
// is measured, check.go for what is promised.
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

// attempts is how often a story is told at most.
const attempts = 3

func main() {
	var err error
	switch as, args := mode(); as {
	case "provider":
		err = runProvider(args, os.Stdin)
	case "consumer":
		err = runConsumer(args, os.Stdin)
	default:
		err = drive()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadbalance:", err)
		os.Exit(1)
	}
}

// mode is what this process is to be as a child of another.
func mode() (as string, args []string) {
	if len(os.Args) < 2 {
		return "", nil
	}
	return os.Args[1], os.Args[2:]
}

func drive() error {
	output := flag.String("draw", "", "the `file` to draw to, an SVG; without it nothing is drawn")
	flag.Parse()

	// Every path out of here ends the child processes: a signal ends ctx, which kills
	// them, and they end by themselves when this process is gone.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Stdout, *output)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

func run(ctx context.Context, out io.Writer, output string) error {
	var tales []tale
	var broken []error
	for _, p := range []protocol{triple, dubboProto} {
		t, err := told(ctx, out, p)
		if len(t.records) == len(balances) {
			tales = append(tales, t)
		}
		if err != nil {
			broken = append(broken, err)
		}
	}
	if output != "" && len(tales) > 0 && ctx.Err() == nil {
		if err := drawTo(output, tales); err != nil {
			broken = append(broken, err)
		} else {
			fmt.Fprintln(out, "\ndrawn:", output)
		}
	}
	if err := errors.Join(broken...); err != nil {
		return fmt.Errorf("not kept:\n  %w", err)
	}
	fmt.Fprintln(out, "\nEvery load balance did what it should.")
	return nil
}

// told is the story of a protocol. What a load balance must do it must do at one of the
// attempts.
func told(ctx context.Context, out io.Writer, p protocol) (t tale, err error) {
	for attempt := 1; ; attempt++ {
		if t, err = once(ctx, p); err != nil {
			return t, err
		}
		t.print(out)
		if err = t.check(); err == nil || attempt == attempts {
			return t, err
		}
		fmt.Fprintf(out, "\nOnce more, because\n  %v\n", err)
	}
}

func once(ctx context.Context, p protocol) (t tale, err error) {
	s, err := newStage(p)
	if err != nil {
		return tale{}, err
	}
	defer func() { err = s.close(ctx, err) }()
	return (&story{stage: s}).tell(ctx)
}
