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

package pick_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/loadbalance/pick"
)

// A slow and a failing one are two of three: a third of all draws are these two, and
// still the slow one must not get a third of the calls.
func TestRegression_TheSecondWorstOfThree(t *testing.T) {
	c := same(3, 100)
	s := pick.NewSet(c)
	r := seeded(17)
	count := make([]int, 3)
	now := noon
	for range 10_000 {
		now += ms
		i := pick.FewChoices(s, now, r())
		count[i]++
		switch i {
		case 0:
			c[i].Took(5*ms, now)
		case 1:
			c[i].Took(200*ms, now)
		case 2:
			c[i].Failed(now)
			continue
		}
		c[i].Succeeded()
	}
	assert.Less(t, count[1], 1000, "slow")
	assert.Less(t, count[2], 200, "failing")
	assert.Positive(t, count[1])
	assert.Positive(t, count[2])
}

// Where all fail somebody is chosen, by the weights.
func TestFewChoicesWhereAllFail(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		c := same(n, 100)
		for i := range c {
			for range 50 {
				c[i].Failed(noon)
			}
		}
		for i, got := range shares(pick.FewChoices, c, 10_000, seeded(18)) {
			assert.InDelta(t, 10_000/n, got, 10_000/float64(n)/4, "%d of %d", i, n)
		}
	}
}

// An instance that is avoided is no choice either.
func TestFewChoicesBesideOneThatIsAvoided(t *testing.T) {
	c := same(3, 100)
	c[0].Took(5*ms, noon)
	c[1].Took(200*ms, noon)
	c[2].Record.Avoid(noon + time.Second)
	got := shares(pick.FewChoices, c, 10_000, seeded(19))
	assert.Zero(t, got[2])
	assert.Less(t, got[1], 1000)
}
