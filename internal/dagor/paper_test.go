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
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// published is the algorithm of the paper, the plain way.
type published struct {
	window, overload time.Duration
	most, levels     int
	alpha, beta      float64
	n, admitted      int
	histogram        []int
	waited           []time.Duration
	scheduler        time.Duration
	cursor           int // the first level that does not pass
	ends             time.Duration
	changes          uint64
}

func (a *published) index(p Priority) int { return min(int(p.Level()), a.levels-1) }

func (a *published) admit(p Priority, now time.Duration) bool {
	level := a.index(p)
	a.histogram[level]++
	a.n++
	ok := level < a.cursor
	if ok {
		a.admitted++
	}
	if a.n >= a.most || now >= a.ends {
		a.end(now)
	}
	return ok
}

func (a *published) learn(r Report) {
	n := min(int(r.N), len(r.Sample))
	for i := range n {
		part := int(r.Shed) / n
		if i >= n-int(r.Shed)%n { // the rest is the last ones'
			part++
		}
		a.histogram[a.index(r.Sample[i])] += part
		a.n += part
	}
}

func (a *published) end(now time.Duration) {
	var sum time.Duration
	for _, w := range a.waited {
		sum += w
	}
	queueing := a.scheduler
	if now-a.ends > (believedWindows-1)*a.window { // it may have been told as long ago
		queueing = 0
	}
	if len(a.waited) > 0 {
		queueing += sum / time.Duration(len(a.waited))
	}
	expected := float64(a.admitted) + a.beta*float64(a.n)
	if queueing > a.overload {
		expected = (1 - a.alpha) * float64(a.admitted)
	}
	// As many levels as there may be, so that what they had is not more than is expected.
	cursor, prefix := 0, 0
	for cursor < a.levels && float64(prefix+a.histogram[cursor]) <= expected {
		prefix += a.histogram[cursor]
		cursor++
	}
	if cursor != a.cursor {
		a.changes++
	}
	a.cursor, a.ends = cursor, now+a.window
	a.n, a.admitted, a.waited, a.histogram = 0, 0, nil, make([]int, a.levels)
}

func paperSteps(t *testing.T, opts PaperOptions, steps []byte) (changes uint64) {
	t.Helper()
	start := 3 * time.Hour
	c := NewPaper(opts, start)
	a := published{window: time.Second, overload: 20 * ms, most: 2000, alpha: 0.05, beta: 0.01, levels: Levels}
	if opts.Businesses > 0 {
		a.levels = min(opts.Businesses, Businesses) * Users
	}
	if opts.Calls > 0 {
		a.most = opts.Calls
	}
	if opts.Alpha > 0 {
		a.alpha, a.beta = opts.Alpha, opts.Beta
	}
	a.histogram, a.cursor, a.ends = make([]int, a.levels), a.levels, start+a.window
	now := start
	for i := 0; i+1 < len(steps); i += 2 {
		arg := int(steps[i+1])
		c.Scheduler(a.scheduler) // which is believed for a while only
		switch op := steps[i] % 12; {
		case op < 7:
			for k := range 1 + arg%16 {
				p := NewPriority(NewLevel(uint8(arg/8+k), uint8(k*9)), uint16(k))
				if op == 6 && k == 0 {
					p = math.MaxUint32 - Priority(arg)
				}
				require.Equal(t, a.admit(p, now), c.Admit(p, now))
			}
		case op < 9:
			d := time.Duration(arg) * 200 * time.Microsecond
			c.Waited(d)
			a.waited = append(a.waited, d)
		case op == 9:
			now += time.Duration(arg-8) * 4 * ms // at times a little to where it was
		case op == 10:
			r := Report{Shed: uint32(arg * 7), N: uint8(arg % 11)}
			for i := range r.Sample {
				r.Sample[i] = NewPriority(NewLevel(uint8(arg+i), 3), 0)
			}
			c.Learn(r)
			a.learn(r)
		case op == 11:
			a.scheduler = time.Duration(arg%4) * 10 * ms
			c.Scheduler(a.scheduler)
		}
		want := Advert{Cursor: Open, Seq: a.changes}
		if a.cursor < a.levels {
			want.Cursor = NewPriority(Level(a.cursor), 0)
		}
		require.Equal(t, want, c.Advert())
	}
	return a.changes
}

var paperOptions = []PaperOptions{{}, {Businesses: 4, Calls: 50}, {Businesses: 999, Calls: 300, Alpha: 0.3, Beta: 0.1}}

func TestPaperIsAsPublished(t *testing.T) {
	for i, opts := range paperOptions {
		rnd := rand.New(rand.NewPCG(9, uint64(i)))
		var changes uint64
		for range 25 {
			steps := make([]byte, 600)
			for i := range steps {
				steps[i] = byte(rnd.Uint32())
			}
			changes += paperSteps(t, opts, steps)
		}
		require.NotZero(t, changes)
	}
}

func FuzzPaper(f *testing.F) {
	f.Add(uint8(1), []byte{0, 15, 7, 200, 9, 255, 0, 15, 10, 9, 9, 255, 0, 15, 11, 2, 9, 255, 1, 1, 9, 255, 2, 30})
	f.Fuzz(func(t *testing.T, which uint8, steps []byte) {
		paperSteps(t, paperOptions[int(which)%len(paperOptions)], steps)
	})
}

// feed is a window of calls, one of each level, of which upstreams shed by the cursor. What
// passes waits for as long as it says. With reports they tell what they shed.
func feed(c *Paper, now time.Duration, wait time.Duration, reports bool) {
	cursor, sheds := c.Advert().Cursor, &sheds{}
	for u := range 100 {
		p := NewPriority(NewLevel(7, uint8(u)), 0)
		if p >= cursor {
			sheds.add(p)
			continue
		}
		if c.Admit(p, now) {
			c.Waited(wait)
		}
	}
	if r, ok := sheds.take(); ok && reports {
		c.Learn(r)
	}
	now += time.Second
	c.Admit(0, now) // one that ends the window
}

func TestACalmWindowOpensAPaperWithoutReports(t *testing.T) {
	for _, reports := range []bool{false, true} {
		c := NewPaper(PaperOptions{}, 0)
		now := time.Duration(0)
		for range 14 { // 5 % down each time: half is shut
			feed(c, now, 30*ms, reports)
			now += time.Second
		}
		shut := c.Advert().Cursor
		require.Less(t, shut, NewPriority(NewLevel(7, 60), 0))
		feed(c, now, ms, reports)
		if !reports {
			require.Equal(t, Open, c.Advert().Cursor, "to the letter")
			continue
		}
		opened := c.Advert().Cursor
		require.Greater(t, opened, shut)
		require.Less(t, opened, NewPriority(NewLevel(7, 75), 0), "a part of what was shed, and not all")
	}
}

// The grain of the levels is the published algorithm's: one that has all of the calls and
// was shut once may stay so.
func TestOneLevelMayShutAPaper(t *testing.T) {
	c := NewPaper(PaperOptions{}, 0)
	p := NewPriority(NewLevel(3, 3), 0)
	now := time.Duration(0)
	c.Waited(sec)
	for range 100 {
		now += 100 * ms
		c.Admit(p, now)
	}
	require.False(t, c.Admit(p, now))
	require.Equal(t, NewPriority(p.Level(), 0), c.Advert().Cursor)
}

// However much a report says, a level's sum of a window is right.
func TestRegression_ReportsDoNotOverflowAPaper(t *testing.T) {
	c := NewPaper(PaperOptions{}, 0)
	p := NewPriority(NewLevel(3, 3), 0)
	r := Report{Shed: 1 << 31, N: 1}
	r.Sample[0] = p
	c.Learn(r)
	c.Learn(r) // together nothing, in 32 bits
	c.Admit(0, 0)
	require.Equal(t, NewPriority(p.Level(), 0), c.Advert().Cursor)
}

func TestAMobAtAPaper(t *testing.T) {
	c := NewPaper(PaperOptions{Calls: 50, Businesses: 8}, 0)
	var (
		all   sync.WaitGroup
		clock atomic.Int64
	)
	for g := range 16 {
		rnd := rand.New(rand.NewPCG(10, uint64(g)))
		all.Go(func() {
			last := c.Advert()
			for range 400 {
				now := time.Duration(clock.Add(1)) * ms
				if c.Admit(Priority(rnd.Uint32N(8*Users<<taskBits)), now) {
					c.Waited(time.Duration(rnd.IntN(45)) * ms)
				}
				if rnd.IntN(9) == 0 {
					c.Learn(Report{Shed: 5, N: 1, Sample: [reportSample]Priority{Priority(rnd.Uint32())}})
				}
				a := c.Advert()
				assert.False(t, last.Newer(a), "Seq grows")
				assert.LessOrEqual(t, a.Cursor, Open)
				last = a
			}
		})
	}
	all.Wait()
	// A window later nothing of it is left but the cursor.
	now := time.Duration(clock.Load())*ms + 2*sec
	c.Admit(0, now)
	require.Zero(t, c.calls.Load())
	require.Zero(t, c.passed.Load())
	for i := range c.levels {
		require.Zero(t, c.levels[i].Load())
	}
}
