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

package metrics

import (
	"time"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/bulkhead"
	"github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/filter/overload"
	"github.com/weir-go/weir/filter/tpslimit"
	"github.com/weir-go/weir/rpcstatus/concurrency"
	"github.com/weir-go/weir/tps"
)

// limitKey are the labels of a limit.
type limitKey struct {
	site
	guard, scope, protocol string
}

func (k limitKey) labels() []string {
	return []string{k.Side, k.Service, k.Method, k.guard, k.scope, k.protocol}
}

// limitState is a limit at one moment.
type limitState struct {
	limit, used int64
	waiting     int64
	interval    time.Duration
}

// fuller tells whether more of s is used than of o.
func (s limitState) fuller(o limitState) bool {
	if s.limit == 0 || o.limit == 0 {
		return s.limit != 0 || o.limit == 0 && s.used > o.used
	}
	return float64(s.used)/float64(s.limit) > float64(o.used)/float64(o.limit)
}

// ScopeAddress is the scope label of actives: each provider address has a limit
// of its own.
const ScopeAddress = "address"

// ScopeCaller is the scope label of those limits of a flow that each are for one caller.
const ScopeCaller = "caller"

// ScopeGroup is the scope label of a bulkhead that methods share. Its method label is
// the group's name, and its service label [AnyService].
const (
	ScopeGroup = "group"
	AnyService = "*"
)

func bulkheadLabels(k bulkhead.Key) limitKey {
	if k.Group != "" {
		return limitKey{site{k.Side.String(), AnyService, k.Group}, bulkhead.Policy, ScopeGroup, ""}
	}
	return limitKey{site{k.Side.String(), k.Service, k.Method}, bulkhead.Policy, string(conf.ScopeMethod), ""}
}

// limitsOf are all limits of a runtime. What has the same labels, the addresses
// and references that a consumer's limits are kept for, is told by the fullest of
// them; those that wait are summed up.
func limitsOf(rt *guard.Runtime, now time.Duration) map[limitKey]limitState {
	out := map[limitKey]limitState{}
	add := func(k limitKey, s limitState) {
		if old, there := out[k]; there {
			s.waiting += old.waiting
			if !s.fuller(old) {
				old.waiting = s.waiting
				s = old
			}
		}
		out[k] = s
	}
	executelimit.Limiters(rt, func(k executelimit.Key, l *concurrency.Limiter) {
		add(limitKey{site{conf.Provider.String(), k.Service, k.Method}, executelimit.Policy, string(k.Scope), k.Protocol},
			limitState{limit: l.Limit(), used: l.Inflight()})
	})
	activelimit.Queues(rt, func(k activelimit.Key, q *concurrency.Queue) {
		add(limitKey{site{conf.Consumer.String(), k.Service, k.Method}, activelimit.Policy, ScopeAddress, ""},
			limitState{limit: q.Limit(), used: q.Inflight(), waiting: q.Waiting()})
	})
	bulkhead.Queues(rt, func(k bulkhead.Key, q *concurrency.Queue) {
		add(bulkheadLabels(k), limitState{limit: q.Limit(), used: q.Inflight(), waiting: q.Waiting()})
	})
	overload.Caps(rt, func(s overload.State) {
		add(limitKey{site{s.Side.String(), s.Service, s.Method}, overload.Policy, string(conf.ScopeMethod), ""},
			limitState{limit: s.Highest, used: s.Running})
	})
	tpslimit.Limiters(rt, func(k tpslimit.Key, _ conf.Algorithm, l tps.Limiter) {
		s := l.Stats(now)
		most := s.Rate
		if s.Burst > 0 {
			most = s.Burst // what a full bucket holds
		}
		add(limitKey{site{k.Side.String(), k.Service, k.Method}, tpslimit.Policy, string(conf.ScopeInstance), ""},
			limitState{limit: most, used: max(most-s.Left, 0), interval: s.Interval})
	})
	flowcontrol.Flows(rt, func(f flowcontrol.Flow) {
		scope := string(conf.ScopeInstance)
		if f.Caller != "" {
			scope = ScopeCaller
		}
		add(limitKey{site{f.Side.String(), f.Service, f.Method}, flowcontrol.Policy, scope, ""},
			limitState{limit: f.Quota.Rate, used: f.Used, waiting: f.Waiting, interval: f.Quota.Interval})
	})
	return out
}

func (c *Collector) limits(out sender) {
	type queue struct {
		site
		guard string
	}
	waits := map[queue]int64{}
	for k, s := range limitsOf(c.runtime, guard.Now()) {
		out.gauge(limit, float64(s.limit), k.labels()...)
		out.gauge(limitUsed, float64(s.used), k.labels()...)
		if s.interval > 0 {
			out.gauge(interval, s.interval.Seconds(), k.labels()...)
		}
		if k.guard == activelimit.Policy || k.guard == flowcontrol.Policy || k.guard == bulkhead.Policy {
			waits[queue{k.site, k.guard}] += s.waiting
		}
	}
	for k, n := range waits {
		out.gauge(waiting, float64(n), k.Side, k.Service, k.Method, k.guard)
	}
}
