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

package chain

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

const methodsPrefix = "methods."

// unbalanced are the clusters that ask no load balance.
var unbalanced = []string{constant.ClusterKeyBroadcast, constant.ClusterKeyAvailable}

// balanceFaults are the load balances of a reference, and those of its methods, that
// nobody registered: dubbo looks for them at the call, and panics.
func balanceFaults(u *common.URL, side conf.Side, service conf.ServiceKey) []conf.Fault {
	if side != conf.Consumer || slices.Contains(unbalanced, u.GetParam(constant.ClusterKey, "")) {
		return nil
	}
	var faults []conf.Fault
	registered := slices.Sorted(slices.Values(extension.GetAllLoadbalanceNames()))
	params := guard.ParamsOf(u)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		method, ok := balances(name)
		if !ok || params[name] == "" || slices.Contains(registered, params[name]) {
			continue
		}
		faults = append(faults, conf.Fault{
			Source: "reference", Side: side.String(), Service: service.String(), Method: method, Key: constant.LoadbalanceKey, Value: params[name],
			Problem: "no load balance of that name is registered, dubbo would panic on every call",
			Allowed: cmp.Or(strings.Join(registered, ", "), "none so far") + "; is the package that registers it imported?",
		})
	}
	return faults
}

// balances tells whether a param names a load balance, and of which method, "" for all.
func balances(param string) (method string, ok bool) {
	if param == constant.LoadbalanceKey {
		return "", true
	}
	rest, prefixed := strings.CutPrefix(param, methodsPrefix)
	method, named := strings.CutSuffix(rest, "."+constant.LoadbalanceKey)
	return method, prefixed && named
}

// mendBalances takes the load balances that are at fault out of a URL, so that dubbo
// goes by that of the reference, and without one by its default.
func mendBalances(u *common.URL, faults []conf.Fault) {
	for _, f := range faults {
		if f.Method == "" {
			u.DelParam(constant.LoadbalanceKey)
		} else {
			u.DelParam(methodsPrefix + f.Method + "." + constant.LoadbalanceKey)
		}
	}
}
