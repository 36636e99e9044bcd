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
)

// Fault is one thing that is wrong in a configuration.
type Fault struct {
	// Source is where it stands: "params", "code", "file weir.yaml:12".
	Source string
	// Side, Service and Method tell whose setting it is; empty where it is nobody's.
	Side, Service, Method string
	// Key is the setting and Value what it was given.
	Key, Value string
	// Problem says what is wrong when it is not just the value.
	Problem string
	// Allowed says what would be right.
	Allowed string
}

// String is the fault in one line.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.Source)
	for _, part := range [...]struct{ name, value string }{
		{"side", f.Side}, {"service", f.Service}, {"method", f.Method}, {"key", f.Key},
	} {
		if part.value != "" {
			fmt.Fprintf(&b, " %s=%s", part.name, part.value)
		}
	}
	if f.Problem == "" || f.Value != "" {
		fmt.Fprintf(&b, " value=%s", strconv.Quote(f.Value))
	}
	b.WriteByte(':')
	if f.Problem != "" {
		b.WriteByte(' ')
		b.WriteString(f.Problem)
		if f.Allowed != "" {
			b.WriteByte(';')
		}
	}
	if f.Allowed != "" {
		b.WriteString(" allowed: ")
		b.WriteString(f.Allowed)
	}
	return b.String()
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
