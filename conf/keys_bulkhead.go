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
	maxRun = 24 * time.Hour

	allowedWaiting = "a whole number from 0 to 2147483647, 0 is none"
	allowedMaxWait = "a whole number of milliseconds or a Go duration such as 1s, from 0 to 24h; 0 does not wait"
	allowedRun     = "a whole number of milliseconds or a Go duration such as 2s, from 0 to 24h; 0 is off"
	allowedGroup   = "a name of 1 to 64 letters, digits, dots, underscores and hyphens, not true or false; or none"
)

// bulkheadKeys keep the calls of a method in a compartment of their own.
var bulkheadKeys = []*key{
	{
		name: BulkheadKey, sides: both, levels: anywhere, plain: "max",
		kind: "integer", min: minLimit, max: maxLimit, allowed: allowedLimit, def: "0",
		doc: "Running calls allowed per method, or per group of methods; over it calls wait in the queue, if there is one, and are refused otherwise. 0 and less is unlimited.",
		set: setter(parseLimit, func(p *Policies, n int) { made(&p.Bulkhead).Max = &n }),
		get: func(p *Policies) (string, bool) { return whole(or(p.Bulkhead).Max) },
	},
	{
		name: BulkheadQueueKey, sides: both, levels: anywhere,
		kind: "integer", min: 0, max: maxLimit, allowed: allowedWaiting, def: "0",
		doc: "Calls that may wait for a running one to end. 0 is none: a call over the limit is refused at once.",
		set: setter(parseCount, func(p *Policies, n int) { made(&p.Bulkhead).Queue = &n }),
		get: func(p *Policies) (string, bool) { return whole(or(p.Bulkhead).Queue) },
	},
	{
		name: BulkheadMaxWaitKey, sides: both, levels: anywhere,
		kind: "duration", min: 0, max: float64(maxWait), allowed: allowedMaxWait, def: "1s",
		doc: "The longest wait in the queue. 0 does not wait.",
		set: setter(durationIn(0, maxWait), func(p *Policies, d time.Duration) { made(&p.Bulkhead).MaxWait = &d }),
		get: func(p *Policies) (string, bool) { return span(or(p.Bulkhead).MaxWait) },
	},
	{
		name: BulkheadRunTimeoutKey, sides: []Side{Provider}, levels: anywhere,
		kind: "duration", min: 0, max: float64(maxRun), allowed: allowedRun, def: "0, off",
		doc: "The time that a call may run after which its caller is answered. 0 is off.",
		set: setter(durationIn(0, maxRun), func(p *Policies, d time.Duration) { made(&p.Bulkhead).RunTimeout = &d }),
		get: func(p *Policies) (string, bool) { return span(or(p.Bulkhead).RunTimeout) },
	},
	{
		name: BulkheadGroupKey, sides: both, levels: anywhere,
		kind: "name", allowed: allowedGroup, def: "none, each method by itself",
		doc: "Methods that name one group share one bulkhead. none takes the group away here, although a wider level sets one.",
		set: setter(parseName, func(p *Policies, s string) { made(&p.Bulkhead).Group = s }),
		get: func(p *Policies) (string, bool) { return word(or(p.Bulkhead).Group) },
	},
	modeRow(BulkheadModeKey, both,
		func(p *Policies) *Mode { return &made(&p.Bulkhead).Mode },
		func(p *Policies) Mode { return or(p.Bulkhead).Mode }),
}
