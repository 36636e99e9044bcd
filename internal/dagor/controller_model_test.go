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
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// asker is a call of the model.
type asker struct {
	priority Priority
	until    time.Duration
	waiter   Waiter
}

// verdictOf is what became of one.
type verdictOf struct {
	who *asker
	v   Verdict
}

// plain is what a Controller does, the plain way: those that wait are a slice in the order
// in which they are served. Its limit and its room are told to it.
type plain struct {
	limit, room, running int
	maxWait              time.Duration
	line                 []*asker
}

func (m *plain) enter(p Priority) Verdict {
	switch {
	case len(m.line) == 0 && m.running < m.limit:
		m.running++
		return Admitted
	case len(m.line) >= m.room && p >= m.line[len(m.line)-1].priority:
		return Full
	}
	return Waits
}

func (m *plain) queue(a *asker, now, until time.Duration) (Verdict, []verdictOf) {
	a.until = now + m.maxWait
	if until != 0 {
		a.until = min(a.until, until)
	}
	if a.until <= now {
		return Expired, nil
	}
	var told []verdictOf
	last := func() *asker { return m.line[len(m.line)-1] }
	if len(m.line) >= m.room {
		for len(m.line) > 0 && last().until <= now {
			told = append(told, m.drop(last(), Expired))
		}
	}
	if len(m.line) >= m.room {
		if a.priority >= last().priority {
			return Full, told
		}
		told = append(told, m.drop(last(), Displaced))
	}
	i := slices.IndexFunc(m.line, func(b *asker) bool { return b.priority > a.priority })
	if i < 0 {
		i = len(m.line)
	}
	m.line = slices.Insert(m.line, i, a)
	told = append(told, m.admit(now)...)
	if i := slices.Index(told, verdictOf{a, Admitted}); i >= 0 {
		return Admitted, slices.Delete(told, i, i+1)
	}
	return Waits, told
}

func (m *plain) drop(a *asker, v Verdict) verdictOf {
	i := slices.Index(m.line, a)
	m.line = slices.Delete(m.line, i, i+1)
	return verdictOf{a, v}
}

func (m *plain) admit(now time.Duration) (told []verdictOf) {
	for m.running < m.limit && len(m.line) > 0 {
		if first := m.line[0]; first.until <= now {
			told = append(told, m.drop(first, Expired))
		} else {
			m.running++
			told = append(told, m.drop(first, Admitted))
		}
	}
	return told
}

func (m *plain) leave(now time.Duration) []verdictOf {
	m.running = max(0, m.running-1)
	return m.admit(now)
}

func (m *plain) tuned(limit, room int, now time.Duration) (told []verdictOf) {
	m.limit, m.room = limit, room
	for len(m.line) > room {
		told = append(told, m.drop(m.line[len(m.line)-1], Displaced))
	}
	return append(told, m.admit(now)...)
}

// game is a Controller, its model and what is under way.
type game struct {
	t       *testing.T
	c       *Controller
	m       plain
	now     time.Duration
	free    []*asker        // to be used again
	between []*asker        // told to wait, not in the queue yet
	waiting map[*asker]bool // every one has one verdict to come
	gone    []*asker        // their verdict is out
	began   []time.Duration // of those that run
	ends    time.Duration   // of the window
	counted map[Verdict]int // verdicts that were given
	other   *Controller     // another one
	opts    Options         // with the defaults
}

func newGame(t *testing.T, opts Options) *game {
	p := &game{t: t, c: NewController(opts, 0), other: NewController(opts, 0), waiting: map[*asker]bool{}, counted: map[Verdict]int{}, opts: opts.withDefaults()}
	s := p.c.State()
	p.m = plain{limit: s.Limit, room: s.Room, maxWait: p.opts.MaxWait}
	p.ends = p.opts.Window
	for range 60 {
		a := &asker{}
		a.waiter.Owner = a
		p.free = append(p.free, a)
	}
	return p
}

// told compares those decided, and checks what is promised of each, whatever the model says.
func (p *game) told(d Decided, want []verdictOf) {
	var got []verdictOf
	for w := d.Next(); w != nil; w = d.Next() {
		got = append(got, verdictOf{w.Owner.(*asker), w.Verdict})
	}
	require.Len(p.t, got, len(want))
	for i, g := range got {
		require.Same(p.t, want[i].who, g.who)
		require.Equal(p.t, want[i].v, g.v)
		require.True(p.t, p.waiting[g.who], "decided about once, and only of those that wait")
		p.settle(g.who, g.v)
	}
}

func (p *game) settle(a *asker, v Verdict) {
	delete(p.waiting, a)
	p.counted[v]++
	if v == Admitted {
		p.began = append(p.began, p.now)
		for w := range p.waiting {
			require.LessOrEqual(p.t, a.priority, w.priority, "one is admitted before a more important one")
		}
	}
	if v == Full || v == Displaced {
		for w := range p.waiting {
			require.LessOrEqual(p.t, w.priority, a.priority, "one is refused that is more important than one that waits")
		}
	}
	p.gone = append(p.gone, a)
}

func (p *game) enter(priority Priority) {
	if len(p.free) == 0 {
		return
	}
	a := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	a.priority = min(priority, Lowest)
	v, d := p.c.Enter(priority, p.now)
	var told []verdictOf
	if p.now >= p.ends {
		s := p.c.State()
		if p.m.running > p.m.limit {
			require.LessOrEqual(p.t, s.Running, max(s.Limit, p.m.running))
		}
		told = p.m.tuned(s.Limit, s.Room, p.now)
		p.ends = p.now + p.opts.Window
	}
	p.told(d, told)
	require.Equal(p.t, p.m.enter(a.priority), v)
	if v == Waits {
		p.between = append(p.between, a)
		return
	}
	p.settle(a, v)
}

func (p *game) queue(i int, until time.Duration) {
	if len(p.between) == 0 {
		return
	}
	i %= len(p.between)
	a := p.between[i]
	p.between = slices.Delete(p.between, i, i+1)
	a.waiter.Until = until
	v, d := p.c.Queue(a.priority, p.now, &a.waiter)
	want, told := p.m.queue(a, p.now, until)
	require.Equal(p.t, want, v)
	p.waiting[a] = v == Waits
	if v == Waits {
		require.Equal(p.t, a.until, a.waiter.Until)
	} else {
		delete(p.waiting, a)
	}
	p.told(d, told)
	if v != Waits {
		p.settle(a, v)
	}
}

func (p *game) leave(i int) {
	if len(p.began) == 0 {
		p.told(p.c.Leave(p.now, 0), nil) // without an Enter: harmless
		return
	}
	i %= len(p.began)
	ran := p.now - p.began[i]
	p.began = slices.Delete(p.began, i, i+1)
	p.told(p.c.Leave(p.now, ran), p.m.leave(p.now))
}

func (p *game) expire(i int) {
	if len(p.m.line) == 0 {
		return
	}
	a := p.m.line[i%len(p.m.line)]
	require.False(p.t, p.other.Expire(&a.waiter), "it is another's")
	require.True(p.t, p.c.Expire(&a.waiter))
	require.Equal(p.t, Expired, a.waiter.Verdict)
	require.False(p.t, p.c.Expire(&a.waiter), "twice")
	p.m.drop(a, Expired)
	p.settle(a, Expired)
}

func (p *game) same() {
	s := p.c.State()
	require.Equal(p.t, p.m.running, s.Running)
	require.Equal(p.t, len(p.m.line), s.Waiting)
	require.Len(p.t, p.waiting, len(p.m.line))
	require.Equal(p.t, len(p.began), s.Running)
	require.Equal(p.t, p.m.limit, s.Limit)
	require.Equal(p.t, p.m.room, s.Room)
	require.True(p.t, s.Waiting <= s.Room && s.Room <= p.opts.MaxQueue)
	require.LessOrEqual(p.t, s.Cursor, Open)
	require.True(p.t, s.Limit >= p.opts.MinLimit && s.Limit <= p.opts.MaxLimit)
	if s.Waiting > 0 {
		require.GreaterOrEqual(p.t, s.Running, s.Limit, "none waits while there is a place")
	}
	if bar := p.c.bar.Load(); s.Waiting < s.Room {
		require.Equal(p.t, uint32(math.MaxUint32), bar)
	} else {
		require.Equal(p.t, uint32(p.m.line[s.Waiting-1].priority), bar)
	}
}

func (p *game) end() {
	for len(p.between) > 0 {
		p.queue(0, 0)
		p.same()
	}
	for len(p.began) > 0 {
		p.leave(0)
		p.same()
	}
	require.Zero(p.t, p.c.State().Running)
	require.Zero(p.t, p.c.State().Waiting)
	require.Empty(p.t, p.waiting)
}

// controllerSteps does what the bytes say with a Controller and with its model.
func controllerSteps(t *testing.T, opts Options, steps []byte) map[Verdict]int {
	t.Helper()
	p := newGame(t, opts)
	for i := 0; i+1 < len(steps); i += 2 {
		before := p.c.State()
		arg := int(steps[i+1])
		switch op := steps[i] % 16; op {
		case 0, 1, 2, 3, 4:
			p.enter(Priority(arg % 7))
			if op > 0 { // else something else comes between
				p.queue(len(p.between)-1+len(p.between), 0)
			}
		case 5:
			p.enter([]Priority{Lowest, Open, math.MaxUint32, 1 << 31}[arg%4])
		case 6:
			p.queue(arg, p.now+time.Duration(arg-20)*ms)
		case 7:
			p.queue(arg, 0)
		case 8, 9, 10:
			p.leave(arg)
		case 11:
			p.expire(arg)
		case 12:
			p.now += time.Duration(arg) * ms
		case 13:
			p.now += time.Duration(arg) * time.Microsecond
		case 14: // a goroutine that is behind
			p.now = max(0, p.now-time.Duration(arg)*time.Microsecond)
		case 15:
			for _, a := range p.gone {
				require.False(t, p.c.Expire(&a.waiter), "it has been decided about")
			}
			p.free, p.gone = append(p.free, p.gone...), nil
		}
		p.same()
		if after := p.c.State(); after.Limit >= before.Limit {
			require.LessOrEqual(t, after.Running, max(after.Limit, before.Running))
		}
	}
	p.end()
	return p.counted
}

var modelOptions = []Options{
	{Limit: 1, Fixed: true, Window: time.Hour},
	{Limit: 3, Fixed: true, MaxQueue: 6, MaxWait: 30 * ms, Window: 10 * ms},
	{Limit: 2, Fixed: true, MaxQueue: 1, Window: time.Hour},
	{Limit: 4, MaxLimit: 9, Window: ms, MaxWait: 50 * ms},
	{Limit: 8, MinLimit: 2, MaxLimit: 16, Window: 5 * ms},
}

func TestControllerIsLikeItsModel(t *testing.T) {
	for i, opts := range modelOptions {
		rnd := rand.New(rand.NewPCG(4, uint64(i)))
		counted := map[Verdict]int{}
		for range 80 {
			steps := make([]byte, 2*rnd.IntN(300))
			for i := range steps {
				steps[i] = byte(rnd.Uint32())
			}
			for v, n := range controllerSteps(t, opts, steps) {
				counted[v] += n
			}
		}
		for _, v := range []Verdict{Admitted, Full, Displaced, Expired} {
			require.NotZero(t, counted[v], "%v of %+v", v, opts)
		}
	}
}

func FuzzController(f *testing.F) {
	f.Add(uint8(0), []byte{1, 0, 1, 5, 1, 5, 1, 5, 1, 5, 1, 6, 1, 4, 8, 0, 8, 0, 11, 2})
	f.Add(uint8(3), []byte{1, 0, 1, 5, 12, 200, 1, 5, 8, 0, 12, 9, 1, 6, 1, 4, 8, 0, 14, 1, 8, 0, 11, 2, 15, 0, 8, 0, 8, 0})
	f.Fuzz(func(t *testing.T, which uint8, steps []byte) {
		controllerSteps(t, modelOptions[int(which)%len(modelOptions)], steps)
	})
}
