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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/tps"
)

// FAILS. A process that starts while the wall clock says 1970 (no battery, no NTP
// yet) has an origin 20 years ahead: readings are negative, limiters take them for
// 0, and after the first tps calls every call is refused for 20 years. The origin
// is made here as clock.go makes it, at another time of day.
func TestAttackTheOriginOfTheClockWhenTheWallClockIsWrong(t *testing.T) {
	real := began
	defer func() { began = real }()
	wrong := -time.Date(1970, 1, 1, 0, 1, 0, 0, time.UTC).Sub(time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC))
	began = time.Now().Add(wrong) // now.Add(-now.Sub(1990)) for a now of 1970
	assert.Positive(t, Now())
	l, err := tps.NewSliding(tps.Quota{Rate: 1, Interval: time.Millisecond}, Now)
	require.NoError(t, err)
	require.True(t, l.Allow().Admitted)
	admitted := false
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end) && !admitted; {
		admitted = l.Allow().Admitted
	}
	assert.True(t, admitted, "one call per millisecond, and none in 50 ms")
}
