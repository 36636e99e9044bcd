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
	"strconv"
	"strings"
)

// Ratio is a share from 0 to 1 in parts per million: an int, so that 57 of 100
// against 0.57 is compared exactly.
type Ratio int

// WholeRatio is the ratio 1.
const WholeRatio Ratio = 1_000_000

// RatioOf is the ratio nearest to f. What is not from 0 to 1 stays wrong and is
// a fault where it is set.
func RatioOf(f float64) Ratio {
	switch {
	case math.IsNaN(f) || f < -1:
		return -WholeRatio
	case f > 2:
		return 2 * WholeRatio
	}
	return Ratio(math.Round(f * float64(WholeRatio)))
}

// String is the shortest decimal fraction.
func (r Ratio) String() string {
	sign, n := "", uint64(r)
	if r < 0 {
		sign, n = "-", -n
	}
	text := sign + strconv.FormatUint(n/uint64(WholeRatio), 10)
	part := n % uint64(WholeRatio)
	if part == 0 {
		return text
	}
	digits := strconv.FormatUint(uint64(WholeRatio)+part, 10)[1:]
	return text + "." + strings.TrimRight(digits, "0")
}

// Percent is the ratio in percent, rounded down.
func (r Ratio) Percent() int64 { return int64(r) / int64(WholeRatio/100) }

// parseShare reads a decimal fraction from 0 to 1, written as [parseRatio] has it
// and with at most 6 decimals, or a percentage with at most 4.
func parseShare(s string) (Ratio, error) {
	number, percent := strings.CutSuffix(s, "%")
	most, places, scale := 1, 6, int(WholeRatio)
	if percent {
		most, places, scale = 100, 4, int(WholeRatio)/100
	}
	before, after, _ := strings.Cut(number, ".")
	if before == "" && after == "" || len(after) > places || len(before) > 1 && before[0] == '0' || !isDigits(before) || !isDigits(after) {
		return 0, errValue
	}
	whole := 0
	if before != "" {
		n, err := strconv.Atoi(before)
		if err != nil || n > most {
			return 0, errValue
		}
		whole = n
	}
	part := 0
	if after != "" {
		part, _ = strconv.Atoi(after + strings.Repeat("0", places-len(after)))
	}
	r := Ratio(whole*scale + part)
	if r > WholeRatio {
		return 0, errValue
	}
	return r, nil
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
