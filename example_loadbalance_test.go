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
	"log"

	"dubbo.apache.org/dubbo-go/v3/client"

	"github.com/weir-go/weir"
)

// The Go of docs/loadbalance.md stands in this file.

var _ = dialBalanced

func dialBalanced(cli *client.Client) (*client.Connection, error) {
	conn, err := cli.Dial("greet.GreetService",
		client.WithLoadBalance("weir-shortestresponse"),
		client.WithParam("methods.Report.loadbalance", "weir-leastactive"))
	return conn, err
}

func ExampleSnapshot_balances() {
	for _, b := range weir.Snapshot().Balances {
		for _, p := range b.Providers {
			log.Printf("%s at %s: weight %d, %d calls run, %d were sent", b.Service, p.Address, p.Weight, p.Inflight, p.Picks)
		}
	}
	// Output:
}
