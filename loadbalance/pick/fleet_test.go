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

package pick_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/loadbalance/pick"
)

// fleet are providers, each of which works on four calls at the same time, and consumers
// that know of their own calls only, on a clock of its own. Calls come by chance and take
// 10 ms on the average where the slowness is 1.
type fleet struct {
	consumers, providers int
	perSecond            float64 // calls of each consumer
	from, to             time.Duration
	seed                 uint64
	slowness             func(provider int, now time.Duration) float64
	// until is until when calls that begin now hang; nil where none do.
	until func(provider int, now time.Duration) time.Duration
}

// sent is a call: when, where to, how many the provider has with it, and how long it takes.
type sent struct {
	at       time.Duration
	provider int
	queue    int
	took     time.Duration
}

type running struct {
	ends, took time.Duration
	record     *pick.Record
	provider   int
}

func (f fleet) run(a pick.Algorithm) []sent {
	r := rand.New(rand.NewPCG(f.seed, 3))
	sets := make([]*pick.Set, f.consumers)
	records := make([][]pick.Candidate, f.consumers)
	for c := range sets {
		records[c] = same(f.providers, 100)
		sets[c] = pick.NewSet(records[c])
	}
	var (
		out     []sent
		pending []running // those that end last come first
		free    = make([][4]time.Duration, f.providers)
		queue   = make([]int, f.providers)
		between = float64(time.Second) / (f.perSecond * float64(f.consumers))
	)
	for now := f.from; now < f.to; now += time.Duration(r.ExpFloat64() * between) {
		for n := len(pending); n > 0 && pending[n-1].ends <= now; n = len(pending) {
			e := pending[n-1]
			e.record.Took(e.took, e.ends)
			e.record.Succeeded()
			e.record.End()
			queue[e.provider]--
			pending = pending[:n-1]
		}
		c := r.IntN(f.consumers)
		p := a(sets[c], now, r.Uint64())
		records[c][p].Begin()
		queue[p]++
		slot := &free[p][0]
		for i, at := range free[p] {
			if at < *slot {
				slot = &free[p][i]
			}
		}
		ends := max(*slot, now) + time.Duration(r.ExpFloat64()*f.slowness(p, now)*float64(10*ms))
		if until := f.hangsUntil(p, now); until > now {
			ends = until
		} else {
			*slot = ends
		}
		e := running{ends, ends - now, records[c][p].Record, p}
		at, _ := slices.BinarySearchFunc(pending, e, func(a, b running) int { return cmp.Compare(b.ends, a.ends) })
		pending = slices.Insert(pending, at, e)
		out = append(out, sent{now, p, queue[p], e.took})
	}
	return out
}

func (f fleet) hangsUntil(p int, now time.Duration) time.Duration {
	if f.until == nil {
		return 0
	}
	return f.until(p, now)
}

// byTimes are the algorithms that remember response times.
var byTimes = map[string]pick.Algorithm{"shortest response": pick.ShortestResponse, "few choices": pick.FewChoices}

// When all consumers start at once nobody knows anything. Nobody does worse then than by
// chance, and nobody's first calls go where everybody else's go.
func TestColdStart(t *testing.T) {
	byChance := func(s *pick.Set, _ time.Duration, chance uint64) int { return int(chance % uint64(s.Len())) }
	for name, a := range algorithms {
		first := make([]int, 20)
		r := seeded(40)
		for range 200 { // consumers, of which each calls at the very same moment
			first[a(pick.NewSet(same(len(first), 100)), noon, r())]++
		}
		assert.Less(t, slices.Max(first), 25, "%s: %v", name, first) // by chance 10, and 18 at most
		f := fleet{
			consumers: 100, providers: 20, perSecond: 32, from: noon, to: noon + time.Second, seed: 41,
			slowness: func(p int, _ time.Duration) float64 { return 1 + float64(p)/10 },
		}
		ours, theirs := meanOf(f.run(a)), meanOf(f.run(byChance))
		assert.Less(t, ours, theirs, name)
	}
}

func meanOf(calls []sent) time.Duration {
	var sum time.Duration
	for _, c := range calls {
		sum += c.took
	}
	return sum / time.Duration(len(calls))
}

// A provider that was slow and is well again has half of its share in a few seconds. It
// took up to 26 while response times were remembered for 10 seconds, and were gone by for
// 30 by all consumers alike. While it is slow few calls go there to see.
func TestRegression_SlowReturn(t *testing.T) {
	for name, a := range byTimes {
		for _, slow := range []float64{5, 20} {
			for _, consumers := range []int{10, 100} {
				for seed := range uint64(2) {
					began := noon - time.Duration(24+6*seed)*time.Second
					calls := fleet{
						consumers: consumers, providers: 10, perSecond: 1000 / float64(consumers), from: began - 10*time.Second, to: noon + 20*time.Second, seed: seed,
						slowness: func(p int, now time.Duration) float64 {
							if p == 0 && began < now && now < noon {
								return slow
							}
							return 1
						},
					}.run(a)
					assert.Less(t, shareOf(calls, began+10*time.Second, noon), 0.02, "%s, %v times as slow", name, slow)
					assert.Greater(t, shareOf(calls, noon+11*time.Second, noon+13*time.Second), 0.05, "%s, %v times as slow", name, slow)
				}
			}
		}
	}
}

// shareOf is what the first provider gets of the calls of some time.
func shareOf(calls []sent, from, to time.Duration) float64 {
	n, of := 0.0, 0.0
	for _, c := range calls {
		if from <= c.at && c.at < to {
			of++
			if c.provider == 0 {
				n++
			}
		}
	}
	return n / of
}

// All consumers see at the same moment how long a provider hung. They do not forget it at
// the same moment: 300 calls at once would be the next trouble.
func TestRegression_AllComeBackAtOnce(t *testing.T) {
	for name, a := range byTimes {
		calls := fleet{
			consumers: 300, providers: 10, perSecond: 10, from: noon - 15*time.Second, to: noon + 20*time.Second, seed: 3,
			slowness: func(int, time.Duration) float64 { return 1 },
			until: func(p int, now time.Duration) time.Duration {
				if p == 0 && now > noon-5*time.Second && now < noon {
					return noon
				}
				return 0
			},
		}.run(a)
		highest, elsewhere := 0, 0
		for _, c := range calls {
			switch {
			case c.at < noon+2*time.Second:
			case c.provider == 0:
				highest = max(highest, c.queue)
			default:
				elsewhere = max(elsewhere, c.queue)
			}
		}
		assert.Less(t, highest, elsewhere+15, name) // where all forget at the same age it is 100 and 20 more
		assert.Greater(t, shareOf(calls, noon+15*time.Second, noon+20*time.Second), 0.08, name)
	}
}
