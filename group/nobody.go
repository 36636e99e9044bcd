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

package group

import (
	"context"
	"fmt"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group/tag"
)

// nobody is the invoker that calls go to for whose group there is no provider. It
// refuses them, and is prepared for one group and one list.
type nobody struct {
	consumer *consumer
	url      *common.URL
	group    string
	view     *view
	refusal  *guard.Refusal
	err      error
	alone    []base.Invoker // itself
}

// nobody is the list of the one invoker that refuses calls of the group among the
// providers of v, nil for where others have left none. The URL is that of one of them:
// clusters read from it how to call.
func (p *plan) nobody(c *consumer, group string, v *view, u *common.URL) []base.Invoker {
	if n := p.prepared.Load(); n != nil && n.group == group && n.view == v && n.url == u {
		return n.alone
	}
	if u == nil {
		u = &common.URL{}
	}
	who, there := "a call without a group", "the routers before have left none"
	if group != "" {
		who = fmt.Sprintf("group %q", group)
	}
	reject := c.reject(p.method)
	if v != nil {
		there = "there are " + v.list.String()
	}
	cause := fmt.Errorf("%w: none for %s, %s", tag.ErrNoProvider, who, there)
	n := &nobody{consumer: c, url: u, group: group, view: v, refusal: p.refusal.With(reject, cause)}
	n.err = fmt.Errorf("%w: no provider for %s, %s", n.refusal.Reject, who, there)
	n.alone = []base.Invoker{n}
	p.prepared.Store(n)
	return n.alone
}

// GetURL is that of a provider.
func (n *nobody) GetURL() *common.URL { return n.url }

// IsAvailable is true: dubbo would otherwise look for another one and say something else.
func (n *nobody) IsAvailable() bool { return true }

// Destroy does nothing.
func (n *nobody) Destroy() {}

// Invoke refuses the call.
func (n *nobody) Invoke(ctx context.Context, inv base.Invocation) result.Result {
	n.refusal.Refused(ctx, inv, false)
	return &result.RPCResult{Err: n.consumer.ref.Nowhere(n.err)}
}
