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

import "time"

const (
	allowedTPS      = allowedLimit + "; a rate such as 200/1s belongs in tps.rate"
	allowedInterval = "a whole number of milliseconds or a Go duration such as 1s, from 1ms to 24h"
	allowedBurst    = "a whole number from 0 to 2147483647, 0 is as many as tps"
	allowedTPSScope = "instance, each process by itself; cluster, one quota for all instances, is not supported yet"
)

// tpsKeys limit the calls per interval.
var tpsKeys = []*key{
	{
		name: TPSKey, sides: both, levels: anywhere,
		kind: "integer", min: minLimit, max: maxLimit, allowed: allowedTPS, def: "0",
		doc: "Calls allowed per tps.interval. The methods of a service share one budget; a method with a value of its own has its own. 0 and less is unlimited.",
		set: setter(parseLimit, func(p *Policies, n int) { made(&p.TPS).Limit = &n }),
		get: func(p *Policies) (string, bool) { return whole(or(p.TPS).Limit) },
	},
	{
		name: TPSRateKey, sides: both, levels: anywhere,
		kind: "rate", allowed: allowedRate, def: "none", standsFor: []string{TPSKey, TPSIntervalKey},
		doc: "tps and tps.interval in one: 200/1s, 200/s, 30/m, 1/2s.",
		set: setter(parseRate, func(p *Policies, r Rate) {
			made(&p.TPS).Limit, p.TPS.Interval = &r.Calls, &r.Interval
		}),
		get: func(*Policies) (string, bool) { return "", false }, // what it stands for has it
	},
	{
		name: TPSIntervalKey, sides: both, levels: anywhere,
		kind: "duration", min: float64(minInterval), max: float64(maxInterval), allowed: allowedInterval, def: "60s",
		doc: "What time tps is for.",
		set: setter(durationIn(minInterval, maxInterval), func(p *Policies, d time.Duration) { made(&p.TPS).Interval = &d }),
		get: func(p *Policies) (string, bool) { return span(or(p.TPS).Interval) },
	},
	{
		name: TPSAlgorithmKey, sides: both, levels: anywhere,
		kind: "string", enum: []string{string(AlgorithmSliding), string(AlgorithmFixed), string(AlgorithmBucket)},
		allowed: "sliding, fixed or bucket", def: string(AlgorithmSliding),
		doc: "How calls are counted: never more than tps in any interval (sliding), in windows one after another as Java Dubbo does (fixed), or by a token bucket (bucket).",
		set: setter(oneOf(AlgorithmSliding, AlgorithmFixed, AlgorithmBucket), func(p *Policies, a Algorithm) { made(&p.TPS).Algorithm = a }),
		get: func(p *Policies) (string, bool) { return word(or(p.TPS).Algorithm) },
	},
	{
		name: TPSBurstKey, sides: both, levels: anywhere,
		kind: "integer", min: 0, max: maxLimit, allowed: allowedBurst, def: "0",
		doc: "Calls that a full bucket admits at once. 0 is as many as tps. It has no effect on other algorithms.",
		set: setter(parseCount, func(p *Policies, n int) { made(&p.TPS).Burst = &n }),
		get: func(p *Policies) (string, bool) { return whole(or(p.TPS).Burst) },
	},
	{
		name: TPSScopeKey, sides: both, levels: anywhere,
		kind: "string", enum: []string{string(ScopeInstance)}, allowed: allowedTPSScope, def: string(ScopeInstance),
		doc: "What shares the budget: each process has its own (instance). One for all instances is not supported yet.",
		set: setter(oneOf(ScopeInstance), func(p *Policies, s Scope) { made(&p.TPS).Scope = s }),
		get: func(p *Policies) (string, bool) { return word(or(p.TPS).Scope) },
	},
	modeRow(TPSModeKey, both,
		func(p *Policies) *Mode { return &made(&p.TPS).Mode },
		func(p *Policies) Mode { return or(p.TPS).Mode }),
}

// budgetKeys make a budget: a method for which one of them is set has its own.
var budgetKeys = []string{TPSKey, TPSIntervalKey, TPSAlgorithmKey, TPSBurstKey, TPSScopeKey}
