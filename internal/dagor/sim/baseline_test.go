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
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/dagor"
)

// overload has tasks of so many calls ask for x times what M can do: 3 servers of 10 slots at 40 ms.
func overload(x float64, calls int, policy func(*Server) Policy) Setup {
	load := steady(x*750/float64(calls), calls)
	load.Deadline, load.Users = 500*time.Millisecond, 100_000
	return Setup{
		Load: load, Policy: policy, Servers: 3, Slots: 10, Service: 40 * time.Millisecond, Upstreams: 3,
		Lasts: 50 * time.Second, Warm: 20 * time.Second, Seed: 1,
	}
}

// bench is a server to try a policy on by hand.
type bench struct {
	*Server
	t     *testing.T
	heard map[string]string
}

func newBench(t *testing.T, slots int, policy func(*Server) Policy) *bench {
	w := &World{}
	s := &Server{World: w, Slots: slots, Service: 40 * time.Millisecond, chance: stream(1, 1), stats: &Stats{World: w}}
	s.Policy = policy(s)
	return &bench{Server: s, t: t, heard: map[string]string{}}
}

// named calls tell the bench what became of them.
type named struct {
	b    *bench
	name string
}

func (n named) answered(*Call, *Server) { n.b.note(n.name, "answered") }
func (n named) refused(*Call, *Server)  { n.b.note(n.name, "refused") }

func (b *bench) note(name, what string) {
	require.Empty(b.t, b.heard[name], "%s is told once", name)
	b.heard[name] = fmt.Sprintf("%s %v", what, b.now)
}

// hold takes a slot until a time.
func (b *bench) hold(until time.Duration) {
	b.busy++
	b.At(until, func() {
		b.busy--
		for b.busy < b.Slots && b.queue.len() > 0 {
			b.work(b.next())
		}
	})
}

func (b *bench) call(at time.Duration, name string) {
	b.At(at, func() { b.arrive(&Call{caller: named{b, name}}) })
}

func TestCoDelRefusesWhatWaitsTooLong(t *testing.T) {
	const ms = time.Millisecond
	b := newBench(t, 1, CoDel)
	b.hold(time.Second)
	b.call(10*ms, "first")   // the queue was empty: it may wait for 100 ms
	b.call(109*ms, "second") // until here it was so within 100 ms
	b.call(111*ms, "third")  // at 110 ms the second was alone, and not for long
	b.call(205*ms, "fourth") // nor here
	b.call(208*ms, "fifth")
	b.call(212*ms, "sixth")
	b.Run(2 * time.Second)
	assert.Equal(t, map[string]string{
		"first": "refused 110ms", "second": "refused 209ms", "third": "refused 116ms", "fourth": "refused 210ms",
		"fifth": "refused 213ms", "sixth": "refused 217ms",
	}, b.heard)
}

func TestCoDelServesTheNewestWhileTheQueueStands(t *testing.T) {
	const ms = time.Millisecond
	for _, fifo := range []bool{false, true} {
		b := newBench(t, 1, func(*Server) Policy {
			return &CoDelPolicy{Timeout: 50 * ms, Interval: 100 * ms, FIFO: fifo}
		})
		b.Service = 0
		b.hold(40 * ms)
		b.call(0, "a")
		b.call(1*ms, "b")
		b.Run(60 * ms)
		require.Equal(t, map[string]string{"a": "answered 40ms", "b": "answered 40ms"}, b.heard)
		b.hold(170 * ms) // the queue stands from 60 on
		b.call(60*ms, "c")
		b.call(90*ms, "d")
		b.call(161*ms, "e")
		b.call(162*ms, "f")
		order := []string{}
		b.Run(169 * ms)
		b.Service = 30 * time.Second // one of them gets the slot, the others are refused
		b.Run(time.Hour)
		for _, name := range []string{"d", "e", "f"} {
			if b.heard[name][:8] == "answered" {
				order = append(order, name)
			}
		}
		want := "f"
		if fifo {
			want = "d"
		}
		assert.Equal(t, []string{want}, order, "fifo %v: %v", fifo, b.heard)
		assert.Equal(t, "refused 160ms", b.heard["c"])
	}
}

func TestCoDelBoundsTheDelay(t *testing.T) {
	for _, x := range []float64{1.33, 4} {
		stats := overload(x, 1, CoDel).Run()
		assert.LessOrEqual(t, stats.Wait(1), codelInterval, "%v", x)
		assert.Less(t, stats.MeanWait(), 40*time.Millisecond, "%v", x)
		assert.Greater(t, x*stats.All.Success(), 0.97, "%v: and the slots are busy", x)
	}
	assert.Greater(t, overload(1.33, 1, None).Run().Wait(0.5), time.Second, "without it they wait for ever longer")
}

func TestSEDAAdjustsAsPublished(t *testing.T) {
	p := &SEDAPolicy{Target: time.Second, Rate: 120}
	for i, step := range []struct{ seen, rate float64 }{
		{2, 100},                        // above: by a factor
		{0.1, 100 / 1.2},                // the mean is 1.43
		{0.1, 100 / 1.2 / 1.2},          // 1.031
		{0.1, 100 / 1.2 / 1.2},          // 0.7517 is near enough
		{0.1, 100 / 1.2 / 1.2},          // 0.55619
		{0, 100/1.2/1.2 + 2*0.510666},   // 0.389334: below by 0.610666, less 0.1
		{0, 100/1.2/1.2 + 2*1.13813302}, // 0.27253: 0.62747 more
	} {
		p.adjust(step.seen)
		assert.InDelta(t, step.rate, p.Rate, 1e-4, "step %d", i)
	}
	p.Rate, p.mean = 0.05, 10
	p.adjust(10)
	assert.Equal(t, 0.05, p.Rate)
	p.Rate, p.mean = 5000, 0.01
	p.adjust(0.01)
	assert.Equal(t, 5000.0, p.Rate)
}

func TestSEDALooksAfterSoManyCallsOrSoLong(t *testing.T) {
	p := &SEDAPolicy{Target: time.Second, Rate: 100}
	b := newBench(t, 1, func(*Server) Policy { return p })
	b.Run(10 * time.Second)
	for range 99 {
		p.Done(b.Server, &Call{})
	}
	require.Equal(t, 100.0, p.Rate)
	p.Done(b.Server, &Call{})
	require.InDelta(t, 100/1.2, p.Rate, 1e-9, "they took 10 s")
	p.Done(b.Server, &Call{accepted: 10 * time.Second})
	b.Run(11*time.Second - 1)
	p.Done(b.Server, &Call{})
	require.InDelta(t, 100/1.2, p.Rate, 1e-9)
	b.Run(11 * time.Second)
	p.Done(b.Server, &Call{})
	require.InDelta(t, 100/1.2/1.2, p.Rate, 1e-9)
}

func TestSEDAGetsTheResponseTimeToItsTarget(t *testing.T) {
	for _, start := range []float64{100, 400} {
		setup := overload(1.33, 1, func(*Server) Policy {
			return &SEDAPolicy{Target: sedaTarget, Divide: sedaTuned, Rate: start}
		})
		setup.Load.Deadline, setup.Load.Resends = time.Hour, 0
		setup.Lasts, setup.Warm = 300*time.Second, 150*time.Second // it is slow to raise its rate
		got := setup.Run().Latency(sedaQuantile)
		// Between err_i and err_d it is content.
		assert.Greater(t, got, sedaTarget/2, "from %v", start)
		assert.Less(t, got, sedaTarget*11/10, "from %v", start)
	}
}

func TestTokenBucketLetsItsRateIn(t *testing.T) {
	p := &SEDAPolicy{Target: time.Hour, Rate: 100, Add: -1e-12}
	b := newBench(t, 1000, func(*Server) Policy { return p })
	in := 0
	for i := range 10_000 {
		b.Run(time.Duration(i) * time.Millisecond)
		before := b.busy
		p.Arrive(b.Server, &Call{caller: named{b, fmt.Sprint(i)}})
		if b.busy > before {
			in++
		}
	}
	assert.InDelta(t, 1000, in, 12, "10 s at 100, and what the bucket holds")
}

func TestPIDAdmitsWhatCanBeDone(t *testing.T) {
	for _, x := range []float64{1.33, 2, 4} {
		setup := overload(x, 1, PID)
		stats := setup.Run()
		rate := float64(stats.Arrived-stats.Refused) / (setup.Lasts - setup.Warm).Seconds()
		assert.InEpsilon(t, setup.Saturated(), rate, 0.05, "%v: %v", x, rate)
		assert.Less(t, stats.Wait(0.99), 400*time.Millisecond, "%v", x)
	}
	stats := overload(0.5, 1, PID).Run()
	assert.Less(t, float64(stats.Refused), 0.01*float64(stats.Arrived), "and nothing is refused without need")
}

func TestPIDRefusesTheLeastImportant(t *testing.T) {
	setup := overload(2, 1, PID)
	setup.Load.Classes = func(time.Duration) []Class {
		return []Class{{Share: 1, Calls: 1, Business: 1}, {Share: 1, Calls: 1, Business: 2}, {Share: 2, Calls: 1, Business: 3}}
	}
	stats := setup.Run()
	assert.Greater(t, stats.ByClass[0].Success(), 0.995)
	assert.Greater(t, stats.ByClass[1].Success(), 0.8)
	assert.Less(t, stats.ByClass[2].Success(), 0.1)
}

func TestPIDCutsByTheDistribution(t *testing.T) {
	p := &PIDPolicy{Period: time.Second, sum: 0.25}
	b := newBench(t, 1, func(*Server) Policy { return p })
	for i := range 3 * pidSample { // the last thousand count
		rank := i/pidSample*pidSample + i*7%pidSample
		p.Arrive(b.Server, &Call{Priority: dagor.Priority(rank), caller: named{b, fmt.Sprint(i)}})
	}
	b.now = time.Second
	p.adjust(b.Server)
	assert.InDelta(t, 0.25, p.Share, 1e-9)
	assert.Equal(t, dagor.Priority(2750), p.cursor)
	p.sum = 0
	p.adjust(b.Server)
	assert.Equal(t, dagor.Open, p.cursor)
}

// TestShapes has what tells the policies apart: those that refuse by chance lose tasks of many calls.
func TestShapes(t *testing.T) {
	run := func(calls int, policy func(*Server) Policy) float64 {
		return 100 * overload(2, calls, policy).Run().All.Success()
	}
	for name, policy := range map[string]func(*Server) Policy{"seda": SEDA, "codel": CoDel} {
		one, four := run(1, policy), run(4, policy)
		assert.Greater(t, one, 40.0, name)
		assert.Less(t, four, 0.6*one, name)
	}
	assert.Greater(t, run(2, PID), 45.0)
}

func TestRunsAreTheSame(t *testing.T) {
	for name, policy := range map[string]func(*Server) Policy{
		"none": None, "random": Random, "codel": CoDel, "seda": SEDA, "pid": PID,
		"paper": func(*Server) Policy {
			return &PaperPolicy{Paper: dagor.NewPaper(dagor.PaperOptions{Businesses: 1}, 0), Tells: true, Reports: true}
		},
		"weir": func(*Server) Policy {
			return &WeirPolicy{Controller: dagor.NewController(dagor.Options{Limit: 5}, 0), Tells: true, Sees: true}
		},
	} {
		run := func(seed uint64) (*Stats, uint64) {
			setup := overload(2, 2, policy)
			setup.Seed, setup.Lasts, setup.Warm = seed, 8*time.Second, time.Second
			s := setup.Run()
			steps := s.World.Steps()
			s.World = nil
			return s, steps
		}
		one, steps := run(1)
		again, same := run(1)
		assert.Equal(t, one, again, name)
		assert.Equal(t, steps, same, name)
		other, _ := run(2)
		assert.NotEqual(t, one.All, other.All, name)
	}
}

func TestEachCallIsDecidedOnce(t *testing.T) {
	for name, policy := range map[string]func(*Server) Policy{
		"codel": CoDel, "seda": SEDA, "pid": PID, "random": Random,
		"weir": func(*Server) Policy {
			return &WeirPolicy{Controller: dagor.NewController(dagor.Options{Limit: 40}, 0), Tells: true, Sees: true}
		},
	} {
		setup := overload(3, 1, policy)
		setup.Warm, setup.Lasts = 0, 15*time.Second
		// Once it is calm at the end, all that came was either refused or has begun.
		tasks := setup.Load.Tasks
		setup.Load.Tasks = func(now time.Duration) float64 {
			if now > 8*time.Second {
				return 0
			}
			return tasks(now)
		}
		if name == "random" { // its queue is long for long
			setup.Lasts = 300 * time.Second
		}
		stats := setup.Run()
		assert.Equal(t, stats.Arrived, stats.Refused+len(stats.waits), name)
		assert.Equal(t, stats.All.Offered, stats.All.Succeeded+stats.All.Failed, name)
	}
}
