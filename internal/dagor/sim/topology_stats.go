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
	"math"
	"time"

	"github.com/weir-go/weir/internal/dagor"
)

// HotSecond is what a hot instance was at in a second.
type HotSecond struct {
	// Came, Admitted and Refused are its calls.
	Came, Admitted, Refused int
	// Limit is its limit at the end, and Waiting how many calls wait.
	Limit, Waiting int
	// Passes is what share of all tasks has a priority that passes its advertised cursor.
	Passes float64
}

// TopologyStats are what a run of a Topology has counted.
type TopologyStats struct {
	Topology Topology
	// Tasks by class that need the hot service, and those that do not, without those that
	// began in the warm-up.
	Hot, Others []Counts
	// Calls are those that were asked for, Sent is how many times one was sent, Sheds how
	// many times none was as its caller knew better, and Again how many times one that was
	// refused or shed was tried again. Refused is how many times one was refused, and Late how many
	// calls were given up as their deadline had passed. HotCalls,
	// HotSent, HotSheds and HotRefused are those of the hot service. They are of the whole run.
	Calls, Sent, Sheds, Again, Refused, Late int
	HotCalls, HotSent, HotSheds, HotRefused  int
	Ended, Answered, BegunTasks, EndedTasks  int
	// Seconds has for each second what each hot instance was at.
	Seconds [][]HotSecond
	// Left is what was not over when all should have been: none.
	Left int
	// Steps is how many events there were.
	Steps uint64
}

func newTopologyStats(t Topology) *TopologyStats {
	n := len(topologyShares)
	return &TopologyStats{Topology: t, Hot: make([]Counts, n), Others: make([]Counts, n)}
}

func (s *TopologyStats) counts(t *errand) *Counts {
	switch {
	case t.start < s.Topology.Warm:
		return new(Counts)
	case t.hot:
		return &s.Hot[t.class]
	}
	return &s.Others[t.class]
}

func (s *TopologyStats) begun(t *errand) {
	s.BegunTasks++
	s.counts(t).Offered++
}

func (s *TopologyStats) done(t *errand, ok bool) {
	s.EndedTasks++
	if ok {
		s.counts(t).Succeeded++
		return
	}
	s.counts(t).Failed++
}

// isHot tells whether a call is for the hot service itself.
func isHot(c *rpc) bool { return c.service.index == 0 }

func count(all, hot *int, c *rpc) {
	*all++
	if isHot(c) {
		*hot++
	}
}

func (s *TopologyStats) call(c *rpc)    { count(&s.Calls, &s.HotCalls, c) }
func (s *TopologyStats) send(c *rpc)    { count(&s.Sent, &s.HotSent, c) }
func (s *TopologyStats) shed(c *rpc)    { count(&s.Sheds, &s.HotSheds, c) }
func (s *TopologyStats) refused(c *rpc) { count(&s.Refused, &s.HotRefused, c) }
func (s *TopologyStats) again(*rpc)     { s.Again++ }
func (s *TopologyStats) late(*rpc)      { s.Late++ }

func (s *TopologyStats) ended(_ *rpc, how ending) {
	s.Ended++
	if how == answered {
		s.Answered++
	}
}

func (s *TopologyStats) second(nodes []*node) {
	row := make([]HotSecond, 0, len(nodes))
	for _, n := range nodes {
		state := n.control.State()
		row = append(row, HotSecond{
			Came: n.came, Admitted: n.admitted, Refused: n.refusals,
			Limit: state.Limit, Waiting: state.Waiting, Passes: passes(state.Cursor),
		})
		n.came, n.admitted, n.refusals = 0, 0, 0
	}
	s.Seconds = append(s.Seconds, row)
}

// passes is the share of the tasks that pass a cursor.
func passes(cursor dagor.Priority) (share float64) {
	if cursor >= dagor.Open {
		return 1
	}
	level := cursor.Level()
	for class, part := range topologyShares {
		switch b := int(level.Business()); {
		case class < b:
			share += part
		case class == b:
			share += part * (float64(level.User()) + float64(cursor.Task())/(1<<16)) / dagor.Users
		}
	}
	return share
}

// settled are the seconds after the warm-up.
func (s *TopologyStats) settled() [][]HotSecond {
	return s.Seconds[min(len(s.Seconds), int(s.Topology.Warm/time.Second)):]
}

// Swing is how much a figure moves from second to second.
type Swing struct {
	Mean float64
	// Variation is its coefficient of variation.
	Variation float64
	// Turns is how many times in a minute it turned round: went down by more than some
	// least way after it had gone up by as much, or the reverse.
	Turns float64
}

func swing(of []float64, least float64) Swing {
	mean, variation := spread(of)
	return Swing{Mean: mean, Variation: variation, Turns: float64(turns(of, least)) * 60 / float64(max(1, len(of)))}
}

// Whole is the swing of the mean of the hot instances, once settled: what they do in common.
func (s *TopologyStats) Whole(figure func(HotSecond) float64, least float64) Swing {
	var of []float64
	for _, row := range s.settled() {
		sum := 0.0
		for _, h := range row {
			sum += figure(h)
		}
		of = append(of, sum/float64(len(row)))
	}
	return swing(of, least)
}

// Each is the mean of the swings of the hot instances, once settled.
func (s *TopologyStats) Each(figure func(HotSecond) float64, least float64) (mean Swing) {
	series := s.series(figure)
	n := float64(len(series))
	for _, of := range series {
		w := swing(of, least)
		mean.Mean += w.Mean / n
		mean.Variation += w.Variation / n
		mean.Turns += w.Turns / n
	}
	return mean
}

func (s *TopologyStats) series(figure func(HotSecond) float64) (series [][]float64) {
	for _, row := range s.settled() {
		for i, h := range row {
			if i == len(series) {
				series = append(series, nil)
			}
			series[i] = append(series[i], figure(h))
		}
	}
	return series
}

// turns counts the turning points of a series, of which each is by least away from the one before.
func turns(of []float64, least float64) (n int) {
	if len(of) == 0 {
		return 0
	}
	low, high, way := of[0], of[0], 0
	for _, x := range of {
		low, high = min(low, x), max(high, x)
		switch {
		case way >= 0 && high-x > least:
			if way > 0 {
				n++
			}
			way, low, high = -1, x, x
		case way <= 0 && x-low > least:
			if way < 0 {
				n++
			}
			way, low, high = 1, x, x
		}
	}
	return n
}

// spread is the mean, and the coefficient of variation.
func spread(of []float64) (mean, variation float64) {
	var sum, squares float64
	for _, x := range of {
		sum += x
		squares += x * x
	}
	n := float64(len(of))
	if sum == 0 {
		return 0, 0
	}
	mean = sum / n
	return mean, math.Sqrt(max(0, squares/n-mean*mean)) / mean
}

// Amplification is how many times a call to the hot service was sent for each that was asked for.
func (s *TopologyStats) Amplification() float64 {
	return float64(s.HotSent) / float64(max(1, s.HotCalls))
}

// Success is the share of the tasks that need the hot service that succeeded.
func (s *TopologyStats) Success() float64 {
	var sum Counts
	for _, c := range s.Hot {
		sum.add(c)
	}
	return sum.Success()
}
