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

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/retry"
)

// attempt sends one attempt of a call to the chain's instance, unless the
// instance has refused this call already.
func (c *chain) attempt(ctx context.Context, next base.Invoker, inv base.Invocation) (res result.Result) {
	if !c.primary {
		return next.Invoke(ctx, inv)
	}
	ref := c.consumer.ref
	a, err := ref.Begin(inv, c.consumer.address, retry.Policy{Failover: c.consumer.failover})
	if err != nil {
		return &result.RPCResult{Err: err}
	}
	try := attempt{Attempt: a}
	defer try.end()
	var m *method
	if !c.idle {
		m = c.lookup(inv)
	}
	if m == nil || m.stats == nil {
		res = next.Invoke(ctx, inv)
		if res == nil || res.Error() == nil {
			try.answered(inv)
			return res
		}
		c.failed(ctx, &try, m, inv, res)
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
		try.answered(inv)
		run.outcome = call.Success
		return res
	}
	run.outcome = c.failed(ctx, &try, m, inv, res)
	return res
}

// attempt is an attempt that ends in any case: a token must not be lost to a
// panic.
type attempt struct {
	retry.Attempt
	ended bool
}

func (a *attempt) end() {
	if !a.ended {
		a.Done()
	}
}

// answered reports an answer. That of a call whose answer comes by another way
// says nothing of whether the instance admitted it.
func (a *attempt) answered(inv base.Invocation) {
	if a.Attempt != (retry.Attempt{}) && !streaming(inv) && !async(inv) {
		a.ended = true
		a.Served()
	}
}

// failed looks at an attempt that ended with an error. A refusal is rebuilt as
// the typed error, and wrapped where failover must not go on.
func (c *chain) failed(ctx context.Context, a *attempt, m *method, inv base.Invocation, res result.Result) call.Outcome {
	err := res.Error()
	e, ok := decodeWire(err)
	if !ok && textual[c.protocol] {
		e, ok = decodeText(textOf(err))
	}
	if _, typed := asRefusal(err); typed && !ok {
		// A guard further in on this side refused it.
		return call.Rejected
	}
	if !ok {
		return consumerOutcome(ctx, err, m != nil && m.policy.BusinessErrorsFail)
	}
	ref := c.consumer.ref
	if !ownRefusal(e, c.service, methodName(inv)) {
		res.SetError(ref.Final(e.AsForwarded()))
		a.ended = true
		a.Served()
		return call.Forwarded
	}
	a.ended = true
	policy := retry.Policy{Failover: c.consumer.failover, Retries: c.retries(inv)}
	res.SetError(ref.Refused(a.Attempt, inv, c.consumer.address, policy, e))
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

func async(inv base.Invocation) bool {
	v, ok := inv.GetAttachment(constant.AsyncKey)
	return ok && v == "true"
}

// consumerSide is what a consumer's chain knows besides.
type consumerSide struct {
	ref      *retry.Reference
	address  string
	failover bool
}

func (c *chain) initConsumer(u *common.URL, old *chain) {
	ref := retry.Of(u)
	switch {
	case ref != nil:
	case old != nil && old.consumer.ref != nil:
		ref = old.consumer.ref
	default:
		parsed := conf.ParseParams(conf.Consumer, c.serviceKey, nil)
		ref = retry.NewReference(&parsed.Service)
	}
	c.params = ref.Params
	ref.SetRatio(c.version, c.view.Resolve(conf.Consumer, c.service, "", c.params).RetryRefused)
	// The reference's own cluster: a provider's may have been merged over it.
	cluster := ref.Cluster
	if cluster == "" {
		cluster = u.GetParam(constant.ClusterKey, constant.ClusterKeyFailover)
	}
	c.consumer = consumerSide{ref: ref, address: u.Location, failover: cluster == "" || cluster == constant.ClusterKeyFailover}
}
