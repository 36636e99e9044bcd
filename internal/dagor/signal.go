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

package dagor

import (
	"sync/atomic"
	"time"
)

// overloadShare is the part of a call's timeout that the published 20 ms are of its 500 ms.
const overloadShare = 0.04

// OverloadFor is the mean queueing time above which a service whose callers wait so long is
// overloaded: 4 % of it, as published for 500 ms. Without a timeout it is the published 20 ms.
func OverloadFor(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return paperOverload
	}
	return time.Duration(overloadShare * float64(timeout))
}

// queueing is the mean time that calls waited before they ran, in a window. Response times
// are no measure of that: they rise, too, when a service that is called is slow.
type queueing struct {
	n, sum    atomic.Int64
	scheduler atomic.Int64
}

func (q *queueing) add(d time.Duration) {
	q.n.Add(1)
	q.sum.Add(int64(max(0, d)))
}

// take ends a window. Without calls the scheduler's part is left.
func (q *queueing) take() time.Duration {
	mean := time.Duration(q.scheduler.Load())
	n, sum := q.n.Swap(0), q.sum.Swap(0)
	if n > 0 {
		mean += time.Duration(sum / n)
	}
	return mean
}
