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

package health

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrRule is wrapped by what is said of a rule that is not to be gone by.
var ErrRule = errors.New("weir: rule of a signal")

// defaultRecover is the share of the limit below which it is calm again.
const defaultRecover = 0.9

// Rule is when a signal is tight, in the signal's own unit. The zero value is none:
// the signal is not read.
type Rule struct {
	// Limit is the mean from which on it is tight. 0 and less is none. A mean that
	// is smoothed comes near the largest value without reaching it: a share of the
	// CPU needs a limit below 1.
	Limit float64
	// Recover is the mean below which it is calm again, at most Limit; 0 is nine
	// tenths of it. Between the two it stays what it was.
	Recover float64
	// Smoothing is the time constant of the mean: of a step, 63 % have arrived
	// after it and 95 % after three times as long, however often it is sampled.
	// 0 takes each value as it is.
	Smoothing time.Duration
}

// Validate returns an error that wraps [ErrRule] for the first field that is out of
// its bounds. What a rule that is off says besides is not looked at.
func (r Rule) Validate() error {
	switch {
	case !finite(r.Limit):
		return fmt.Errorf("%w: limit %v: must be a number; 0 is none", ErrRule, r.Limit)
	case r.off():
		return nil
	case !finite(r.Recover) || r.Recover < 0 || r.Recover > r.Limit:
		return fmt.Errorf("%w: recover %v: must be 0 to the limit of %v; 0 is nine tenths of it", ErrRule, r.Recover, r.Limit)
	case r.Smoothing < 0:
		return fmt.Errorf("%w: smoothing %v: must not be negative; 0 is none", ErrRule, r.Smoothing)
	}
	return nil
}

// Calm is the mean below which it is calm again.
func (r Rule) Calm() float64 {
	if r.Recover == 0 {
		return r.Limit * defaultRecover
	}
	return r.Recover
}

func (r Rule) off() bool { return r.Limit <= 0 }

// tight is what becomes of a state when the mean is so much.
func (r Rule) tight(was bool, mean float64) bool {
	if was {
		return mean >= r.Calm()
	}
	return mean >= r.Limit
}

// smooth is the mean after a value that came so much later than the one before. The
// weights add up to one whatever the intervals are.
func (r Rule) smooth(mean, value float64, after time.Duration) float64 {
	if r.Smoothing == 0 {
		return value
	}
	weight := -math.Expm1(-float64(max(after, 0)) / float64(r.Smoothing))
	return mean + weight*(value-mean)
}

// largest is the largest value that counts: differences of two stay numbers.
const largest = math.MaxFloat64 / 4

func finite(v float64) bool { return math.Abs(v) <= largest }
