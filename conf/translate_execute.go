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

package conf

import (
	"fmt"
	"strconv"
)

// dubbo-go's keys of its filter execute.
const (
	executeLimit   = "execute.limit"
	executeHandler = "execute.limit.rejected.handler"
)

var allowedExecuteLimit = "a whole number from 1 to 2147483647, or -1 for no limit; or " + ExecutesKey + " below params:"

// executes makes dubbo-go's limits of running calls Weir's. It counts all methods
// together but those with a limit of their own, which it counts apart.
func (t *translator) executes() {
	dubbo := []string{executeLimit}
	limited := map[*place]bool{} // by what dubbo-go's filter would do
	limit := func(p *place) (n int64, ok bool) {
		if !p.has(executeLimit) || t.givesWay(p, dubbo, ExecutesKey) {
			return 0, false
		}
		n, ok = t.number(p, executeLimit, maxDubboLimit, allowedExecuteLimit)
		limited[p] = n >= 0
		return n, ok
	}
	_, own := t.service.own[ExecutesKey]
	scope, scoped := t.service.own[ExecutesScopeKey]
	shared := own && scope == string(ScopeService)
	switch n, ok := limit(t.service); {
	case !ok:
	case n < 0:
		t.take(t.service, dubbo, ExecutesKey, "0")
	case scoped:
		shared = scope == string(ScopeService)
		if !shared {
			t.warn("%s=%d is for all methods together, and %s=%s beside it holds", executeLimit, n, ExecutesScopeKey, scope)
		}
		t.take(t.service, dubbo, ExecutesKey, strconv.FormatInt(n, 10))
	default:
		shared = true
		t.take(t.service, dubbo, ExecutesKey, strconv.FormatInt(n, 10), ExecutesScopeKey, string(ScopeService))
	}
	t.each(func(m *place) {
		n, ok := limit(m)
		switch {
		case !ok:
		case n < 0 && shared:
			t.fault(m, executeLimit, "dubbo-go leaves the method out of the service's limit, which Weir cannot",
				"no value here, or "+ExecutesKey+" for each method in place of the service's; "+fmt.Sprintf(toKeep, ReplaceExecute))
		case n < 0:
			t.take(m, dubbo, ExecutesKey, "0")
		default:
			if shared {
				t.warn("%s counts for the service's limit too, which dubbo-go keeps apart", m.said(executeLimit))
			}
			t.take(m, dubbo, ExecutesKey, strconv.FormatInt(n, 10))
		}
	})
	some := limited[t.service]
	t.each(func(m *place) {
		some = some || limited[m]
		if limited[m] || limited[t.service] {
			t.handler(m, executeHandler)
		}
	})
	if some {
		t.handler(t.service, executeHandler)
	}
}
