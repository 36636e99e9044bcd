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

import "time"

// began is the origin of the guards' clock. It lies before the year 2000, at
// which the clocks of synctest bubbles begin, so that readings are positive there.
var began = origin(time.Now())

// origin is before 1990, but not in the future where a machine does not know the
// time yet and thinks that it is 1970.
func origin(now time.Time) time.Time {
	return now.Add(-max(now.Sub(time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)), 24*time.Hour))
}

// Now reads the clock that steps share: monotonic, from an origin of this process.
func Now() time.Duration { return clockNow() }

func clockNow() time.Duration { return time.Since(began) }
