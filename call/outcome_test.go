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

package call

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOutcome(t *testing.T) {
	for _, tt := range []struct {
		o    Outcome
		text string
		ran  bool
	}{
		{Success, "success", true},
		{Failure, "failure", true},
		{Timeout, "timeout", true},
		{Rejected, "rejected", false},
		{Forwarded, "forwarded", true},
		{Cancelled, "cancelled", true},
		{Dropped, "dropped", false},
	} {
		assert.Equal(t, tt.text, tt.o.String())
		assert.Equal(t, tt.ran, tt.o.Ran(), tt.text)
	}
	assert.Equal(t, 7, OutcomeCount, "a new outcome needs a line above")
	assert.Equal(t, "unknown", Outcome(OutcomeCount).String())
	assert.Equal(t, "unknown", Outcome(255).String())
	assert.Equal(t, Success, Outcome(0), "the zero value is no failure")
}

func TestOutcomeNamesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for o := range OutcomeCount {
		name := Outcome(o).String()
		assert.NotEmpty(t, name)
		assert.False(t, seen[name], name)
		seen[name] = true
	}
}
