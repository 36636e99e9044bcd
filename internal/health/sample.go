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

package health

import "time"

// Patience is how long a sample waits for signals that are not of this package. It is
// long enough for their goroutines to have their turn where the scheduler is late,
// which is when they are needed.
const Patience = time.Second

// turn is a signal in one sample.
type turn struct {
	*watch
	answer answer
	anew   bool
	// waiting: it was asked in this sample, and its answer has not been taken.
	waiting bool
}

// Sample reads all signals that have a limit; now is that of the monotonic clock. A
// time before the last one counts as the same. While somebody samples, another one
// that tries to returns at once.
//
// What the signals of this package say holds at once. Others are read side by side,
// each by a goroutine of its own, and are waited for as long as [Patience], all in all.
// One that has not come back by then is not known, and is neither asked nor waited for
// again until it has: what hangs for good costs one goroutine, and one sample the time.
// Panics are contained.
func (m *Monitor) Sample(now time.Duration) {
	if !m.sampling.CompareAndSwap(false, true) {
		return
	}
	defer m.sampling.Store(false)
	m.callUp()
	own, asked := false, false
	for i := range m.round {
		if t := &m.round[i]; !t.inline {
			t.start(now)
			own, asked = true, asked || t.waiting
		}
	}
	for i := range m.round {
		if t := &m.round[i]; t.inline {
			if t.anew {
				t.signal.(ours).forget()
			}
			t.answer = t.read(now)
		}
	}
	m.take(now, true)
	if asked {
		m.await()
	}
	if own {
		m.take(now, false)
	}
	clear(m.round) // those that are removed are not kept
}

// callUp makes the round of those that are read.
func (m *Monitor) callUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.round = m.round[:0]
	for _, w := range m.watches {
		if !w.rule.off() {
			m.round = append(m.round, turn{watch: w, anew: w.anew})
			w.anew = false
		}
	}
}

// start asks a signal, unless it has not answered the last time.
func (t *turn) start(now time.Duration) {
	if t.asked {
		select {
		case <-t.answers: // of another time, so it does not count
			t.asked = false
		default:
			t.answer.err = ErrLate
			return
		}
	}
	t.asked, t.waiting = true, true
	go t.ask(now)
}

// await takes the answers of those that were asked.
func (m *Monitor) await() {
	if m.timer == nil {
		m.timer = time.NewTimer(Patience)
	} else {
		m.timer.Reset(Patience)
	}
	defer m.timer.Stop()
	late := false
	for i := range m.round {
		t := &m.round[i]
		if !t.waiting {
			continue
		}
		if !late {
			select {
			case t.answer = <-t.answers:
				t.asked = false
				continue
			case <-m.timer.C:
				late = true
			}
		}
		select {
		case t.answer = <-t.answers:
			t.asked = false
		default:
			t.answer.err = ErrLate
		}
	}
}

// take takes the answers of this package's signals, or those of the others.
func (m *Monitor) take(now time.Duration, inline bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = now
	for i := range m.round {
		if t := &m.round[i]; t.inline == inline {
			t.takeLocked(t.answer, now)
		}
	}
	m.judgeLocked()
}
