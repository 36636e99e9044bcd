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

package tps_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/tps"
)

// paced is a pacer as one would write it who has no concurrency to think of: a list of
// those who wait, looked at whenever the time goes on.
type paced struct {
	log     []string
	now     time.Duration
	last    time.Duration
	spacing time.Duration
	queue   []waiting
	open    bool
}

type waiting struct {
	id    int
	until time.Duration
}

func (p *paced) say(format string, args ...any) { p.log = append(p.log, fmt.Sprintf(format, args...)) }

func (p *paced) grant() {
	p.say("%d passes at %v", p.queue[0].id, p.now)
	p.queue = p.queue[1:]
}

func (p *paced) advance(to time.Duration) {
	for len(p.queue) > 0 && p.last+p.spacing <= to {
		p.now = max(p.now, p.last+p.spacing)
		p.last += p.spacing
		p.grant()
	}
	p.now = to
}

func (p *paced) wait(id int, most time.Duration) {
	turn := p.last + p.spacing*time.Duration(len(p.queue)+1)
	switch {
	case len(p.queue) == 0 && turn <= p.now:
		p.last = p.now
		p.say("%d passes at %v", id, p.now)
	case p.open:
		p.say("%d passes at %v", id, p.now)
	case turn > p.now+most:
		p.say("%d is %v late", id, turn-p.now-most)
	default:
		p.queue = append(p.queue, waiting{id, p.now + most})
	}
}

func (p *paced) cancel(id int) {
	if i := slices.IndexFunc(p.queue, func(w waiting) bool { return w.id == id }); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		p.say("%d gives up at %v", id, p.now)
	}
}

// takeBack takes the turn at a time back.
func (p *paced) takeBack(at time.Duration) {
	if at != p.last {
		return
	}
	if len(p.queue) == 0 {
		p.last -= p.spacing
		return
	}
	p.last = max(p.last-p.spacing, min(p.last+p.spacing, p.now)-p.spacing)
	p.advance(p.now)
}

func (p *paced) update(spacing time.Duration) {
	due := p.last + p.spacing
	p.spacing = spacing
	if len(p.queue) == 0 {
		return
	}
	p.last = max(p.last, min(due, p.now)-spacing)
	turn := p.last
	p.queue = slices.DeleteFunc(p.queue, func(w waiting) bool {
		if turn+spacing > w.until {
			p.say("%d is %v late", w.id, turn+spacing-w.until)
			return true
		}
		turn += spacing
		return false
	})
	p.advance(p.now)
}

func (p *paced) setOpen(open bool) {
	if open {
		for len(p.queue) > 0 {
			p.grant()
		}
	} else if p.open {
		p.last = min(p.last, p.now)
	}
	p.open = open
}

func (p *paced) observe(id int, most time.Duration) {
	turn := max(p.last+p.spacing*time.Duration(len(p.queue)+1), p.now)
	if turn > p.now+most {
		p.say("%d would be late", id)
		return
	}
	if len(p.queue) == 0 {
		p.last = turn
	}
	p.say("%d would wait %v", id, turn-p.now)
}

// FuzzPacer does the same with a pacer and with a naive one, in a bubble, whose
// timers are never late.
func FuzzPacer(f *testing.F) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		script := make([]byte, 300)
		for i := range script {
			script[i] = byte(r.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		synctest.Test(t, func(t *testing.T) { comparePacers(t, script[:min(len(script), 600)]) })
	})
}

func comparePacers(t *testing.T, script []byte) {
	const rate, interval = 100, time.Second
	// The clock begins so late that the first call passes by the naive one as well.
	l := newLane(t, rate, interval, 0, tps.Warming{})
	l.began = l.began.Add(-start)
	naive := &paced{now: start, spacing: interval / rate}
	var (
		mu      sync.Mutex
		log     []string
		tickets = map[time.Duration]uint32{}
		cancels = map[int]context.CancelFunc{}
		wg      sync.WaitGroup
	)
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, fmt.Sprintf(format, args...))
	}
	wait := func(id int, most time.Duration) {
		ctx, cancel := context.WithCancel(context.Background())
		cancels[id] = cancel
		wg.Go(func() {
			turn, err := l.p.Wait(ctx, l.now(), most)
			switch {
			case err == nil:
				say("%d passes at %v", id, l.now())
				if turn.Ticket != 0 { // it took a turn
					mu.Lock()
					tickets[l.now()] = turn.Ticket
					mu.Unlock()
				}
			case tps.IsGivenUp(err):
				say("%d gives up at %v", id, l.now())
			default:
				say("%d is %v late", id, turn.RetryAfter)
			}
		})
	}
	defer func() {
		for _, cancel := range cancels {
			cancel()
		}
		wg.Wait()
	}()
	for id, b := range script {
		arg := int(b >> 3)
		switch b & 7 {
		case 0, 1:
			most := time.Duration(arg*arg) * ms / 4
			wait(id, most)
			naive.wait(id, most)
		case 2:
			pause(time.Duration(arg) * ms)
			naive.advance(l.now())
		case 3:
			if cancel := cancels[id-1-arg]; cancel != nil {
				cancel()
			}
			naive.cancel(id - 1 - arg)
		case 4:
			mu.Lock()
			ticket, ok := tickets[naive.last]
			mu.Unlock()
			if ok && naive.last <= naive.now && arg%4 == 0 {
				l.p.GiveBack(ticket)
				naive.takeBack(naive.last)
			}
		case 5:
			n := int64(20 + 10*arg)
			require.NoError(t, l.p.Update(tps.Quota{Rate: n, Interval: time.Second}, tps.Warming{}))
			naive.update(time.Duration((int64(time.Second) + n - 1) / n))
		case 6:
			if arg%4 == 0 {
				l.p.SetOpen(arg%8 == 0)
				naive.setOpen(arg%8 == 0)
			}
		case 7:
			most := time.Duration(arg) * ms
			if wait, err := l.p.Observe(l.now(), most); err != nil {
				say("%d would be late", id)
			} else {
				say("%d would wait %v", id, wait)
			}
			naive.observe(id, most)
		}
		synctest.Wait()
		naive.advance(l.now())
		require.EqualValues(t, len(naive.queue), l.p.Stats().Waiting, "after %d", id)
		mu.Lock()
		got := slices.Clone(log)
		mu.Unlock()
		same(t, naive.log, got)
	}
}

// same requires the same events. Those of one moment are told in any order.
func same(t *testing.T, want, got []string) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	want = slices.Clone(want)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		in := func(of []string) func(string) bool { return func(e string) bool { return slices.Contains(of, e) } }
		t.Fatalf("only the naive one: %q, only the other: %q", slices.DeleteFunc(slices.Clone(want), in(got)), slices.DeleteFunc(slices.Clone(got), in(want)))
	}
}
