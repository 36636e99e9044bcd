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

package retry_test

import (
	"context"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/retry"
)

// answers is a cluster without anything to it.
type answers struct {
	base.BaseInvoker
	res result.RPCResult
}

func (a *answers) Invoke(context.Context, base.Invocation) result.Result { return &a.res }

// BenchmarkOwn is what the interceptor adds to a call that succeeds.
func BenchmarkOwn(b *testing.B) {
	u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("a.B"), common.WithInterface("a.B"))
	u.SetAttribute(retry.AttributeKey, retry.NewReference(&conf.Service{}))
	next := &answers{BaseInvoker: *base.NewBaseInvoker(u)}
	i := retry.NewInterceptor()
	inv := invocation.NewRPCInvocation("Get", nil, map[string]any{})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if i.Invoke(ctx, next, inv).Error() != nil {
			b.Fatal("failed")
		}
	}
}
