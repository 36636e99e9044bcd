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

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/example/limits/internal/control"
)

// kept are rows of trials whose limits were kept.
var kept = map[string]row{
	"executes 5": {
		admitted: 5, peak: 5, answered: 5, typed: 35, reasons: map[string]int{"executes concurrency": 35},
		minHits: 1, maxHits: 1,
	},
	"executes 20, 2nd method": {
		admitted: 20, peak: 20, answered: 20, typed: 20, reasons: map[string]int{"executes concurrency": 20},
		minHits: 1, maxHits: 1,
	},
	"actives 4": {
		admitted: 40, peak: 4, waited: 36, answered: 40,
	},
	"actives 4, wait 100ms": {
		admitted: 4, peak: 4, waited: 36, answered: 4, typed: 36, reasons: map[string]int{"actives wait-timeout": 36},
		minWaited: 100 * time.Millisecond,
	},
	"tps 10/h, provider": {
		admitted: 10, peak: 3, answered: 10, typed: 30, reasons: map[string]int{"tps rate": 30},
		minHits: 1, maxHits: 1, minRetry: time.Hour - time.Second, maxRetry: time.Hour,
	},
	"tps 10/h, consumer": {
		admitted: 10, peak: 3, answered: 10, typed: 30, reasons: map[string]int{"tps rate": 30},
		minRetry: time.Hour - time.Second, maxRetry: time.Hour,
	},
}

// TestCheck proves that each expectation can fail.
func TestCheck(t *testing.T) {
	trials := make(map[string]trial)
	for _, s := range sets {
		for _, tr := range s.trials {
			trials[tr.title] = tr
		}
	}
	check := func(title string, r row) string {
		r.trial = trials[title]
		var all []string
		for _, err := range r.check(protocols[0]) {
			all = append(all, err.Error())
		}
		return strings.Join(all, "\n")
	}
	for title := range trials {
		if got := check(title, kept[title]); got != "" {
			t.Errorf("%s, which was kept: got %q, want nothing", title, got)
		}
	}

	for _, tc := range []struct {
		trial, name string
		change      func(*row)
		want        string
	}{
		{"executes 5", "above the limit", func(r *row) { r.peak = 6 }, "at most 6 calls were in the handler"},
		{"executes 5", "below the limit", func(r *row) { r.peak = 4 }, "at most 4 calls were in the handler"},
		{"executes 5", "admitted later", func(r *row) { r.admitted, r.answered, r.typed = 6, 6, 34 }, "6 calls were admitted"},
		{"executes 5", "waited", func(r *row) { r.waited = 1 }, "1 calls waited, want 0"},
		{"executes 5", "lost call", func(r *row) { r.typed = 34 }, "5 admitted and 34 refused"},
		{"executes 5", "lost answer", func(r *row) { r.answered, r.typed = 4, 36 }, "5 calls were admitted and 4 answered"},
		{"executes 5", "untyped refusal", func(r *row) { r.typed, r.failed = 34, 1 }, "34 of 35 refusals arrived typed"},
		{"executes 5", "empty success", func(r *row) { r.typed, r.empty = 34, 1 }, "1 calls ended with neither"},
		{"executes 5", "other guard", func(r *row) { r.reasons = map[string]int{"tps rate": 35} }, "refusals by guard"},
		{"executes 5", "retried", func(r *row) { r.maxHits = 3 }, "1 to 3 times each"},
		{"executes 5", "not counted", func(r *row) { r.minHits = 0 }, "0 to 1 times each"},
		{"executes 20, 2nd method", "limit of another method", func(r *row) { r.admitted, r.peak = 5, 5 }, "5 calls were admitted, want exactly 20"},

		{"actives 4", "above the limit", func(r *row) { r.peak = 40 }, "at most 40 calls were in the handler"},
		{"actives 4", "below the limit", func(r *row) { r.peak = 3 }, "at most 3 calls were in the handler"},
		{"actives 4", "refused", func(r *row) { r.admitted, r.answered, r.typed = 39, 39, 1 }, "39 calls were admitted, want exactly 40"},
		{"actives 4", "lost", func(r *row) { r.answered, r.failed = 39, 1 }, "40 calls were admitted and 39 answered"},
		{"actives 4", "did not wait", func(r *row) { r.waited = 35 }, "35 calls waited, want 36"},
		{"actives 4", "out of order", func(r *row) { r.mixed = true }, "in another order"},

		{"actives 4, wait 100ms", "above the limit", func(r *row) { r.peak = 5 }, "at most 5 calls were in the handler"},
		{"actives 4, wait 100ms", "admitted later", func(r *row) { r.admitted, r.answered, r.typed = 5, 5, 35 }, "5 calls were admitted"},
		{"actives 4, wait 100ms", "did not wait", func(r *row) { r.waited = 35 }, "35 calls waited, want 36"},
		{"actives 4, wait 100ms", "not long enough", func(r *row) { r.minWaited = 99 * time.Millisecond }, "after a wait of 99ms"},
		{"actives 4, wait 100ms", "other reason", func(r *row) { r.reasons = map[string]int{"actives concurrency": 36} }, "want all by actives wait-timeout"},
		{"actives 4, wait 100ms", "sent all the same", func(r *row) { r.maxHits = 1 }, "0 to 1 times each"},

		{"tps 10/h, provider", "above the limit", func(r *row) { r.admitted, r.answered, r.typed = 11, 11, 29 }, "11 calls were admitted"},
		{"tps 10/h, provider", "below the limit", func(r *row) { r.admitted, r.answered, r.typed = 9, 9, 31 }, "9 calls were admitted"},
		{"tps 10/h, provider", "untyped refusal", func(r *row) { r.typed, r.failed = 29, 1 }, "29 of 30 refusals arrived typed"},
		{"tps 10/h, provider", "retried", func(r *row) { r.minHits, r.maxHits = 3, 3 }, "3 times each, want 1"},
		{"tps 10/h, provider", "no time", func(r *row) { r.minRetry = 0 }, "try again after 0s"},
		{"tps 10/h, provider", "too late", func(r *row) { r.maxRetry = 2 * time.Hour }, "to 2h0m0s, want"},
		{"tps 10/h, consumer", "sent all the same", func(r *row) { r.minHits, r.maxHits = 1, 1 }, "1 times each, want 0"},
		{"tps 10/h, consumer", "other guard", func(r *row) { r.reasons = map[string]int{"executes concurrency": 30} }, "want all by tps rate"},
	} {
		t.Run(tc.trial+"/"+tc.name, func(t *testing.T) {
			r := kept[tc.trial]
			tc.change(&r)
			if got := check(tc.trial, r); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q in it", got, tc.want)
			}
		})
	}
}

// TestOrder proves that calls which overtake others are seen.
func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		entered string
		mixed   bool
	}{
		{"SayHello-1 SayHello-2 SayHello-10", false},
		{"SayHello-1 SayHello-10 SayHello-2", true},
	} {
		var r row
		r.count(sight{inside: control.ProviderStatus{Entered: strings.Fields(tc.entered)}})
		if r.mixed != tc.mixed {
			t.Errorf("%s: got mixed %t, want %t", tc.entered, r.mixed, tc.mixed)
		}
	}
}
