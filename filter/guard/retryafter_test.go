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

package guard

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/tps"
)

func TestRetryStepsRoundUpByAQuarterAtMost(t *testing.T) {
	last := -1
	check := func(d time.Duration) {
		i, rounded := retryStep(d)
		require.GreaterOrEqual(t, i, 0)
		require.Less(t, i, retrySteps)
		require.GreaterOrEqual(t, rounded, d)
		require.LessOrEqual(t, rounded, max(d+d/4, 0)+time.Millisecond, "%v", d)
		again, same := retryStep(rounded)
		require.Equal(t, i, again, "%v", d)
		require.Equal(t, rounded, same)
	}
	for ms := range 5000 {
		i, _ := retryStep(time.Duration(ms) * time.Millisecond)
		require.True(t, i == last || i == last+1, "%d ms", ms)
		last = i
		check(time.Duration(ms) * time.Millisecond)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		check(time.Duration(rnd.Int64N(int64(tps.MaxInterval))))
	}
	for _, d := range []time.Duration{-1, 0, 1, tps.MaxInterval, tps.MaxInterval - 1} {
		check(d)
	}
}
