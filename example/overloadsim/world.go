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

package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/dagor"
	"github.com/weir-go/weir/internal/dagor/sim"
)

// The service of most experiments: 750 calls a second.
const (
	servers, slots = 3, 10
	service        = 40 * time.Millisecond
	saturated      = servers * slots * float64(time.Second/service)
	deadline       = 500 * time.Millisecond
	resends        = 3
	users          = 100_000
	callers        = 3
	// Runs last for this long, of which the first part is not counted.
	lasts, warm = 210 * time.Second, 150 * time.Second
)

// policy is one of those that are compared.
type policy struct {
	name string
	make func(*sim.Server) sim.Policy
	// plain callers shed as published, begun ones have a task's later calls go first.
	plain, begun bool
}

// startLimit is what ours begins with: it does not know the service.
const startLimit = 16

func weir(tells bool) func(*sim.Server) sim.Policy {
	return func(*sim.Server) sim.Policy {
		return &sim.WeirPolicy{Controller: dagor.NewController(dagor.Options{Limit: startLimit}, 0), Tells: tells}
	}
}

func paper(tells, reports bool) func(*sim.Server) sim.Policy {
	return func(*sim.Server) sim.Policy {
		return &sim.PaperPolicy{Paper: dagor.NewPaper(dagor.PaperOptions{Businesses: 4}, 0), Tells: tells, Reports: reports}
	}
}

// The names of ours and of the published ones.
const (
	nameWeir      = "weir"
	nameWeirLocal = "weir, alone"
	nameWeirFirst = "weir, first calls only"
	namePaper     = "DAGOR, alone"
	nameLetter    = "DAGOR, to the letter"
	nameReports   = "DAGOR + reports"
	nameNone      = "none"
)

func policies() []policy {
	return []policy{
		{name: nameNone, make: sim.None},
		{name: "random", make: sim.Random},
		{name: "CoDel", make: sim.CoDel},
		{name: "SEDA", make: sim.SEDA},
		{name: "PID", make: sim.PID},
		{name: namePaper, make: paper(false, false)},
		{name: nameLetter, make: paper(true, false), plain: true},
		{name: nameReports, make: paper(true, true)},
		{name: nameWeirFirst, make: weir(true)},
		{name: nameWeirLocal, make: weir(false), begun: true},
		{name: nameWeir, make: weir(true), begun: true},
	}
}

// named are some of the policies, in the order of the list.
func named(names ...string) (out []policy) {
	for _, p := range policies() {
		for _, n := range names {
			if p.name == n {
				out = append(out, p)
			}
		}
	}
	return out
}

// constant is a load that does not change.
func constant(tasks float64, classes ...sim.Class) sim.Load {
	return varying(func(time.Duration) float64 { return tasks }, classes...)
}

func varying(tasks func(time.Duration) float64, classes ...sim.Class) sim.Load {
	return sim.Load{
		Tasks: tasks, Classes: func(time.Duration) []sim.Class { return classes },
		Deadline: deadline, Resends: resends, Users: users,
	}
}

// one is a class of tasks with so many calls.
func one(calls int) sim.Class { return sim.Class{Share: 1, Calls: calls} }

func setup(p policy, load sim.Load) sim.Setup {
	load.Begun = p.begun
	return sim.Setup{
		Load: load, Policy: p.make, Plain: p.plain, Servers: servers, Slots: slots, Service: service,
		Upstreams: callers, Lasts: lasts, Warm: warm,
	}
}

// runs runs a setup with each seed.
func (r *report) runs(s sim.Setup) []*sim.Stats {
	out := make([]*sim.Stats, r.seeds)
	for i := range out {
		s.Seed = uint64(i + 1)
		out[i] = s.Run()
	}
	return out
}

// grid runs one job for each policy and point, as many at once as there are processors, and
// returns what they came to. No job sees another, so their order is of no matter.
func grid[T any](policies []policy, points int, job func(p policy, point int) T) [][]T {
	out := make([][]T, len(policies))
	var (
		wg   sync.WaitGroup
		free = make(chan struct{}, runtime.GOMAXPROCS(0))
	)
	for i, p := range policies {
		out[i] = make([]T, points)
		for j := range points {
			free <- struct{}{}
			wg.Go(func() {
				defer func() { <-free }()
				out[i][j] = job(p, j)
			})
		}
	}
	wg.Wait()
	return out
}

// mean is that of what f makes of each run.
func mean(runs []*sim.Stats, f func(*sim.Stats) float64) float64 {
	sum := 0.0
	for _, s := range runs {
		sum += f(s)
	}
	return sum / float64(len(runs))
}

func success(s *sim.Stats) float64 { return s.All.Success() }

// ofOptimum is the success in a run as a share of what is possible at a load, in times of what saturates.
func ofOptimum(load float64) func(*sim.Stats) float64 {
	return func(s *sim.Stats) float64 { return success(s) * max(1, load) }
}

func percent(x float64) string { return fmt.Sprintf("%.1f", 100*x) }

func ms(d time.Duration) string { return fmt.Sprintf("%d", d.Milliseconds()) }
