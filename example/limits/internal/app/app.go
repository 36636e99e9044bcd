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

	"github.com/weir-go/weir/example/internal/child"
	_ "github.com/weir-go/weir/example/internal/dubbo" // what it uses of dubbo-go
	"github.com/weir-go/weir/example/limits/internal/control"
)

// Protection is what a program can tell of its limits. The zero value is for a
// program that cannot tell anything.
type Protection struct {
	// Refusal is what err tells of a limit, nil if it is another error.
	Refusal func(err error) *control.Refusal
	// Waiting is how many calls of this process wait for a slot now.
	Waiting func() int
}

// Main runs one child process: PROGRAM provider|consumer triple|dubbo CONFIG.
// The driver, ../../main.go, starts it.
func Main(p Protection) {
	if err := run(os.Args[1:], p); err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

func run(args []string, p Protection) error {
	if len(args) != 3 {
		return fmt.Errorf("want three arguments, provider|consumer triple|dubbo CONFIG, got %d", len(args))
	}
	role, protocol, config := args[0], args[1], args[2]

	answers := child.Answers()
	switch role {
	case "provider":
		return runProvider(protocol, config, os.Stdin, answers)
	case "consumer":
		return runConsumer(protocol, config, p, os.Stdin, answers)
	default:
		return fmt.Errorf("unknown role %q: want provider or consumer", role)
	}
}
