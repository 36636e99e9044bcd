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

package app

import (
	"context"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/example/internal/greet"
)

const (
	hitsFilter = "limits-hits"
	callIDKey  = "limits-call-id" // attachment: one per call, the same for all its attempts
)

// hits counts how often each call arrives at the provider. It stands outside
// of every limit, so that it sees refused calls too.
type hits struct {
	work *board
}

// Invoke counts the arrival and passes the call on.
func (h *hits) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	if id, ok := inv.GetAttachment(callIDKey); ok {
		h.work.hit(id)
	}
	return next.Invoke(ctx, inv)
}

// OnResponse returns the result as it is.
func (h *hits) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}

// outermost puts the hits filter in front of the greet service's chain. It is
// done here and not by a filter list in YAML, because such a list replaces
// dubbo-go's defaults: the files under ../../conf are what a user would write.
type outermost struct{}

// PostProcessReferenceConfig leaves references alone.
func (outermost) PostProcessReferenceConfig(*common.URL) {}

// PostProcessServiceConfig sees the URL of a service just before its export.
func (outermost) PostProcessServiceConfig(url *common.URL) {
	if url.Interface() == greet.GreetServiceName {
		url.SetParam(constant.ServiceFilterKey, hitsFilter+","+url.GetParam(constant.ServiceFilterKey, ""))
	}
}

func countHits(work *board) {
	extension.SetFilter(hitsFilter, func() filter.Filter { return &hits{work: work} })
	extension.SetConfigPostProcessor(hitsFilter, outermost{})
}
