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
	"slices"
	"strconv"
	"strings"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/loadbalance/pick"
)

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

// streams tells whether the call is for dubbo over when its stream is open. The
// call type of a method does not change, so it is looked up until it is known.
func (m *method) streams(inv base.Invocation) bool {
	if streaming(inv) {
		return true
	}
	if m.name != call.AnyMethod { // which stands for more than one
		m.unary.Store(true)
	}
	return false
}

func async(inv base.Invocation) bool {
	v, ok := inv.GetAttachment(constant.AsyncKey)
	if !ok {
		return false
	}
	is, err := strconv.ParseBool(v) // as dubbo's invoker reads it
	return err == nil && is
}

// Async reports whether the answer to a consumer's call comes by another way, so that it
// is over for dubbo when it is sent. On protocols other than dubbo's the attachment that
// asks for it changes nothing.
func (s Site) Async(inv base.Invocation) bool {
	return s.Side == conf.Consumer && s.Protocol == constant.DubboProtocol && async(inv)
}

// balancePrefix begins the names of Weir's load balances.
const balancePrefix = "weir-"

// consumerSide is what a consumer's chain knows besides.
type consumerSide struct {
	ref     *retry.Reference
	address string
	// peer is what is known of the provider.
	peer     *pick.Instance
	failover bool
	// parallel is set when attempts of one call run at the same time, with one invocation.
	parallel bool
	// caller is what the provider is told of this application, and tells is set when
	// it wants to know from the first call on.
	caller any
	tells  bool
	// declared is what the provider declares for its consumers.
	declared *conf.Service
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
		ref.Application = u.GetParam(constant.ApplicationKey, "")
	}
	c.params = ref.Params
	ref.SetRatio(c.version, c.view.Resolve(conf.Consumer, c.service, "", c.params).RetryRefused)
	// The reference's own cluster: a provider's may have been merged over it.
	cluster := ref.Cluster
	if cluster == "" {
		cluster = u.GetParam(constant.ClusterKey, constant.ClusterKeyFailover)
	}
	c.consumer = consumerSide{
		ref: ref, address: u.Location, peer: ref.Peers.Instance(u.Location),
		failover: cluster == "" || cluster == constant.ClusterKeyFailover,
		parallel: cluster == constant.ClusterKeyForking && !slices.Contains(filterNames(u, conf.Consumer), ForkFilter),
	}
	if own := ref.LoadBalance; strings.HasPrefix(own, balancePrefix) && u.GetParam(constant.LoadbalanceKey, "") != own {
		// Where dubbo does not know a reference's methods it has the provider's load
		// balance win, which every provider of dubbo-go publishes.
		u.SetParam(constant.LoadbalanceKey, own)
	}
	params := ParamsOf(u)
	for name, own := range ref.Raw {
		if params[name] == own {
			delete(params, name) // merged into the provider's by dubbo
		}
	}
	declared, faults := conf.ParseDeclared(c.serviceKey, params)
	if len(faults) > 0 {
		c.guard.runtime.ConfigError(&conf.Error{Faults: faults})
	}
	c.consumer.declared = &declared
	// The reference's own application: that of a provider is merged over it.
	if app := ref.Application; app != "" && !c.consumer.parallel {
		c.consumer.caller = app + "@" + c.serviceKey
		c.consumer.tells = u.GetParam(TellCallerKey, "") == "true"
	}
}

// balances tells whether a balancer may keep calls from the chain because of its plan.
func (c *chain) balances() bool {
	return !c.idle && c.consumer.ref != nil && c.consumer.ref.Counting()
}

// tellCaller tells the provider which application calls it, where the provider says
// that it counts by callers, or once one has refused a call: before that nobody asks.
func (c *chain) tellCaller(inv base.Invocation) {
	if c.consumer.caller != nil && (c.consumer.tells || c.consumer.ref.Refusing()) {
		inv.SetAttachment(callerKey, c.consumer.caller)
	}
}
