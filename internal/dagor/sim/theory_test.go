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
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// steady is a load of tasks of so many calls, at a rate of tasks, with time enough.
func steady(rate float64, calls int) Load {
	return Load{
		Deadline: time.Hour, Resends: 3, Users: 1000,
		Tasks:   func(time.Duration) float64 { return rate },
		Classes: func(time.Duration) []Class { return []Class{{Share: 1, Calls: calls}} },
	}
}

// erlangC is the mean wait in an M/M/c queue.
func erlangC(c int, rate float64, service time.Duration) time.Duration {
	a := rate * service.Seconds()
	b := 1.0 // Erlang's B, by its recursion
	for i := 1; i <= c; i++ {
		b = a * b / (float64(i) + a*b)
	}
	rho := a / float64(c)
	waits := b / (1 - rho*(1-b))
	return time.Duration(waits * float64(service) / (float64(c) - a))
}

func TestErlangC(t *testing.T) {
	// M/M/1 waits rho/(1-rho) services, and M/M/2 rho^2/(1-rho^2).
	assert.InDelta(t, 4, erlangC(1, 0.8, time.Second).Seconds(), 1e-6)
	assert.InDelta(t, 0.36/0.64, erlangC(2, 1.2, time.Second).Seconds(), 1e-6)
}

func TestQueueWaitsAsErlangSays(t *testing.T) {
	const service = 40 * time.Millisecond
	for _, tt := range []struct {
		slots int
		rho   float64
		lasts time.Duration
	}{
		{1, 0.5, 10_000 * time.Second},
		{1, 0.8, 20_000 * time.Second},
		{4, 0.5, 4000 * time.Second},
		{4, 0.8, 4000 * time.Second},
		{10, 0.8, 2000 * time.Second},
		{10, 0.9, 6000 * time.Second},
	} {
		rate := tt.rho * float64(tt.slots) / service.Seconds()
		stats := Setup{
			Load: steady(rate, 1), Policy: None, Servers: 1, Slots: tt.slots, Service: service,
			Lasts: tt.lasts, Warm: 100 * time.Second, Seed: 3,
		}.Run()
		want := erlangC(tt.slots, rate, service)
		assert.InEpsilon(t, want, stats.MeanWait(), 0.05, "%d slots, rho %v: %v, want %v", tt.slots, tt.rho, stats.MeanWait(), want)
	}
}

func TestServiceIsExponential(t *testing.T) {
	const service = 40 * time.Millisecond
	stats := Setup{Load: steady(100, 1), Policy: None, Servers: 1, Slots: 1000, Service: service, Lasts: 1000 * time.Second, Seed: 1}.Run()
	require.Zero(t, stats.Wait(1), "there is a slot for each")
	for _, q := range []float64{0.1, 0.5, 0.9, 0.99} {
		want := -math.Log(1-q) * service.Seconds()
		assert.InEpsilon(t, want, stats.Latency(q).Seconds(), 0.03, "quantile %v", q)
	}
	var sum, squares float64
	r := stream(1, 1)
	const n = 100_000
	for range n {
		x := exponential(r, service).Seconds()
		sum += x
		squares += x * x
	}
	assert.InEpsilon(t, 0.040, sum/n, 0.01)
	assert.InEpsilon(t, 2*0.040*0.040, squares/n, 0.02)
}

func TestDownstreamTakesNoSlot(t *testing.T) {
	stats := Setup{
		Load: steady(20, 1), Policy: None, Servers: 1, Slots: 1, Service: 10 * time.Millisecond, Downstream: time.Second,
		Lasts: 1000 * time.Second, Warm: 10 * time.Second, Seed: 1,
	}.Run()
	assert.InEpsilon(t, erlangC(1, 20, 10*time.Millisecond), stats.MeanWait(), 0.05)
	assert.Greater(t, stats.Latency(0.5), 600*time.Millisecond)
}

func TestRefusalsCost(t *testing.T) {
	// A call in two is refused, at half of a service each: the one that runs takes half longer.
	run := func(cost time.Duration) time.Duration {
		load := steady(50, 1)
		load.Resends = 0
		return Setup{
			Load: load, Servers: 1, Slots: 100, Service: 40 * time.Millisecond, RefuseCost: cost,
			Policy: func(*Server) Policy { return &everyOther{} }, Lasts: 1000 * time.Second, Seed: 1,
		}.Run().Latency(0.5)
	}
	assert.InDelta(t, float64(20*time.Millisecond), float64(run(20*time.Millisecond)-run(0)), float64(2*time.Millisecond))
}

// everyOther refuses every other call.
type everyOther struct {
	admitAll
	calls int
}

func (p *everyOther) Arrive(s *Server, c *Call) {
	if p.calls++; p.calls%2 == 0 {
		s.Refuse(c)
		return
	}
	s.Accept(c)
}

func TestArrivalsArePoisson(t *testing.T) {
	const rate, seconds = 200.0, 1000
	stats := Setup{
		Load: steady(rate, 1), Policy: None, Servers: 1, Slots: 100, Service: time.Millisecond,
		Lasts: seconds * time.Second, Seed: 5,
	}.Run()
	require.InDelta(t, rate*seconds, stats.All.Offered, 4*math.Sqrt(rate*seconds))
	// The counts of the tenths of a second have a variance that is their mean.
	var sum, squares float64
	for _, b := range stats.Buckets {
		x := float64(b.Offered)
		sum += x
		squares += x * x
	}
	n := float64(len(stats.Buckets))
	mean := sum / n
	assert.InEpsilon(t, 1, (squares/n-mean*mean)/mean, 4*math.Sqrt(2/n))
}

func TestArrivalsFollowARateThatChanges(t *testing.T) {
	for name, rate := range map[string]func(time.Duration) float64{
		"step": func(now time.Duration) float64 {
			if now >= 50*time.Second && now < 100*time.Second {
				return 2000
			}
			return 50
		},
		"wave": func(now time.Duration) float64 { return 500 + 400*math.Sin(now.Seconds()/5) },
		"gaps": func(now time.Duration) float64 { return float64(int(now.Seconds())/5%2) * 300 },
		"slow": func(time.Duration) float64 { return 0.4 },
	} {
		load := steady(0, 1)
		load.Tasks = rate
		stats := Setup{Load: load, Policy: None, Servers: 1, Slots: 100, Service: time.Millisecond, Lasts: 150 * time.Second, Seed: 2}.Run()
		for from := time.Duration(0); from < 150*time.Second; from += 5 * time.Second {
			want := 0.0
			for at := range 5000 {
				want += rate(from+time.Duration(at)*time.Millisecond) / 1000
			}
			got := stats.Between(from, from+5*time.Second).Offered
			assert.InDelta(t, want, got, 4*math.Sqrt(want+1), "%s from %v", name, from)
		}
	}
}

func TestEventsAreInOrder(t *testing.T) {
	w := &World{}
	var got []string
	note := func(s string) func() { return func() { got = append(got, s) } }
	w.At(2*time.Second, note("c"))
	w.At(time.Second, func() {
		got = append(got, "a")
		w.At(0, func() { // the past is now, and after what was there
			require.Equal(t, time.Second, w.Now())
			note("past")()
		})
		w.After(0, note("now"))
	})
	w.At(time.Second, note("b"))
	w.At(2*time.Second, note("d"))
	w.At(3*time.Second, note("e"))
	w.At(3*time.Second+1, note("f"))
	w.Run(2 * time.Second)
	assert.Equal(t, []string{"a", "b", "past", "now", "c", "d"}, got)
	assert.Equal(t, 2*time.Second, w.Now())
	w.Run(3 * time.Second)
	assert.Equal(t, []string{"a", "b", "past", "now", "c", "d", "e"}, got)
	assert.Equal(t, uint64(7), w.Steps())
	// Those of the same time are done in the order in which they were asked for, however many.
	got = nil
	var order []int
	for i := range 1000 {
		w.At(4*time.Second, func() { order = append(order, i) })
	}
	w.Run(5 * time.Second)
	for i, x := range order {
		require.Equal(t, i, x)
	}
	assert.Equal(t, []string{"f"}, got)
}

func TestRing(t *testing.T) {
	var r ring[*Call]
	var model, calls []*Call
	chance := stream(1, 1)
	for range 20_000 {
		switch n := chance.IntN(10); {
		case n < 5 || len(model) == 0:
			c := &Call{}
			calls = append(calls, c)
			r.push(c)
			model = append(model, c)
		case n < 8:
			require.Same(t, model[0], r.pop())
			model = model[1:]
		case n < 9:
			require.Same(t, model[len(model)-1], r.popLast())
			model = model[:len(model)-1]
		default:
			i := chance.IntN(len(model))
			require.True(t, r.remove(model[i]))
			require.False(t, r.remove(model[i]))
			model = append(model[:i:i], model[i+1:]...)
		}
		require.Equal(t, len(model), r.len())
	}
	assert.NotEmpty(t, calls)
}

func TestEventsAgainstSorting(t *testing.T) {
	w := &World{}
	chance := stream(2, 3)
	var last time.Duration
	var left int
	var some func()
	some = func() {
		left--
		require.GreaterOrEqual(t, w.Now(), last)
		last = w.Now()
		for range chance.IntN(3) {
			if w.Steps() < 20_000 {
				left++
				w.After(time.Duration(chance.IntN(50)), some)
			}
		}
	}
	for range 500 {
		left++
		w.At(time.Duration(chance.IntN(1000)), some)
	}
	w.Run(time.Hour)
	assert.Zero(t, left)
	assert.Greater(t, w.Steps(), uint64(1000))
}
