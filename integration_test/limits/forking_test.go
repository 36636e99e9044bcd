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

package limits

import (
	"fmt"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
)

// With dubbo-go alone the attempts of a forked call write into one map at the same time,
// which ends the process sooner or later, and into one answer. With Weir each has its own,
// without a word of configuration.
func TestForksOnTheWire(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		group := harness.NewGroup()
		var all []harness.Endpoint
		for range 3 {
			all = append(all, harness.SpawnProvider(t, harness.ProviderSpec{Protocol: protocol, Group: group}).Endpoint)
		}
		c := harness.Dial(t, harness.ConsumerConfig{Providers: all, Reference: []client.ReferenceOption{
			client.WithClusterForking(), client.WithParam("forks", "3"),
		}})
		const callers, each = 8, 25
		calls := harness.Go(callers, func(caller int) error {
			for n := range each {
				arg := fmt.Sprint(caller, "-", n)
				text, err := c.SayHello(background, arg)
				if err == nil && text != "hello "+arg {
					err = fmt.Errorf("the answer to %s is %q", arg, text)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		require.Empty(t, errorsOf(calls.Wait(t)))
	})
}
