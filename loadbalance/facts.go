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

package loadbalance

import (
	"strconv"
	"strings"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/loadbalance/pick"
)

const (
	// DefaultWeight is that of a provider that says nothing, as in both dubbos.
	DefaultWeight = 100
	// DefaultWarmUp is how long a provider takes to get its full weight if it says
	// nothing, as in both dubbos.
	DefaultWarmUp = 10 * time.Minute

	// WeightKey is Weir's own param for a provider's weight. dubbo-go publishes 0 as the
	// weight of those who have set none.
	WeightKey = "weir.weight"

	methodsPrefix = "methods."
	// registryWeight is the weight of a registry among several.
	registryWeight = constant.RegistryKey + "." + constant.WeightKey
	registryLabel  = constant.RegistryKey + "." + constant.RegistryLabelKey

	dubboGo = "dubbo-golang"
	// A time since 1970 of more than this is in milliseconds, as Java writes it, and
	// else in seconds, as dubbo-go does.
	lastSeconds = 100_000_000_000
)

// facts are what an invoker says of its provider.
type facts struct {
	instance *pick.Instance
	weight   int64
	// started is when the provider was exported, zero when it does not say.
	started time.Time
	warmUp  time.Duration
	// registry is set for a registry among several.
	registry bool
}

func (r *reference) factsOf(invoker base.Invoker, method string) facts {
	u := urlOf(invoker)
	if u == nil { // destroyed meanwhile
		return facts{instance: r.ref.Peers.Instance("")}
	}
	params := guard.ParamsOf(u)
	f := facts{instance: r.ref.Peers.Instance(u.Location), weight: weightOf(params, method), registry: isTrue(params[registryLabel])}
	f.started, f.warmUp = startOf(params)
	return f
}

// weightOf is the weight by the params of a provider, or of a registry among several.
func weightOf(params map[string]string, method string) int64 {
	if isTrue(params[registryLabel]) {
		if w, ok := number(params[registryWeight]); ok && w > 0 {
			return w
		}
	}
	if w, ok := methodWeight(params, method, WeightKey, false); ok {
		return w
	}
	unset := strings.HasPrefix(params[constant.ReleaseKey], dubboGo)
	if w, ok := methodWeight(params, method, constant.WeightKey, unset); ok {
		return w
	}
	return DefaultWeight
}

// methodWeight is what a param says of the weight for a method, or for all. Interface
// level discovery of dubbo-go has "methods." before a method's name, application level
// discovery and Java have it not. Where 0 is unset it is no weight.
func methodWeight(params map[string]string, method, key string, unset bool) (int64, bool) {
	for _, name := range guard.Spellings(method) {
		for _, prefix := range []string{methodsPrefix, ""} {
			if w, ok := number(params[prefix+name+"."+key]); ok && (w > 0 || !unset) {
				return max(w, 0), true
			}
		}
	}
	w, ok := number(params[key])
	return max(w, 0), ok && (w > 0 || !unset)
}

// startOf is when a provider was exported, zero when that is not known, and how long it
// is to take until it has its full weight.
func startOf(params map[string]string) (time.Time, time.Duration) {
	stamp, merged := params[constant.RemoteTimestampKey]
	if !merged { // else the timestamp is that of the reference
		stamp = params[constant.TimestampKey]
	}
	at, ok := number(stamp)
	if !ok || at <= 0 {
		return time.Time{}, 0
	}
	started, unit := time.Unix(at, 0), time.Second
	if at > lastSeconds {
		started, unit = time.UnixMilli(at), time.Millisecond
	}
	warmUp := DefaultWarmUp
	if n, ok := number(params[constant.WarmupKey]); ok {
		warmUp = time.Duration(min(n, int64(24*time.Hour/unit))) * unit
	} else if d, err := time.ParseDuration(params[constant.WarmupKey]); err == nil {
		warmUp = d
	}
	if warmUp <= 0 {
		return time.Time{}, 0
	}
	return started, warmUp
}

func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func isTrue(s string) bool {
	b, err := strconv.ParseBool(s)
	return err == nil && b
}
