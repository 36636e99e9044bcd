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
	"math"
	"time"

	"github.com/weir-go/weir/internal/dagor"
	"github.com/weir-go/weir/internal/dagor/sim"
)

// staleness is E13.
func staleness(r *report) {
	const (
		from, to = 10 * time.Second, 70 * time.Second
		end      = 90 * time.Second
	)
	low := sim.Class{Share: 1, Calls: 1, Business: 3}
	mixed := []sim.Class{{Share: 1, Calls: 1}, {Share: 9, Calls: 1, Business: 3}}
	rate := step(0.5*saturated, 10*saturated, from, to)
	cases := []struct {
		name   string
		script func(*sim.World, []*sim.Server)
	}{
		{"the load falls, and all of it is of levels that were shed", nil},
		{"the servers start anew", func(w *sim.World, servers []*sim.Server) {
			w.At(to, func() {
				for _, s := range servers {
					switch p := s.Policy.(type) {
					case *sim.WeirPolicy:
						s.Restart(&sim.WeirPolicy{Controller: dagor.NewController(dagor.Options{Limit: startLimit}, w.Now()), Tells: p.Tells, Life: 1})
					case *sim.PaperPolicy:
						s.Restart(&sim.PaperPolicy{Paper: dagor.NewPaper(dagor.PaperOptions{Businesses: 4}, w.Now()), Tells: p.Tells, Reports: p.Reports})
					}
				}
			})
		}},
		{"the servers answer nothing for 5 s", func(w *sim.World, servers []*sim.Server) {
			set := func(down bool) func() {
				return func() {
					for _, s := range servers {
						s.Down = down
					}
				}
			}
			w.At(to-5*time.Second, set(true))
			w.At(to, set(false))
		}},
	}
	all := named(nameLetter, nameReports, nameWeir)
	got := grid(all, len(cases), func(p policy, i int) time.Duration {
		s := setup(p, varying(rate))
		s.Load.Classes = func(now time.Duration) []sim.Class {
			if now >= to {
				return []sim.Class{low}
			}
			return mixed
		}
		s.Lasts, s.Warm, s.Script = end, 0, cases[i].script
		longest := time.Duration(0)
		for _, x := range r.runs(s) {
			if longest < 0 {
				break
			}
			took := reopened(x, to, end, 0.98, 0.9)
			if longest = max(longest, took); took < 0 {
				longest = -1
			}
		}
		return longest
	})
	rows := [][]string{{"after 60 s at 10x, at half of what saturates"}}
	for _, p := range all {
		rows[0] = append(rows[0], p.name)
	}
	for j, c := range cases {
		row := []string{c.name}
		for i := range all {
			if t := got[i][j]; t < 0 {
				row = append(row, "never")
			} else {
				row = append(row, fmt.Sprintf("%.1f s", t.Seconds()))
			}
		}
		rows = append(rows, row)
	}
	r.say("How long until 98 %% of the tasks that begin in half a second succeed, and no half second after it falls below 90 %%. The longest of the seeds:")
	r.table(rows)
	longest := time.Duration(0)
	for _, t := range got[len(all)-1] {
		if t < 0 {
			t = end
		}
		longest = max(longest, t)
	}
	r.must(longest <= 2*time.Second, "open again within 2 s", "%s ms at most", ms(longest))
}

// reopened is how long it took from a time until such a share of the tasks of half a second
// succeeds, and in each half second after it the other share does; negative if it never was.
func reopened(s *sim.Stats, from, to time.Duration, first, stays float64) time.Duration {
	const look, rest = 500 * time.Millisecond, 2 * time.Second // the last tasks have not ended
	since := time.Duration(-1)
	for t := from; t+look <= to-rest; t += look / 5 {
		switch share := s.Between(t, t+look).Success(); {
		case share < stays:
			since = -1
		case since < 0 && share >= first:
			since = t
		}
	}
	if since < 0 {
		return -1
	}
	return since - from
}

// metastable is E14.
func metastable(r *report) {
	const (
		from, to = 20 * time.Second, 30 * time.Second
		end      = 120 * time.Second
		capacity = 300.0
		// What a budget gains for a call: 17 a second of 280.
		retryRatio = 0.06
	)
	all := []struct {
		name   string
		make   func(*sim.Server) sim.Policy
		budget sim.Budget
	}{
		{"none", sim.None, sim.Budget{}},
		{"none, budget for retries of refused calls", sim.None, sim.Budget{On: true, RefusalsOnly: true, Ratio: retryRatio}},
		{"none, budget for all retries", sim.None, sim.Budget{On: true, Ratio: retryRatio}},
		{namePaper, paper(false, false), sim.Budget{}},
		{namePaper + ", budget for all retries", paper(false, false), sim.Budget{On: true, Ratio: retryRatio}},
		{nameWeirLocal, weir(false), sim.Budget{}},
		{"weir, budget for retries of refused calls", weir(true), sim.Budget{On: true, RefusalsOnly: true, Ratio: retryRatio}},
		{"weir, budget for all retries", weir(true), sim.Budget{On: true, Ratio: retryRatio}},
	}
	rows := [][]string{{"policy", "back after", "% done in the 60 s after", "retries a second in the outage", "and after"}}
	lines := picture{file: "overload-metastable.svg", title: "Tasks that succeed at 280 of 300 a second, after an outage from 20 s to 30 s", x: "seconds", y: "tasks a second"}
	var ours time.Duration
	var retries, none float64
	for _, c := range all {
		load := constant(280, one(1))
		load.Deadline, load.Resends, load.Timeout, load.Budget = 2*time.Second, 1, time.Second, c.budget
		s := setup(policy{make: c.make}, load)
		s.Servers, s.Slots, s.Lasts, s.Warm = 1, 12, end, 0
		s.Script = func(w *sim.World, servers []*sim.Server) {
			w.At(from, func() { servers[0].StalledUntil = to })
		}
		runs := r.runs(s)
		longest := time.Duration(0)
		for _, x := range runs {
			t := reopened(x, to, end, 0.9, 0.7)
			if t < 0 || longest < 0 {
				longest = -1
			} else {
				longest = max(longest, t)
			}
		}
		share := mean(runs, func(x *sim.Stats) float64 { return x.Between(to, to+60*time.Second).Success() })
		during := mean(runs, func(x *sim.Stats) float64 {
			return float64(x.RetriesBetween(from, to)) / (to - from).Seconds()
		})
		after := mean(runs, func(x *sim.Stats) float64 { return float64(x.RetriesBetween(to, to+60*time.Second)) / 60 })
		back := "never"
		if longest >= 0 {
			back = fmt.Sprintf("%.1f s", longest.Seconds())
		}
		rows = append(rows, []string{c.name, back, percent(share), fmt.Sprintf("%.1f", during), fmt.Sprintf("%.1f", after)})
		l := line{name: c.name}
		for t := time.Duration(0); t < end; t += time.Second {
			l.add(t.Seconds(), float64(runs[0].Between(t, t+time.Second).Succeeded))
		}
		lines.lines = append(lines.lines, l)
		if c.name == "none" {
			none = share
		}
		ours, retries = longest, math.Max(during, after)
	}
	r.say("Back is when 90 %% of the tasks that begin in half a second succeed, and no half second after it falls below 70 %%: at 280 of 300 calls a second some wait too long at any time.")
	r.table(rows)
	r.picture(lines)
	r.must(none < 0.05, "without protection next to nothing is done in the minute after", "%s %%", percent(none))
	r.must(ours >= 0 && ours < 10*time.Second, "back within 10 s", "%s ms", ms(ours))
	r.must(retries < 20, "fewer than 20 retries a second", "%.1f a second, of %.0f calls", retries, capacity)
}
