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

// Command balancesim simulates a service whose providers are not of the same speed, and
// lets Weir's load balancing algorithms and dubbo-go's balance the same calls.
//
//	go run ./balancesim [-full] [-o FOLDER]
//
// It has a clock of its own, so it measures waiting and no machine. It prints tables,
// draws one picture, and exits with 1 if Weir's algorithms are not where they should be.
// Read next: trace.go for the service and its calls, simulate.go for the clock,
// balancers.go and dubbo.go for who chooses, check.go for what is claimed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	full := flag.Bool("full", false, "as many calls as in the documentation, which takes minutes")
	folder := flag.String("o", "", "the `folder` to draw to; by default a new one in that for temporary files")
	flag.Parse()
	if err := run(os.Stdout, *full, *folder); err != nil {
		fmt.Fprintln(os.Stderr, "balancesim:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, full bool, folder string) (err error) {
	if folder == "" {
		if folder, err = os.MkdirTemp("", "weir-balancesim-"); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "Times from call to answer, in mean demands (%s). The seed is %d.\n", meanDemand, seed)
	var checked []row
	for _, sc := range scenarios(full) {
		rows := sc.run()
		sc.print(out, rows)
		if behind := notAhead(rows); len(behind) > 0 {
			fmt.Fprintf(out, "\nBehind dubbo-go's %s:\n\n", leastActiveFilter)
			for _, b := range behind {
				fmt.Fprintln(out, "-", b)
			}
		}
		if sc.name == claimed {
			checked = rows
		}
	}
	path, err := drawTo(folder, checked)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\ndrawn:", path)
	if err := check(checked, 0.2); err != nil {
		return fmt.Errorf("not kept:\n%w", err)
	}
	fmt.Fprintln(out, "Weir's algorithms are where they should be.")
	return nil
}
