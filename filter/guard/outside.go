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

	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

// NewRefusal prepares a refusal of a consumer's calls that is made outside of every
// chain, before an instance is chosen. Whoever keeps it keeps its counts.
func (rt *Runtime) NewRefusal(service, method string, e call.RejectError, cause error) *Refusal {
	return Site{Side: conf.Consumer, Service: service, Method: method, runtime: rt}.NewRefusal(e, cause)
}

// Refused counts a call that was refused outside of every chain; observed, that it would
// have been.
func (r *Refusal) Refused(ctx context.Context, inv base.Invocation, observed bool) {
	r.note(ctx, inv, observed)
}
