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
	"errors"
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/rpcstatus"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
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
	if e, ok := call.As(err); ok {
		if own(m.chain, err, e) {
			return call.Rejected
		}
		if m.chain.primary {
			res.SetError(newWireRefusal(e.AsForwarded()))
		}
		return call.Forwarded
	}
	return outcomeOf(ctx, err, m.policy.BusinessErrorsFail)
}

// own reports whether a refusal was made by a guard of this very chain, rather
// than passed on by the handler.
func own(c *chain, err error, e *call.RejectError) bool {
	var w *wireRefusal
	return errors.As(err, &w) && !w.reject.Forwarded && e.Service() == c.serviceKey
}

// stampForwarded marks a refusal that the handler of an idle chain passes on.
func stampForwarded(c *chain, res result.Result) {
	err := res.Error()
	e, ok := call.As(err)
	if !ok || own(c, err, e) {
		return
	}
	res.SetError(newWireRefusal(e.AsForwarded()))
}

// refuse answers a call that is not let in.
func (m *method) refuse(r *Refusal) result.Result {
	if m.stats != nil {
		m.stats.Reject()
	}
	r.note(false)
	return r.result()
}

func (m *method) wouldRefuse(r *Refusal) {
	if m.stats != nil {
		m.stats.WouldReject()
	}
	r.note(true)
}

// count runs a call of a method that has statistics and no limit.
func (m *method) count(ctx context.Context, next base.Invoker, inv base.Invocation) (res result.Result) {
	if m.stats == nil {
		res = next.Invoke(ctx, inv)
		if res != nil && res.Error() != nil && m.chain.primary {
			stampForwarded(m.chain, res)
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
	s := &m.steps[0]
	var now time.Duration
	if m.clock {
		now = clockNow()
	}
	permit, refusal := s.Take(Call{ctx, inv, now})
	if refusal != nil {
		if !s.Observe {
			return m.refuse(refusal)
		}
		m.wouldRefuse(refusal)
		permit = Permit{}
	}
	if s.Waits {
		now = 0
	}
	var run running
	run.begin(m, now)
	defer func() {
		run.end()
		if permit.Held {
			s.Release(permit, run.outcome)
		}
	}()
	res = next.Invoke(ctx, inv)
	run.settle(ctx, inv, res)
	return res
}

// several runs a call of a method with more steps.
func (m *method) several(ctx context.Context, next base.Invoker, inv base.Invocation) (res result.Result) {
	var (
		permits [maxSteps]Permit
		taken   int
		run     running
		ran     bool
		outcome = call.Dropped
	)
	// One deferred call gives back whatever was taken, wherever the call ended:
	// in a step that panics as well as in the handler.
	defer func() {
		if ran {
			run.end()
			outcome = run.outcome
		}
		for i := taken - 1; i >= 0; i-- {
			if permits[i].Held {
				m.steps[i].Release(permits[i], outcome)
			}
		}
	}()
	var now time.Duration
	if m.clock {
		now = clockNow()
	}
	for i := range m.steps {
		s := &m.steps[i]
		permit, refusal := s.Take(Call{ctx, inv, now})
		if refusal != nil {
			if !s.Observe {
				return m.refuse(refusal)
			}
			m.wouldRefuse(refusal)
			permit = Permit{}
		}
		permits[i], taken = permit, i+1
		if s.Waits {
			now = 0
			if m.clock {
				now = clockNow()
			}
		}
	}
	run.begin(m, now)
	ran = true
	res = next.Invoke(ctx, inv)
	run.settle(ctx, inv, res)
	return res
}
