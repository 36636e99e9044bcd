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
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxCaller = 128

	allowedCaller = "a name of 1 to 128 characters that print, without spaces and any of , = \" { }"
	allowedRates  = "rates by the names of callers, such as app-a=100/1s, default=10/1s, each once: " + allowedCaller + ", and " + allowedRate

	// callerPattern is the form of a name. That its characters print is more than
	// a pattern should say.
	callerPattern = `[^\s,="{}]{1,128}`
)

// isCaller reports whether a name can be that of a caller. Those that are left out
// have a meaning in the text of rates or of a placeholder.
func isCaller(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= maxCaller && printable(name) && !strings.ContainsAny(name, `,="{}`)
}

// parseRates reads rates by name, with commas in between around which spaces may
// stand: app-a=100/1s, default=10/1s.
func parseRates(s string) (map[string]Rate, error) {
	out := map[string]Rate{}
	entries := splitWords(s)
	if len(entries) == 0 {
		return nil, &valueError{"there are no rates", allowedRates, -1}
	}
	for i, entry := range entries {
		name, text, ok := strings.Cut(entry, "=")
		r, err := parseRate(text)
		_, twice := out[name]
		switch {
		case !ok:
			return nil, &valueError{fmt.Sprintf("%q is not a caller=rate", shorten(entry)), allowedRates, i}
		case !isCaller(name):
			return nil, &valueError{fmt.Sprintf("%q is not a caller", shorten(name)), allowedCaller, i}
		case err != nil:
			return nil, &valueError{fmt.Sprintf("%q is not a rate for %s", shorten(text), name), allowedRate, i}
		case twice:
			return nil, &valueError{name + " stands here twice", "once", i}
		}
		out[name] = r
	}
	return out, nil
}

// joinRates is the text of rates, by name in order. A name that is none, because
// it could be read as several entries, is put in quotes and so stays wrong.
func joinRates(rates map[string]Rate) (string, bool) {
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(rates)) {
		text := name
		if !isCaller(name) {
			text = fmt.Sprintf("%q", name)
		}
		entries = append(entries, text+"="+rates[name].String())
	}
	return strings.Join(entries, ","), rates != nil
}
