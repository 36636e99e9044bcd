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
	maxWait = 24 * time.Hour

	allowedWait = "a whole number of milliseconds or a Go duration such as 200ms, from 0 to 24h; 0 does not wait"
)

// activesKeys limit the running calls of a consumer. The limit of a provider is
// what it declares for its consumers.
var activesKeys = []*key{
	{
		name: ActivesKey, sides: both, levels: anywhere,
		kind: "integer", min: minLimit, max: maxLimit, allowed: allowedLimit, def: "0",
		doc: "Running calls allowed per reference, provider address and method; over it a call waits. On a provider it is what consumers without a value of their own take. 0 and less is unlimited.",
		set: setter(parseLimit, func(p *Policies, n int) { made(&p.Actives).Limit = &n }),
		get: func(p *Policies) (string, bool) { return whole(or(p.Actives).Limit) },
	},
	{
		name: ActivesWaitKey, sides: []Side{Consumer}, levels: anywhere,
		kind: "duration", min: 0, max: float64(maxWait), allowed: allowedWait, def: "as long as the call has",
		doc: "The longest wait for a running call to end. 0 does not wait: a call over the limit is refused at once.",
		set: setter(durationIn(0, maxWait), func(p *Policies, d time.Duration) { made(&p.Actives).Wait = &d }),
		get: func(p *Policies) (string, bool) { return span(or(p.Actives).Wait) },
	},
	modeRow(ActivesModeKey, []Side{Consumer},
		func(p *Policies) *Mode { return &made(&p.Actives).Mode },
		func(p *Policies) Mode { return or(p.Actives).Mode }),
}
