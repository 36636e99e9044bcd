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
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFaultString(t *testing.T) {
	for want, f := range map[string]Fault{
		`params side=provider service=a.B method=SayHello key=executes value="ten": allowed: a number`: {
			Source: "params", Side: "provider", Service: "a.B", Method: "SayHello", Key: "executes", Value: "ten", Allowed: "a number",
		},
		`weir.yaml:12 key=mode value="": allowed: on`:      {Source: "weir.yaml:12", Key: "mode", Allowed: "on"},
		`code key=services value="x": not one`:             {Source: "code", Key: "services", Value: "x", Problem: "not one"},
		`f: there is more; allowed: less`:                  {Source: "f", Problem: "there is more", Allowed: "less"},
		`f key="a b" value="\n": allowed: x`:               {Source: "f", Key: "a b", Value: "\n", Allowed: "x"},
		`f service="x=\"y\"" value=" 3": allowed: x`:       {Source: "f", Service: `x="y"`, Value: " 3", Allowed: "x"},
		`a b.yaml:1: broken here; allowed: one line`:       {Source: "a\nb.yaml:1", Problem: "broken\nhere", Allowed: "one\tline"},
		`f key="a\x00" value="\xff": allowed: x`:           {Source: "f", Key: "a\x00", Value: "\xff", Allowed: "x"},
		`f method="\u202eevil" value="1": allowed: x`:      {Source: "f", Method: "\u202eevil", Value: "1", Allowed: "x"},
		`f value="` + strings.Repeat("x", 200) + `...": y`: {Source: "f", Value: strings.Repeat("x", 5000), Problem: "y"},
	} {
		assert.Equal(t, want, f.String())
	}
}

// A key of several lines from a file made several lines of a log.
func TestRegression_OneLineEach(t *testing.T) {
	evil := "x\n\r\u2028\u0085\x1b[31m y"
	f := Fault{Source: evil, Side: evil, Service: evil, Method: evil, Key: evil, Value: evil, Problem: evil, Allowed: evil}
	assert.NotRegexp(t, `[\n\r\x{2028}\x{0085}\x1b]`, f.String())
	text := (&Error{Faults: []Fault{f, f}}).Error()
	assert.Len(t, strings.Split(text, "\n"), 3)
}

func TestShorten(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("x", maxQuoted)} {
		assert.Equal(t, s, shorten(s))
	}
	assert.Equal(t, strings.Repeat("x", maxQuoted)+"...", shorten(strings.Repeat("x", maxQuoted+1)))
	cut := shorten("x" + strings.Repeat("ü", maxQuoted))
	assert.Equal(t, "x"+strings.Repeat("ü", 99)+"...", cut, "not within a letter")
	assert.Less(t, len(shorten(strings.Repeat("\xbf", 5000))), 250)
}

func TestError(t *testing.T) {
	require.NoError(t, AsError(nil))
	require.NoError(t, AsError([]Fault{}))

	one := Fault{Source: "code", Key: "mode", Value: "x", Allowed: "y"}
	err := AsError([]Fault{one})
	assert.EqualError(t, err, `weir: configuration: code key=mode value="x": allowed: y`)

	err = fmt.Errorf("start: %w", AsError([]Fault{one, {Source: "params", Key: "k", Problem: "p"}}))
	assert.EqualError(t, err, "start: weir: configuration: 2 faults\n  code key=mode value=\"x\": allowed: y\n  params key=k: p")
	var e *Error
	require.ErrorAs(t, err, &e)
	assert.Len(t, e.Faults, 2)
	assert.Equal(t, "weir: configuration: 0 faults", (&Error{}).Error())
	assert.NotErrorIs(t, err, errors.New("x"))
}
