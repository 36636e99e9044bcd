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

package metrics

import (
	"github.com/weir-go/weir/group"
	"github.com/weir-go/weir/group/tag"
)

// groups collects how calls were routed by their groups: those of all references of a
// service together, and the providers of the reference that knows most.
func (c *Collector) groups(out sender) {
	type key struct{ service, group string }
	type sum struct {
		routed    [tag.Results]int64
		providers int
	}
	sums := map[key]*sum{}
	for _, s := range group.States(c.runtime) {
		k := key{s.Service, s.Group}
		if sums[k] == nil {
			sums[k] = &sum{}
		}
		for r, n := range s.Routed {
			sums[k].routed[r] += n
		}
		sums[k].providers = max(sums[k].providers, s.Providers)
	}
	for k, s := range sums {
		for r := range tag.Results {
			out.counter(groupRouted, float64(s.routed[r]), k.service, k.group, r.String())
		}
		out.gauge(groupProviders, float64(s.providers), k.service, k.group)
	}
}
