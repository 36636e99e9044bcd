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
	maxQueue   = 24 * time.Hour
	leastWarm  = time.Second
	maxWarm    = time.Hour
	leastCold  = 1.1
	maxCold    = 100
	onlyQueues = string(BehaviorQueue) + " and " + string(BehaviorWarmUpQueue)
	onlyWarms  = string(BehaviorWarmUp) + " and " + string(BehaviorWarmUpQueue)

	allowedBehavior = "reject, warm-up, queue or warm-up-queue"
	allowedQueue    = "a whole number of milliseconds or a Go duration such as 500ms, from 0 to 24h; 0 does not wait"
	allowedWarm     = "a whole number of milliseconds or a Go duration such as 10s, from 1s to 1h"
	allowedCold     = "a number from 1.1 to 100"
)

// flowKeys limit the rate of calls and shape it.
var flowKeys = []*key{
	{
		name: FlowKey, sides: both, levels: anywhere, plain: "rate",
		kind: "rate", allowed: allowedRate, def: "none",
		doc: "Calls let through per time: 200/1s, 200/s, 30/m, 1/2s. The methods of a service share one budget; a method with settings of its own has its own. 0 calls are unlimited.",
		set: setter(parseRate, func(p *Policies, r Rate) { made(&p.Flow).Rate = &r }),
		get: func(p *Policies) (string, bool) {
			if p.Flow == nil || p.Flow.Rate == nil {
				return "", false
			}
			return p.Flow.Rate.String(), true
		},
	},
	{
		name: FlowBehaviorKey, sides: both, levels: anywhere,
		kind: "string", enum: []string{string(BehaviorReject), string(BehaviorWarmUp), string(BehaviorQueue), string(BehaviorWarmUpQueue)},
		allowed: allowedBehavior, def: string(BehaviorReject),
		doc: "What becomes of calls over the rate: they are refused (reject), or wait for their turn, evenly spaced (queue). With warm-up and warm-up-queue the rate rises from cold to full.",
		set: setter(oneOf(BehaviorReject, BehaviorWarmUp, BehaviorQueue, BehaviorWarmUpQueue), func(p *Policies, b Behavior) { made(&p.Flow).Behavior = b }),
		get: func(p *Policies) (string, bool) { return word(or(p.Flow).Behavior) },
	},
	{
		name: FlowMaxQueueKey, sides: both, levels: anywhere,
		kind: "duration", min: 0, max: float64(maxQueue), allowed: allowedQueue, def: "500ms",
		doc: "The longest wait of queue and warm-up-queue. A call that would wait longer is refused at once.",
		set: setter(durationIn(0, maxQueue), func(p *Policies, d time.Duration) { made(&p.Flow).MaxQueue = &d }),
		get: func(p *Policies) (string, bool) { return span(or(p.Flow).MaxQueue) },
	},
	{
		name: FlowWarmUpKey, sides: both, levels: anywhere,
		kind: "duration", min: float64(leastWarm), max: float64(maxWarm), allowed: allowedWarm, def: "10s",
		doc: "The time from cold to the full rate, with warm-up and warm-up-queue.",
		set: setter(durationIn(leastWarm, maxWarm), func(p *Policies, d time.Duration) { made(&p.Flow).WarmUp = &d }),
		get: func(p *Policies) (string, bool) { return span(or(p.Flow).WarmUp) },
	},
	{
		name: FlowColdFactorKey, sides: both, levels: anywhere,
		kind: "number", min: leastCold, max: maxCold, allowed: allowedCold, def: "3",
		doc: "What the rate is divided by when cold, with warm-up and warm-up-queue.",
		set: setter(numberIn(leastCold, maxCold), func(p *Policies, f float64) { made(&p.Flow).ColdFactor = &f }),
		get: func(p *Policies) (string, bool) { return decimal(or(p.Flow).ColdFactor) },
	},
	{
		name: FlowCallersKey, sides: []Side{Provider}, levels: anywhere,
		kind: "rates", allowed: allowedRates, def: "none",
		doc: "Rates of callers by name, each counted apart and besides the method's: app-a=100/1s, default=10/1s. default is what all callers without a rate of their own share. 0 calls are unlimited.",
		set: setter(parseRates, func(p *Policies, r map[string]Rate) { made(&p.Flow).Callers = r }),
		get: func(p *Policies) (string, bool) { return joinRates(or(p.Flow).Callers) },
	},
	modeRow(FlowModeKey, both,
		func(p *Policies) *Mode { return &made(&p.Flow).Mode },
		func(p *Policies) Mode { return or(p.Flow).Mode }),
}

// flowBudgetKeys make a budget: a method for which one of them is set has its own.
var flowBudgetKeys = []string{FlowKey, FlowBehaviorKey, FlowMaxQueueKey, FlowWarmUpKey, FlowColdFactorKey, FlowCallersKey}
