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
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "-0": 0, "1": 1, "-1": -1, "10": 10, "100000": 100000,
		"2147483647": math.MaxInt32, "-2147483648": math.MinInt32,
	} {
		got, err := parseLimit(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", " ", "-", "--1", "+3", " 3", "3 ", "3\n", "\t3", "3.", "3.0", "1.5", ".5", "1e3", "1E3", "0x2", "0b1", "0o7", "1_000", "1,000", "1'000",
		"2147483648", "-2147483649", "4294967297", "9999999999", "99999999999999999999", "-99999999999999999999",
		"ten", "3a", "a3", "NaN", "inf", "null", "~", "true", "1s", "1000ms", "5%", "١٢", "３", "Ⅷ", "²", "−1", "\x00", "3\x00", "\xff",
	} {
		_, err := parseLimit(text)
		assert.Error(t, err, "%q", text)
	}
}

// YAML reads 010 as eight when dubbo decodes params, and the section read it as
// ten.
func TestRegression_LeadingZeros(t *testing.T) {
	for _, text := range []string{"010", "007", "00", "-01", "08", "0000000001"} {
		_, err := parseLimit(text)
		assert.Error(t, err, text)
	}
}

func TestParseCount(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "-0": 0, "1": 1, "2147483647": math.MaxInt32} {
		got, err := parseCount(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-1", "2147483648", "-2147483648", "1.0", "x"} {
		_, err := parseCount(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "1": time.Millisecond, "1500": 1500 * time.Millisecond, "86400000": 24 * time.Hour, "9223372036854": 9223372036854 * time.Millisecond,
		"1ns": 1, "1us": time.Microsecond, "1µs": time.Microsecond, "1μs": time.Microsecond, "250ms": 250 * time.Millisecond, "1s": time.Second, "1.5s": 1500 * time.Millisecond,
		"1m30s": 90 * time.Second, "2h": 2 * time.Hour, "0s": 0, "0h0m0s": 0, ".5s": 500 * time.Millisecond, "1.s": time.Second, "01s": time.Second, "1s1s": 2 * time.Second,
	} {
		got, err := parseDuration(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", " ", "-1", "+1", "-0", "-1s", "+1s", "-0s", "00", "01", "0001", "1.5", "1e3", "0x1", "1_000", " 1", "1 ", "1s ", " 1s", "1 s", "1S", "1sec", "1d", "s", ".s", "ms", "1m 30s", "1s1",
		"9223372036855", "9223372036854775807", "9223372036854775808", "9999999h", strings.Repeat("9", 5000), strings.Repeat("9", 5000) + "s",
		"١s", "１s", "1ｓ", "Inf", "NaN", "null", "1s\x00", "\xff", "1\n",
	} {
		_, err := parseDuration(text)
		assert.Error(t, err, "%q", text)
	}
	in := durationIn(time.Millisecond, time.Second)
	for _, text := range []string{"1", "1ms", "1000", "1s", "1000ms", "0.5s"} {
		_, err := in(text)
		assert.NoError(t, err, text)
	}
	for _, text := range []string{"0", "0s", "999us", "999999ns", "1001", "1s1ns", "x", ""} {
		d, err := in(text)
		assert.ErrorIs(t, err, errValue, text)
		assert.Zero(t, d)
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"200/1s": {200, time.Second}, "200/s": {200, time.Second}, "30/m": {30, time.Minute}, "1/2s": {1, 2 * time.Second}, "100/500ms": {100, 500 * time.Millisecond},
		"5/h": {5, time.Hour}, "1/ms": {1, time.Millisecond}, "0/s": {0, time.Second}, "2147483647/24h": {math.MaxInt32, 24 * time.Hour}, "7/1m30s": {7, 90 * time.Second},
		"7/1000us": {7, time.Millisecond},
	} {
		got, err := parseRate(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "/", "200", "200/", "/s", "200//s", "200/s/s", "200/ s", "200 /s", " 200/s", "200/s ", "-1/s", "-0/s", "+1/s", "1.5/s", "0200/s", "1e3/s", "x/s", "2147483648/s",
		"200/1", "200/0", "200/1000", "200/0s", "200/999us", "200/us", "200/ns", "200/d", "200/24h1ms", "200/25h", "200/-1s", "200/+1s", "200/S", "200/sec", "200:1s", "200\\s",
	} {
		_, err := parseRate(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestParseRatio(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "1": 1, "0.1": 0.1, ".5": 0.5, "1.": 1, "1.0": 1, "0.25": 0.25, "0.0": 0} {
		got, err := parseRatio(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", ".", "..", "1.1", "2", "-0.1", "-0", "+0.1", " 0.1", "0.1 ", "1e-1", "0x0.1p0", "0,1", "0.1.2", "NaN", "Inf", "10%", "null", "true", "½",
		"1.0000001", "0_1", "00", "01", "00.5", strings.Repeat("9", 400),
	} {
		_, err := parseRatio(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestParseBool(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "1": true, "false": false, "0": false} {
		got, err := parseBool(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "True", "TRUE", "yes", "no", "on", "off", "t", "f", "2", "-1", " true", "null"} {
		_, err := parseBool(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestExpand(t *testing.T) {
	t.Setenv("WEIR_TEST_SET", "7")
	t.Setenv("WEIR_TEST_EMPTY", "")
	t.Setenv("WEIR_TEST_NESTED", "${WEIR_TEST_SET}")
	for text, want := range map[string]string{
		"":                              "",
		"plain":                         "plain",
		"$":                             "$",
		"$WEIR_TEST_SET":                "$WEIR_TEST_SET",
		"{x}":                           "{x}",
		"x}":                            "x}",
		"${WEIR_TEST_SET}":              "7",
		"${WEIR_TEST_SET:3}":            "7",
		"${WEIR_TEST_NONE:3}":           "3",
		"${WEIR_TEST_NONE:}":            "",
		"${WEIR_TEST_EMPTY:3}":          "3", // as a shell's :- has it
		"${WEIR_TEST_EMPTY}":            "",
		"${WEIR_TEST_NONE:a:b}":         "a:b",
		"${WEIR_TEST_NONE:http://x/}":   "http://x/",
		"1${WEIR_TEST_SET}2":            "172",
		"${WEIR_TEST_SET}${WEIR_X:8}":   "78",
		"${WEIR_TEST_NESTED}":           "${WEIR_TEST_SET}", // the environment's text is only text
		"${WEIR_TEST_NONE: 3}":          " 3",
		"${WEIR_TEST_SET}}":             "7}",
		"$${WEIR_TEST_SET}":             "$7",
		"${WEIR_TEST_NONE:$}":           "$",
		"${WEIR_TEST_NONE:{x}":          "{x",
		"x ${WEIR_TEST_SET:} y":         "x 7 y",
		"${WEIR_TEST_NONE:über}":        "über",
		"\xff${WEIR_TEST_SET}":          "\xff7",
		"${WEIR_TEST_NONE:\n}":          "\n",
		"${WEIR_TEST_SET:${IGNORED}":    "", // a fault, see below
		"${WEIR_TEST_NONE:${X:1}}":      "", // a fault
		"${WEIR_TEST_NONE}":             "", // a fault
		"${WEIR_TEST_SET":               "", // a fault
		"${}":                           "", // a fault
		"${:3}":                         "", // a fault
		"${WEIR_TEST_SET}${WEIR_NO_ENV": "", // a fault
	} {
		got, _ := expand(text)
		assert.Equal(t, want, got, "%q", text)
	}
	for text, want := range map[string]string{
		"${WEIR_TEST_NONE}":             "environment variable WEIR_TEST_NONE is not set and has no default",
		"1${WEIR_TEST_NONE}2":           "environment variable WEIR_TEST_NONE is not set and has no default",
		"${WEIR_TEST_SET":               "a placeholder has no end",
		"${WEIR_TEST_SET}${WEIR_NO_ENV": "a placeholder has no end",
		"${WEIR_TEST_NONE:${X:1}}":      "a placeholder stands inside of another",
		"${WEIR_TEST_SET:${IGNORED}":    "a placeholder stands inside of another",
		"${}":                           "a placeholder has no name",
		"${:3}":                         "a placeholder has no name",
	} {
		_, problem := expand(text)
		assert.Equal(t, want, problem, "%q", text)
	}
	// Many placeholders take time in proportion.
	out, problem := expand(strings.Repeat("${WEIR_TEST_SET}", 100_000))
	assert.Empty(t, problem)
	assert.Len(t, out, 100_000)
}
