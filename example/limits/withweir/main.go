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

// Command withweir is the demo's provider and consumer with Weir. The import
// is all that a program adds; the limits are in its dubbo YAML.
package main

import (
	"github.com/weir-go/weir"
	"github.com/weir-go/weir/example/limits/internal/app"
	"github.com/weir-go/weir/example/limits/internal/control"
)

func main() {
	app.Main(app.Protection{Refusal: refusal, Waiting: waiting})
}

// refusal tells a refusal from a failure.
func refusal(err error) *control.Refusal {
	r, ok := weir.AsRejected(err)
	if !ok {
		return nil
	}
	return &control.Refusal{Guard: r.Guard, Reason: r.Reason, Waited: r.Waited, RetryAfter: r.RetryAfter}
}

// waiting is how many calls wait for a slot now.
func waiting() int {
	var n int64
	for _, limit := range weir.Snapshot().Limits {
		n += limit.Waiting
	}
	return int(n)
}
