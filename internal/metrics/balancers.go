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
	"maps"
	"slices"

	"github.com/weir-go/weir/loadbalance"
)

// maxProviders bounds the providers of a service that have series of their own: the
// first ones by address. How many there are is told beside it.
const maxProviders = 100

// balancers collects what references go by that choose by one of Weir's load balances.
// Those of one service are taken together. They belong to the process, as dubbo's
// extensions do.
func (c *Collector) balancers(out sender) {
	type sum struct {
		picks, inflight int64
		score           float64
	}
	services := map[string]map[string]*sum{}
	for _, s := range loadbalance.States() {
		providers := services[s.Service]
		if providers == nil {
			providers = map[string]*sum{}
			services[s.Service] = providers
		}
		for _, p := range s.Providers {
			at := providers[p.Address]
			if at == nil {
				at = &sum{}
				providers[p.Address] = at
			}
			at.picks += p.Picks
			at.inflight += p.Inflight
			at.score = max(at.score, p.Score)
		}
	}
	for service, providers := range services {
		out.gauge(balanceProviders, float64(len(providers)), service)
		for i, address := range slices.Sorted(maps.Keys(providers)) {
			if i == maxProviders {
				break
			}
			p := providers[address]
			out.counter(balancePicks, float64(p.picks), service, address)
			out.gauge(balanceInflight, float64(p.inflight), service, address)
			out.gauge(balanceScore, p.score, service, address)
		}
	}
}
