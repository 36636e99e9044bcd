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

package weir_test

import (
	"context"
	"errors"
	"fmt"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/weir-go/weir"
)

// The Go of docs/migration.md stands in this file.

type recommendReply struct{ Items []string }

type recommendNothing struct{}

func (recommendNothing) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	res := next.Invoke(ctx, inv)
	refusal, ok := weir.AsRejected(res.Error())
	if !ok || refusal.Forwarded || inv.MethodName() != "Recommend" {
		return res
	}
	return &result.RPCResult{Rest: triple_protocol.NewResponse(&recommendReply{})}
}

func (recommendNothing) OnResponse(
	_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation,
) result.Result {
	return res
}

// ending is the rest of a chain that ends with an error.
type ending struct {
	base.Invoker
	err error
}

func (e ending) Invoke(context.Context, base.Invocation) result.Result {
	return &result.RPCResult{Err: e.err}
}

// A filter outside of weir can answer in place of a refusal, as a
// rejected-execution handler of dubbo-go does.
func Example_providerFallback() {
	inv := invocation.NewRPCInvocation("Recommend", nil, nil)
	for _, err := range []error{fullProvider, fullProvider.AsForwarded(), errors.New("broken")} {
		res := recommendNothing{}.Invoke(context.Background(), ending{err: err}, inv)
		fmt.Println(res.Result() != nil, errors.Is(res.Error(), err))
	}
	// Output:
	// true false
	// false true
	// false true
}
