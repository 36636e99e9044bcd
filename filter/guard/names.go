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
	"slices"
	"strings"
	"sync"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"

	"github.com/weir-go/weir/conf"
)

func filterNames(u *common.URL, side conf.Side) []string {
	key := constant.ServiceFilterKey
	if side == conf.Consumer {
		key = constant.ReferenceFilterKey
	}
	var names []string
	for _, name := range strings.Split(u.GetParam(key, ""), ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// alone are the filters of a single policy, by filter name.
var alone struct {
	sync.RWMutex
	filters map[string]aloneFilter
}

type aloneFilter struct {
	side   conf.Side
	policy string
	// runtime is nil unless the name has been another filter's. In chains of that
	// runtime it still is, up to the one of the Guard of the number since.
	runtime *Runtime
	since   uint64
}

// in tells whether the filter stands in a chain of the Guard that names it.
func (f aloneFilter) in(g *Guard) bool {
	return f.side == g.side && (f.runtime != g.runtime || g.number > f.since)
}

// RegisterAlone notes that a filter's name stands for a single policy on a side.
func RegisterAlone(filter string, side conf.Side, policy string) {
	registerAlone(filter, aloneFilter{side: side, policy: policy})
}

// ReplaceFilter puts the filter of a single policy under a name of dubbo's. The chains
// that dubbo has made before keep what they have, and go on as if nothing had happened.
func ReplaceFilter(name string, side conf.Side, policy string) {
	rt := Process()
	extension.SetFilter(name, func() filter.Filter { return NewAlone(rt, side, name, policy) })
	// A chain that is made right now may count twice. The other way round it might not
	// count at all.
	registerAlone(name, aloneFilter{side: side, policy: policy, runtime: rt, since: rt.lastGuard.Load()})
}

func registerAlone(name string, f aloneFilter) {
	alone.Lock()
	defer alone.Unlock()
	if alone.filters == nil {
		alone.filters = map[string]aloneFilter{}
	}
	alone.filters[name] = f
}

// Own is the side of one of Weir's own filters, by its name in a chain, and the single
// policy that it stands for, "" for all of the side.
func Own(filter string) (side conf.Side, policy string, ours bool) {
	switch filter {
	case ProviderFilter:
		return conf.Provider, "", true
	case ConsumerFilter, ForkFilter:
		return conf.Consumer, "", true
	}
	alone.RLock()
	defer alone.RUnlock()
	f, ours := alone.filters[filter]
	return f.side, f.policy, ours
}

// aloneIn are the policies that stand in the chain of g by their own name.
func aloneIn(names []string, g *Guard) map[string]bool {
	alone.RLock()
	defer alone.RUnlock()
	out := map[string]bool{}
	for _, name := range names {
		if f, ok := alone.filters[name]; ok && f.in(g) {
			out[f.policy] = true
		}
	}
	return out
}

// primaryIn tells whether g is the chain's first filter of Weir, or the umbrella.
func primaryIn(names []string, g *Guard) bool {
	umbrella := ProviderFilter
	if g.side == conf.Consumer {
		umbrella = ConsumerFilter
	}
	if g.policy == "" {
		return true
	}
	if slices.Contains(names, umbrella) {
		return false
	}
	alone.RLock()
	defer alone.RUnlock()
	for _, name := range names {
		if f, ok := alone.filters[name]; ok && f.in(g) {
			return name == g.name
		}
	}
	return true
}
