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

package tpslimit_test

import (
	"context"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"

	_ "github.com/weir-go/weir/filter/activelimit"
)

var ctxB = context.Background()

func baseOf(u *common.URL) *base.BaseInvoker { return base.NewBaseInvoker(u) }

func invocationOf(method string) base.Invocation {
	return invocation.NewRPCInvocation(method, nil, map[string]any{})
}
