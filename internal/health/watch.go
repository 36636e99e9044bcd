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
	"fmt"
	"time"
)

// watch is a signal with its rule and what has become of it.
type watch struct {
	name   string
	signal Signal
	// inline is read by the goroutine that samples: it is sure to come back.
	inline bool

	// answers has room for the one that may be under way.
	answers chan answer
	// asked belongs to the one that samples: an answer is under way.
	asked bool

	// What follows is guarded by the monitor's mu.

	rule Rule
	// anew has it forget what it knew from before it was off.
	anew bool

	known   bool
	err     error
	raw     float64
	mean    float64
	at      time.Duration // of the last value that was known
	begun   bool          // there was one
	tight   bool
	since   time.Duration
	sampled bool
}

// answer is what a signal returned.
type answer struct {
	value float64
	known bool
	err   error
}

var errEnded = fmt.Errorf("%w: it ended its goroutine", ErrPanic)

// read asks the signal, and contains its panics.
func (w *watch) read(now time.Duration) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{err: fmt.Errorf("%w: %v", ErrPanic, p)}
		}
	}()
	value, known := w.signal.Read(now)
	switch {
	case !known:
		return answer{}
	case !finite(value):
		return answer{err: fmt.Errorf("%w: %v", ErrValue, value)}
	}
	return answer{value: value, known: true}
}

// ask is what the goroutine of one question does. The answer is sent even if the
// signal ends its goroutine.
func (w *watch) ask(now time.Duration) {
	a := answer{err: errEnded}
	defer func() { w.answers <- a }()
	a = w.read(now)
}

// takeLocked takes the answer of a sample.
func (w *watch) takeLocked(a answer, now time.Duration) {
	if w.anew || w.rule.off() {
		return // changed since it was asked
	}
	if !w.sampled {
		w.sampled, w.since = true, now
	}
	w.known, w.err = a.known, a.err
	if a.known {
		w.raw = a.value
		if w.begun {
			w.mean = w.rule.smooth(w.mean, a.value, now-w.at)
		} else {
			w.mean, w.begun = a.value, true
		}
		w.at = now
	}
	w.decideLocked(now)
}

func (w *watch) decideLocked(now time.Duration) {
	if tight := w.known && w.rule.tight(w.tight, w.mean); tight != w.tight {
		w.tight, w.since = tight, now
	}
}

// updateLocked changes the rule. The mean stays unless it is off in between.
func (w *watch) updateLocked(r Rule, now time.Duration) {
	was := w.rule
	w.rule = r
	switch {
	case r.off():
		w.known, w.err, w.begun, w.sampled = false, nil, false, false
		w.raw, w.mean = 0, 0
	case was.off():
		w.anew = true
	}
	w.decideLocked(now)
}
