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

const (
	// fallbackKey is the key that names a function.
	fallbackKey = "fallback"
	// breakerPolicy is the policy of a circuit breaker, as in its refusals.
	breakerPolicy = "breaker"
)

// fallbackPolicy says which function answers in place of which errors.
type fallbackPolicy struct {
	name string // "" for none
	// What it answers in place of: refusals of an open breaker, all refusals, all
	// failures, and timeouts, which are among them.
	breaker, refused, failure, timeout bool
}

// covers reports whether the fallback answers in place of an error. An answer of the
// service that is an error is one of its answers, and what its caller has given up
// needs none.
func (p *fallbackPolicy) covers(ctx context.Context, err error) bool {
	if e, ok := Decode(err); ok {
		return p.refused || p.breaker && e.Guard == breakerPolicy && !e.Forwarded
	}
	switch consumerOutcome(ctx, err, false) {
	case call.Timeout:
		return p.failure || p.timeout
	case call.Failure:
		return p.failure
	}
	return false
}

// fallbackOf is what the configuration says of a method's fallback. Replaced in tests.
var fallbackOf = func(conf.Effective) fallbackPolicy { return fallbackPolicy{} }
