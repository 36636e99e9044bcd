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
	"strconv"
	"strings"
	"time"
)

const (
	minInterval = time.Millisecond
	maxInterval = 24 * time.Hour

	allowedRate = "calls and what time they are for, such as 200/1s, 200/s, 30/m or 1/2s: a whole number from 0 to 2147483647, 0 is unlimited, and a Go duration from 1ms to 24h or a unit of ms, s, m, h"
)

// Rate is a number of calls per interval. The zero value is no rate.
type Rate struct {
	// Calls is 0 for unlimited.
	Calls    int
	Interval time.Duration
}

// String is the rate as it may be set: 200/1s, 30/1m, 1/1h30m.
func (r Rate) String() string {
	per := r.Interval.String()
	if short, ok := strings.CutSuffix(per, "m0s"); ok {
		per = short + "m"
	}
	if short, ok := strings.CutSuffix(per, "h0m"); ok {
		per = short + "h"
	}
	return strconv.Itoa(r.Calls) + "/" + per
}

// spacing is the time from one call to the next, rounded down.
func (r Rate) spacing() time.Duration { return r.Interval / time.Duration(r.Calls) }

// parseRate reads calls and what time they are for, with a slash in between:
// 200/1s, or for one of a unit 200/s.
func parseRate(s string) (Rate, error) {
	calls, per, ok := strings.Cut(s, "/")
	if !ok {
		return Rate{}, errValue
	}
	switch per {
	case "ms", "s", "m", "h":
		per = "1" + per
	default:
		// A number without a unit could be meant as seconds as well.
		if strings.Trim(per, "0123456789") == "" {
			return Rate{}, errValue
		}
	}
	n, err := parseCount(calls)
	if err != nil || calls == "-0" {
		return Rate{}, errValue
	}
	d, err := durationIn(minInterval, maxInterval)(per)
	if err != nil {
		return Rate{}, err
	}
	return Rate{Calls: n, Interval: d}, nil
}
