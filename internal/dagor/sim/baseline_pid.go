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

package sim

import (
	"slices"
	"time"

	"github.com/weir-go/weir/internal/dagor"
)

// What PID was tuned to. A grid of the period (100, 300 ms), P (0.1, 0.3, 1), I (0.1, 0.3) and of the queue (5, 10, 20,
// 30 calls) was run with M^1 and M^2 at 1.33, 2 and 4 times the saturation. Without a queue to aim at it kept a sixth
// of the slots idle, and with P = 1 it swung. A queue of 20 gave it a point more there, but
// with M^4 little more than half of what 10 gives: four such waits take a task's time.
const (
	pidPeriod  = 100 * time.Millisecond
	pidP, pidI = 0.3, 0.1
	pidQueue   = 10.0
)

const (
	// pidSample is of how many calls the priorities are known.
	pidSample = 1000
	// pidMost is the largest share that is refused.
	pidMost = 0.98
)

// PIDPolicy refuses a share of the calls, those of the least importance, and has a PI
// controller find the share. It is like Uber's Cinnamon, as far as that is published: the
// controller's error is how many more calls came to the queue in a period than left it,
// less the slots that are free, in proportion to all that came; the priorities of the
// last 1000 calls tell where the share is to be cut. What waits beyond the Queue that is aimed at
// is added here, so that a queue once grown is worked off. The derivative is left out. The queue
// itself is in order of arrival.
type PIDPolicy struct {
	admitAll
	Period time.Duration
	P, I   float64
	// Queue is how many calls are to wait.
	Queue float64
	// Share is what is refused.
	Share float64

	cursor  dagor.Priority
	recent  []dagor.Priority
	came    int
	ends    time.Duration
	in, out int
	sum     float64 // what the integral part is at
	sorted  []dagor.Priority
	asked   int
}

// PID makes one that is tuned to the experiments.
func PID(*Server) Policy { return &PIDPolicy{Period: pidPeriod, P: pidP, I: pidI, Queue: pidQueue} }

// Arrive refuses what is of less importance than the cursor.
func (p *PIDPolicy) Arrive(s *Server, c *Call) {
	if p.ends == 0 {
		p.cursor, p.ends = dagor.Open, s.now+p.Period
	}
	if s.now >= p.ends {
		p.adjust(s)
	}
	if len(p.recent) < pidSample {
		p.recent = append(p.recent, c.Priority)
	} else {
		p.recent[p.came%pidSample] = c.Priority
	}
	p.came++
	p.asked++
	if c.Priority >= p.cursor {
		s.Refuse(c)
		return
	}
	p.in++
	s.Accept(c)
}

// Done counts what leaves.
func (p *PIDPolicy) Done(*Server, *Call) { p.out++ }

func (p *PIDPolicy) adjust(s *Server) {
	free := s.Slots - s.Busy()
	off := (float64(p.in-p.out-free+s.Queued()) - p.Queue) / float64(max(1, p.asked))
	p.sum = max(0, min(p.sum+p.I*off, pidMost))
	p.Share = max(0, min(p.sum+p.P*off, pidMost))
	p.in, p.out, p.asked, p.ends = 0, 0, 0, s.now+p.Period
	p.cursor = dagor.Open
	if n := int((1 - p.Share) * float64(len(p.recent))); n < len(p.recent) {
		p.sorted = append(p.sorted[:0], p.recent...)
		slices.Sort(p.sorted)
		p.cursor = p.sorted[n]
	}
}
