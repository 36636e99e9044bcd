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
	"strconv"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/internal/retry"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
)

// attempt sends one attempt of a call to the chain's instance, unless the
// instance has refused this call already.
func (c *chain) attempt(ctx context.Context, next base.Invoker, inv base.Invocation) (res result.Result) {
	if !c.primary {
		return next.Invoke(ctx, inv)
	}
	ref := c.consumer.ref
	a, before := ref.Begin(inv, c.consumer.address, retry.Policy{Failover: c.consumer.failover})
	if before != nil {
		return &result.RPCResult{Err: ref.Final(before)}
	}
	var m *method
	if !c.idle {
		m = c.lookup(inv)
	}
	if m == nil || m.stats == nil {
		res = next.Invoke(ctx, inv)
		if res == nil || res.Error() == nil {
			a.Done()
			return res
		}
		c.answer(ctx, a, m, inv, res)
		return res
	}
	var run running
	run.begin(m, 0)
	defer run.end()
	res = next.Invoke(ctx, inv)
	if m.timed && !streaming(inv) {
		run.elapsed = clockNow() - run.began
	}
	if res == nil || res.Error() == nil {
		a.Done()
		run.outcome = call.Success
		return res
	}
	run.outcome = c.answer(ctx, a, m, inv, res)
	return res
}

// answer looks at an attempt that ended with an error. A refusal is rebuilt as
// the typed error, and wrapped where failover must not go on.
func (c *chain) answer(ctx context.Context, a retry.Attempt, m *method, inv base.Invocation, res result.Result) call.Outcome {
	err := res.Error()
	e, ok := decodeWire(err)
	if _, typed := call.As(err); typed && !ok {
		// A guard further in on this side refused it.
		return call.Rejected
	}
	if !ok {
		a.Done()
		return consumerOutcome(ctx, err, m != nil && m.policy.BusinessErrorsFail)
	}
	ref := c.consumer.ref
	if !ownRefusal(e, c.service, methodName(inv)) {
		a.Done()
		e = e.AsForwarded()
		res.SetError(ref.Final(e))
		return call.Forwarded
	}
	policy := retry.Policy{Failover: c.consumer.failover, Retries: c.retries(inv)}
	if ref.Refused(a, inv, c.consumer.address, policy, e) {
		res.SetError(e)
	} else {
		res.SetError(ref.Final(e))
	}
	return call.Rejected
}

// retries is how often failover would try again, read as it reads it.
func (c *chain) retries(inv base.Invocation) int {
	if s, ok := inv.GetAttachment(constant.RetriesKey); ok {
		if n, err := strconv.Atoi(s); err == nil {
			return n
		}
	}
	n := c.url.GetMethodParamIntValue(methodName(inv), constant.RetriesKey,
		c.url.GetParamByIntValue(constant.RetriesKey, constant.DefaultRetriesInt))
	if n < 0 {
		return constant.DefaultRetriesInt
	}
	return n
}

func streaming(inv base.Invocation) bool {
	v, ok := inv.GetAttribute(constant.CallTypeKey)
	return ok && v != constant.CallUnary
}
