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

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

// breakerPolicy is the policy of a circuit breaker, as its refusals name it.
const breakerPolicy = "breaker"

// covers reports whether a fallback answers in place of an error. An error by which
// the service answers its caller is an answer, whatever it counts as, and what its
// caller has given up needs none.
func covers(ctx context.Context, on conf.FallbackOn, err error) bool {
	if e, ok := Decode(err); ok {
		return on.Has(conf.OnRefusal) || on.Has(conf.OnBreaker) && e.Guard == breakerPolicy && !e.Forwarded
	}
	switch consumerOutcome(ctx, err, false) {
	case call.Timeout:
		return on.Has(conf.OnTimeout)
	case call.Failure:
		return on.Has(conf.OnFailure)
	}
	return false
}
