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

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/internal/retry"
)

// ForkFilter is the name of the filter that gives each attempt of a forking cluster an
// invocation and an answer of its own. It stands outside of all others, so that what they
// say of an attempt is said of that attempt alone.
const ForkFilter = "weir-fork"

type fork struct{}

func newFork() filter.Filter { return fork{} }

// Invoke makes the attempt with a copy of the invocation.
func (fork) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	waited := !streaming(inv) && !async(inv) && !next.GetURL().GetParamBool(constant.AsyncKey, false)
	f, ok := retry.ForkOf(inv, waited)
	if !ok {
		return next.Invoke(ctx, inv)
	}
	res := next.Invoke(ctx, f.Invocation())
	f.Home(res)
	return res
}

// OnResponse returns its argument.
func (fork) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}
