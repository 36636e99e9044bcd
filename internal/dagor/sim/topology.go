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
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/internal/dagor"
)

// Topology is a system of many services, most of which one hot service serves that is too
// small. There are three layers above and beside it, of the services that tasks come to, those in
// the middle and the leaves:
//
//	gateways -> entry -> middle -> leaf, hot, hot
//	                  -> middle -> leaf, leaf
//
// Three of four entries call a middle service that calls the hot one twice, the fourth only others. Each
// instance has a Controller of its own, with a limit that is tuned, and an Upstream for
// each instance that it calls. Calls have the priority of their task and its deadline; one
// that is refused or shed is sent again, to an instance by chance, as far as the budget of
// its caller goes. The zero value is ready.
type Topology struct {
	// Entries, Middles and Leaves are how many services there are beside the hot one,
	// 12, 27 and 60 by default, and Instances how many instances each of them all has, 20 by default.
	Entries, Middles, Leaves, Instances int
	// Slots of a hot instance serve a call in Service in the mean, 10 and 40 ms by default. A call
	// to another service takes Quick, 2 ms by default.
	Slots          int
	Service, Quick time.Duration
	// Network is how long a message travels, 500 us by default.
	Network time.Duration
	// Load is how many times what the hot service can do is asked of it, by the time; twice by default.
	Load func(now time.Duration) float64
	// Deadline is for a task, 500 ms by default.
	Deadline time.Duration
	// Resends is how often a call is sent again at most, 3 by default, and Budget how many of those
	// there are for each call at most, 0.1 by default.
	Resends int
	Budget  float64
	// Lasts is how long tasks come, of which Warm is not counted, 32 s and 10 s by default. Then
	// all that was begun comes to its end.
	Lasts, Warm time.Duration
	// Blind callers shed nothing, whatever they are told.
	Blind bool
	Seed  uint64
}

// topologyShares is what part of the tasks each business level has.
var topologyShares = [...]float64{0.1, 0.2, 0.3, 0.4}

// budgetMost is how many resends a budget saves up.
const budgetMost = 10

func (t Topology) withDefaults() Topology {
	set(&t.Entries, 12)
	set(&t.Middles, 27)
	set(&t.Leaves, 60)
	set(&t.Instances, 20)
	set(&t.Slots, 10)
	set(&t.Service, 40*time.Millisecond)
	set(&t.Quick, 2*time.Millisecond)
	set(&t.Network, 500*time.Microsecond)
	set(&t.Deadline, 500*time.Millisecond)
	set(&t.Resends, 3)
	set(&t.Budget, 0.1)
	set(&t.Lasts, 32*time.Second)
	set(&t.Warm, 10*time.Second)
	if t.Load == nil {
		t.Load = func(time.Duration) float64 { return 2 }
	}
	return t
}

func set[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// Saturated is how many calls a second the hot service can do.
func (t Topology) Saturated() float64 {
	t = t.withDefaults()
	return float64(t.Instances*t.Slots) / t.Service.Seconds()
}

// Services is how many there are.
func (t Topology) Services() int {
	t = t.withDefaults()
	return t.Entries + t.Middles + t.Leaves + 1
}

// service is one of the topology, and the calls that each call to it makes.
type service struct {
	index int
	calls []*service
	nodes []*node
	hot   bool // it or one that it calls is the hot one
}

// topology is a run.
type topology struct {
	Topology
	*World
	arrivals *rand.Rand
	services []*service
	entries  []*service
	hot      *service
	gateways []*node
	stats    *TopologyStats
}

// Run runs it.
func (t Topology) Run() *TopologyStats {
	r := newTopology(t)
	r.next()
	r.World.At(time.Second, r.second)
	r.World.Run(r.Lasts)
	r.stop()
	return r.stats
}

func newTopology(t Topology) *topology {
	t = t.withDefaults()
	r := &topology{Topology: t, World: &World{}, arrivals: stream(t.Seed, 1)}
	r.stats = newTopologyStats(t)
	add := func(slots int, takes time.Duration, calls ...*service) *service {
		s := &service{index: len(r.services), calls: calls}
		for _, c := range calls {
			s.hot = s.hot || c.hot
		}
		for i := range t.Instances {
			n := &node{topology: r, service: s, slots: slots, takes: takes, chance: stream(t.Seed, uint64(1000*(s.index+1)+i))}
			n.control = dagor.NewController(dagor.Options{Limit: 2 * slots}, 0)
			s.nodes = append(s.nodes, n)
		}
		r.services = append(r.services, s)
		return s
	}
	r.hot = add(t.Slots, t.Service)
	r.hot.hot = true
	leaves := make([]*service, t.Leaves)
	for i := range leaves {
		leaves[i] = add(t.Slots, t.Quick)
	}
	middles := make([]*service, t.Middles)
	for i := range middles {
		a, b := leaves[2*i%t.Leaves], leaves[(2*i+1)%t.Leaves]
		if i%2 == 0 {
			middles[i] = add(t.Slots, t.Quick, a, r.hot, r.hot)
		} else {
			middles[i] = add(t.Slots, t.Quick, a, b)
		}
	}
	for i := range t.Entries {
		// Of the middles, those with an even number call the hot one.
		a, b := 2*i, 2*i+1
		if i%4 == 3 {
			a = 2*i + 3
		}
		evens, odds := (t.Middles+1)/2, t.Middles/2
		first := middles[a/2%evens*2]
		if a%2 == 1 {
			first = middles[a/2%odds*2+1]
		}
		r.entries = append(r.entries, add(t.Slots, t.Quick, first, middles[b/2%odds*2+1]))
	}
	for i := range t.Instances {
		r.gateways = append(r.gateways, &node{topology: r, chance: stream(t.Seed, uint64(100+i))})
	}
	return r
}

// next has tasks arrive. The rate is looked at every 50 ms at least; an exponential gap has no memory.
func (r *topology) next() {
	const look = 50 * time.Millisecond
	if r.now >= r.Lasts {
		return
	}
	// Half of the calls to the hot service, as a task makes two, from those entries that call it.
	rate := r.Load(r.now) * r.Saturated() / 2 * float64(len(r.entries)) / float64(r.hotEntries())
	gap := time.Duration(r.arrivals.ExpFloat64() / max(rate, 1e-9) * float64(time.Second))
	if gap > look || gap < 0 {
		r.After(look, r.next)
		return
	}
	r.After(gap, func() {
		if r.now < r.Lasts {
			r.begin()
		}
		r.next()
	})
}

func (r *topology) hotEntries() (n int) {
	for _, e := range r.entries {
		if e.hot {
			n++
		}
	}
	return n
}

// begin begins a task.
func (r *topology) begin() {
	at, class := r.arrivals.Float64(), 0
	for class < len(topologyShares)-1 && at >= topologyShares[class] {
		at -= topologyShares[class]
		class++
	}
	level := dagor.NewLevel(uint8(class), uint8(r.arrivals.IntN(dagor.Users)))
	entry := r.entries[r.arrivals.IntN(len(r.entries))]
	t := &errand{
		class: class, hot: entry.hot, start: r.now, deadline: r.now + r.Deadline,
		priority: dagor.NewPriority(level, uint16(r.arrivals.Uint32())),
	}
	r.stats.begun(t)
	gateway := r.gateways[r.arrivals.IntN(len(r.gateways))]
	gateway.send(&rpc{errand: t, service: entry, caller: gateway})
}

// second is each second: what the hot instances are at is written down.
func (r *topology) second() {
	r.stats.second(r.hot.nodes)
	if r.now < r.Lasts {
		r.After(time.Second, r.second)
	}
}

// stop lets all that was begun come to its end, and looks what is left.
func (r *topology) stop() {
	r.World.Run(r.Lasts + 10*r.Deadline)
	r.stats.Left = len(r.events)
	for _, s := range r.services {
		for _, n := range s.nodes {
			state := n.control.State()
			r.stats.Left += state.Running + state.Waiting + n.busy + n.queue.len()
		}
	}
	r.stats.Steps = r.Steps()
}
