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

package weir_test

import (
	"errors"
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

// A caller tells a refusal from every other error by its type.
func ExampleAsRejected() {
	// What a call to a service over its limit returns:
	err := fmt.Errorf("greeting: %w", call.NewRejectError(call.RejectError{
		Guard: "executes", Resource: "greet.GreetService#SayHello", Reason: "concurrency", Limit: 10, Observed: 10,
	}, nil))

	if refusal, ok := weir.AsRejected(err); ok {
		fmt.Println(refusal.Guard, refusal.Reason, refusal.Limit, refusal.Service(), refusal.Method())
	}
	fmt.Println(errors.Is(err, call.ErrRejected))
	// Output:
	// executes concurrency 10 greet.GreetService SayHello
	// true
}

// A program can set limits while it serves; they hold over files and params.
func ExampleConfigure() {
	err := weir.Configure(conf.Config{Provider: conf.Section{Services: map[string]conf.Service{
		"greet.GreetService": {Methods: map[string]conf.Policies{
			"SayHello": {Executes: &conf.Executes{Limit: conf.Of(10), Mode: conf.Observe}},
		}},
	}}})
	fmt.Println(err)
	err = weir.Configure(conf.Config{Mode: "on"})
	fmt.Println(err)
	fmt.Println(weir.Configure(conf.Config{})) // takes all back
	// Output:
	// <nil>
	// weir: configuration: code key=mode value="on": allowed: enforce, observe or off
	// <nil>
}
