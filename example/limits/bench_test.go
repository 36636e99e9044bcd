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
)

// TestCheck proves that each expectation can fail.
func TestCheck(t *testing.T) {
	kept := row{
		method: "SayHello", limit: 5,
		admitted: 5, peak: 5, answered: 5, typed: 35,
		guards:  map[string]int{"executes": 35},
		minHits: 1, maxHits: 1,
	}
	if broken := kept.check(protocols[0]); len(broken) != 0 {
		t.Errorf("a limit that was kept: got %v, want nothing", broken)
	}

	for _, tc := range []struct {
		name   string
		change func(*row)
		want   string
	}{
		{"above the limit", func(r *row) { r.peak = 6 }, "greatest concurrency in the handler was 6"},
		{"below the limit", func(r *row) { r.peak = 4 }, "greatest concurrency in the handler was 4"},
		{"admitted later", func(r *row) { r.admitted, r.answered, r.typed = 6, 6, 34 }, "6 calls were admitted"},
		{"lost call", func(r *row) { r.typed = 34 }, "5 admitted and 34 refused"},
		{"lost answer", func(r *row) { r.answered, r.typed = 4, 36 }, "5 calls were admitted and 4 answered"},
		{"untyped refusal", func(r *row) { r.typed, r.failed = 34, 1 }, "34 of 35 refusals arrived typed"},
		{"other guard", func(r *row) { r.guards = map[string]int{"executes": 34, "tps": 1} }, "refusals by guard"},
		{"empty success", func(r *row) { r.typed, r.empty = 34, 1 }, "1 calls ended with neither"},
		{"retried", func(r *row) { r.maxHits = 3 }, "1 to 3 times each"},
		{"not counted", func(r *row) { r.minHits = 0 }, "0 to 1 times each"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := kept
			tc.change(&r)
			var all []string
			for _, err := range r.check(protocols[0]) {
				all = append(all, err.Error())
			}
			if got := strings.Join(all, "\n"); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q in it", got, tc.want)
			}
		})
	}
}
