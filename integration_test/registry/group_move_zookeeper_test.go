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

//go:build services

package registry

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
)

// What an operator does to move a provider: start it in the group that it moves to, wait
// until it is called there, take it out of the other, wait until it is not called any more,
// stop it.
func TestAMoveByPathLosesNoCallInZooKeeper(t *testing.T) {
	eachByPath(t, func(t *testing.T, p *byPath) {
		core, stays, moves := p.join("core"), p.join("noncore"), p.join("noncore")
		consumers := map[string]*groupConsumer{"core": p.dial("core"), "noncore": p.dial("noncore")}
		consumers["core"].reaches("core", core)
		consumers["noncore"].reaches("noncore", stays)
		consumers["noncore"].reaches("noncore", moves)
		for group, c := range consumers {
			c.ask(groupConsumerCommand{Start: nameOf(group), Callers: 3})
		}
		onward := func() {
			for _, c := range consumers {
				c.on(300)
			}
		}
		onward()

		moved := p.join("core")
		harness.Eventually(t, "the core consumer calls it", func() bool { return moved.Stats("").Total > 20 })
		require.True(t, p.listed("core", moved) && p.listed("noncore", moves))
		moves.Leave()
		harness.Eventually(t, "it is not listed any more", func() bool { return !p.listed("noncore", moves) })
		harness.Eventually(t, "it gets no more calls", func() bool {
			last := moves.Stats("").Total
			consumers["noncore"].on(300)
			return last == moves.Stats("").Total
		})
		moves.Kill()
		onward()

		for group, c := range consumers {
			a := c.ask(groupConsumerCommand{Stop: true})
			require.Empty(t, a.Failed, group)
			t.Logf("%s: %d calls", group, a.Made)
		}
	})
}
