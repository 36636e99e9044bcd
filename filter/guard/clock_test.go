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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Once: a process that started while the wall clock said 1970 had an origin 20
// years ahead. Readings were negative, limiters took them for 0, and after the
// first tps calls every call was refused for 20 years.
func TestAttackTheOriginOfTheClockWhenTheWallClockIsWrong(t *testing.T) {
	for _, year := range []int{1970, 1989, 1990, 1991, 2026, 2100} {
		now := time.Date(year, 1, 1, 0, 1, 0, 0, time.UTC)
		require.GreaterOrEqual(t, now.Sub(origin(now)), 24*time.Hour, year)
	}
	require.Positive(t, Now())
}
