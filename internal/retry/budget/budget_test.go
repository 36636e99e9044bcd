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

package budget

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Once: calls are counted without the budget's lock, so a count may come after a
// larger one. It was taken for calls that had not been, and where the budget was
// full, so that what the larger one had brought was cut off, it ended up in debt:
// with one full instance of two some calls of a burst were refused.
func TestRegression_CountsThatComeLate(t *testing.T) {
	var b Budget
	solvent := func(now time.Duration, calls int64) bool {
		_, ok := b.Ask(Policy{Ratio: 0.1}, Try{Refused: true}, now, calls)
		return ok
	}
	require.True(t, solvent(1, 1))
	require.True(t, solvent(2, 300))
	for _, late := range []int64{50, 1, 299, 0} {
		require.True(t, solvent(3, late), "%d calls", late)
	}
	require.InDelta(t, Burst, b.tokens, 0)
	require.EqualValues(t, 300, b.calls)
}
