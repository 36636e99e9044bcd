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
	"time"

	"github.com/weir-go/weir/internal/dagor"
)

// upstream is an instance of the callers, and what it knows of each server.
type upstream struct {
	sheds bool
	known []dagor.Advert
}

func (u *upstream) admits(s int, p dagor.Priority, _ time.Duration) bool {
	return !u.sheds || p < u.known[s].Cursor
}

func (u *upstream) report(int) dagor.Report { return dagor.Report{} }

func (u *upstream) learn(i int, s *Server, _ time.Duration) {
	if a, ok := s.Advert(); ok {
		u.sheds = true
		u.known[i] = a
	}
}

// Setup is an experiment.
type Setup struct {
	Load   Load
	Policy func(*Server) Policy
	// Servers of Slots each serve a call in Service in the mean.
	Servers, Slots                  int
	Service, Downstream, RefuseCost time.Duration
	// Upstreams are the callers' instances.
	Upstreams int
	// Lasts is how long it runs, of which Warm is not counted.
	Lasts, Warm time.Duration
	Seed        uint64
	// Script, where it is set, is run at the start: it may have things happen.
	Script func(*World, []*Server)
}

// Saturated is how many calls a second the servers can do.
func (s Setup) Saturated() float64 {
	return float64(s.Servers*s.Slots) / s.Service.Seconds()
}

// Run runs it.
func (s Setup) Run() *Stats {
	w := &World{}
	stats := &Stats{World: w, From: s.Warm}
	c := &client{World: w, load: s.Load, stats: stats, arrivals: stream(s.Seed, 1), chance: stream(s.Seed, 2)}
	for i := range s.Servers {
		srv := &Server{World: w, Slots: s.Slots, Service: s.Service, Downstream: s.Downstream, RefuseCost: s.RefuseCost, chance: stream(s.Seed, uint64(100+i)), stats: stats}
		srv.Policy = s.Policy(srv)
		c.servers = append(c.servers, srv)
	}
	for range max(1, s.Upstreams) {
		u := &upstream{known: make([]dagor.Advert, s.Servers)}
		for i := range u.known {
			u.known[i].Cursor = dagor.Open
		}
		c.upstreams = append(c.upstreams, u)
	}
	if s.Script != nil {
		s.Script(w, c.servers)
	}
	c.next()
	w.Run(s.Lasts)
	return stats
}
