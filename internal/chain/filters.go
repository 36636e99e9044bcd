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
	"slices"
	"strings"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

func filterKey(side conf.Side) string {
	if side == conf.Consumer {
		return constant.ReferenceFilterKey
	}
	return constant.ServiceFilterKey
}

// filterFaults are the names in a chain that must not be there. For one that
// nobody registered dubbo would put a nil filter, which panics on every call.
func filterFaults(u *common.URL, side conf.Side, service conf.ServiceKey) []conf.Fault {
	list := u.GetParam(filterKey(side), "")
	if list == "" {
		return nil
	}
	var faults []conf.Fault
	check := checker{side: side}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		if problem, allowed := check.problem(name); problem != "" {
			faults = append(faults, conf.Fault{
				Source: "chain", Side: side.String(), Service: service.String(), Key: filterKey(side), Value: name,
				Problem: problem, Allowed: allowed,
			})
		}
	}
	return faults
}

// checker goes through a list of filters from left to right.
type checker struct {
	side          conf.Side
	seen          map[string]string // what Weir's filters stand for -> the name of the last
	behindGeneric bool
}

// problem says what is wrong with the next name of the list, or "".
func (c *checker) problem(name string) (problem, allowed string) {
	if c.side == conf.Consumer && name == constant.GenericFilterKey {
		c.behindGeneric = true
	}
	if side, policy, ours := guard.Own(name); ours {
		if policy == "" {
			policy = name
		}
		former, again := c.seen[policy]
		if c.seen == nil {
			c.seen = map[string]string{}
		}
		c.seen[policy] = name
		once := "each of Weir's filters once, " + umbrella(c.side) + " on a " + c.side.String()
		switch {
		case side != c.side:
			return "that is a filter for " + side.String() + "s", once
		case again && former != name:
			return former + " and " + name + " are one filter, which would take two slots per call", "one of them"
		case again:
			return "the filter stands in the list twice and would take two slots per call", once
		case c.behindGeneric && name == guard.ConsumerFilter:
			return "dubbo's generic filter makes a new invocation per attempt, so behind it a refused call would be sent to the same instance again",
				name + " before " + constant.GenericFilterKey + ", or leave it out and let it be placed"
		}
		return "", ""
	}
	if name == "" {
		return "there is an empty name in the list", "names of registered filters, separated by single commas"
	}
	if _, ok := extension.GetFilter(name); !ok {
		return "no filter of that name is registered, dubbo would panic on every call",
			"names of registered filters; is the package that registers it imported?"
	}
	return "", ""
}

// mend takes out of a URL what is wrong with it: params that are at fault, names
// that must not be in its chain, and, where another protocol of the service
// counts first, what this one says instead.
func mend(u *common.URL, side conf.Side, faults []conf.Fault, former map[string]string) {
	for _, f := range faults {
		u.DelParam(f.Param())
	}
	if former != nil {
		for name := range conf.OwnParams(guard.ParamsOf(u)) {
			u.DelParam(name)
		}
		for name, value := range former {
			u.SetParam(name, value)
		}
	}
	check := checker{side: side}
	names := slices.DeleteFunc(strings.Split(u.GetParam(filterKey(side), ""), ","), func(name string) bool {
		problem, _ := check.problem(strings.TrimSpace(name))
		return problem != ""
	})
	u.SetParam(filterKey(side), strings.Join(names, ","))
}
