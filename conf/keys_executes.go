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

// executesKeys limit the running calls of a provider.
var executesKeys = []*key{
	{
		name: ExecutesKey, sides: []Side{Provider}, levels: anywhere,
		kind: "integer", min: minLimit, max: maxLimit, allowed: allowedLimit, def: "0",
		doc: "Running calls allowed per method; over it a call is refused at once. 0 and less is unlimited.",
		set: setter(parseLimit, func(p *Policies, n int) { made(&p.Executes).Limit = &n }),
		get: func(p *Policies) (string, bool) { return whole(or(p.Executes).Limit) },
	},
	{
		name: ExecutesScopeKey, sides: []Side{Provider}, levels: anywhere,
		kind: "string", enum: []string{string(ScopeMethod), string(ScopeService), string(ScopeProtocol)},
		allowed: "method, service or protocol (service not for a single method)", def: string(ScopeMethod),
		doc: "What shares the limit: each method by itself, all methods of the service, or each method per exported protocol.",
		set: setter(oneOf(ScopeMethod, ScopeService, ScopeProtocol), func(p *Policies, s Scope) { made(&p.Executes).Scope = s }),
		get: func(p *Policies) (string, bool) { return word(or(p.Executes).Scope) },
	},
	modeRow(ExecutesModeKey, []Side{Provider},
		func(p *Policies) *Mode { return &made(&p.Executes).Mode },
		func(p *Policies) Mode { return or(p.Executes).Mode }),
}
