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

package guard

import (
	"context"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/rpcstatus"
)

// maxSteps is how many permits a call keeps on its stack.
const maxSteps = 16

// running is a call between its admission and its end.
type running struct {
	m       *method
	token   rpcstatus.Token
	began   time.Duration
	outcome call.Outcome
	elapsed time.Duration // negative: not taken
}

// begin fills r in place: it is on the caller's stack and large enough for a
// copy to be felt.
func (r *running) begin(m *method, now time.Duration) {
	r.m, r.outcome, r.elapsed = m, call.Failure, -1
	if m.stats == nil {
		return
	}
	r.token = m.stats.Begin()
	if m.timed {
		if now == 0 {
			now = clockNow()
		}
		r.began = now
	}
}

// settle reads how the call ended from its result.
func (r *running) settle(ctx context.Context, inv base.Invocation, res result.Result) {
	m := r.m
	if m.stats != nil && m.timed {
		r.elapsed = clockNow() - r.began
	}
	if res != nil {
		if err := res.Error(); err != nil {
			r.outcome = m.failed(ctx, res, err)
			return
		}
	}
	r.outcome = call.Success
	if r.elapsed > 0 && m.chain.protocol == constant.DubboProtocol && late(inv, r.elapsed) {
		r.outcome = call.Timeout
	}
}

// end counts the call. Without settle it panicked or exited.
func (r *running) end() {
	if r.m.stats == nil {
		return
	}
	if r.elapsed < 0 && r.m.timed {
		r.elapsed = clockNow() - r.began
	}
	r.token.End(r.outcome, r.elapsed)
}

// failed sorts an error that came out of the inner chain.
func (m *method) failed(ctx context.Context, res result.Result, err error) call.Outcome {
	if outcome, refusal := m.chain.stamp(res, err); refusal {
		return outcome
	}
	return outcomeOf(ctx, err, m.policy.BusinessErrorsFail)
}

// stamp marks a refusal that the handler passes on as forwarded. One that a
// guard of this very chain made is left as it is.
func (c *chain) stamp(res result.Result, err error) (outcome call.Outcome, refusal bool) {
	e, ok := passedOn(err)
	if !ok {
		return 0, false
	}
	if w, ok := asWireRefusal(err); ok && !w.reject.Forwarded && e.Service() == c.serviceKey {
		return call.Rejected, true
	}
	if c.primary {
		res.SetError(newWireRefusal(e.AsForwarded()))
	}
	return call.Forwarded, true
}

// letPass counts a step's refusal, and tells whether the call goes on because the
// step only observes.
func (m *method) letPass(ctx context.Context, inv base.Invocation, s *Step, r *Refusal) bool {
	if m.stats != nil {
		if s.Observe {
			m.stats.WouldReject()
		} else {
			m.stats.Reject()
		}
	}
	r.note(ctx, inv, s.Observe)
	return s.Observe
}

// look finds the refusal in an error that passes by a chain that counts nothing.
func (c *chain) look(ctx context.Context, inv base.Invocation, res result.Result) {
	switch {
	case !c.primary:
	case c.side == conf.Provider:
		c.stamp(res, res.Error())
	default:
		var none attempt
		c.failed(ctx, &none, nil, inv, res)
	}
}

// count runs a call of a method that has statistics and no limit.
func (m *method) count(ctx context.Context, next base.Invoker, inv base.Invocation) (res result.Result) {
	if m.stats == nil {
		res = next.Invoke(ctx, inv)
		if res != nil && res.Error() != nil {
			m.chain.look(ctx, inv, res)
		}
		return res
	}
	var run running
	run.begin(m, 0)
	defer run.end()
	res = next.Invoke(ctx, inv)
	run.settle(ctx, inv, res)
	return res
}

// single runs a call of a method with one step: the usual case, without the
// loops of the general one.
func (m *method) single(ctx context.Context, next base.Invoker, inv base.Invocation) (res result.Result) {
	var (
		s      = &m.steps[0]
		permit Permit
		run    running
		ran    bool
	)
	// Deferred before anything is taken: not even a logger that panics may keep it.
	defer func() {
		outcome := call.Dropped
		if ran {
			run.end()
			outcome = run.outcome
		}
		if s.releases(permit, outcome) {
			s.Release(permit, outcome)
		}
	}()
	var now time.Duration
	if m.clock {
		now = clockNow()
	}
	var refusal *Refusal
	permit, refusal = s.Take(Call{Ctx: ctx, Inv: inv, Now: now})
	if refusal != nil && !m.letPass(ctx, inv, s, refusal) {
		return refusal.result()
	}
	if permit.At != 0 {
		now = permit.At
	}
	run.begin(m, now)
	ran = true
	res = next.Invoke(ctx, inv)
	run.settle(ctx, inv, res)
	return res
}

// pair runs a call of a method with two steps, such as tps and executes. It says
// again what serve says, because its loops and slices cost a call with executes and
// tps up to a tenth more.
func (m *method) pair(ctx context.Context, next base.Invoker, inv base.Invocation) (res result.Result) {
	var (
		first, second = &m.steps[0], &m.steps[1]
		one, two      Permit
		run           running
		ran           bool
		outcome       = call.Dropped
	)
	// Two deferred calls: what the second release does must not keep the first.
	defer func() {
		if first.releases(one, outcome) {
			first.Release(one, outcome)
		}
	}()
	defer func() {
		if ran {
			run.end()
			outcome = run.outcome
		}
		if second.releases(two, outcome) {
			second.Release(two, outcome)
		}
	}()
	var now time.Duration
	if m.clock {
		now = clockNow()
	}
	var refusal *Refusal
	one, refusal = first.Take(Call{Ctx: ctx, Inv: inv, Now: now})
	if refusal != nil && !m.letPass(ctx, inv, first, refusal) {
		return refusal.result()
	}
	if one.At != 0 {
		now = one.At
	}
	two, refusal = second.Take(Call{Ctx: ctx, Inv: inv, Now: now})
	if refusal != nil && !m.letPass(ctx, inv, second, refusal) {
		return refusal.result()
	}
	if two.At != 0 {
		now = two.At
	}
	run.begin(m, now)
	ran = true
	res = next.Invoke(ctx, inv)
	run.settle(ctx, inv, res)
	return res
}

// few is the number of steps that most plans stay within: the permits of more
// are felt on the stack.
const few = 4

// several runs a call of a method with more steps.
func (m *method) several(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	if len(m.steps) <= few {
		var permits [few]Permit
		return m.serve(ctx, next, inv, permits[:])
	}
	var permits [maxSteps]Permit
	return m.serve(ctx, next, inv, permits[:])
}

func (m *method) serve(ctx context.Context, next base.Invoker, inv base.Invocation, permits []Permit) (res result.Result) {
	var (
		taken   int
		run     running
		ran     bool
		outcome = call.Dropped
	)
	// Deferred calls give back whatever was taken, wherever the call ended: in a
	// step that panics as well as in the handler. The first to be deferred, which
	// is the last to run, has something to do only after a release that panicked.
	defer func() {
		if taken > 0 {
			m.giveBack(permits[:taken], outcome)
		}
	}()
	defer func() {
		if ran {
			run.end()
			outcome = run.outcome
		}
		for taken > 0 {
			taken--
			if s := &m.steps[taken]; s.releases(permits[taken], outcome) {
				s.Release(permits[taken], outcome)
			}
		}
	}()
	var now time.Duration
	if m.clock {
		now = clockNow()
	}
	for i := range m.steps {
		s := &m.steps[i]
		var refusal *Refusal
		permits[i], refusal = s.Take(Call{Ctx: ctx, Inv: inv, Now: now})
		taken = i + 1
		if refusal != nil && !m.letPass(ctx, inv, s, refusal) {
			return refusal.result()
		}
		if permits[i].At != 0 {
			now = permits[i].At
		}
	}
	run.begin(m, now)
	ran = true
	res = next.Invoke(ctx, inv)
	run.settle(ctx, inv, res)
	return res
}

// releases tells whether there is something to do at the end of a call.
func (s *Step) releases(p Permit, outcome call.Outcome) bool {
	return p.Held && (outcome == call.Dropped || !s.OnlyDropped)
}

// giveBack releases permits, the last first. A release that panics or exits
// does not keep those before it.
func (m *method) giveBack(permits []Permit, outcome call.Outcome) {
	n := len(permits)
	defer func() {
		if n > 0 {
			m.giveBack(permits[:n], outcome)
		}
	}()
	for n > 0 {
		n--
		if s := &m.steps[n]; s.releases(permits[n], outcome) {
			s.Release(permits[n], outcome)
		}
	}
}
