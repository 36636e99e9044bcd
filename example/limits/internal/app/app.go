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

// Package app is the provider and the consumer of the demo. The two programs
// ../../withweir and ../../plain run the same code; they differ in one import.
package app

import (
	"fmt"
	"os"
)

// Judge tells whether err is a refusal by a limit, and which limit was met.
type Judge func(err error) (guard string, ok bool)

// Main runs one child process: PROGRAM provider|consumer triple|dubbo CONFIG.
// The driver, ../../main.go, starts it.
func Main(judge Judge) {
	if err := run(os.Args[1:], judge); err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

func run(args []string, judge Judge) error {
	if len(args) != 3 {
		return fmt.Errorf("want three arguments, provider|consumer triple|dubbo CONFIG, got %d", len(args))
	}
	role, protocol, config := args[0], args[1], args[2]

	// dubbo-go logs to standard output; keep that for the answers to the driver.
	answers := os.Stdout
	os.Stdout = os.Stderr

	switch role {
	case "provider":
		return runProvider(protocol, config, os.Stdin, answers)
	case "consumer":
		return runConsumer(protocol, config, judge, os.Stdin, answers)
	default:
		return fmt.Errorf("unknown role %q: want provider or consumer", role)
	}
}
