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
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// model is a service of so many slots, in front of which a tuner lets so many calls run as it
// says. It knows no clock: a window is a number of ends of calls.
type model struct {
	t          tuner
	rnd        *rand.Rand
	slots      int
	service    time.Duration // in the mean
	constant   bool          // each call takes the mean
	downstream time.Duration // that each waits for after that, without a slot
	load       float64       // of what saturates; from 1.3 on the queue is never empty
	sees       bool          // the scheduler's latency tells of the wait for a slot

	now, due time.Duration // due: of the next call where the queue may be empty
	free     []time.Duration
	ends     []ending // a heap
	waiting  int
	delay    time.Duration
	limits   []float64 // of each window
}

type ending struct{ began, at time.Duration }

func newModel(limit, slots int, service time.Duration, load float64) *model {
	m := &model{rnd: rand.New(rand.NewPCG(15, uint64(slots))), slots: slots, service: service, load: load, free: make([]time.Duration, slots), delay: -1}
	m.t = newTuner(Options{Limit: limit}.withDefaults())
	return m
}

func (m *model) exp(mean time.Duration) time.Duration {
	return time.Duration(m.rnd.ExpFloat64() * float64(mean))
}

// begin has a call run from now on. It comes to the slot that is free first.
func (m *model) begin(waited *time.Duration) {
	took := m.service
	if !m.constant {
		took = m.exp(m.service)
	}
	first := 0
	for i, at := range m.free {
		if at < m.free[first] {
			first = i
		}
		if at <= m.now {
			first = i
			break
		}
	}
	starts := max(m.now, m.free[first])
	*waited += starts - m.now
	m.free[first] = starts + took
	m.push(ending{m.now, starts + took + m.downstream})
}

func (m *model) push(e ending) {
	h := append(m.ends, e)
	for i := len(h) - 1; i > 0 && h[i].at < h[(i-1)/2].at; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
	m.ends = h
}

func (m *model) pop() ending {
	h := m.ends
	e, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < last && h[c+1].at < h[c].at {
			c++
		}
		if c >= last || h[i].at <= h[c].at {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	m.ends = h
	return e
}

// run goes on for so long.
func (m *model) run(d time.Duration) {
	limit := m.t.limit
	if n := len(m.limits); n > 0 {
		limit = int(m.limits[n-1])
	}
	rate := m.load * float64(m.slots) / m.service.Seconds()
	for until := m.now + d; m.now < until; {
		end := m.now + m.t.opts.Window
		var (
			f       figures
			waited  time.Duration
			begun   int
			between = time.Duration(float64(time.Second) / rate)
		)
		for {
			busy := m.load >= 1.3
			for ; len(m.ends) < limit && (busy || m.waiting > 0); begun++ {
				m.begin(&waited)
				m.waiting = max(0, m.waiting-1)
			}
			if !busy && m.due == 0 {
				m.due = m.now + m.exp(between)
			}
			next := end
			if !busy {
				next = min(next, m.due)
			}
			if len(m.ends) > 0 && m.ends[0].at <= next {
				e := m.pop()
				m.now = e.at
				f.done++
				f.ran += e.at - e.began
				continue
			}
			m.now = next
			if next == end {
				break
			}
			m.due = 0
			f.came++
			if len(m.ends) < limit {
				m.begin(&waited)
				begun++
				continue
			}
			f.held++
			if m.waiting < m.t.room() {
				m.waiting++
			} else {
				f.refused++
			}
		}
		f.took = m.t.opts.Window
		if m.load >= 1.3 {
			n := rate * f.took.Seconds()
			f.came = int64(n)
			if m.rnd.Float64() < n-math.Floor(n) {
				f.came++
			}
			f.held = f.came
		}
		if m.sees && begun > 0 {
			m.delay = waited / time.Duration(begun)
		}
		limit = m.t.window(f, m.delay)
		m.limits = append(m.limits, float64(limit))
	}
}

// mean is that of the limits of the last windows, trials and all.
func (m *model) mean(d time.Duration) float64 {
	last := m.limits[max(0, len(m.limits)-int(d/m.t.opts.Window)):]
	sum := 0.0
	for _, l := range last {
		sum += l
	}
	return sum / float64(len(last))
}

func TestProbeLimit(t *testing.T) {
	for _, k := range []int{1, 2, 5, 10, 50, 400} {
		for _, service := range []time.Duration{ms, 10 * ms, 40 * ms, 200 * ms, 2 * sec} {
			if float64(k)/service.Seconds() > 20000 {
				continue
			}
			line := fmt.Sprintf("K %3d %5v", k, service)
			for _, load := range []float64{0.5, 1.4, 4} {
				for _, constant := range []bool{false, true} {
					line += fmt.Sprintf(" | %3.1f %5v", load, constant)
					for _, from := range []int{max(1, k/2), 4 * k} {
						m := newModel(from, k, service, load)
						m.constant = constant
						m.run(60 * sec)
						line += fmt.Sprintf(" %5.2f", m.mean(30*sec)/float64(k))
					}
				}
			}
			t.Log(line)
		}
	}
	_ = slices.Max[[]int]
	require.True(t, true)
}
