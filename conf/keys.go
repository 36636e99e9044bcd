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
	"slices"
	"strconv"
	"strings"
)

// Keys as they stand in params and, nested, in the weir section.
const (
	ExecutesKey       = "executes"
	ExecutesScopeKey  = "executes.scope"
	ExecutesModeKey   = "executes.mode"
	RetryRefusedKey   = "weir.retry-refused"
	StatsKey          = "weir.stats"
	BusinessErrorsKey = "weir.business-errors"

	paramsPrefix = "weir."
)

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
	kind    string // of the JSON Schema: integer, number, boolean, string
	enum    []string
	min     float64 // of a number
	max     float64
	allowed string
	def     string
	doc     string
	set     func(*Policies, string) error
	get     func(*Policies) (string, bool)
}

// section is the key's name in the weir section.
func (k *key) section() string { return strings.TrimPrefix(k.name, paramsPrefix) }

func (k *key) on(side Side) bool { return slices.Contains(k.sides, side) }

const (
	allowedLimit = "a whole number from -2147483648 to 2147483647, 0 and less is unlimited"
	allowedRatio = "a number from 0 to 1"
	allowedBool  = "true or false"
)

var both = []Side{Provider, Consumer}

// keys is the table of all settings that stand at a level.
var keys = []*key{
	{
		name: ExecutesKey, sides: []Side{Provider}, levels: anywhere,
		kind: "integer", min: minLimit, max: maxLimit, allowed: allowedLimit, def: "0",
		doc: "Running calls allowed per method; over it a call is refused at once. 0 and less is unlimited.",
		set: func(p *Policies, s string) error {
			n, err := parseLimit(s)
			if err == nil {
				p.executes().Limit = &n
			}
			return err
		},
		get: func(p *Policies) (string, bool) {
			if p.Executes == nil || p.Executes.Limit == nil {
				return "", false
			}
			return strconv.Itoa(*p.Executes.Limit), true
		},
	},
	{
		name: ExecutesScopeKey, sides: []Side{Provider}, levels: anywhere,
		kind: "string", enum: []string{string(ScopeMethod), string(ScopeService), string(ScopeProtocol)},
		allowed: "method, service or protocol (service not for a single method)", def: string(ScopeMethod),
		doc: "What shares the limit: each method by itself, all methods of the service, or each method per exported protocol.",
		set: func(p *Policies, s string) error {
			v, err := parseOneOf(s, ScopeMethod, ScopeService, ScopeProtocol)
			if err == nil {
				p.executes().Scope = v
			}
			return err
		},
		get: func(p *Policies) (string, bool) {
			if p.Executes == nil || p.Executes.Scope == "" {
				return "", false
			}
			return string(p.Executes.Scope), true
		},
	},
	{
		name: ExecutesModeKey, sides: []Side{Provider}, levels: anywhere,
		kind: "string", enum: modeNames, allowed: allowedMode, def: string(Enforce),
		doc: "What this guard does with its verdict: refuse, only count what it would refuse, or nothing.",
		set: func(p *Policies, s string) error {
			v, err := parseOneOf(s, Enforce, Observe, Off)
			if err == nil {
				p.executes().Mode = v
			}
			return err
		},
		get: func(p *Policies) (string, bool) {
			if p.Executes == nil || p.Executes.Mode == "" {
				return "", false
			}
			return string(p.Executes.Mode), true
		},
	},
	{
		name: RetryRefusedKey, sides: []Side{Consumer}, levels: atDefaults | atService,
		kind: "number", min: 0, max: 1, allowed: allowedRatio, def: "0.1",
		doc: "Share of a reference's calls that may be refused a second time by another instance. 0 turns tries on another instance off.",
		set: func(p *Policies, s string) error {
			f, err := parseRatio(s)
			if err == nil {
				p.RetryRefused = &f
			}
			return err
		},
		get: func(p *Policies) (string, bool) {
			if p.RetryRefused == nil {
				return "", false
			}
			return strconv.FormatFloat(*p.RetryRefused, 'f', -1, 64), true
		},
	},
	{
		name: StatsKey, sides: both, levels: anywhere,
		kind: "boolean", allowed: allowedBool, def: "true where another policy is set",
		doc: "Whether outcomes and response times of a method without a policy are kept too, or, when false, response times of none.",
		set: func(p *Policies, s string) error {
			v, err := parseBool(s)
			if err == nil {
				p.Stats = &v
			}
			return err
		},
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
		set: func(p *Policies, s string) error {
			v, err := parseOneOf(s, ErrorsAsSuccess, ErrorsAsFailure)
			if err == nil {
				p.BusinessErrors = v
			}
			return err
		},
		get: func(p *Policies) (string, bool) { return string(p.BusinessErrors), p.BusinessErrors != "" },
	},
}

const (
	minLimit    = -1 << 31
	maxLimit    = 1<<31 - 1
	allowedMode = "enforce, observe or off"
)

var modeNames = []string{string(Enforce), string(Observe), string(Off)}

func (p *Policies) executes() *Executes {
	if p.Executes == nil {
		p.Executes = &Executes{}
	}
	return p.Executes
}

// later are keys of Java Dubbo that have their place here but are not enforced
// by this version. A value for one of them draws a warning.
var later = []string{"actives", "tps", "accepts", "connections", "lazy"}

// replaced are dubbo-go's own limit keys, and what to do about each.
var replaced = map[string]string{
	"execute.limit":                  "use " + ExecutesKey,
	"execute.limit.rejected.handler": noHandler,
	"tps.limiter":                    notYet + "tps",
	"tps.limit.rate":                 notYet + "tps",
	"tps.limit.interval":             notYet + "tps.interval",
	"tps.limit.strategy":             notYet + "tps.algorithm",
	"tps.limit.rejected.handler":     noHandler,
}

const (
	noHandler = "Weir needs no handler, the caller gets a typed error"
	notYet    = "keep it for now, a later version of Weir replaces it by "
)

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

// nearest is the candidate that name is most likely a misspelling of, or "".
// Case does not count.
func nearest(name string, candidates []string) string {
	best, at := "", 3
	if len(name) > maxQuoted {
		return ""
	}
	name = strings.ToLower(name)
	for _, c := range candidates {
		if d := distance(name, c); d < at && d < len(c) {
			best, at = c, d
		}
	}
	return best
}

// distance counts the single-byte edits from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
