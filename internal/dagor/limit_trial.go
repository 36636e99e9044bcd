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

package dagor

import (
	"math"
	"time"
)

// try begins a trial.
func (t *tuner) try(phase int, limit float64) {
	if phase == tunerUp {
		t.before = t.run
	}
	t.phase, t.held, t.trial = phase, t.bound(limit), figures{}
	t.settle(t.before.latency())
}

// tries takes a window of a trial.
func (t *tuner) tries(f figures) {
	t.trial = t.trial.plus(f)
	late := t.trial.took >= max(tunerLong, time.Duration(2*t.before.latency()*float64(time.Second)))
	if t.phase == tunerUp {
		t.judgeUp(late)
		return
	}
	switch {
	case f.came >= tunerRated && !f.pressed(), t.trial.came >= tunerFew && !t.trial.pressed(), // the load has gone, and less is no trial
		t.trial.done >= tunerFew && t.usual > 0 && t.trial.latency() > tunerSlow*t.usual: // it is another service now
		t.begin(t.trial.latency())
		return
	}
	if !t.short(t.trial, tunerTrial) {
		t.judgeDown()
	}
}

// judgeUp keeps a higher limit that is worth it: what was slow waits for something else.
func (t *tuner) judgeUp(late bool) {
	if !late && (t.trial.done == 0 || t.trial.took.Seconds() < max(t.before.latency(), t.trial.latency())) {
		return
	}
	// The logarithms of two rates differ by chance by no more than this.
	chance := tunerErrors * math.Sqrt(1/max(1, float64(t.before.done))+1/max(1, float64(t.trial.done)))
	grow := math.Log(float64(t.held) / float64(t.limit))
	gain := math.Log(max(t.trial.rate(), 1e-9) / max(t.before.rate(), 1e-9))
	calm := t.trial.done >= tunerCalls && !t.trial.pressed()
	switch {
	case calm || gain-tunerWorth*grow > chance || late && gain > (tunerWorth+tunerVain)/2*grow:
		t.limit = t.held
		t.alone, t.usual, t.sure = 0, t.trial.latency(), 0
		if !calm {
			t.run = t.trial
			t.at = t.limit
			t.try(tunerUp, 2*float64(t.limit))
			return
		}
	case late || tunerVain*grow-gain > chance:
		t.usual = t.before.latency()
		if t.limit <= t.opts.MinLimit { // with fewer it would not be known
			t.alone = t.usual
		}
		t.sure++
	default:
		return
	}
	t.at, t.since = t.limit, 0
	t.begin(t.trial.latency())
}

// judgeDown learns the latency of calls that do not wait for each other.
func (t *tuner) judgeDown() {
	t.at, t.since = t.limit, 0
	latency := t.trial.latency()
	defer t.begin(latency)
	if t.trial.done < tunerFew || !t.trial.pressed() {
		return // the load has gone
	}
	// With less to wait for each other, do they take less time?
	share := float64(t.held) / float64(t.limit)
	waited := latency < (1+share)/2*t.before.latency()
	was := t.deep
	t.deep = false
	switch known := t.alone; {
	case known == 0 || latency < (1-tunerNew)*known:
		t.alone, t.sure, t.deep = latency, 0, waited
	case latency <= (1+tunerNew)*known:
		weight := tunerWeight
		if latency > known && waited {
			weight = tunerDoubt
		}
		t.alone += weight * (latency - known)
		if math.Abs(latency/known-1) <= tunerSure {
			t.sure++
		}
		// Nearly as much less time as there were fewer calls: they still waited.
		t.deep = latency < (1+3*share)/4*t.before.latency() && t.sure < tunerConfirmed
	case !was:
		t.sure, t.deep = 0, true // look closer
	case !waited:
		t.alone, t.sure = latency, 0
	}
	target := t.target(t.before)
	if !t.deep {
		target = t.halfway(target)
	}
	t.limit = t.bound(target)
}
