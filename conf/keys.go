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
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keys as they stand in params and, nested, in the weir section.
const (
	ExecutesKey                 = "executes"
	ExecutesScopeKey            = "executes.scope"
	ExecutesModeKey             = "executes.mode"
	ActivesKey                  = "actives"
	ActivesWaitKey              = "actives.wait"
	ActivesModeKey              = "actives.mode"
	TPSKey                      = "tps"
	TPSRateKey                  = "tps.rate"
	TPSIntervalKey              = "tps.interval"
	TPSAlgorithmKey             = "tps.algorithm"
	TPSBurstKey                 = "tps.burst"
	TPSScopeKey                 = "tps.scope"
	TPSModeKey                  = "tps.mode"
	FlowKey                     = "flow"
	FlowBehaviorKey             = "flow.behavior"
	FlowMaxQueueKey             = "flow.max-queue"
	FlowWarmUpKey               = "flow.warm-up"
	FlowColdFactorKey           = "flow.cold-factor"
	FlowCallersKey              = "flow.callers"
	FlowModeKey                 = "flow.mode"
	BulkheadKey                 = "bulkhead"
	BulkheadQueueKey            = "bulkhead.queue"
	BulkheadMaxWaitKey          = "bulkhead.max-wait"
	BulkheadRunTimeoutKey       = "bulkhead.run-timeout"
	BulkheadGroupKey            = "bulkhead.group"
	BulkheadModeKey             = "bulkhead.mode"
	OverloadKey                 = "overload"
	OverloadMaxExpandKey        = "overload.max-expand"
	OverloadSlowCallKey         = "overload.slow-call"
	OverloadSlowShareKey        = "overload.slow-share"
	OverloadEntryTimeoutKey     = "overload.entry-timeout"
	OverloadMaxOverdueKey       = "overload.max-overdue"
	OverloadCalmKey             = "overload.calm"
	OverloadFloorKey            = "overload.floor"
	OverloadCeilingKey          = "overload.ceiling"
	OverloadDumpIntervalKey     = "overload.dump-interval"
	OverloadModeKey             = "overload.mode"
	BreakerKey                  = "breaker"
	BreakerErrorRatioKey        = "breaker.error-ratio"
	BreakerErrorCountKey        = "breaker.error-count"
	BreakerConsecutiveErrorsKey = "breaker.consecutive-errors"
	BreakerSlowRatioKey         = "breaker.slow-ratio"
	BreakerSlowCallKey          = "breaker.slow-call"
	BreakerMinCallsKey          = "breaker.min-calls"
	BreakerWindowKey            = "breaker.window"
	BreakerBucketsKey           = "breaker.buckets"
	BreakerBoundaryKey          = "breaker.boundary"
	BreakerOpenForKey           = "breaker.open-for"
	BreakerOpenJitterKey        = "breaker.open-jitter"
	BreakerOpenGrowthKey        = "breaker.open-growth"
	BreakerOpenMaxKey           = "breaker.open-max"
	BreakerProbesKey            = "breaker.probes"
	BreakerProbeSuccessesKey    = "breaker.probe-successes"
	BreakerProbeUnderKey        = "breaker.probe-under"
	BreakerProbeTimeoutKey      = "breaker.probe-timeout"
	BreakerFailuresKey          = "breaker.failures"
	BreakerIgnoreKey            = "breaker.ignore"
	BreakerScopeKey             = "breaker.scope"
	BreakerForceKey             = "breaker.force"
	BreakerModeKey              = "breaker.mode"
	FallbackKey                 = "fallback"
	FallbackOnKey               = "fallback.on"
	WeightKey                   = "weir.weight"
	GroupKey                    = "weir.group"
	GroupMatchKey               = "weir.group.match"
	GroupFallbackKey            = "weir.group.fallback"
	GroupUngroupedKey           = "weir.group.ungrouped"
	GroupMinAvailableKey        = "weir.group.min-available"
	GroupMinProvidersKey        = "weir.group.min-providers"
	GroupCallersKey             = "weir.group.callers"
	GroupRoleKey                = "weir.group.role"
	GroupModeKey                = "weir.group.mode"
	RetryRefusedKey             = "weir.retry-refused"
	StatsKey                    = "weir.stats"
	BusinessErrorsKey           = "weir.business-errors"

	paramsPrefix = "weir."
)

// families are the beginnings of names that are Weir's whether or not there is
// such a key.
var families = []string{paramsPrefix, ExecutesKey + ".", ActivesKey + ".", TPSKey + ".", FlowKey + ".", BulkheadKey + ".", OverloadKey + ".", BreakerKey + ".", FallbackKey + "."}

// level is a bit per place where a key may stand.
type level uint8

const (
	atDefaults level = 1 << iota
	atService
	atMethod
	anywhere = atDefaults | atService | atMethod
)

// key is one setting: the only place that knows its text.
type key struct {
	name    string // in params; the section drops the prefix "weir."
	sides   []Side
	levels  level
	kind    string // integer, number, boolean or string as in JSON Schema, or duration, rate, rates, ratio, list, name or limit (an integer or auto)
	enum    []string
	min     float64 // of a number; of a duration in nanoseconds
	max     float64
	allowed string
	def     string
	doc     string
	set     func(*Policies, string) error
	get     func(*Policies) (string, bool)
	// standsFor are the keys that this one sets. It must not stand beside one.
	standsFor []string
	// plain is the name of the key's own value where it is written as a map with
	// its parts; "" is limit.
	plain string
	// words may stand in a list, and what other takes, which pattern describes.
	words   []string
	other   func(string) bool
	names   bool // other takes names, which a number can be
	pattern string
	// not is the pattern of names that are none; empty is noName.
	not string
	// apart is the list that must not have a word of this one.
	apart string
	// fits says what is wrong with what the key sets beside what stands at the same
	// place.
	fits func(own, beside *Policies) error
}

// plainName is the name of the key's own value in a map.
func (k *key) plainName() string {
	if k.plain != "" {
		return k.plain
	}
	return "limit"
}

// section is the key's name in the weir section.
func (k *key) section() string { return strings.TrimPrefix(k.name, paramsPrefix) }

// clash says that k is one too many beside what stands at the same place, and
// what may stand there; "" when it is not.
func (k *key) clash(beside map[string]bool) (problem, allowed string) {
	for _, o := range keys {
		short, long := k, o
		if len(o.standsFor) > 0 {
			short, long = o, k
		}
		if beside[o.name] && slices.Contains(short.standsFor, long.name) {
			return fmt.Sprintf("%s sets %s, and both stand here", short.name, long.name), short.name + " alone, or " + strings.Join(short.standsFor, " and ")
		}
	}
	return "", ""
}

func (k *key) on(side Side) bool { return slices.Contains(k.sides, side) }

const (
	minLimit = -1 << 31
	maxLimit = 1<<31 - 1

	allowedLimit = "a whole number from -2147483648 to 2147483647, 0 and less is unlimited"
	allowedRatio = "a number from 0 to 1"
	allowedBool  = "true or false"
	allowedMode  = "enforce, observe or off"
)

var (
	both      = []Side{Provider, Consumer}
	modeNames = []string{string(Enforce), string(Observe), string(Off)}
)

// keys is the table of all settings that stand at a level.
var keys = slices.Concat(executesKeys, activesKeys, tpsKeys, flowKeys, bulkheadKeys, overloadKeys, breakerKeys, fallbackKeys, weightKeys, groupKeys, otherKeys)

// otherKeys are about tries on another instance and about statistics.
var otherKeys = []*key{
	{
		name: RetryRefusedKey, sides: []Side{Consumer}, levels: atDefaults | atService,
		kind: "number", min: 0, max: 1, allowed: allowedRatio, def: "0.1",
		doc: "Share of a reference's calls that may be refused a second time by another instance. 0 turns tries on another instance off.",
		set: setter(parseRatio, func(p *Policies, f float64) { p.RetryRefused = &f }),
		get: func(p *Policies) (string, bool) { return decimal(p.RetryRefused) },
	},
	{
		name: StatsKey, sides: both, levels: anywhere,
		kind: "boolean", allowed: allowedBool, def: "true where another policy is set",
		doc: "Whether outcomes and response times of a method without a policy are kept too, or, when false, response times of none.",
		set: setter(parseBool, func(p *Policies, v bool) { p.Stats = &v }),
		get: func(p *Policies) (string, bool) {
			if p.Stats == nil {
				return "", false
			}
			return strconv.FormatBool(*p.Stats), true
		},
	},
	{
		name: BusinessErrorsKey, sides: both, levels: anywhere,
		kind: "string", enum: []string{string(ErrorsAsSuccess), string(ErrorsAsFailure)},
		allowed: "success or failure", def: string(ErrorsAsSuccess),
		doc: "How statistics count a business error.",
		set: setter(oneOf(ErrorsAsSuccess, ErrorsAsFailure), func(p *Policies, v ErrorsAs) { p.BusinessErrors = v }),
		get: func(p *Policies) (string, bool) { return word(p.BusinessErrors) },
	},
}

// setter is a row's set: what parse makes of the text goes where put says.
func setter[T any](parse func(string) (T, error), put func(*Policies, T)) func(*Policies, string) error {
	return func(p *Policies, s string) error {
		v, err := parse(s)
		if err == nil {
			put(p, v)
		}
		return err
	}
}

// modeRow is the row of a guard's own mode.
func modeRow(name string, sides []Side, at func(*Policies) *Mode, get func(*Policies) Mode) *key {
	return &key{
		name: name, sides: sides, levels: anywhere,
		kind: "string", enum: modeNames, allowed: allowedMode, def: string(Enforce),
		doc: "What this guard does with its verdict: refuse, only count what it would refuse, or nothing.",
		set: setter(oneOf(Enforce, Observe, Off), func(p *Policies, m Mode) { *at(p) = m }),
		get: func(p *Policies) (string, bool) { return word(get(p)) },
	}
}

// whole, span, share, decimal and word are a row's get for a value that may not be set.
func whole(n *int) (string, bool) {
	if n == nil {
		return "", false
	}
	return strconv.Itoa(*n), true
}

func span(d *time.Duration) (string, bool) {
	if d == nil {
		return "", false
	}
	return d.String(), true
}

func share(r *Ratio) (string, bool) {
	if r == nil {
		return "", false
	}
	return r.String(), true
}

func decimal(f *float64) (string, bool) {
	if f == nil {
		return "", false
	}
	return strconv.FormatFloat(*f, 'f', -1, 64), true
}

func word[T ~string](v T) (string, bool) { return string(v), v != "" }

// made makes what p points to, if it is not there, and returns it.
func made[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// or is what p points to, the zero value when it is not there.
func or[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

func keyNamed(name string) *key {
	for _, k := range keys {
		if k.name == name {
			return k
		}
	}
	return nil
}

// sectionKey finds a key by its name in the weir section.
func sectionKey(name string) *key {
	for _, k := range keys {
		if k.section() == name {
			return k
		}
	}
	return nil
}
