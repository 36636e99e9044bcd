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

package call

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onTheWire is what is left of e after a journey: no cause, and no retry-after
// that says nothing.
func onTheWire(e RejectError) RejectError {
	e.cause = nil
	e.RetryAfter, e.Waited, e.MaxWait = max(e.RetryAfter, 0), max(e.Waited, 0), max(e.MaxWait, 0)
	return e
}

func TestTextRoundTrip(t *testing.T) {
	names := []string{
		"", "executes", "greet.GreetService#SayHello", "g/greet.GreetService:1.0#$invoke", "grüße.Dienst#größe", "服务#方法",
		"with space", "tab\there", "line\nbreak", "cr\rlf\n", "nul\x00", "quote\"s", `back\slash`, "'single'", "`tick`",
		"emoji \U0001f600", "\u202eright to left", "\xff\xfe not UTF-8", "=", " ", "a=b", "guard=executes", `" limit=1`,
		"weir: call refused:", "100%", "ends with space ", "\u00a0", "µ", "\ufeff", "\ufffd",
	}
	numbers := []int64{0, 1, -1, 10, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
	delays := []time.Duration{
		0, 1, 999, time.Microsecond, 1500 * time.Nanosecond, 999999, time.Millisecond, 1500 * time.Microsecond,
		250 * time.Millisecond, time.Second, 90 * time.Minute, math.MaxInt64, -time.Second, math.MinInt64,
	}
	for i := range max(len(names), len(numbers), len(delays)) * 3 {
		e := RejectError{
			Guard: names[i%len(names)], Resource: names[(i*7+1)%len(names)], Reason: names[(i*11+2)%len(names)],
			Limit: numbers[i%len(numbers)], Observed: numbers[(i*3+1)%len(numbers)], RetryAfter: delays[i%len(delays)],
			Waited: delays[(i*5+1)%len(delays)], MaxWait: delays[(i*9+2)%len(delays)], Forwarded: i%2 == 1,
		}
		checkRoundTrip(t, e)
	}
}

func checkRoundTrip(t *testing.T, e RejectError) {
	t.Helper()
	text := e.Error()
	for i := range len(text) {
		require.True(t, ' ' <= text[i] && text[i] <= '~', "%q is not one line of ASCII", text)
	}
	got, ok := Parse(text)
	require.True(t, ok, "%q", text)
	require.Equal(t, onTheWire(e), *got, "%q", text)
	require.ErrorIs(t, got, ErrRejected)

	fields := map[string]string{}
	for _, f := range e.Fields() {
		require.NotEmpty(t, f.Value, "an empty value would look as if it were not there")
		require.NotContains(t, fields, f.Key)
		fields[f.Key] = f.Value
	}
	got, ok = FromFields(func(key string) string { return fields[key] })
	require.True(t, ok, "%v", fields)
	require.Equal(t, onTheWire(e), *got, "%v", fields)
}

// Go writes 1.5µs with a letter that neither the grammar nor an HTTP header
// allows, so a refusal with a retry-after below a millisecond was none to its
// reader.
func TestRegression_RetryAfterInMicroseconds(t *testing.T) {
	e := RejectError{Guard: "tps", Resource: "a.B#c", Reason: "rate", Limit: 1, Observed: 1, RetryAfter: 1500 * time.Nanosecond}
	assert.Contains(t, e.Error(), " retry-after=1.5us")
	checkRoundTrip(t, e)
	for _, text := range []string{"1.5us", `"1.5\u00b5s"`} {
		got, ok := Parse("weir: call refused: guard=g resource=r reason=q limit=1 observed=1 retry-after=" + text)
		require.True(t, ok, text)
		assert.Equal(t, e.RetryAfter, got.RetryAfter)
	}
}

// A policy that did not say its name lost its refusals on the wire.
func TestRegression_GuardWithoutName(t *testing.T) {
	checkRoundTrip(t, RejectError{Resource: "a.B#c", Reason: "r"})
	checkRoundTrip(t, RejectError{})
}

const valid = "weir: call refused: guard=g resource=r reason=q limit=1 observed=2"

func TestParse(t *testing.T) {
	base := RejectError{Guard: "g", Resource: "r", Reason: "q", Limit: 1, Observed: 2}
	with := func(f func(*RejectError)) RejectError {
		e := base
		f(&e)
		return e
	}
	for _, tt := range []struct {
		text string
		want RejectError
	}{
		{valid, base},
		{"weir: call refused: observed=2 limit=1 reason=q resource=r guard=g", base},
		{valid + " retry-after=1.5s", with(func(e *RejectError) { e.RetryAfter = 1500 * time.Millisecond })},
		{valid + " retry-after=0s", base},
		{valid + " retry-after=0", base},
		{valid + " waited=20ms max-wait=1500us", with(func(e *RejectError) { e.Waited, e.MaxWait = 20*time.Millisecond, 1500*time.Microsecond })},
		{valid + " waited=0s max-wait=0", base},
		{valid + " forwarded=true", with(func(e *RejectError) { e.Forwarded = true })},
		{valid + " forwarded=false", base},
		{valid + " later-field=x another2=\"y z\"", base},
		{strings.Replace(valid, "=q", `="q"`, 1), base},
		{strings.Replace(valid, "=1", `="1"`, 1), base},
		{strings.Replace(valid, "=q", `="\u0071"`, 1), base},
		{strings.Replace(valid, "=q", "=\"ü\"", 1), with(func(e *RejectError) { e.Reason = "ü" })}, // another writer need not escape
		{strings.Replace(valid, "=q", `=""`, 1), with(func(e *RejectError) { e.Reason = "" })},
		{strings.Replace(valid, "=1", "=-9223372036854775808", 1), with(func(e *RejectError) { e.Limit = math.MinInt64 })},
	} {
		got, ok := Parse(tt.text)
		if assert.True(t, ok, tt.text) {
			assert.Equal(t, tt.want, *got, tt.text)
		}
	}
}

func TestParseTurnsDown(t *testing.T) {
	without := func(field string) string { return strings.Replace(valid, field, "", 1) }
	for name, text := range map[string]string{
		"empty":                      "",
		"prefix alone":               "weir: call refused:",
		"prefix and space":           "weir: call refused: ",
		"half a prefix":              "weir: call ref",
		"the sentinel's text":        ErrRejected.Error(),
		"contained":                  "rpc failed: " + valid,
		"in brackets":                "(" + valid + ")",
		"leading space":              " " + valid,
		"leading newline":            "\n" + valid,
		"other case":                 "Weir: call refused:" + valid[len(textPrefix):],
		"trailing space":             valid + " ",
		"trailing newline":           valid + "\n",
		"trailing nul":               valid + "\x00",
		"trailing word":              valid + " and more",
		"trailing stop":              valid + ", retry later",
		"trailing cause":             valid + ": context canceled",
		"stack below":                valid + "\n\tat com.example.Main",
		"two refusals":               valid + " " + valid,
		"two spaces":                 strings.Replace(valid, " limit", "  limit", 1),
		"tab":                        strings.Replace(valid, " limit", "\tlimit", 1),
		"no space":                   strings.Replace(valid, " guard", "guard", 1),
		"no value":                   valid + " forwarded=",
		"no key":                     valid + " =true",
		"no equals":                  valid + " forwarded",
		"space about equals":         strings.Replace(valid, "limit=1", "limit = 1", 1),
		"key in capitals":            valid + " Forwarded=true",
		"key begins with a digit":    valid + " 2nd=x",
		"key begins with a hyphen":   valid + " -x=y",
		"key with a dot":             valid + " a.b=c",
		"twice the same":             valid + " guard=g",
		"twice another":              valid + " guard=h",
		"twice an unknown":           valid + " x=1 x=1",
		"no guard":                   without(" guard=g"),
		"no resource":                without(" resource=r"),
		"no reason":                  without(" reason=q"),
		"no limit":                   without(" limit=1"),
		"no observed":                without(" observed=2"),
		"limit in letters":           strings.Replace(valid, "=1", "=ten", 1),
		"limit with a fraction":      strings.Replace(valid, "=1", "=1.0", 1),
		"limit in hex":               strings.Replace(valid, "=1", "=0x1", 1),
		"limit too large":            strings.Replace(valid, "=1", "=9223372036854775808", 1),
		"limit too small":            strings.Replace(valid, "=1", "=-9223372036854775809", 1),
		"limit in other digits":      strings.Replace(valid, "=1", "=\"١\"", 1),
		"observed empty":             strings.Replace(valid, "=2", `=""`, 1),
		"retry-after negative":       valid + " retry-after=-1s",
		"retry-after without unit":   valid + " retry-after=5",
		"retry-after too long":       valid + " retry-after=9999999999h",
		"forwarded neither":          valid + " forwarded=1",
		"forwarded in capitals":      valid + " forwarded=TRUE",
		"quote left open":            strings.Replace(valid, "=q", `="q`, 1),
		"quote with a bad escape":    strings.Replace(valid, "=q", `="\q"`, 1),
		"quote across lines":         strings.Replace(valid, "=q", "=\"q\n\"", 1),
		"single quotes":              strings.Replace(valid, "=q", `='q'`, 1),
		"back quotes":                strings.Replace(valid, "=q", "=`q`", 1),
		"glued to a quote":           strings.Replace(valid, "=q", `="q"x`, 1),
		"bare and then quoted":       strings.Replace(valid, "=q", `=x"q"`, 1),
		"bare with letters not bare": strings.Replace(valid, "=q", "=ü", 1),
		"not UTF-8":                  strings.Replace(valid, "=q", "=\"\xff\"", 1),
		"overlong":                   valid + " x=" + strings.Repeat("y", maxText),
	} {
		e, ok := Parse(text)
		assert.False(t, ok, name)
		assert.Nil(t, e, name)
	}
}

func TestParseLength(t *testing.T) {
	pad := func(n int) string { return valid + " x=" + strings.Repeat("y", n-len(valid)-3) }
	_, ok := Parse(pad(maxText))
	assert.True(t, ok)
	_, ok = Parse(pad(maxText + 1))
	assert.False(t, ok)

	many := valid
	for i := 0; len(many) < maxText-16; i++ {
		many += " x" + strings.Repeat("y", i%7) + string(rune('a'+i%26)) + "=1"
	}
	_, _ = Parse(many) // whichever it is, it ends
}

func TestFromFields(t *testing.T) {
	fields := func(change func(map[string]string)) func(string) string {
		m := map[string]string{"guard": "g", "resource": "r", "reason": "q", "limit": "1", "observed": "2"}
		change(m)
		return func(key string) string { return m[key] }
	}
	e, ok := FromFields(fields(func(m map[string]string) { m["retry-after"], m["forwarded"], m["new"] = "1ms", "true", "?" }))
	require.True(t, ok)
	assert.Equal(t, RejectError{Guard: "g", Resource: "r", Reason: "q", Limit: 1, Observed: 2, RetryAfter: time.Millisecond, Forwarded: true}, *e)

	for name, change := range map[string]func(map[string]string){
		"nothing":         func(m map[string]string) { clear(m) },
		"no guard":        func(m map[string]string) { delete(m, "guard") },
		"no resource":     func(m map[string]string) { delete(m, "resource") },
		"no reason":       func(m map[string]string) { delete(m, "reason") },
		"no limit":        func(m map[string]string) { delete(m, "limit") },
		"no observed":     func(m map[string]string) { delete(m, "observed") },
		"bad limit":       func(m map[string]string) { m["limit"] = "many" },
		"bad duration":    func(m map[string]string) { m["retry-after"] = "soon" },
		"space":           func(m map[string]string) { m["reason"] = " q" },
		"line break":      func(m map[string]string) { m["reason"] = "q\n" },
		"open quote":      func(m map[string]string) { m["reason"] = `"q` },
		"after the quote": func(m map[string]string) { m["reason"] = `"q" ` },
		"not UTF-8":       func(m map[string]string) { m["reason"] = "\"\xff\"" },
		"overlong":        func(m map[string]string) { m["reason"] = strings.Repeat("q", maxText) },
		"overlong together": func(m map[string]string) {
			m["reason"], m["guard"] = strings.Repeat("q", 3000), strings.Repeat("q", 3000)
		},
	} {
		e, ok := FromFields(fields(change))
		assert.False(t, ok, name)
		assert.Nil(t, e, name)
	}
}

// One field of the metadata could bring others along, and make up for those
// that were missing.
func TestRegression_FieldsBringNoOthers(t *testing.T) {
	fields := map[string]string{"guard": "g", "resource": "r", "reason": "q", "limit": "1 observed=2 forwarded=true"}
	_, ok := FromFields(func(key string) string { return fields[key] })
	assert.False(t, ok)
}

func FuzzParse(f *testing.F) {
	f.Add(valid)
	f.Add(refusal().Error())
	f.Add(valid + " retry-after=1.5us forwarded=true new=\"\\u00e4 \"")
	f.Add("weir: call refused: guard=\"\" resource=\"\" reason=\"\" limit=-1 observed=0")
	f.Add("weir: call refused: guard=\"")
	f.Add("weir: call refused: x")
	f.Fuzz(func(t *testing.T, text string) {
		e, ok := Parse(text)
		if !ok {
			if e != nil {
				t.Fatal("an error beside false")
			}
			return
		}
		// What was understood is written so that it is understood again.
		again, ok := Parse(e.Error())
		if !ok && len(e.Error()) <= maxText || ok && *again != *e {
			t.Fatalf("%q became %q", text, e.Error())
		}
		if _, ok := Parse("x" + text); ok {
			t.Fatalf("%q is contained in a refusal", text)
		}
		if _, ok := Parse(text + " "); ok {
			t.Fatalf("%q may be followed by anything", text)
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("executes", "a.B#c", "concurrency", int64(1), int64(2), int64(0), int64(7), false)
	f.Add("", "\n", "\"\\", int64(-1), int64(math.MinInt64), int64(1500), int64(0), true)
	f.Add("\xff", "日本 語", "\u2028", int64(math.MaxInt64), int64(0), int64(math.MaxInt64), int64(math.MaxInt64), true)
	f.Fuzz(func(t *testing.T, guard, resource, reason string, limit, observed, retryAfter, waited int64, forwarded bool) {
		e := RejectError{
			Guard: guard, Resource: resource, Reason: reason, Limit: limit, Observed: observed,
			RetryAfter: time.Duration(retryAfter), Waited: time.Duration(waited), MaxWait: time.Duration(waited ^ retryAfter), Forwarded: forwarded,
		}
		if len(e.Error()) > maxText {
			return
		}
		checkRoundTrip(t, e)
	})
}
