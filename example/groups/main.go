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

// Command groups shows both ways to keep core and non-core callers of a service apart, by
// registry and by tag, while non-core makes ten times the calls that its providers can do.
//
//	cd example/groups
//	go run . [-out FILE.svg] [-registry zookeeper://127.0.0.1:2181]
//
// Only Go is needed. It takes about 40 seconds, and exits with 1 if a single core call was
// refused or lost in either way. It is a module of its own because of the registry, an etcd
// server in this process, on free ports of the loopback interface, with its data in a
// temporary folder. The first build takes a few minutes. With -registry the same happens on
// a ZooKeeper that is there, which is what `make test-all` runs.
//
// # What it does
//
// Four providers, each a process of its own (conf/provider.yaml): two of core and two of
// non-core. An answer takes 200 ms and executes: 6, so each can do 30 calls in a second.
// A consumer of core makes 16 calls a second throughout, one of non-core as many before and
// after the flood, and 600 a second in it. That happens three times:
//
//   - No groups: everybody is in one place of the registry, and all four providers serve
//     both. This is what it would be like.
//   - By registry: core and non-core have a place of their own, and nothing of Weir keeps
//     them apart. In ZooKeeper a place is the path that dubbo calls the registry's group. In
//     etcd dubbo-go 3.3.2 has no paths for groups (docs/groups-by-registry.md), so it is a
//     prefix of all keys that etcd's own gRPC proxy puts in front of them: one etcd, and a
//     proxy in this process for each group. Two etcd servers would do as well, but
//     who has one etcd has not got two.
//   - By tag: everybody is in one place again, and each application says which group it
//     is of: conf/tag-core.yaml and conf/tag-noncore.yaml are all that is different. At the
//     end there is also a consumer that says nothing.
//
// # What it prints
//
// A table for each way: a row for each phase and group with its calls, how many were
// answered, refused and failed, the median and the 99th percentile of how long an answer
// took from when the call was due, why calls were refused, and which providers answered.
// With -out it draws the same over time, as in docs/groups.md.
//
// # What is asserted
//
// All of it is in check.go, and it is about counts only, never about time:
//
//   - In both ways every core call is answered, before, during and after the flood, and by
//     providers of core only. Those of non-core are answered by providers of non-core only,
//     and all of them before and after.
//   - In the flood non-core calls are refused, all of them by the limit of their own
//     providers.
//   - By tag each call of the consumer without a group is refused by the providers' own
//     guard: they enforce their group.
//   - Without groups the flood has core calls refused.
//
// A slow machine changes none of that. Both consumers have fewer calls under way than one
// provider admits, but for the flood, and wait with the next one otherwise; a phase lasts
// until core has made its calls, and not some time.
//
// Read next: conf for the configuration, story.go for what happens, check.go for what is
// promised.
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
		s.Clear()
	}
	return tales, nil
}
