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
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Whoever tells of the scheduler and then stops, with a high delay, does not hold the limit down.
func TestASchedulerThatIsHeardNoMore(t *testing.T) {
	c := NewController(Options{Limit: 8, MinLimit: 2}, 0)
	now := time.Duration(0)
	windows := func(n int, tell func()) {
		for range n * 10 {
			now += 10 * time.Millisecond
			if tell != nil {
				tell()
			}
			for range 16 { // more than may run
				c.Enter(Lowest, now)
			}
			for range c.State().Running {
				c.Leave(now, 10*time.Millisecond)
			}
		}
	}
	windows(60, func() { c.Scheduler(time.Second) })
	assert.Equal(t, 2, c.State().Limit)
	windows(believedWindows/2, nil)
	assert.Equal(t, 2, c.State().Limit, "it is believed for a while")
	windows(200, nil)
	assert.Greater(t, c.State().Limit, 2)
	assert.Greater(t, c.scheduler.unheard, time.Duration(0))
}
