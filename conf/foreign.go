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
	"strings"
)

// later are keys of Java Dubbo that have their place here but are not enforced
// by this version. A value for one of them draws a warning.
var later = []string{"accepts", "connections", "lazy"}

// neighbours are names that a program may well have of its own, and that only look
// like a misspelling.
var neighbours = []string{"broker", "failback", "slow", "low"}

// dubboLimits are dubbo-go's own limit keys, and what to do about each.
var dubboLimits = map[string]string{
	"execute.limit":                  "use " + ExecutesKey,
	"execute.limit.rejected.handler": noHandler,
	"tps.limiter":                    "use " + TPSKey,
	"tps.limit.rate":                 "use " + TPSKey,
	"tps.limit.interval":             "use " + TPSIntervalKey,
	"tps.limit.strategy":             "use " + TPSAlgorithmKey,
	"tps.limit.rejected.handler":     noHandler,
}

const (
	noHandler = "Weir needs no handler, the caller gets a typed error"

	// dubboLimit begins names that are dubbo-go's. It sets some in every URL, and
	// a version to come may set more.
	dubboLimit = "tps.limit."
)

// claimed reports whether a name that is not in the table could only be Weir's.
func claimed(name string) bool {
	if dubboLimits[name] != "" || strings.HasPrefix(name, dubboLimit) {
		return false
	}
	return slices.ContainsFunc(families, func(family string) bool { return strings.HasPrefix(name, family) })
}

// insteadOf says what to do about one of dubbo-go's own keys, "" for no such key.
func insteadOf(flat, method string) string {
	instead := dubboLimits[flat]
	if flat == "execute.limit" && method == "" {
		// dubbo-go counts all methods together there.
		instead += " with " + ExecutesScopeKey + ": " + string(ScopeService)
	}
	return instead
}

// foreign looks at a key that is not in the table.
func (p *paramsParser) foreign(method, full, flat, value string) {
	if claimed(flat) {
		p.fault(full, Fault{Method: method, Key: flat, Value: value, Problem: "unknown key", Allowed: hint(flat, keyNames(p.side))})
		return
	}
	if value == "" {
		return // dubbo sets keys that nobody configured to the empty string
	}
	instead := insteadOf(flat, method)
	switch {
	case flat == "execute.limit" && p.side == Consumer:
		return // the provider's, which dubbo merges over a reference's
	case instead != "":
		p.warn("%s=%s is dubbo-go's own limit: a call it refuses looks like an empty success on the dubbo protocol; %s", full, value, instead)
		return
	case strings.HasPrefix(flat, TPSKey+"."):
		p.warn("%s=%s has no effect on a %s; %s", full, value, p.side, dubboLimits["tps.limiter"])
		return
	}
	for _, name := range later {
		if flat == name || strings.HasPrefix(flat, name+".") {
			p.warn("%s=%s is not enforced by this version of Weir", full, value)
			return
		}
	}
	if slices.Contains(neighbours, flat) {
		return
	}
	if near := nearest(flat, keyNames(p.side)); near != "" && (near != FlowKey || slip(flat, near)) {
		p.warn("%s=%s has no effect; did you mean %s?", full, value, near)
		return
	}
	for _, k := range keys {
		if method == "" && strings.HasSuffix(flat, "."+k.name) {
			p.warn("%s=%s has no effect; for one method write %s<Method>.%s", full, value, methodsPrefix, k.name)
			return
		}
	}
}

func (p *paramsParser) warn(format string, args ...any) {
	p.out.Warnings = append(p.out.Warnings, plain(fmt.Sprintf("service=%s side=%s ", p.service, p.side)+fmt.Sprintf(format, args...)))
}

// hint lists what is allowed, with the likely one first.
func hint(name string, allowed []string) string {
	s := strings.Join(allowed, ", ")
	if near := nearest(name, allowed); near != "" {
		return "did you mean " + near + "? all: " + s
	}
	return s
}

// nearest is the candidate that name is most likely a misspelling of, or "".
// Case does not count. Of a name of three letters two must be right: ip is not tps.
func nearest(name string, candidates []string) string {
	best, at := "", 3
	if len(name) > maxQuoted {
		return ""
	}
	name = strings.ToLower(name)
	for _, c := range candidates {
		if d := distance(name, c); d < at && d < len(c)-1 {
			best, at = c, d
		}
	}
	return best
}

// slip reports whether a short word is one edit away, or has its letters in another
// order: names of others are within two edits too easily, from is not flow.
func slip(name, word string) bool {
	name = strings.ToLower(name)
	letters := func(s string) []byte { return slices.Sorted(slices.Values([]byte(s))) }
	return distance(name, word) < 2 || slices.Equal(letters(name), letters(word))
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
