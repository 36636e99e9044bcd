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

package fallback

import (
	"context"
	"sync/atomic"
)

type trackerKey struct{}

// tracker remembers the last fallback that answered a call made with its context.
type tracker struct {
	name  atomic.Pointer[string]
	outer *tracker
}

func trackerOf(ctx context.Context) *tracker {
	t, _ := ctx.Value(trackerKey{}).(*tracker)
	return t
}

// Track returns a context that remembers which fallback answered, and tells the
// contexts that it is made of.
func Track(ctx context.Context) context.Context {
	return context.WithValue(ctx, trackerKey{}, &tracker{outer: trackerOf(ctx)})
}

// AnsweredBy is the fallback that a tracked context remembers.
func AnsweredBy(ctx context.Context) (name string, ok bool) {
	if t := trackerOf(ctx); t != nil {
		if p := t.name.Load(); p != nil {
			return *p, true
		}
	}
	return "", false
}

// Note has a tracked context remember that a fallback answered.
func Note(ctx context.Context, name string) {
	for t := trackerOf(ctx); t != nil; t = t.outer {
		t.name.Store(&name)
	}
}

// shielded is the context that a fallback runs with: what answers the calls that it
// makes itself is not what answered its caller's.
func shielded(ctx context.Context) context.Context {
	if trackerOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, trackerKey{}, (*tracker)(nil))
}
