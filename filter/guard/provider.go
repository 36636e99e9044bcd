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
	waited  time.Duration // at its steps
	began   time.Duration
	outcome call.Outcome
	elapsed time.Duration // negative: not taken
	err     error         // what the inner chain answered
	told    uint16        // the steps that have ended before the others, a bit for each
}

// admitted notes what a step has told of a call, and returns the newest reading of
// the clock.
func (r *running) admitted(s *Step, p Permit, now time.Duration) time.Duration {
	if p.At == 0 {
		return now
	}
	if s.Waits {
		r.waited += time.Duration(p.Token)
	}
	return p.At
}

// begin fills r in place: it is on the caller's stack and large enough for a
// copy to be felt.
func (r *running) begin(m *method, now time.Duration) {
	r.m, r.outcome, r.elapsed = m, call.Failure, -1
	if m.stats != nil {
		r.token = m.stats.Begin()
	}
	if m.clocked {
		if now == 0 {
			now = clockNow()
		}
		r.began = now
	}
}

// settle reads how the call ended from its result.
func (r *running) settle(ctx context.Context, inv base.Invocation, res result.Result) {
	m := r.m
	if m.clocked {
		r.elapsed = clockNow() - r.began
	}
	if res != nil {
		if err := res.Error(); err != nil {
			r.err = err
			r.outcome = m.failed(ctx, res, err)
			return
		}
	}
	r.outcome = call.Success
	if r.elapsed > 0 && m.chain.protocol == constant.DubboProtocol && late(inv, r.waited+r.elapsed) {
		r.outcome = call.Timeout
	}
}

// end counts the call. Without settle it panicked or exited.
func (r *running) end() {
	if r.elapsed < 0 && r.m.clocked {
		r.elapsed = clockNow() - r.began
	}
	if r.m.stats == nil {
		return
	}
	elapsed := r.elapsed
	if !r.m.timed {
		elapsed = -1
	}
	r.token.End(r.outcome, elapsed)
}

// finish ends what a step has to do with a call that ran.
func (r *running) finish(s *Step, p Permit) {
	if s.Ended != nil {
		s.Ended(p, r.outcome, r.began, r.elapsed, r.err)
		return
	}
	if p.Held && !s.OnlyDropped {
		s.Release(p, r.outcome)
	}
}

// drop takes back what a step has given to a call that did not run.
func (s *Step) drop(p Permit) {
	if p.Held {
		s.Release(p, call.Dropped)
	}
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
		taken int
		run   running
		ran   bool
	)
	// Deferred calls give back whatever was taken, wherever the call ended: in a
	// step that panics as well as in the handler. The first to be deferred, which
	// is the last to run, has something to do only after a release that panicked.
	defer func() {
		if taken > 0 {
			m.giveBack(permits[:taken], &run, ran)
		}
	}()
	defer func() {
		if ran {
			run.end()
			run.tell(permits)
		}
		for taken > 0 {
			taken--
			run.leave(m, taken, permits[taken], ran)
		}
	}()
	var now time.Duration
	if m.clock {
		now = clockNow()
	}
	for i := range m.steps {
		s := &m.steps[i]
		var refusal *Refusal
		permits[i], refusal = s.Take(Call{Ctx: ctx, Inv: inv, Now: now, Waited: run.waited})
		taken = i + 1
		if refusal != nil && !m.letPass(ctx, inv, s, refusal) {
			return refusal.result()
		}
		now = run.admitted(s, permits[i], now)
	}
	if m.asksAgain && run.waited > 0 {
		if _, refusal := m.again(permits, Call{Ctx: ctx, Inv: inv, Now: now, Waited: run.waited}); refusal != nil {
			return refusal.result()
		}
	}
	run.begin(m, now)
	ran = true
	m.start(permits, run.began)
	res = next.Invoke(ctx, inv)
	run.settle(ctx, inv, res)
	return res
}

// again asks the steps that want to be asked after a wait, and returns the first that
// refuses and does not only observe.
func (m *method) again(permits []Permit, c Call) (*Step, *Refusal) {
	for i := range m.steps {
		s := &m.steps[i]
		if s.Again == nil {
			continue
		}
		var refusal *Refusal
		permits[i], refusal = s.Again(permits[i], c)
		if refusal != nil && !m.letPass(c.Ctx, c.Inv, s, refusal) {
			return s, refusal
		}
	}
	return nil, nil
}

// start tells the steps that want to know that the call runs.
func (m *method) start(permits []Permit, now time.Duration) {
	if !m.starts {
		return
	}
	for i := range m.steps {
		if s := &m.steps[i]; s.Start != nil {
			permits[i] = s.Start(permits[i], now)
		}
	}
}

// tell ends, before any slot is given back, what the steps have to do that are asked
// again after a wait: who gets the slot is to find what this call has told them.
func (r *running) tell(permits []Permit) {
	if !r.m.asksAgain {
		return
	}
	for i := range r.m.steps {
		if s := &r.m.steps[i]; s.Again != nil && s.Ended != nil {
			r.told |= 1 << i
			r.finish(s, permits[i])
		}
	}
}

// leave is finish or drop.
func (r *running) leave(m *method, i int, p Permit, ran bool) {
	switch s := &m.steps[i]; {
	case !ran:
		s.drop(p)
	case r.told&(1<<i) == 0:
		r.finish(s, p)
	}
}

// giveBack ends what steps have to do with a call, the last first. One that
// panics or exits does not keep those before it.
func (m *method) giveBack(permits []Permit, run *running, ran bool) {
	n := len(permits)
	defer func() {
		if n > 0 {
			m.giveBack(permits[:n], run, ran)
		}
	}()
	for n > 0 {
		n--
		run.leave(m, n, permits[n], ran)
	}
}
