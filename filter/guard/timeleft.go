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
	"math"
	"strings"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/global"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/internal/retry"
)

// defaultTimeout is dubbo's, for calls that nobody gave one.
const defaultTimeout = 3 * time.Second

// timeLeft is how long the call may still take that has waited so long at other
// steps. A deadline of the context has run on meanwhile, a timeout has not.
func (c *chain) timeLeft(ctx context.Context, inv base.Invocation, waited time.Duration) time.Duration {
	left := c.timeout(inv) - waited
	deadline, ok := ctx.Deadline()
	switch {
	case !ok:
		return left
	case c.protocol != constant.DubboProtocol:
		return time.Until(deadline) // a timeout counts only where the context has none
	}
	return min(left, time.Until(deadline))
}

// timeLeftHere is how long a provider's call may still take: until its context's
// deadline, and on the dubbo protocol as long as its caller waits in all, which is more
// than is left. dubbo-go's client says 0 for its default, also at every retry of a call
// that had a timeout. Where neither is known there is no bound.
func (c *chain) timeLeftHere(ctx context.Context, inv base.Invocation, waited time.Duration) time.Duration {
	left := time.Duration(math.MaxInt64)
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	if c.protocol != constant.DubboProtocol {
		return left
	}
	if text, ok := inv.GetAttachment(constant.TimeoutKey); ok {
		d, ok := parseTimeout(text)
		switch {
		case ok && d > 0:
			left = min(left, d-waited)
		case ok:
			left = min(left, defaultTimeout-waited)
		}
	}
	return left
}

// timeout is what the protocol gives an attempt whose context has no deadline,
// found as its invoker finds it.
func (c *chain) timeout(inv base.Invocation) time.Duration {
	if c.protocol == constant.DubboProtocol {
		return c.dubboTimeout(inv)
	}
	text := c.url.GetParam(constant.TimeoutKey, "")
	if text == "" {
		text, _ = inv.GetAttachment(constant.TimeoutKey)
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d
	}
	return defaultTimeout
}

// dubboTimeout goes by the attachment, else by the method's, else by the
// reference's. The attachment of an attempt that is a retry has lost its unit:
// dubbo's invoker writes it back as milliseconds and cannot read that.
func (c *chain) dubboTimeout(inv base.Invocation) time.Duration {
	if text, ok := inv.GetAttachment(constant.TimeoutKey); ok {
		if d, ok := parseTimeout(text); ok && d > 0 {
			return d
		}
		return defaultTimeout
	}
	key := strings.Join([]string{constant.MethodKeys, methodName(inv), constant.TimeoutKey}, ".")
	if text := c.url.GetParam(key, ""); text != "" {
		if d, err := time.ParseDuration(text); err == nil && d > 0 {
			return d
		}
		return defaultTimeout
	}
	def := global.DefaultConsumerRequestTimeout
	if v, ok := c.url.GetAttribute(constant.ConsumerConfigKey); ok {
		if conf, ok := v.(*global.ConsumerConfig); ok && conf != nil && conf.RequestTimeout != "" {
			def = conf.RequestTimeout
		}
	}
	if d := c.url.GetParamDuration(constant.TimeoutKey, def); d > 0 {
		return d
	}
	return defaultTimeout
}

// charged is what was changed about a call to charge it for a wait.
type charged struct {
	cancel context.CancelFunc
	inv    base.Invocation // whose timeout was changed
	former string
}

// leastLeft is what a call keeps in any case: dubbo takes 0 for its default.
const leastLeft = time.Millisecond

// charge takes a wait out of what the attempt may take. A deadline of the context
// runs on by itself. Where there is none the context gets one; the dubbo protocol
// reads no context but the attachment.
func (k *charged) charge(ctx context.Context, c *chain, inv base.Invocation, waited time.Duration) (context.Context, base.Invocation) {
	if ctx == nil {
		ctx = context.Background()
	}
	left := max(c.timeout(inv)-waited, leastLeft)
	deadline, ok := ctx.Deadline()
	if c.protocol != constant.DubboProtocol {
		if ok {
			return ctx, inv
		}
		ctx, k.cancel = context.WithTimeout(ctx, left)
		return ctx, inv
	}
	if ok {
		left = max(min(left, time.Until(deadline)), leastLeft)
	}
	if c.consumer.parallel {
		if own, ok := retry.ForkOf(inv, false); ok {
			inv = own.Invocation()
		}
	} else {
		// Attempts of the call come one after another: the next begins with the
		// whole timeout again, as without a wait.
		k.inv, k.former = inv, c.timeout(inv).String()
	}
	inv.SetAttachment(constant.TimeoutKey, left.String())
	return ctx, inv
}

func (k *charged) undo() {
	if k.cancel != nil {
		k.cancel()
	}
	if k.inv != nil {
		k.inv.SetAttachment(constant.TimeoutKey, k.former)
	}
}
