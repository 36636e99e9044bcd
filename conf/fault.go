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
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is one thing that is wrong in a configuration.
type Fault struct {
	// Source is where it stands: "params", "code", "weir.yaml:12".
	Source string
	// Side, Service and Method tell whose setting it is; empty where it is nobody's.
	Side, Service, Method string
	// Key is the setting and Value what it was given.
	Key, Value string
	// Problem says what is wrong when it is not just the value.
	Problem string
	// Allowed says what would be right.
	Allowed string

	// param is the name of the param that it stands in, as it was written.
	param string
}

// String is the fault in one line. Long texts are shortened.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(plain(f.Source))
	for _, part := range [...]struct{ name, value string }{
		{"side", f.Side}, {"service", f.Service}, {"method", f.Method}, {"key", f.Key},
	} {
		if part.value == "" {
			continue
		}
		value := shorten(part.value)
		if !printable(value) || strings.ContainsAny(value, `"=`) {
			value = strconv.Quote(value)
		}
		fmt.Fprintf(&b, " %s=%s", part.name, value)
	}
	if f.Problem == "" || f.Value != "" {
		fmt.Fprintf(&b, " value=%s", strconv.Quote(shorten(f.Value)))
	}
	b.WriteByte(':')
	if f.Problem != "" {
		b.WriteByte(' ')
		b.WriteString(plain(f.Problem))
		if f.Allowed != "" {
			b.WriteByte(';')
		}
	}
	if f.Allowed != "" {
		b.WriteString(" allowed: ")
		b.WriteString(plain(f.Allowed))
	}
	return b.String()
}

// plain keeps a text on one line.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// maxQuoted is how much of a value a message shows.
const maxQuoted = 200

func shorten(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	cut := maxQuoted
	for cut > maxQuoted-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// Error is all that is wrong in a configuration.
type Error struct {
	Faults []Fault
}

// Error has one line per fault.
func (e *Error) Error() string {
	if len(e.Faults) == 1 {
		return "weir: configuration: " + e.Faults[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "weir: configuration: %d faults", len(e.Faults))
	for _, f := range e.Faults {
		b.WriteString("\n  ")
		b.WriteString(f.String())
	}
	return b.String()
}

// AsError is the faults as an error, nil when there are none.
func AsError(faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &Error{Faults: faults}
}
