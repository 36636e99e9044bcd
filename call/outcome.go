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
	"fmt"
	"slices"
	"strings"
)

// Outcome is how a call ended. Every permit that a guard gives ends in exactly
// one of them.
type Outcome uint8

const (
	// Success is an answer. A business error is an answer too, unless
	// configured otherwise.
	Success Outcome = iota
	// Failure is a system error: a panic, a broken transport, a system code.
	Failure
	// Timeout is a call that ended after its deadline. On a dubbo-protocol
	// provider that is an answer given later than the timeout attachment allows.
	Timeout
	// Rejected is a call that a guard of this process refused.
	Rejected
	// Forwarded is a call that ran here and passes on a refusal that was made
	// further down.
	Forwarded
	// Cancelled is a call that its caller gave up.
	Cancelled
	// Dropped is a permit that was given back without the call having run,
	// because a later guard refused it.
	Dropped

	// OutcomeCount is the number of outcomes, for arrays indexed by Outcome.
	OutcomeCount = int(Dropped) + 1
)

var outcomeNames = [OutcomeCount]string{
	"success", "failure", "timeout", "rejected", "forwarded", "cancelled", "dropped",
}

// String is the outcome as it stands in a metric's label.
func (o Outcome) String() string {
	if int(o) < OutcomeCount {
		return outcomeNames[o]
	}
	return "unknown"
}

// MarshalText has an outcome encode as its name. One that there is not is an error.
func (o Outcome) MarshalText() ([]byte, error) {
	if int(o) >= OutcomeCount {
		return nil, fmt.Errorf("outcome is %d, allowed are 0 to %d", o, OutcomeCount-1)
	}
	return []byte(outcomeNames[o]), nil
}

// UnmarshalText reads a name. Any other text is an error and changes nothing.
func (o *Outcome) UnmarshalText(text []byte) error {
	i := slices.Index(outcomeNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("outcome is %q, allowed are %s", text, strings.Join(outcomeNames[:], ", "))
	}
	*o = Outcome(i)
	return nil
}

// Ran reports whether a call of this outcome reached the code behind the guard.
func (o Outcome) Ran() bool { return o != Rejected && o != Dropped }
