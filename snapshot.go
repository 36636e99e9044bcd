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

package weir

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/bulkhead"
	"github.com/weir-go/weir/filter/circuitbreaker"
	"github.com/weir-go/weir/filter/executelimit"
	"github.com/weir-go/weir/filter/flowcontrol"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/filter/tpslimit"
	"github.com/weir-go/weir/internal/breaker"
	"github.com/weir-go/weir/internal/transport"
	"github.com/weir-go/weir/loadbalance"
	"github.com/weir-go/weir/rpcstatus"
	"github.com/weir-go/weir/rpcstatus/concurrency"
	"github.com/weir-go/weir/tps"
)

// SnapshotFormat is the version of the [State] type. It grows when a field
// changes its meaning; new fields do not change it.
const SnapshotFormat = 1

// State is what is in force and what was counted, at one moment. It encodes as JSON.
type State struct {
	// Format is [SnapshotFormat].
	Format int `json:"format"`
	// Version grows with every change of the configuration.
	Version uint64 `json:"version"`
	// Mode holds for all guards; ModeSource tells where it comes from.
	Mode       conf.Mode `json:"mode"`
	ModeSource string    `json:"modeSource"`
	// Methods are those of chains that were called and of exported services, sorted.
	Methods []MethodState `json:"methods"`
	// Limits are those in force, sorted.
	Limits []LimitState `json:"limits"`
	// Breakers are those in force, sorted.
	Breakers []BreakerState `json:"breakers"`
	// Overloads are the caps of the overload guards, sorted.
	Overloads []OverloadState `json:"overloads"`
	// Health are the signals of the machine that are read.
	Health []HealthState `json:"health"`
	// Balances are those of the references that choose by one of Weir's load balances, sorted.
	Balances []BalanceState `json:"balances"`
	// Groups are those that references route by, sorted.
	Groups []GroupState `json:"groups"`
	// ConfigErrors counts faults that were met while running.
	ConfigErrors int64 `json:"configErrors"`
	// LateResponses counts replies on the dubbo protocol that came after their
	// caller had timed out.
	LateResponses uint64 `json:"lateResponses"`
}

// MethodState is one method of one service or reference.
type MethodState struct {
	Side     string `json:"side"`
	Service  string `json:"service"`
	Method   string `json:"method"`
	Protocol string `json:"protocol"`
	// Reference tells the references of this process apart.
	Reference uint64 `json:"reference,omitempty"`
	// Settings are the values that some source set, with the source of each.
	// What is not among them has its default.
	Settings []conf.Setting `json:"settings"`
	// Figures is nil when the method keeps none.
	Figures *FiguresState `json:"figures,omitempty"`
}

// FiguresState are the counts of a method.
type FiguresState struct {
	Inflight int64 `json:"inflight"`
	// Total counts calls that ran and ended; those that were refused are beside it,
	// among Outcomes.
	Total       int64            `json:"total"`
	Outcomes    map[string]int64 `json:"outcomes"`
	WouldReject int64            `json:"wouldReject"`
	// Response times, in nanoseconds when encoded.
	Elapsed    time.Duration `json:"elapsedNanos"`
	Average    time.Duration `json:"averageNanos"`
	MaxElapsed time.Duration `json:"maxElapsedNanos"`
}

// LimitState is one limit.
type LimitState struct {
	Guard   string `json:"guard"`
	Side    string `json:"side"`
	Service string `json:"service"`
	// Method is "*" where all methods of the service share the limit.
	Method string `json:"method"`
	// Scope tells what shares a limit of running calls of a provider.
	Scope conf.Scope `json:"scope,omitempty"`
	// Protocol is set where each exported protocol counts by itself.
	Protocol string `json:"protocol,omitempty"`
	// Reference tells a consumer's references apart, and Address the provider
	// where each has a limit of its own.
	Reference uint64 `json:"reference,omitempty"`
	Address   string `json:"address,omitempty"`
	// Caller is the application that a flow's limit is for, empty for all together.
	Caller string `json:"caller,omitempty"`
	// Group is the name of a bulkhead that methods share; it then belongs to no Service
	// and no Method.
	Group string `json:"group,omitempty"`
	// Limit is 0 when unlimited. For calls over time it is the number of calls
	// per Interval.
	Limit int64 `json:"limit"`
	// Inflight are the calls that run; for calls over time those that count now.
	Inflight int64 `json:"inflight"`
	// Waiting are the calls that wait for a slot.
	Waiting int64 `json:"waiting,omitempty"`
	// Interval, Algorithm and Burst are those of a limit of calls over time.
	// Interval is in nanoseconds when encoded.
	Interval  time.Duration  `json:"intervalNanos,omitempty"`
	Algorithm conf.Algorithm `json:"algorithm,omitempty"`
	Burst     int64          `json:"burst,omitempty"`
	// Behavior is that of a flow. While it warms up, Limit is what holds now.
	Behavior conf.Behavior `json:"behavior,omitempty"`
}

// BreakerState is one circuit breaker.
type BreakerState struct {
	Side    string `json:"side"`
	Service string `json:"service"`
	Method  string `json:"method"`
	// Reference tells a consumer's references apart, and Address the provider; it is
	// empty where all addresses share a breaker.
	Reference uint64 `json:"reference,omitempty"`
	Address   string `json:"address,omitempty"`
	// State is closed, open or half-open, and Forced is set when it is held so by
	// breaker.force.
	State  string `json:"state"`
	Forced bool   `json:"forced,omitempty"`
	// Reason is why the breaker is not closed, as in its refusals; Limit and Observed
	// are the bound that was met and what met it.
	Reason   string `json:"reason,omitempty"`
	Limit    int64  `json:"limit,omitempty"`
	Observed int64  `json:"observed,omitempty"`
	// NextProbe is how long an open breaker will still refuse every call; 0 is that the
	// next call will probe, or that it is held open. In nanoseconds when encoded.
	NextProbe time.Duration `json:"nextProbeNanos,omitempty"`
	// Calls, Failures, Timeouts and Slow are those that ended in the window of a
	// closed breaker; timeouts are among the failures. Refused are the calls that the
	// other side refused in that time, which are not among them.
	Calls    int64 `json:"calls"`
	Failures int64 `json:"failures"`
	Timeouts int64 `json:"timeouts"`
	Slow     int64 `json:"slow"`
	Refused  int64 `json:"refused"`
	// Hung are the calls of a closed breaker that run for longer than breaker.slow-call.
	Hung int64 `json:"hung"`
	// Probes are those that run; Healthy and Unhealthy are those of the round that
	// have ended.
	Probes    int `json:"probes,omitempty"`
	Healthy   int `json:"healthy,omitempty"`
	Unhealthy int `json:"unhealthy,omitempty"`
}

// BalanceState is what a reference goes by to choose among its providers.
type BalanceState struct {
	Service   string `json:"service"`
	Reference uint64 `json:"reference"`
	// Balancers are the names of the load balances that have chosen for it.
	Balancers []string `json:"balancers"`
	// Providers are those that calls were chosen from and that have not left since.
	Providers []BalancedProvider `json:"providers"`
}

// BalancedProvider is a provider among those of a reference.
type BalancedProvider struct {
	Address string `json:"address"`
	// Weight is what it has now, while it warms up; 0 is drained.
	Weight int64 `json:"weight"`
	// Inflight are the calls that run, and Picks those that were sent.
	Inflight int64 `json:"inflight"`
	Picks    int64 `json:"picks"`
	// Score is (Inflight+1)/Weight, -1 where the weight is 0.
	Score   float64          `json:"score"`
	Methods []BalancedMethod `json:"methods,omitempty"`
}

// BalancedMethod is a method of such a provider.
type BalancedMethod struct {
	Method string `json:"method"`
	// Response is the average response time where the load balance goes by that, 0 when
	// it is not known; in nanoseconds when encoded.
	Response time.Duration `json:"responseNanos"`
	// Succeeding is the share of calls that succeed, 0 to 1: those that ended lately.
	Succeeding float64 `json:"succeeding"`
	// AvoidedFor is for how long it gets calls only where no other is left; in
	// nanoseconds when encoded.
	AvoidedFor time.Duration `json:"avoidedForNanos,omitempty"`
}

// Snapshot tells every effective setting and where it came from, and what was
// counted. Calls go on meanwhile, so counts may be a few calls apart.
func Snapshot() State { return snapshot(guard.Process()) }

func snapshot(rt *guard.Runtime) State {
	view := rt.Store.View()
	s := State{Format: SnapshotFormat, Version: view.Version, ConfigErrors: rt.ConfigErrors(), LateResponses: transport.LateReplies()}
	s.Mode, s.ModeSource = view.Mode()
	s.Methods, s.Limits = []MethodState{}, []LimitState{}
	figures := map[rpcstatus.Key]*FiguresState{}
	rt.Status.Range(func(k rpcstatus.Key, st *rpcstatus.Status) bool {
		figures[k] = figuresState(st.Figures())
		return true
	})
	seen := map[methodKey]bool{}
	rt.Methods(func(m guard.MethodInfo) {
		key := methodKey{m.Side.String(), m.Service, m.Protocol, m.Method, m.Reference}
		if seen[key] {
			return // a chain that is on its way out
		}
		seen[key] = true
		s.Methods = append(s.Methods, MethodState{
			Side: m.Side.String(), Service: m.Service, Method: m.Method, Protocol: m.Protocol, Reference: m.Reference,
			Settings: append([]conf.Setting{}, m.Policy.Settings...),
			Figures:  figures[rpcstatus.Key{Side: m.Side.String(), Reference: m.Reference, Service: m.Service, Method: m.Method}],
		})
	})
	s.Limits = append(s.Limits, limitStates(rt)...)
	s.Breakers = breakerStates(rt)
	s.Overloads, s.Health = overloadStates(rt), healthStates(rt)
	s.Balances, s.Groups = balanceStates(), groupStates(rt)
	slices.SortFunc(s.Methods, func(a, b MethodState) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Method, b.Method),
			cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Reference, b.Reference))
	})
	slices.SortFunc(s.Limits, func(a, b LimitState) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Method, b.Method),
			cmp.Compare(a.Guard, b.Guard), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Protocol, b.Protocol),
			cmp.Compare(a.Reference, b.Reference), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Group, b.Group))
	})
	return s
}

func balanceStates() []BalanceState {
	out := []BalanceState{}
	for _, st := range loadbalance.States() {
		b := BalanceState{Service: st.Service, Reference: st.Reference, Balancers: st.Balancers, Providers: []BalancedProvider{}}
		for _, p := range st.Providers {
			provider := BalancedProvider{Address: p.Address, Weight: p.Weight, Inflight: p.Inflight, Picks: p.Picks, Score: p.Score}
			for _, m := range p.Methods {
				provider.Methods = append(provider.Methods, BalancedMethod(m))
			}
			b.Providers = append(b.Providers, provider)
		}
		out = append(out, b)
	}
	return out
}

func breakerStates(rt *guard.Runtime) []BreakerState {
	out := []BreakerState{}
	now := guard.Now()
	circuitbreaker.Breakers(rt, func(k circuitbreaker.Key, st breaker.Stats) {
		b := BreakerState{
			Side: k.Side.String(), Service: k.Service, Method: k.Method, Reference: k.Reference, Address: k.Address,
			State: st.State.String(), Forced: st.Force != breaker.Free, Limit: st.Cause.Limit, Observed: st.Cause.Observed,
			Calls: st.Calls, Failures: st.Failures, Timeouts: st.Timeouts, Slow: st.Slow, Refused: st.Refused, Hung: st.Hung,
			Probes: st.Probes, Healthy: st.Healthy, Unhealthy: st.Unhealthy,
		}
		if st.Cause.Reason != breaker.None {
			b.Reason = st.Cause.Reason.String()
		}
		if st.Until > 0 {
			b.NextProbe = max(st.Until-now, 0)
		}
		out = append(out, b)
	})
	slices.SortFunc(out, func(a, b BreakerState) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Method, b.Method),
			cmp.Compare(a.Reference, b.Reference), cmp.Compare(a.Address, b.Address))
	})
	return out
}

func limitStates(rt *guard.Runtime) []LimitState {
	var out []LimitState
	executelimit.Limiters(rt, func(k executelimit.Key, l *concurrency.Limiter) {
		out = append(out, LimitState{
			Guard: executelimit.Policy, Side: conf.Provider.String(), Service: k.Service, Method: k.Method, Scope: k.Scope, Protocol: k.Protocol,
			Limit: l.Limit(), Inflight: l.Inflight(),
		})
	})
	activelimit.Queues(rt, func(k activelimit.Key, q *concurrency.Queue) {
		out = append(out, LimitState{
			Guard: activelimit.Policy, Side: conf.Consumer.String(), Service: k.Service, Method: k.Method, Reference: k.Reference, Address: k.Address,
			Limit: q.Limit(), Inflight: q.Inflight(), Waiting: q.Waiting(),
		})
	})
	bulkhead.Queues(rt, func(k bulkhead.Key, q *concurrency.Queue) {
		out = append(out, LimitState{
			Guard: bulkhead.Policy, Side: k.Side.String(), Service: k.Service, Method: k.Method, Reference: k.Reference, Group: k.Group,
			Limit: q.Limit(), Inflight: q.Inflight(), Waiting: q.Waiting(),
		})
	})
	now := guard.Now()
	tpslimit.Limiters(rt, func(k tpslimit.Key, algorithm conf.Algorithm, l tps.Limiter) {
		st := l.Stats(now)
		out = append(out, LimitState{
			Guard: tpslimit.Policy, Side: k.Side.String(), Service: k.Service, Method: k.Method, Reference: k.Reference,
			Limit: st.Rate, Inflight: max(cmp.Or(st.Burst, st.Rate)-st.Left, 0), Interval: st.Interval, Algorithm: algorithm, Burst: st.Burst,
		})
	})
	flowcontrol.Flows(rt, func(f flowcontrol.Flow) {
		out = append(out, LimitState{
			Guard: flowcontrol.Policy, Side: f.Side.String(), Service: f.Service, Method: f.Method, Reference: f.Reference, Caller: f.Caller,
			Limit: f.Quota.Rate, Inflight: f.Used, Waiting: f.Waiting, Interval: f.Quota.Interval, Behavior: f.Behavior,
		})
	})
	return out
}

func figuresState(f rpcstatus.Figures) *FiguresState {
	out := &FiguresState{
		Inflight: f.Inflight, Total: f.Total, WouldReject: f.WouldReject, Outcomes: map[string]int64{},
		Elapsed: f.Elapsed, Average: f.Average(), MaxElapsed: f.MaxElapsed,
	}
	for o, n := range f.Outcomes {
		out.Outcomes[call.Outcome(o).String()] = n
	}
	return out
}

type methodKey struct {
	side, service, protocol, method string
	reference                       uint64
}
