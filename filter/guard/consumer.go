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

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/internal/retry"
)

// attempt sends one attempt of a call to the chain's instance, unless the
// instance has refused this call already or a guard of this side refuses it.
func (c *chain) attempt(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	if c.primary && c.consumer.ref.Counting() {
		return c.counted(ctx, next, inv)
	}
	var m *method
	if !c.idle {
		m = c.lookup(inv)
	}
	return c.try(ctx, next, inv, m)
}

// try is attempt with the method's plan, nil where no method has one.
func (c *chain) try(ctx context.Context, next base.Invoker, inv base.Invocation, m *method) result.Result {
	if c.consumer.tells && c.primary {
		c.tellCaller(inv)
	}
	switch {
	case m == nil || m.idle():
		return c.bare(ctx, next, inv, m)
	case len(m.steps) == 1 && !c.consumer.ref.Refusing():
		return c.one(ctx, next, inv, m)
	case len(m.steps) <= few:
		return c.limitedByFew(ctx, next, inv, m)
	}
	var permits [maxSteps]Permit
	return c.limited(ctx, next, inv, m, permits[:])
}

func (c *chain) limitedByFew(ctx context.Context, next base.Invoker, inv base.Invocation, m *method) result.Result {
	var permits [few]Permit
	return c.limited(ctx, next, inv, m, permits[:])
}

// bare is an attempt of a method with neither steps nor statistics.
func (c *chain) bare(ctx context.Context, next base.Invoker, inv base.Invocation, m *method) (res result.Result) {
	if !c.primary {
		return next.Invoke(ctx, inv)
	}
	a, err := c.consumer.ref.Begin(inv, c.consumer.address, retry.Policy{Failover: c.consumer.failover})
	if err != nil {
		return &result.RPCResult{Err: err}
	}
	c.tellCaller(inv)
	try := attempt{Attempt: a}
	defer try.end()
	res = c.send(ctx, next, inv, m, false)
	if res == nil || res.Error() == nil {
		if try.Known() {
			try.answered(inv)
		}
		return res
	}
	c.failed(ctx, &try, m, inv, res)
	return res
}

// visit is an attempt of a method with steps or statistics.
type visit struct {
	try     attempt
	run     running
	ran     bool
	charged charged
}

// end ends all but the permits.
func (v *visit) end() {
	v.charged.undo()
	v.try.end()
	if v.ran {
		v.run.end()
	}
}

// begin asks whether the instance has refused this call already.
func (v *visit) begin(c *chain, inv base.Invocation) error {
	if !c.consumer.ref.Refusing() {
		return nil
	}
	if !c.primary {
		return c.consumer.ref.Past(inv, c.consumer.address)
	}
	a, err := c.consumer.ref.Begin(inv, c.consumer.address, retry.Policy{Failover: c.consumer.failover})
	if err == nil {
		v.try.Attempt = a
		c.tellCaller(inv)
	}
	return err
}

// came looks at what came back from an attempt.
func (r *running) came(ctx context.Context, try *attempt, inv base.Invocation, res result.Result, opens bool) {
	m := r.m
	switch {
	case !m.clocked:
	case opens:
		r.elapsed = 0 // that a stream is open says nothing of how long it takes
	default:
		r.elapsed = clockNow() - r.began
	}
	if res == nil || res.Error() == nil {
		if try.Known() {
			try.answered(inv)
		}
		r.outcome = call.Success
		return
	}
	r.err = res.Error()
	r.outcome = m.chain.failed(ctx, try, m, inv, res)
}

// one is an attempt of a method with one step on a reference of which no instance
// has ever refused a call: the usual case, without what the general one needs.
func (c *chain) one(ctx context.Context, next base.Invoker, inv base.Invocation, m *method) (res result.Result) {
	var (
		s      = &m.steps[0]
		permit Permit
		run    running
		ran    bool
	)
	defer func() {
		if !ran {
			s.drop(permit)
			return
		}
		run.end()
		run.finish(s, permit)
	}()
	var now time.Duration
	if m.clock {
		now = clockNow()
	}
	opens := !m.unary.Load() && m.streams(inv)
	var refusal *Refusal
	permit, refusal = s.Take(Call{Ctx: ctx, Inv: inv, Now: now, Opens: opens})
	if refusal != nil && !m.letPass(ctx, inv, s, refusal) {
		var none attempt
		return c.refused(m, &none, inv, s, refusal)
	}
	if permit.At != 0 {
		now = permit.At
		if s.Waits && !opens {
			var k charged
			defer k.undo()
			ctx, inv = k.charge(ctx, c, inv, time.Duration(permit.Token))
		}
	}
	run.begin(m, now)
	ran = true
	if s.Start != nil && !opens {
		permit = s.Start(permit, run.began)
	}
	res = c.send(ctx, next, inv, m, opens)
	if (res == nil || res.Error() == nil) && !m.clocked {
		run.outcome = call.Success
		return res
	}
	var none attempt
	run.came(ctx, &none, inv, res, opens)
	return res
}

// limited is an attempt of a method with several steps, or with statistics only.
func (c *chain) limited(ctx context.Context, next base.Invoker, inv base.Invocation, m *method, permits []Permit) (res result.Result) {
	var (
		v     visit
		taken int
	)
	if err := v.begin(c, inv); err != nil {
		return &result.RPCResult{Err: err}
	}
	defer func() { // as in serve
		if taken > 0 {
			m.giveBack(permits[:taken], &v.run, v.ran)
		}
	}()
	defer func() {
		v.end()
		if v.ran {
			v.run.tell(permits)
		}
		for taken > 0 {
			taken--
			v.run.leave(m, taken, permits[taken], v.ran)
		}
	}()
	var now time.Duration
	if m.clock {
		now = clockNow()
	}
	opens := !m.unary.Load() && m.streams(inv)
	for i := range m.steps {
		s := &m.steps[i]
		p, refusal := s.Take(Call{Ctx: ctx, Inv: inv, Now: now, Opens: opens, Waited: v.run.waited})
		permits[i], taken = p, i+1
		if refusal != nil && !m.letPass(ctx, inv, s, refusal) {
			return c.refused(m, &v.try, inv, s, refusal)
		}
		now = v.run.admitted(s, p, now)
	}
	if m.asksAgain && v.run.waited > 0 {
		if s, refusal := m.again(permits, Call{Ctx: ctx, Inv: inv, Now: now, Opens: opens, Waited: v.run.waited}); refusal != nil {
			return c.refused(m, &v.try, inv, s, refusal)
		}
	}
	if v.run.waited > 0 && !opens { // a stream goes on for longer than the call that opens it
		ctx, inv = v.charged.charge(ctx, c, inv, v.run.waited)
	}
	v.run.begin(m, now)
	v.ran = true
	if !opens {
		m.start(permits, v.run.began)
	}
	res = c.send(ctx, next, inv, m, opens)
	v.run.came(ctx, &v.try, inv, res, opens)
	return res
}

// refused ends an attempt that was not sent because a guard of this side refused
// it. Failover goes on only where another instance may have what this one lacks.
func (c *chain) refused(m *method, try *attempt, inv base.Invocation, s *Step, r *Refusal) result.Result {
	ref := c.consumer.ref
	if s.PerInstance && !r.Last {
		policy := retry.Policy{Failover: c.consumer.failover, Retries: c.retries(inv)}
		m.avoid(r.Reject)
		return &result.RPCResult{Err: ref.RefusedHere(try.Attempt, inv, c.consumer.address, policy, r.Reject)}
	}
	if ref.Armed() {
		return &result.RPCResult{Err: r.last}
	}
	return &result.RPCResult{Err: r.err}
}

// attempt is an attempt that ends in any case: a token must not be lost to a
// panic.
type attempt struct {
	retry.Attempt
	ended bool
}

func (a *attempt) end() {
	if !a.ended && a.Known() {
		a.Done()
	}
}

// answered reports an answer. That of a call whose answer comes by another way
// says nothing of whether the instance admitted it.
func (a *attempt) answered(inv base.Invocation) {
	if !streaming(inv) && !async(inv) {
		a.ended = true
		a.Served()
	}
}

// failed looks at an attempt that ended with an error. A refusal is rebuilt as
// the typed error, and wrapped where failover must not go on.
func (c *chain) failed(ctx context.Context, a *attempt, m *method, inv base.Invocation, res result.Result) call.Outcome {
	err := res.Error()
	if _, typed := asRefusal(err); typed {
		// A guard further in on this side refused it: what comes over the wire is
		// never typed.
		return call.Rejected
	}
	ref := c.consumer.ref
	e, ok := decodeWire(err)
	if !ok && textual[c.protocol] {
		e, ok = decodeText(textOf(err))
	}
	if !ok {
		if c.primary && cameOvertime(err) {
			// The call still runs there: it must not be run again elsewhere.
			res.SetError(ref.Ends(err))
		}
		outcome := consumerOutcome(ctx, err, m != nil && m.policy.BusinessErrorsFail)
		m.noAnswer(outcome)
		return outcome
	}
	if c.primary {
		traceRefusal(ctx, e, true)
	}
	own := ownRefusal(e, c.service, methodName(inv))
	switch {
	case !c.primary && own:
		return call.Rejected
	case !c.primary:
		return call.Forwarded
	case !own:
		res.SetError(ref.Final(e.AsForwarded()))
		a.ended = true
		a.Served()
		return call.Forwarded
	}
	a.ended = true
	m.refusedThere(e)
	policy := retry.Policy{Failover: c.consumer.failover, Retries: c.retries(inv)}
	res.SetError(ref.Refused(a.Attempt, inv, c.consumer.address, policy, e))
	return call.Rejected
}
