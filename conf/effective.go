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
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one effective value and where it comes from.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
	// Level is method, service or side.
	Level string `json:"level"`
}

// Effective are the policies that hold for one method.
type Effective struct {
	// Executes is the method's own limit.
	Executes Limit
	// SharedExecutes is the one that all methods of the service share.
	SharedExecutes Limit
	// Actives is the limit of running calls per provider address. On a provider
	// it is what the provider declares, Set and Limit only.
	Actives WaitLimit
	// TPS is the limit of calls per interval.
	TPS RateLimit
	// Flow is the limit of the rate that also shapes it.
	Flow FlowPolicy
	// Bulkhead is the compartment of the method.
	Bulkhead BulkheadPolicy
	// Overload is the cap of the method that breathes.
	Overload OverloadPolicy
	// Breaker is the breaker of the method.
	Breaker BreakerPolicy
	// Fallback is what answers for calls of a consumer.
	Fallback FallbackPolicy
	// Group is the group of the method and what goes by it.
	Group GroupPolicy
	// Weight is what a provider tells its consumers, nil when no source says anything.
	Weight *int
	// RetryRefused is the ratio of the reference.
	RetryRefused float64
	// Stats is nil when no source says anything.
	Stats *bool
	// BusinessErrorsFail makes business errors count as failures.
	BusinessErrorsFail bool
	// Settings tells every value that some source set and that counts, once. A
	// key is there twice where two values hold side by side.
	Settings []Setting

	// notes were made when it was resolved.
	notes []note
}

// note is what a user should know, in one line.
type note struct {
	text string
	// own is set when it is about settings of the method's own.
	own bool
	// idle is set when it says that a setting has no effect for want of another one.
	idle bool
}

// note adds what is to be told of the settings that begin with a key.
func (e *Effective) note(key, text string) { e.addNote(key, text, false) }

// noteIdle is note of a setting that has no effect for want of another one.
func (e *Effective) noteIdle(key, text string) { e.addNote(key, text, true) }

func (e *Effective) addNote(key, text string, idle bool) {
	own := slices.ContainsFunc(e.Settings, func(s Setting) bool {
		return s.Level == levelName(atMethod) && (s.Key == key || strings.HasPrefix(s.Key, key+"."))
	})
	e.notes = append(e.notes, note{text: text, own: own, idle: idle})
}

// Limit is a limit of running calls in effect.
type Limit struct {
	// Set is false when no source sets one.
	Set bool
	// Limit is 0 when unlimited.
	Limit int
	Scope Scope
	Mode  Mode
}

// WaitLimit is a limit of running calls in effect over which calls wait.
type WaitLimit struct {
	// Set is false when no source sets one.
	Set bool
	// Limit is 0 when unlimited.
	Limit int
	// Wait is the longest wait, negative for as long as the call has.
	Wait time.Duration
	Mode Mode
	// Declared is set when the provider declared it and the reference has none.
	Declared bool
}

// RateLimit is a limit of calls per interval in effect.
type RateLimit struct {
	// Set is false when no source sets one.
	Set bool
	// Rate is the number of calls per Interval, 0 when unlimited.
	Rate     int
	Interval time.Duration
	// Burst is 0 for as many as Rate. Only the bucket has one, and it is never
	// larger than what comes together in 73 years.
	Burst     int
	Algorithm Algorithm
	Mode      Mode
	// Own is set when the method has a budget of its own; otherwise the methods
	// of the service share one.
	Own bool
}

// maxFill is the longest time that an empty bucket may take to fill, about 73
// years. With a larger burst its figures would not fit.
const maxFill = time.Duration(1) << 61

// burst is the wanted one, or the largest that fills a bucket in time.
func (l RateLimit) burst(wanted int) int {
	if l.Rate == 0 {
		return wanted // there is no bucket
	}
	fills := func(n int) bool { return float64(n)*float64(l.Interval)/float64(l.Rate) <= float64(maxFill) }
	if fills(wanted) {
		return wanted
	}
	n := int(float64(maxFill) / float64(l.Interval) * float64(l.Rate))
	for !fills(n) {
		n--
	}
	return n
}

// Notes are what a user should know of settings that are right, but perhaps not
// what was meant. Each is for one line of the log at start. Methods that share a
// budget have the same ones.
func (e Effective) Notes() []string {
	var texts []string
	for _, n := range e.allNotes() {
		texts = append(texts, n.text)
	}
	return texts
}

// NotesOf are [Effective.Notes] for a log of all methods: those about settings of
// the method's own begin with its name. The rest are the same for every method
// that has none.
func (e Effective) NotesOf(method string) []string {
	var texts []string
	for _, n := range e.allNotes() {
		texts = append(texts, n.of(method))
	}
	return texts
}

// of is the note for a log of all methods.
func (n note) of(method string) string {
	if n.own {
		return "method=" + method + " " + n.text
	}
	return n.text
}

func (e Effective) allNotes() []note {
	var notes []note
	for _, text := range e.tpsNotes() {
		notes = append(notes, note{text: text, own: e.TPS.Own})
	}
	return append(notes, e.notes...)
}

func (e Effective) tpsNotes() []string {
	if !e.TPS.Set || e.TPS.Rate == 0 {
		return nil
	}
	var notes []string
	if e.setting(TPSIntervalKey).Value == "" {
		calls := "calls"
		if e.TPS.Rate == 1 {
			calls = "call"
		}
		notes = append(notes, fmt.Sprintf("%s=%d has no %s: it means %d %s per minute, as in Java Dubbo; write %s or %s: 200/1s to say what is meant",
			TPSKey, e.TPS.Rate, TPSIntervalKey, e.TPS.Rate, calls, TPSIntervalKey, TPSRateKey))
	}
	burst, algorithm := e.setting(TPSBurstKey).Value, e.setting(TPSAlgorithmKey)
	switch {
	case burst == "":
	case algorithm.Level == levelName(atMethod) && e.setting(TPSBurstKey).Level != algorithm.Level:
		// The method has an algorithm of its own and goes without the service's burst.
	case e.TPS.Algorithm != AlgorithmBucket:
		notes = append(notes, fmt.Sprintf("%s=%s has no effect with %s=%s: only a %s has a burst", TPSBurstKey, burst, TPSAlgorithmKey, e.TPS.Algorithm, AlgorithmBucket))
	case burst != strconv.Itoa(e.TPS.Burst):
		notes = append(notes, fmt.Sprintf("%s=%s is taken as %d: at %d per %v more would need over 73 years to come together", TPSBurstKey, burst, e.TPS.Burst, e.TPS.Rate, e.TPS.Interval))
	}
	return notes
}

// setting is that of a key that is there once at most; it is empty for none.
func (e *Effective) setting(name string) Setting {
	for _, s := range e.Settings {
		if s.Key == name {
			return s
		}
	}
	return Setting{}
}
