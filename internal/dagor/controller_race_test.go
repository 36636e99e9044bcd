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
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mob are goroutines at one Controller, whose clock is what they do.
type mob struct {
	t       *testing.T
	c       *Controller
	clock   atomic.Int64
	inside  atomic.Int64
	verdict [Expired + 1]atomic.Int64
	learned atomic.Int64
}

func (m *mob) now() time.Duration { return time.Duration(m.clock.Add(1)) * 10 * time.Microsecond }

// member is one of them, with the place that it waits at, over and over again.
type member struct {
	*mob
	rnd    *rand.Rand
	waiter Waiter
	told   chan Verdict
}

func (m *mob) tell(d Decided) {
	for w := d.Next(); w != nil; w = d.Next() {
		select {
		case w.Owner.(*member).told <- w.Verdict:
		default:
			m.t.Error("told twice")
		}
	}
}

// once brings one call. Of those that wait some go before they are told.
func (m *member) once(p Priority, patient bool) {
	now := m.now()
	v, d := m.c.Enter(p, now)
	m.tell(d)
	if v == Waits {
		m.perhaps()
		m.waiter.Until, m.waiter.Owner = 0, m
		v, d = m.c.Queue(p, now, &m.waiter)
		m.tell(d)
	}
	if v == Waits {
		v = m.wait(patient)
	}
	m.verdict[v].Add(1)
	if v != Admitted {
		return
	}
	began := m.now()
	m.inside.Add(1)
	m.perhaps()
	m.inside.Add(-1)
	then := m.now()
	m.tell(m.c.Leave(then, then-began))
}

func (m *member) wait(patient bool) Verdict {
	for range m.rnd.IntN(20) {
		runtime.Gosched()
	}
	if !patient && m.c.Expire(&m.waiter) {
		assert.Empty(m.t, m.told)
		assert.False(m.t, m.c.Expire(&m.waiter))
		return Expired
	}
	v := <-m.told // nobody comes to help one that is forgotten: the test would hang
	assert.NotEqual(m.t, Waits, v)
	assert.False(m.t, m.c.Expire(&m.waiter))
	return v
}

func (m *mob) perhaps() {
	if rand.IntN(2) == 0 {
		runtime.Gosched()
	}
}

// relimit sets the limit by hand, to and fro.
func (m *mob) relimit(n int) {
	m.c.mu.Lock()
	m.c.limit.Store(uint32(n))
	m.c.room = max(1, n)
	var d Decided
	m.c.trim(&d)
	m.c.admit(m.now(), &d)
	m.c.mu.Unlock()
	m.tell(d)
}

// run has them all come, and returns when they are through.
func (m *mob) run(members, calls int, patient bool, most func() int64) {
	var all, others sync.WaitGroup
	over := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			m.c.Learn(Report{Shed: 3, N: 2, Sample: [reportSample]Priority{4, 5}})
			a, b := m.c.Advert(), m.c.Advert()
			assert.False(m.t, a.Newer(b))
			m.c.Scheduler(time.Duration(rand.IntN(30)) * time.Millisecond)
			s := m.c.State()
			assert.LessOrEqual(m.t, s.Running+s.Waiting, members)
			m.learned.Add(3)
			runtime.Gosched()
		}
	})
	for i := range members {
		b := &member{mob: m, rnd: rand.New(rand.NewPCG(7, uint64(i))), told: make(chan Verdict, 1)}
		all.Go(func() {
			for range calls {
				b.once(Priority(b.rnd.IntN(6)), patient)
				if most != nil {
					assert.LessOrEqual(m.t, b.inside.Load(), most())
				}
			}
		})
	}
	all.Wait()
	close(over)
	others.Wait()

	s := m.c.State()
	require.Zero(m.t, s.Running)
	require.Zero(m.t, s.Waiting)
	require.Zero(m.t, m.c.line.len())
	var came int64
	for v := range m.verdict {
		came += m.verdict[v].Load()
	}
	require.EqualValues(m.t, members*calls, came, "each has one verdict")
	require.EqualValues(m.t, came, m.c.came.n.Load())
	f := m.c.seen.figures()
	require.Equal(m.t, m.verdict[Admitted].Load(), f.done)
	require.Equal(m.t, came-f.done, f.refused)
	require.LessOrEqual(m.t, f.refused, f.held)
	require.Equal(m.t, m.learned.Load(), f.shed)
	require.GreaterOrEqual(m.t, f.ran, time.Duration(0))
}

const mobMembers, mobCalls = 24, 300

func TestAMobAtAFixedLimit(t *testing.T) {
	for _, limit := range []int{1, 2, 7} {
		for _, patient := range []bool{true, false} {
			m := &mob{t: t, c: NewController(Options{Limit: limit, Fixed: true, MaxWait: time.Hour}, 0)}
			m.run(mobMembers, mobCalls, patient, func() int64 { return int64(limit) })
		}
	}
}

// Waits are as short as windows: whoever comes drops those before.
func TestAMobInAHurry(t *testing.T) {
	for _, limit := range []int{1, 3} {
		m := &mob{t: t, c: NewController(Options{Limit: limit, Fixed: true, MaxWait: 200 * time.Microsecond, Window: 50 * time.Microsecond}, 0)}
		m.run(mobMembers, mobCalls, true, func() int64 { return int64(limit) })
	}
}

func TestAMobAtATunedLimit(t *testing.T) {
	for _, window := range []time.Duration{1, 100 * time.Microsecond, 2 * time.Millisecond} {
		m := &mob{t: t, c: NewController(Options{Limit: 2, MaxLimit: 5, MaxWait: time.Hour, Window: window}, 0)}
		m.run(mobMembers, mobCalls, window > 1, func() int64 { return 5 })
	}
}

// The limit jumps all the time, and below what runs.
func TestAMobAtALimitThatJumps(t *testing.T) {
	for _, patient := range []bool{true, false} {
		m := &mob{t: t, c: NewController(Options{Limit: 1, Fixed: true, MaxWait: time.Hour, Window: 24 * time.Hour}, 0)}
		var jumping sync.WaitGroup
		over := make(chan struct{})
		jumping.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
				}
				m.relimit(1 + i%9)
				runtime.Gosched()
			}
		})
		m.run(mobMembers, mobCalls, patient, func() int64 { return 9 })
		close(over)
		jumping.Wait()
	}
}

// A sample that is added to from everywhere has nothing but what was added.
func TestAMobAtASample(t *testing.T) {
	s := &sample{}
	var adding sync.WaitGroup
	for g := range 8 {
		adding.Go(func() {
			for i := range 2000 {
				s.add(Priority(g), uint32(i))
			}
		})
	}
	for range 50 {
		from := s.n.Load()
		got := s.since(from, nil)
		assert.LessOrEqual(t, len(got), sampleSize)
		for _, v := range s.since(0, got) {
			assert.Less(t, v>>entryPriority, uint64(8))
			assert.Less(t, v&entryWeight, uint64(2000))
		}
	}
	adding.Wait()
	require.EqualValues(t, 16_000, s.n.Load())
	require.Len(t, s.since(0, nil), sampleSize)
}

// Whoever read an Advert while the cursor changed got the new one with the number of the old: of two
// replies with one number, which are taken for the same, one was wrong.
func TestRegression_OneCursorForEachNumber(t *testing.T) {
	var (
		a    advertised
		all  sync.WaitGroup
		over atomic.Bool
	)
	for range 3 {
		all.Go(func() {
			lastCursor, lastSeq := a.load()
			for !over.Load() {
				cursor, seq := a.load()
				if seq == lastSeq && cursor != lastCursor || seq < lastSeq {
					assert.Equal(t, lastCursor, cursor, "%d after %d", seq, lastSeq)
					return
				}
				lastCursor, lastSeq = cursor, seq
			}
		})
	}
	const changes = 2_000_000
	for n := range changes {
		a.set(uint32(n % 7)) // the first is none
	}
	over.Store(true)
	all.Wait()
	cursor, seq := a.load()
	require.EqualValues(t, (changes-1)%7, cursor)
	require.EqualValues(t, changes-1, seq)
}
