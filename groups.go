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

package weir

import (
	"context"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/group"
	"github.com/weir-go/weir/group/tag"
)

// WithGroup returns a context whose calls are of a group, whatever is configured and
// whatever group the caller was of; "none" for calls without one. Calls made with
// another context know nothing of it. It takes a configured group, for whichever
// reference, to have calls routed at all.
func WithGroup(ctx context.Context, name string) context.Context { return group.With(ctx, name) }

// Group is the group that a call made with the context would be of but for what is
// configured, "" for none: in a provider's handler that of its caller.
func Group(ctx context.Context) string { return group.From(ctx) }

// GroupState is what a reference has seen of one group.
type GroupState struct {
	Service   string `json:"service"`
	Reference uint64 `json:"reference"`
	// Group is none for calls and providers without one, and other for those that are
	// not told apart, as there are too many.
	Group string `json:"group"`
	// Providers are those of the group in the list of providers that was met last.
	Providers int `json:"providers"`
	// Routed are the calls of the group by where they went: own, wider, untagged, any,
	// thin-untagged, thin-any and none. What is 0 is left out.
	Routed map[string]int64 `json:"routed"`
}

func groupStates(rt *guard.Runtime) []GroupState {
	out := []GroupState{}
	for _, s := range group.States(rt) {
		g := GroupState{Service: s.Service, Reference: s.Reference, Group: s.Group, Providers: s.Providers, Routed: map[string]int64{}}
		for r := range tag.Results {
			if n := s.Routed[r]; n > 0 {
				g.Routed[r.String()] = n
			}
		}
		out = append(out, g)
	}
	return out
}
