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

package alarms

import (
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/bulkhead"
	"github.com/weir-go/weir/filter/circuitbreaker"
	"github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/filter/overload"
	"github.com/weir-go/weir/filter/tpslimit"
	"github.com/weir-go/weir/internal/alarm"
	"github.com/weir-go/weir/internal/breaker"
	"github.com/weir-go/weir/internal/machine"
	"github.com/weir-go/weir/rpcstatus/concurrency"
	"github.com/weir-go/weir/tps"
)

// guards reads the states of the guards of a runtime. One at a time uses it.
type guards struct {
	runtime  *guard.Runtime
	policies policies
	refused  refused
	// opened is how often the breakers of a method had opened at the last look.
	opened map[circuitbreaker.ChangesKey]int64
	// hits are those of this look, to be given to what was read.
	hits []hit
}

func newGuards(rt *guard.Runtime) *guards {
	return &guards{runtime: rt, policies: policies{runtime: rt}, opened: map[circuitbreaker.ChangesKey]int64{}, refused: newRefused()}
}

// read reads everything. anew is set for the first look: what was counted before is
// nothing new.
func (g *guards) read(now time.Duration, rule alarm.Rule, anew bool, read func(Reading)) {
	g.hits = g.hits[:0]
	g.policies.begin(now)
	g.concurrency(read)
	g.rates(now, read)
	g.breakers(anew, read)
	g.overloads(read)
	g.machine(now, read)
	g.hits = g.refused.look(g.runtime, &g.policies, anew, g.hits)
	g.refused.shares(g.runtime, now, rule, read)
}

// one reads a limit, unless its guard is off or it is unlimited.
func (g *guards) one(k Key, r alarm.Reading, read func(Reading)) {
	if r.Limit <= 0 {
		return
	}
	t, known := g.policies.of(k.Guard, k.Side, k.Service, k.Method)
	if known && t.mode == conf.Off {
		return
	}
	r.Use = float64(r.Observed) / float64(r.Limit)
	r.Observing = known && t.mode == conf.Observe
	read(Reading{k, r})
}

func (g *guards) queue(k Key, of string, q *concurrency.Queue, read func(Reading)) {
	k.Subject = Limit
	g.one(k, alarm.Reading{Observed: q.Inflight(), Limit: q.Limit(), Of: of}, read)
	if q.Limit() > 0 {
		k.Subject = Queue
		g.one(k, alarm.Reading{Observed: q.Waiting(), Limit: q.Places(), WarnAt: queueWarnAt, Of: of}, read)
	}
}

func (g *guards) concurrency(read func(Reading)) {
	executelimit.Limiters(g.runtime, func(k executelimit.Key, l *concurrency.Limiter) {
		g.one(Key{executelimit.Policy, conf.Provider.String(), k.Service, k.Method, Limit},
			alarm.Reading{Observed: l.Inflight(), Limit: l.Limit(), Of: k.Protocol}, read)
	})
	activelimit.Queues(g.runtime, func(k activelimit.Key, q *concurrency.Queue) {
		g.queue(Key{activelimit.Policy, conf.Consumer.String(), k.Service, k.Method, ""}, k.Address, q, read)
	})
	bulkhead.Queues(g.runtime, func(k bulkhead.Key, q *concurrency.Queue) {
		to := Key{bulkhead.Policy, k.Side.String(), k.Service, k.Method, ""}
		if k.Group != "" {
			to.Service, to.Method = call.AnyMethod, k.Group
		}
		g.queue(to, "", q, read)
	})
}

func (g *guards) rates(now time.Duration, read func(Reading)) {
	tpslimit.Limiters(g.runtime, func(k tpslimit.Key, _ conf.Algorithm, l tps.Limiter) {
		s := l.Stats(now)
		most := s.Rate
		if s.Burst > 0 {
			most = s.Burst // what a full bucket holds
		}
		g.one(Key{tpslimit.Policy, k.Side.String(), k.Service, k.Method, Limit},
			alarm.Reading{Observed: max(most-s.Left, 0), Limit: most}, read)
	})
	flowcontrol.Flows(g.runtime, func(f flowcontrol.Flow) {
		k := Key{flowcontrol.Policy, f.Side.String(), f.Service, f.Method, Limit}
		r := alarm.Reading{Observed: f.Used, Limit: f.Quota.Rate, Of: f.Caller}
		if f.Behavior.Queues() {
			// Calls pass one by one, so what is bounded is the time that they wait: as many
			// find a turn in it as pass in that time.
			t, _ := g.policies.of(k.Guard, k.Side, k.Service, k.Method)
			k.Subject, r.WarnAt = Queue, queueWarnAt
			r.Observed, r.Limit = f.Waiting, max(placesOf(f.Quota, t.longest), 1)
		}
		if f.Caller != "" {
			k.Subject = "caller-" + k.Subject
		}
		g.one(k, r, read)
	})
}

// overloads reads the caps by their limits: what runs above that runs on room that is
// lent for a while. It is reached where there is no more to lend.
func (g *guards) overloads(read func(Reading)) {
	overload.Caps(g.runtime, func(s overload.State) {
		g.one(Key{overload.Policy, s.Side.String(), s.Service, s.Method, Limit},
			alarm.Reading{Observed: s.Running, Limit: s.Limit, Expands: s.Running < s.Highest}, read)
		// Beyond that calls that never end hold their slots.
		g.one(Key{overload.Policy, s.Side.String(), s.Service, s.Method, Overdue}, alarm.Reading{Observed: s.Aside, Limit: s.MaxOverdue}, read)
	})
}

// Machine is the guard's name of the signals of the machine; the subject is the signal.
// Their figures are in thousandths of the signal's unit.
const Machine = "health"

func (g *guards) machine(now time.Duration, read func(Reading)) {
	m := machine.Of(g.runtime)
	m.Sample(now)
	for _, s := range m.States() {
		if s.Limit > 0 && s.Known {
			use := s.Value / s.Limit
			if s.Tight {
				use = max(use, 1) // also between recover and limit
			}
			read(Reading{Key{Guard: Machine, Subject: s.Name}, alarm.Reading{
				Use: use, Observed: int64(min(s.Value*1000, 1<<60)), Limit: int64(min(s.Limit*1000, 1<<60)),
			}})
		}
	}
}

func placesOf(q tps.Quota, longest time.Duration) int64 {
	if q.Interval <= 0 {
		return 0
	}
	return int64(min(float64(q.Rate)*float64(longest)/float64(q.Interval), 1<<40))
}

// probing is the use of a breaker that is half-open, and from when on one is near.
const probing = 0.5

func (g *guards) breakers(anew bool, read func(Reading)) {
	circuitbreaker.Breakers(g.runtime, func(k circuitbreaker.Key, s breaker.Stats) {
		to := Key{circuitbreaker.Policy, k.Side.String(), k.Service, k.Method, State}
		t, known := g.policies.of(to.Guard, to.Side, to.Service, to.Method)
		if known && t.mode == conf.Off {
			return
		}
		r := alarm.Reading{WarnAt: probing, Of: k.Address, Observing: known && t.mode == conf.Observe}
		switch s.State {
		case breaker.Open:
			r.Use = 1
		case breaker.HalfOpen:
			r.Use = probing
		}
		if s.State != breaker.Closed {
			r.Observed, r.Limit = s.Cause.Observed, s.Cause.Limit
		}
		read(Reading{to, r})
	})
	// One may have opened and be half-open or closed again by now.
	was := g.opened
	g.opened = make(map[circuitbreaker.ChangesKey]int64, len(was))
	circuitbreaker.AllChanges(g.runtime, func(k circuitbreaker.ChangesKey, c *circuitbreaker.Changes) {
		n := c.To(breaker.Open)
		if n == 0 {
			return
		}
		g.opened[k] = n
		if more := since(was[k], n); more > 0 && !anew {
			g.hits = append(g.hits, hit{policy: circuitbreaker.Policy, side: k.Side.String(), service: k.Service, method: k.Method, n: more, opened: true})
		}
	})
}

// since is by how much a count has grown that begins anew at times.
func since(was, is int64) int64 {
	if is < was {
		return is
	}
	return is - was
}
