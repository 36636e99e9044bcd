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
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/loadbalance/pick"
)

// RecordOf is the name of the record that a method's calls are measured in.
func RecordOf(method string) string {
	if method == call.AnyMethod {
		return pick.OtherMethods
	}
	return conf.MethodKey(method)
}

// Spellings are the names by which a method may be called, name among them.
func Spellings(name string) []string { return spellings(name) }

// MethodOf is the method that a call is for, of a generic one the real method.
func MethodOf(inv base.Invocation) string { return methodName(inv) }

// Record is what the balancer of a consumer's reference knows of the site's method at
// the site's address.
func (s Site) Record() *pick.Record { return s.chain.consumer.peer.Record(RecordOf(s.Method)) }

// counted is an attempt on a reference whose balancer goes by what runs. It counts for
// as long as it waits here, too: that is what the instance will have to do. The call that
// opens a stream counts until that is open.
func (c *chain) counted(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	c.consumer.peer.Begin()
	defer c.consumer.peer.End()
	return c.try(ctx, next, inv, c.lookup(inv))
}

// send sends an attempt, and has it measured where a balancer goes by that.
func (c *chain) send(ctx context.Context, next base.Invoker, inv base.Invocation, m *method, opens bool) result.Result {
	if m == nil || m.record == nil || !c.consumer.ref.Counting() {
		return next.Invoke(ctx, inv)
	}
	return m.measured(ctx, next, inv, opens)
}

func (m *method) measured(ctx context.Context, next base.Invoker, inv base.Invocation, opens bool) result.Result {
	// How long it took to open a stream, or to send a call whose answer comes by another
	// way, says nothing of the instance.
	if opens || !m.chain.consumer.ref.Timing() || streaming(inv) || async(inv) {
		res := next.Invoke(ctx, inv)
		if res == nil || res.Error() == nil {
			m.record.Succeeded()
		}
		return res
	}
	began := clockNow()
	res := next.Invoke(ctx, inv)
	now := clockNow()
	switch {
	case res == nil || res.Error() == nil:
		m.record.Took(now-began, now)
		m.record.Succeeded()
	default:
		switch consumerOutcome(ctx, res.Error(), false) {
		case call.Timeout, call.Cancelled: // whoever gave it up had waited for as long
			m.record.Overdue(now-began, now)
		}
	}
	return res
}

// noAnswer tells the balancer of a call that ended with an error. A business error
// counts, too: by its share, so where all instances answer with some nothing changes,
// but one that answers nothing else, and fast, must not attract the calls.
func (m *method) noAnswer(outcome call.Outcome) {
	if m == nil || m.record == nil || outcome == call.Cancelled || !m.chain.consumer.ref.Counting() {
		return
	}
	if outcome == call.Success {
		m.record.Answered()
	}
	m.record.Failed(clockNow())
}

// refusedThere tells the balancer of a call that the instance has refused.
func (m *method) refusedThere(e *call.RejectError) {
	if m == nil || m.record == nil || !m.chain.consumer.ref.Counting() || e.Guard == conf.GroupGuard {
		return // one of another group may be well
	}
	m.record.Failed(clockNow())
	m.avoid(e)
}

// maxAvoid bounds what an instance can say: it comes from the network.
const maxAvoid = time.Minute

// avoid has the balancer avoid the instance for as long as a refusal says; one that
// does not say was full at that moment, and may not be at the next.
func (m *method) avoid(e *call.RejectError) {
	if m.record != nil && e.RetryAfter > 0 && m.chain.consumer.ref.Counting() {
		m.record.Avoid(clockNow() + min(e.RetryAfter, maxAvoid))
	}
}
