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

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/loadbalance/pick"
)

// From a set of one call those that are left are chosen by their weights as well: one
// that warms up would get as many of the calls that others refuse as any.
func TestRegression_ResetDrawsByWeight(t *testing.T) {
	for name, a := range algorithms {
		c := weighted(100, 1, 100, 100)
		c[3].Avoid = true
		var s pick.Set
		s.Reset(c)
		count := make([]int, 4)
		r := seeded(31)
		for range 20_000 {
			count[a(&s, noon, r())]++
		}
		assert.Less(t, count[1], 400, name)
		assert.Positive(t, count[1], name)
		assert.Zero(t, count[3], name)
		assert.InDelta(t, 10_000, count[0], 500, name)
	}
}
