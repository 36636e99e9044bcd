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

// Package limits tests what Weir's users see on real servers and clients over
// loopback, on both protocols.
package limits

import (
	"testing"
	"time"

	_ "github.com/weir-go/weir"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, harness.Roles{}) }

// eachProtocol runs a test over each.
func eachProtocol(t *testing.T, f func(t *testing.T, protocol string)) {
	for _, protocol := range harness.Protocols {
		t.Run(protocol, func(t *testing.T) { f(t, protocol) })
	}
}

// serviceOf is the key of a group's service.
func serviceOf(group string) string { return group + "/" + greet.GreetServiceName }

// harnessTimeout is long enough for a slow machine to answer, and what a caller
// of a dead provider waits on the dubbo protocol.
const harnessTimeout = 3 * time.Second
