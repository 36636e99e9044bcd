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
)

// bucket is the length of the parts that Stats keep of time.
const bucket = 100 * time.Millisecond

// Counts are tasks by how they ended. They belong to the time of their start.
type Counts struct{ Offered, Succeeded, Failed int }

// Success is the share of those offered that succeeded.
func (c Counts) Success() float64 {
	if c.Offered == 0 {
		return 0
	}
	return float64(c.Succeeded) / float64(c.Offered)
}

func (c *Counts) add(d Counts) {
	c.Offered += d.Offered
	c.Succeeded += d.Succeeded
	c.Failed += d.Failed
}

// Stats are what a run has counted, without its beginning.
type Stats struct {
	World *World
	// From is when counting begins.
	From time.Duration

	// All tasks, by class and by the number of their calls.
	All     Counts
	ByClass []Counts
	ByCalls map[int]*Counts
	// Buckets has the tasks that started in each tenth of a second, the beginning included,
	// and by class Classes.
	Buckets []Counts
	Classes [][]Counts
	// Arrived calls came to the servers, Refused ones were refused there and Shed ones
	// by their callers.
	Arrived, Refused, Shed int

	waits, latencies []time.Duration
	resent           []int // in each tenth of a second
}

func (s *Stats) counts(t *task, f func(*Counts)) {
	i := int(t.start / bucket)
	for len(s.Buckets) <= i {
		s.Buckets = append(s.Buckets, Counts{})
		s.Classes = append(s.Classes, nil)
	}
	f(&s.Buckets[i])
	for len(s.Classes[i]) <= t.class {
		s.Classes[i] = append(s.Classes[i], Counts{})
	}
	f(&s.Classes[i][t.class])
	if t.start < s.From {
		return
	}
	f(&s.All)
	for len(s.ByClass) <= t.class {
		s.ByClass = append(s.ByClass, Counts{})
	}
	f(&s.ByClass[t.class])
	if s.ByCalls == nil {
		s.ByCalls = map[int]*Counts{}
	}
	k := s.ByCalls[t.calls]
	if k == nil {
		k = new(Counts)
		s.ByCalls[t.calls] = k
	}
	f(k)
}

func (s *Stats) offered(t *task) { s.counts(t, func(c *Counts) { c.Offered++ }) }
func (s *Stats) failed(t *task)  { s.counts(t, func(c *Counts) { c.Failed++ }) }

func (s *Stats) succeeded(t *task) {
	s.counts(t, func(c *Counts) { c.Succeeded++ })
	if t.start >= s.From {
		s.latencies = append(s.latencies, t.c.now-t.start)
	}
}

func (s *Stats) shed(t *task) {
	if t.c.now >= s.From {
		s.Shed++
	}
}

func (s *Stats) again(t *task) {
	i := int(t.c.now / bucket)
	for len(s.resent) <= i {
		s.resent = append(s.resent, 0)
	}
	s.resent[i]++
}

// RetriesBetween are the calls that were sent again in a time.
func (s *Stats) RetriesBetween(from, to time.Duration) (n int) {
	for i := int(from / bucket); i < int(to/bucket) && i < len(s.resent); i++ {
		n += s.resent[i]
	}
	return n
}

func (s *Stats) arrived(c *Call) {
	if c.arrived >= s.From {
		s.Arrived++
	}
}

func (s *Stats) refused(c *Call) {
	if c.arrived >= s.From {
		s.Refused++
	}
}

func (s *Stats) began(c *Call) {
	if c.arrived >= s.From {
		s.waits = append(s.waits, c.began-c.arrived)
	}
}

// Between are the tasks that started in a time.
func (s *Stats) Between(from, to time.Duration) (sum Counts) {
	for i := int(from / bucket); i < int(to/bucket) && i < len(s.Buckets); i++ {
		sum.add(s.Buckets[i])
	}
	return sum
}

// MeanWait is how long calls waited in the mean before they had a slot, those that were refused left out.
func (s *Stats) MeanWait() time.Duration {
	if len(s.waits) == 0 {
		return 0
	}
	var sum time.Duration
	for _, w := range s.waits {
		sum += w
	}
	return sum / time.Duration(len(s.waits))
}

// Wait is a quantile of the same.
func (s *Stats) Wait(q float64) time.Duration { return quantile(s.waits, q) }

// Latency is a quantile of how long tasks took that succeeded.
func (s *Stats) Latency(q float64) time.Duration { return quantile(s.latencies, q) }

func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[min(len(of)-1, int(q*float64(len(of))))]
}

// Inversions is the share of the pairs of a task that failed and one that succeeded, both
// begun in the same second, of which the one that failed had the more important class:
// classes are taken to be in the order of their importance.
func (s *Stats) Inversions() float64 {
	var pairs, inverted float64
	const second = int(time.Second / bucket)
	for from := int(s.From / bucket); from+second <= len(s.Classes); from += second {
		var c []Counts
		for _, k := range s.Classes[from : from+second] {
			for i := range k {
				if i >= len(c) {
					c = append(c, Counts{})
				}
				c[i].add(k[i])
			}
		}
		for i := range c {
			for j := range c {
				n := float64(c[i].Offered-c[i].Succeeded) * float64(c[j].Succeeded)
				pairs += n
				if i < j {
					inverted += n
				}
			}
		}
	}
	if pairs == 0 {
		return 0
	}
	return inverted / pairs
}

// Jain is Jain's fairness index of the success of tasks with different numbers of calls.
func (s *Stats) Jain() float64 {
	var sum, squares, n float64
	for _, c := range s.ByCalls {
		x := c.Success()
		sum += x
		squares += x * x
		n++
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (n * squares)
}
