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
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPeriods(t *testing.T) {
	for _, test := range []struct {
		name               string
		length, began, now time.Duration
		over               bool
	}{
		{"begins", sec, 0, 0, false},
		{"goes on", sec, 0, sec - 1, false},
		{"is over", sec, 0, sec, true},
		{"a goroutine that is behind", sec, 0, -9 * sec, false},
		{"a clock that was ahead", sec, time.Hour, 0, true},
		{"before the origin", sec, -time.Hour, -time.Hour, false},
		{"before the origin, and over", sec, -time.Hour, -time.Hour + sec, true},
		{"without an end", math.MaxInt64, 5, math.MaxInt64 - 1, false},
		{"without an end, behind", math.MaxInt64, 5, 0, false},
		{"without an end, before the origin", math.MaxInt64, math.MinInt64, -5, false},
		{"from one end of all time to the other", sec, math.MaxInt64 - 1, math.MinInt64, true},
		{"at the end of all time", sec, math.MaxInt64 - 1, math.MaxInt64, true},
		{"of an instant", 1, 0, 1, true},
		{"of an instant, behind", 1, 0, -sec + 2, false},
	} {
		var p period
		p.set(test.length, test.began)
		require.Equal(t, test.over, p.over(test.now), test.name)
	}
}

// One call whose clock is an hour ahead ended a window that began an hour later: until then no
// limit was tuned and no cursor opened.
func TestRegression_AClockThatWasAhead(t *testing.T) {
	c := NewController(Options{Limit: 1, Fixed: true}, 0)
	p := NewPaper(PaperOptions{Calls: math.MaxInt}, 0)
	now := time.Duration(0)
	load := func(until time.Duration, each int) {
		for ; now < until; now += 10 * ms {
			for range 2 {
				c.Leave(now, 10*ms)
			}
			for range each {
				if v, _ := c.Enter(Lowest, now); v == Waits {
					c.Queue(Lowest, now, &Waiter{})
				}
				p.Admit(Lowest, now)
				p.Waited(time.Duration(each) * 5 * ms)
			}
		}
	}
	load(5*sec, 10)
	require.Less(t, c.Advert().Cursor, Open)
	require.Less(t, p.Advert().Cursor, Open)
	c.Enter(Lowest, now+time.Hour)
	p.Admit(Lowest, now+time.Hour)
	p.advertised.set(0)
	c.advertised.set(0)
	c.opener.cursor = 0
	load(10*sec, 1)
	require.Equal(t, Open, c.Advert().Cursor)
	require.NotEqual(t, Priority(0), p.Advert().Cursor)
}

// Windows that are as good as endless are not over at once.
func TestRegression_APaperWithoutWindows(t *testing.T) {
	p := NewPaper(PaperOptions{Window: math.MaxInt64}, sec)
	p.Waited(sec)
	p.Admit(0, sec)
	p.Admit(0, sec)
	require.Equal(t, Open, p.Advert().Cursor)
}
