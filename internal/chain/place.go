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

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

// appended are the filters that dubbo itself puts at the end of a list. Weir
// stands before them, so that waiting and refused calls are outside of what
// they measure.
var appended = map[conf.Side][]string{
	conf.Provider: {constant.AdaptiveServiceProviderFilterKey, constant.MetricsFilterKey, constant.OTELServerTraceKey},
	conf.Consumer: {constant.MetricsFilterKey, constant.OTELClientTraceKey},
}

// after is the filter of dubbo's default chain behind which Weir stands.
var after = map[conf.Side]string{
	conf.Provider: constant.GracefulShutdownProviderFilterKey,
	conf.Consumer: constant.GracefulShutdownConsumerFilterKey,
}

func umbrella(side conf.Side) string {
	if side == conf.Consumer {
		return guard.ConsumerFilter
	}
	return guard.ProviderFilter
}

// withOwn is a list of filters with those of Weir that the side of a URL needs.
func withOwn(side conf.Side, u *common.URL) string {
	list := place(side, u.GetParam(filterKey(side), ""))
	if side == conf.Consumer && u.GetParam(constant.ClusterKey, "") == constant.ClusterKeyForking {
		return placeFork(list)
	}
	return list
}

// placeFork puts the filter that parts the attempts of a call before all others.
func placeFork(list string) string {
	for name := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(name) == guard.ForkFilter {
			return list
		}
	}
	return guard.ForkFilter + "," + list
}

// place puts Weir's filter into a list of names: behind dubbo's graceful
// shutdown, so that calls that wait are among those that a shutdown waits for;
// without that at the end of the user's list; on a consumer before dubbo's
// generic filter. A list that names it already
// decides its place.
func place(side conf.Side, list string) string {
	var names []string
	for _, name := range strings.Split(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	own := umbrella(side)
	if slices.Contains(names, own) {
		return list
	}
	if i := slices.Index(names, constant.GenericFilterKey); side == conf.Consumer && i >= 0 {
		// That filter makes a new invocation per attempt: behind it nobody knows
		// which instances have refused the call.
		return strings.Join(slices.Insert(names, i, own), ",")
	}
	at := slices.Index(names, after[side]) + 1
	if at == 0 {
		at = len(names)
		for at > 0 && slices.Contains(appended[side], names[at-1]) {
			at--
		}
	}
	return strings.Join(slices.Insert(names, at, own), ",")
}
