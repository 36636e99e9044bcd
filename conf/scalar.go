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
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

var errValue = errors.New("not allowed")

// parseLimit reads a whole decimal number in the range of Java's int. No
// space, sign of plus, fraction, exponent or other base is taken, and no
// leading zero: YAML reads 010 as eight.
func parseLimit(s string) (int, error) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 10 || digits[0] == '0' && len(digits) > 1 {
		return 0, errValue
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, errValue
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
		return 0, errValue
	}
	return int(n), nil
}

// parseCount is [parseLimit] for what cannot be negative.
func parseCount(s string) (int, error) {
	n, err := parseLimit(s)
	if err != nil || n < 0 {
		return 0, errValue
	}
	return n, nil
}

// durationIn reads a duration within a range, both ends included.
func durationIn(least, most time.Duration) func(string) (time.Duration, error) {
	return func(s string) (time.Duration, error) {
		d, err := parseDuration(s)
		if err != nil || d < least || d > most {
			return 0, errValue
		}
		return d, nil
	}
}

// parseDuration reads a whole number of milliseconds, written as [parseLimit]
// has it, or a duration as Go writes it. No sign is taken.
func parseDuration(s string) (time.Duration, error) {
	if s == "" || s[0] == '-' || s[0] == '+' {
		return 0, errValue
	}
	if strings.Trim(s, "0123456789") != "" {
		return time.ParseDuration(s)
	}
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil || ms > math.MaxInt64/int64(time.Millisecond) || s[0] == '0' && len(s) > 1 {
		return 0, errValue
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// countIn reads a whole number within a range, both ends included.
func countIn(least, most int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := parseLimit(s)
		if err != nil || n < least || n > most {
			return 0, errValue
		}
		return n, nil
	}
}

// parseRatio reads a decimal fraction from 0 to 1, without needless zeros in front.
func parseRatio(s string) (float64, error) { return numberIn(0, 1)(s) }

// numberIn reads a decimal fraction within a range of what is not negative,
// without needless zeros in front.
func numberIn(least, most float64) func(string) (float64, error) {
	return func(s string) (float64, error) {
		f, err := parseNumber(s)
		if err != nil || f < least || f > most {
			return 0, errValue
		}
		return f, nil
	}
}

func parseNumber(s string) (float64, error) {
	if len(s) > 1 && s[0] == '0' && s[1] != '.' {
		return 0, errValue
	}
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && s[i] != '.' {
			return 0, errValue
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) {
		return 0, errValue
	}
	return f, nil
}

// parseBool reads true and false, and 1 and 0, as which they arrive through dubbo.
func parseBool(s string) (bool, error) {
	switch s {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, errValue
}

func parseOneOf[T ~string](s string, allowed ...T) (T, error) {
	for _, a := range allowed {
		if s == string(a) {
			return a, nil
		}
	}
	return "", errValue
}

// oneOf is [parseOneOf] of the words that are allowed.
func oneOf[T ~string](allowed ...T) func(string) (T, error) {
	return func(s string) (T, error) { return parseOneOf(s, allowed...) }
}

// expand replaces ${NAME} and ${NAME:default} by the environment's value, which
// is not expanded again. A variable that is empty has its default. problem says
// what is wrong with a placeholder, "" for nothing.
func expand(s string) (out, problem string) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		b.WriteString(before)
		if !ok {
			return b.String(), ""
		}
		inside, after, ok := strings.Cut(rest, "}")
		if !ok {
			return "", "a placeholder has no end"
		}
		if strings.Contains(inside, "${") {
			return "", "a placeholder stands inside of another"
		}
		name, def, hasDefault := strings.Cut(inside, ":")
		if name == "" {
			return "", "a placeholder has no name"
		}
		value, set := os.LookupEnv(name)
		switch {
		case value != "":
		case hasDefault:
			value = def
		case !set:
			return "", "environment variable " + name + " is not set and has no default"
		}
		b.WriteString(value)
		s = after
	}
}

// expanded says what a value is once placeholders are filled in, for the fault
// of one that is not allowed then.
func expanded(raw, value string) string {
	if raw == value {
		return ""
	}
	return fmt.Sprintf("with the environment filled in it is %q", shorten(value))
}
