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
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	maxShort    = 1000
	maxGrowth   = 10
	maxCall     = time.Hour
	leastWindow = 10 * time.Millisecond
	maxOpen     = 24 * time.Hour

	allowedShare     = "a fraction from 0 to 1 with at most 6 decimals, such as 0.57, or a percentage such as 57% or 12.5%"
	allowedStrategy  = allowedShare + "; 0 is off"
	allowedErrors    = "a whole number from 0 to 2147483647, 0 is off"
	allowedMinCalls  = "a whole number from 1 to 2147483647"
	allowedShort     = "a whole number from 1 to 1000"
	allowedGrowth    = "a number from 1 to 10"
	allowedCallTime  = "a whole number of milliseconds or a Go duration such as 250ms, from 1ms to 1h"
	allowedWindow    = "a whole number of milliseconds or a Go duration such as 10s, from 10ms to 1h"
	allowedOpenTime  = "a whole number of milliseconds or a Go duration such as 5s, from 1ms to 24h"
	allowedBoundary  = "at-least or above"
	allowedForce     = "open, closed or none"
	allowedInstances = "instance or service"
)

var (
	outcomeWords = []string{"timeout", "cancelled", "rejected", "forwarded", "business", "failure"}
	codeWords    = []string{
		"canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied", "resource_exhausted",
		"failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable", "data_loss", "unauthenticated", "biz_error",
	}
	failureWords = slices.Concat(outcomeWords, codeWords)

	allowedFailures = "a list of outcomes (" + strings.Join(outcomeWords, ", ") + "), codes of Triple (" + strings.Join(codeWords, ", ") +
		"), exception classes such as com.acme.StockException, and packages such as com.acme.*"
)

// CodeWords are the names of Triple's codes as breaker.failures and
// breaker.ignore take them, in the order of their numbers, from 1.
func CodeWords() []string { return slices.Clone(codeWords) }

// classPattern is a Java class with its package, or a package.
const classPattern = `[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*\.([A-Za-z_$][A-Za-z0-9_$]*|\*)`

var isClass = regexp.MustCompile(`^` + classPattern + `$`).MatchString

// breakerKeys break off calls to what fails or is slow.
var breakerKeys = []*key{
	{
		name: BreakerKey, sides: both, levels: anywhere, plain: "preset",
		kind: "string", enum: []string{string(PresetHystrix), string(PresetStandard), string(PresetOff)},
		allowed: "hystrix, standard or off", def: "none",
		doc: "Values for what no level sets. standard trips when half of the calls fail; hystrix does as Hystrix does; off takes the breaker off here, although a wider level sets one.",
		set: setter(oneOf(PresetHystrix, PresetStandard, PresetOff), func(p *Policies, v Preset) { made(&p.Breaker).Preset = v }),
		get: func(p *Policies) (string, bool) { return word(or(p.Breaker).Preset) },
	},
	ratioRow(BreakerErrorRatioKey, allowedStrategy, "0, off; a preset 0.5", "Share of failed calls in the window that trips. 0 is off.",
		func(b *Breaker) **Ratio { return &b.ErrorRatio }),
	countRow(BreakerErrorCountKey, 0, maxLimit, allowedErrors, "0, off", "Failed calls in the window that trip. 0 is off.",
		func(b *Breaker) **int { return &b.ErrorCount }),
	countRow(BreakerConsecutiveErrorsKey, 0, maxLimit, allowedErrors, "0, off", "Failed calls in a row, however long they take, that trip. 0 is off.",
		func(b *Breaker) **int { return &b.ConsecutiveErrors }),
	ratioRow(BreakerSlowRatioKey, allowedStrategy, "0, off", "Share of slow calls in the window that trips. 0 is off.",
		func(b *Breaker) **Ratio { return &b.SlowRatio }),
	timeRow(BreakerSlowCallKey, time.Millisecond, maxCall, allowedCallTime, "1s", "A call that takes longer is slow. It counts while it still runs.",
		func(b *Breaker) **time.Duration { return &b.SlowCall }),
	countRow(BreakerMinCallsKey, 1, maxLimit, allowedMinCalls, "20; hystrix 21", "Calls in the window below which no ratio trips. Where it is set it holds for breaker.error-count too.",
		func(b *Breaker) **int { return &b.MinCalls }),
	timeRow(BreakerWindowKey, leastWindow, maxCall, allowedWindow, "10s", "How long the ratios and breaker.error-count look back.",
		func(b *Breaker) **time.Duration { return &b.Window }),
	countRow(BreakerBucketsKey, 1, maxShort, allowedShort, "10", "Parts in which the window moves on, each a whole number of milliseconds.",
		func(b *Breaker) **int { return &b.Buckets }),
	{
		name: BreakerBoundaryKey, sides: both, levels: anywhere,
		kind: "string", enum: []string{string(BoundaryAtLeast), string(BoundaryAbove)},
		allowed: allowedBoundary, def: "at-least; hystrix above",
		doc: "Whether a ratio or a count that is just met trips (at-least) or only more (above). A ratio of 1 is always at-least.",
		set: setter(oneOf(BoundaryAtLeast, BoundaryAbove), func(p *Policies, v Boundary) { made(&p.Breaker).Boundary = v }),
		get: func(p *Policies) (string, bool) { return word(or(p.Breaker).Boundary) },
	},
	timeRow(BreakerOpenForKey, time.Millisecond, maxOpen, allowedOpenTime, "5s", "How long the breaker refuses calls before it lets probes through.",
		func(b *Breaker) **time.Duration { return &b.OpenFor }),
	ratioRow(BreakerOpenJitterKey, allowedShare, "0.1; hystrix 0", "The open time is lengthened by a random part, up to this share of it.",
		func(b *Breaker) **Ratio { return &b.OpenJitter }),
	{
		name: BreakerOpenGrowthKey, sides: both, levels: anywhere,
		kind: "number", min: 1, max: maxGrowth, allowed: allowedGrowth, def: "1",
		doc: "Factor by which the open time grows with each round of probes that failed.",
		set: setter(numberIn(1, maxGrowth), func(p *Policies, f float64) { made(&p.Breaker).OpenGrowth = &f }),
		get: func(p *Policies) (string, bool) { return decimal(or(p.Breaker).OpenGrowth) },
	},
	timeRow(BreakerOpenMaxKey, time.Millisecond, maxOpen, allowedOpenTime, "5m, never less than breaker.open-for", "Where the growth of the open time ends.",
		func(b *Breaker) **time.Duration { return &b.OpenMax }),
	countRow(BreakerProbesKey, 1, maxShort, allowedShort, "1", "Calls let through in half-open, and at most as many at the same time.",
		func(b *Breaker) **int { return &b.Probes }),
	countRow(BreakerProbeSuccessesKey, 1, maxShort, allowedShort, "as many as breaker.probes", "Healthy probes that close the breaker.",
		func(b *Breaker) **int { return &b.ProbeSuccesses }),
	timeRow(BreakerProbeUnderKey, time.Millisecond, maxCall, allowedCallTime, "not longer than breaker.slow-call where breaker.slow-ratio is set, else no bound; hystrix 250ms", "A probe is healthy only when it takes less than this.",
		func(b *Breaker) **time.Duration { return &b.ProbeUnder }),
	timeRow(BreakerProbeTimeoutKey, time.Millisecond, maxOpen, allowedOpenTime, "30s, and at least twice breaker.slow-call where breaker.slow-ratio is set", "After this a probe that has not come back counts as failed.",
		func(b *Breaker) **time.Duration { return &b.ProbeTimeout }),
	wordsRow(BreakerFailuresKey, BreakerIgnoreKey, "What counts as failure besides the default: outcomes, codes of Triple, exception classes, packages.",
		func(b *Breaker) *[]string { return &b.Failures }),
	wordsRow(BreakerIgnoreKey, BreakerFailuresKey, "What does not count at all, although it would by default. It takes the same words as breaker.failures.",
		func(b *Breaker) *[]string { return &b.Ignore }),
	{
		name: BreakerScopeKey, sides: []Side{Consumer}, levels: anywhere,
		kind: "string", enum: []string{string(ScopeInstance), string(ScopeService)},
		allowed: allowedInstances, def: string(ScopeInstance),
		doc: "What shares a breaker: the calls to each provider address by themselves (instance), or those to all of them (service).",
		set: setter(oneOf(ScopeInstance, ScopeService), func(p *Policies, v Scope) { made(&p.Breaker).Scope = v }),
		get: func(p *Policies) (string, bool) { return word(or(p.Breaker).Scope) },
	},
	{
		name: BreakerForceKey, sides: both, levels: anywhere,
		kind: "string", enum: []string{string(ForceOpen), string(ForceClosed), string(ForceNone)},
		allowed: allowedForce, def: string(ForceNone),
		doc: "Holds the breaker open, so that it refuses every call, or closed.",
		set: setter(oneOf(ForceOpen, ForceClosed, ForceNone), func(p *Policies, v Force) { made(&p.Breaker).Force = v }),
		get: func(p *Policies) (string, bool) { return word(or(p.Breaker).Force) },
	},
	modeRow(BreakerModeKey, both,
		func(p *Policies) *Mode { return &made(&p.Breaker).Mode },
		func(p *Policies) Mode { return or(p.Breaker).Mode }),
}

// ratioRow, countRow, timeRow and wordsRow are rows of the breaker whose value is
// the field at.
func ratioRow(name, allowed, def, doc string, at func(*Breaker) **Ratio) *key {
	return &key{
		name: name, sides: both, levels: anywhere, kind: "ratio", min: 0, max: 1, allowed: allowed, def: def, doc: doc,
		set: setter(parseShare, func(p *Policies, r Ratio) { *at(made(&p.Breaker)) = &r }),
		get: func(p *Policies) (string, bool) { b := or(p.Breaker); return share(*at(&b)) },
	}
}

func countRow(name string, least, most int, allowed, def, doc string, at func(*Breaker) **int) *key {
	return &key{
		name: name, sides: both, levels: anywhere, kind: "integer", min: float64(least), max: float64(most), allowed: allowed, def: def, doc: doc,
		set: setter(countIn(least, most), func(p *Policies, n int) { *at(made(&p.Breaker)) = &n }),
		get: func(p *Policies) (string, bool) { b := or(p.Breaker); return whole(*at(&b)) },
	}
}

func timeRow(name string, least, most time.Duration, allowed, def, doc string, at func(*Breaker) **time.Duration) *key {
	return &key{
		name: name, sides: both, levels: anywhere, kind: "duration", min: float64(least), max: float64(most), allowed: allowed, def: def, doc: doc,
		set: setter(durationIn(least, most), func(p *Policies, d time.Duration) { *at(made(&p.Breaker)) = &d }),
		get: func(p *Policies) (string, bool) { b := or(p.Breaker); return span(*at(&b)) },
	}
}

func wordsRow(name, apart, doc string, at func(*Breaker) *[]string) *key {
	return listRow(key{
		name: name, sides: both, levels: anywhere, allowed: allowedFailures, def: "none", doc: doc,
		words: failureWords, other: isClass, pattern: classPattern, apart: apart,
	}, func(p *Policies) *[]string { return at(made(&p.Breaker)) }, func(p *Policies) []string {
		b := or(p.Breaker)
		return *at(&b)
	})
}
