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
)

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
	var refusal *Refusal
	permit, refusal = s.Take(Call{Ctx: ctx, Inv: inv, Now: now})
	if refusal != nil && !m.letPass(ctx, inv, s, refusal) {
		return refusal.result()
	}
	now = run.admitted(s, permit, now)
	run.begin(m, now)
	ran = true
	if s.Start != nil {
		permit = s.Start(permit, run.began)
	}
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
	)
	// Two deferred calls: what the second release does must not keep the first.
	defer func() {
		if !ran {
			first.drop(one)
			return
		}
		run.finish(first, one)
	}()
	defer func() {
		if !ran {
			second.drop(two)
			return
		}
		run.end()
		run.finish(second, two)
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
	now = run.admitted(first, one, now)
	two, refusal = second.Take(Call{Ctx: ctx, Inv: inv, Now: now, Waited: run.waited})
	if refusal != nil && !m.letPass(ctx, inv, second, refusal) {
		return refusal.result()
	}
	now = run.admitted(second, two, now)
	run.begin(m, now)
	ran = true
	if first.Start != nil {
		one = first.Start(one, run.began)
	}
	if second.Start != nil {
		two = second.Start(two, run.began)
	}
	res = next.Invoke(ctx, inv)
	run.settle(ctx, inv, res)
	return res
}

// trio runs a call of a method with three steps, such as tps, breaker and executes,
// for the same reason.
func (m *method) trio(ctx context.Context, next base.Invoker, inv base.Invocation) (res result.Result) {
	var (
		first, second, third = &m.steps[0], &m.steps[1], &m.steps[2]
		one, two, three      Permit
		run                  running
		ran                  bool
	)
	defer func() {
		if !ran {
			first.drop(one)
			return
		}
		run.finish(first, one)
	}()
	defer func() {
		if !ran {
			second.drop(two)
			return
		}
		run.finish(second, two)
	}()
	defer func() {
		if !ran {
			third.drop(three)
			return
		}
		run.end()
		run.finish(third, three)
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
	now = run.admitted(first, one, now)
	two, refusal = second.Take(Call{Ctx: ctx, Inv: inv, Now: now, Waited: run.waited})
	if refusal != nil && !m.letPass(ctx, inv, second, refusal) {
		return refusal.result()
	}
	now = run.admitted(second, two, now)
	three, refusal = third.Take(Call{Ctx: ctx, Inv: inv, Now: now, Waited: run.waited})
	if refusal != nil && !m.letPass(ctx, inv, third, refusal) {
		return refusal.result()
	}
	now = run.admitted(third, three, now)
	run.begin(m, now)
	ran = true
	if m.starts {
		if first.Start != nil {
			one = first.Start(one, run.began)
		}
		if second.Start != nil {
			two = second.Start(two, run.began)
		}
		if third.Start != nil {
			three = third.Start(three, run.began)
		}
	}
	res = next.Invoke(ctx, inv)
	run.settle(ctx, inv, res)
	return res
}
