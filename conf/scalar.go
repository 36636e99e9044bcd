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
	"math"
	"os"
	"strconv"
	"strings"
)

var errValue = errors.New("not allowed")

// parseLimit reads a whole decimal number in the range of Java's int. No
// space, sign of plus, fraction, exponent or other base is taken.
func parseLimit(s string) (int, error) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 10 {
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

// parseRatio reads a decimal fraction from 0 to 1.
func parseRatio(s string) (float64, error) {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && s[i] != '.' {
			return 0, errValue
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 1 || math.IsNaN(f) {
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

// expand replaces ${NAME} and ${NAME:default} by the environment's value. It
// returns the name of a variable that is neither set nor has a default.
func expand(s string) (out, missing string) {
	for from := 0; ; {
		start := strings.Index(s[from:], "${")
		if start < 0 {
			return s, ""
		}
		start += from
		length := strings.IndexByte(s[start:], '}')
		if length < 0 {
			return s, ""
		}
		name, def, hasDefault := strings.Cut(s[start+2:start+length], ":")
		value, ok := os.LookupEnv(name)
		switch {
		case ok && value != "":
		case hasDefault:
			value = def
		case !ok:
			return s, name
		}
		s = s[:start] + value + s[start+length+1:]
		// What was put in is not expanded again.
		from = start + len(value)
	}
}
