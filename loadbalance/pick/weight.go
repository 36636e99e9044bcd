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

package pick

import "time"

// WarmingWeight is the weight of an instance that has been up for a while, of which it
// has its full weight after the warm-up: Java Dubbo's
// AbstractLoadBalance.calculateWarmupWeight, in whole milliseconds. It is at least 1,
// unless the weight is 0. One whose clock is ahead, so that it is yet to start, counts as
// just started, and where it is ahead by more than the warm-up nothing is known.
func WarmingWeight(weight int64, up, warmUp time.Duration) int64 {
	if weight <= 0 || !Warming(up, warmUp) {
		return max(weight, 0)
	}
	up = max(up, 0)
	w := int64(float64(up.Milliseconds()) / (float64(warmUp.Milliseconds()) / float64(weight)))
	return min(max(w, 1), weight)
}

// Warming tells whether an instance that has been up for a while warms up.
func Warming(up, warmUp time.Duration) bool { return -warmUp < up && up < warmUp }
