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
	known []*dagor.Upstream
	plain []dagor.Advert // instead, as published
}

func newUpstream(servers int, plain bool) *upstream {
	u := &upstream{}
	if plain {
		u.plain = make([]dagor.Advert, servers)
		for i := range u.plain {
			u.plain[i].Cursor = dagor.Open
		}
		return u
	}
	for range servers {
		k, err := dagor.NewUpstream(dagor.UpstreamRules{})
		if err != nil {
			panic(err) // the defaults are right
		}
		u.known = append(u.known, k)
	}
	return u
}

func (u *upstream) admits(s int, p dagor.Priority, now time.Duration) bool {
	if u.plain != nil {
		return p < u.plain[s].Cursor
	}
	return u.known[s].Admit(p, now) != dagor.Shed
}

func (u *upstream) report(s int) dagor.Report {
	if u.plain != nil {
		return dagor.Report{}
	}
	r, _ := u.known[s].Report()
	return r
}

func (u *upstream) learn(i int, s *Server, now time.Duration) {
	a, ok := s.Advert()
	switch {
	case !ok:
	case u.plain != nil:
		u.plain[i] = a
	default:
		u.known[i].Learn(a, now)
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
	// Plain callers shed by the last level that they heard, as published: it has no time
	// to live, nothing probes behind it, and what they shed they tell nobody.
	Plain bool
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
		c.upstreams = append(c.upstreams, newUpstream(s.Servers, s.Plain))
	}
	if s.Script != nil {
		s.Script(w, c.servers)
	}
	c.next()
	w.Run(s.Lasts)
	return stats
}
