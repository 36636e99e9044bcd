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
	"maps"
	"math"
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/filter/bulkhead"
	"github.com/weir-go/weir/filter/circuitbreaker"
	"github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/alarm"
	"github.com/weir-go/weir/rpcstatus"
)

// hit is that a guard has refused calls of a method since the last look, or would have.
type hit struct {
	policy, side, service, method string
	group                         string // of the bulkhead
	n                             int64
	full                          bool // there was no place to wait
	opened                        bool // it is a breaker that has opened
}

// give has the limit know that has refused the calls. Which of those that hold for the
// method it was is not counted, so it is taken to be the fullest.
func (h hit) give(to *alarm.Set[Key]) {
	if h.opened {
		to.Hit(Key{h.policy, h.side, h.service, h.method, State}, h.n)
		return
	}
	if h.policy == circuitbreaker.Policy {
		return // its state tells
	}
	subjects := []string{Limit}
	if h.policy == flowcontrol.Policy {
		subjects = []string{Limit, Queue, CallerLimit, CallerQueue}
	}
	keys := []Key{{Service: h.service, Method: h.method}, {Service: h.service, Method: call.AnyMethod}}
	if h.group != "" {
		keys = []Key{{Service: call.AnyMethod, Method: h.group}}
	}
	var fullest Key
	most := -1.0
	for _, k := range keys {
		k.Guard, k.Side = h.policy, h.side
		for _, k.Subject = range subjects {
			if use, ok := to.Use(k); ok && use > most {
				fullest, most = k, use
			}
		}
	}
	if most < 0 {
		return
	}
	to.Hit(fullest, h.n)
	if h.full && fullest.Subject == Limit {
		fullest.Subject = Queue
		to.Hit(fullest, h.n)
	}
}

// refused reads the counts of refusals.
type refused struct {
	last  map[guard.RejectionKey]counted // those that have counted something
	round uint64
	share map[shareKey]*share
}

// counted is what a key had counted at a look.
type counted struct {
	refused, would int64
	round          uint64
}

type shareKey struct{ policy, side, service, method string }

// share is that of the refusals of a guard among the calls of a method. It is kept from
// the first refusal on, for as long as others follow.
type share struct {
	alarm.Share
	total, observed int64 // refusals since it is kept, and those that would have been
	quiet           bool  // there was none since the last look
	last            time.Duration
}

func newRefused() refused {
	return refused{last: map[guard.RejectionKey]counted{}, share: map[shareKey]*share{}}
}

// look finds what has been refused since the last look.
func (r *refused) look(rt *guard.Runtime, p *policies, anew bool, hits []hit) []hit {
	r.round++
	for _, s := range r.share {
		s.quiet = true
	}
	rt.Rejections(func(k guard.RejectionKey, c *guard.Rejections) {
		n := counted{c.Rejected(), c.WouldReject(), r.round}
		if n.refused == 0 && n.would == 0 {
			return // most never refuse
		}
		was := r.last[k]
		r.last[k] = n
		refused, would := since(was.refused, n.refused), since(was.would, n.would)
		if anew || refused+would <= 0 {
			return
		}
		h := hit{policy: k.Guard, side: k.Side, service: k.Service, method: k.Method, n: refused + would, full: k.Reason == call.ReasonConcurrency}
		if k.Guard == bulkhead.Policy {
			t, _ := p.of(k.Guard, k.Side, k.Service, k.Method)
			h.group = t.group
		}
		hits = append(hits, h)
		r.count(shareKey{k.Guard, k.Side, k.Service, k.Method}, refused, would)
	})
	maps.DeleteFunc(r.last, func(_ guard.RejectionKey, c counted) bool { return c.round != r.round })
	return hits
}

func (r *refused) count(k shareKey, refused, would int64) {
	if k.policy == circuitbreaker.Policy {
		return // an open breaker refuses nearly all, which its state tells
	}
	s := r.share[k]
	if s == nil {
		if len(r.share) >= mostSubjects {
			return
		}
		s = &share{}
		r.share[k] = s
	}
	s.total, s.observed, s.quiet = s.total+refused+would, s.observed+would, false
}

// shares reads what part of their calls is refused, of methods of which there is any.
func (r *refused) shares(rt *guard.Runtime, now time.Duration, rule alarm.Rule, read func(Reading)) {
	if len(r.share) == 0 {
		return
	}
	calls := make(map[rpcstatus.SumKey]int64, len(r.share))
	for k := range r.share {
		calls[rpcstatus.SumKey{Side: k.side, Service: k.service, Method: k.method}] = 0
	}
	rt.Status.Range(func(k rpcstatus.Key, s *rpcstatus.Status) bool {
		sum := rpcstatus.SumKey{Side: k.Side, Service: k.Service, Method: k.Method}
		if n, asked := calls[sum]; asked {
			for _, o := range s.Figures().Outcomes {
				n += o
			}
			calls[sum] = n
		}
		return true
	})
	for k, s := range r.share {
		if !s.quiet {
			s.last = now
		}
		part, of := s.Read(now, rule.For, s.total, calls[rpcstatus.SumKey{Side: k.side, Service: k.service, Method: k.method}])
		of = max(of, part) // a guard that stands alone in the chain refuses before calls are counted
		reading := alarm.Reading{
			WarnAt: refusalsNear / refusalsReached, Settled: true, Limit: refusalsReached * 100, Observing: s.observed == s.total,
		}
		if of >= leastCalls {
			ratio := float64(part) / float64(of)
			reading.Use, reading.Observed = ratio/refusalsReached, int64(math.Round(ratio*100))
		}
		if s.quiet && part == 0 && now-s.last > 2*rule.For {
			delete(r.share, k) // and is calm by now
			continue
		}
		read(Reading{Key{k.policy, k.side, k.service, k.method, Refusals}, reading})
	}
}
