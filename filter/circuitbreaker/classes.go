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

package circuitbreaker

import (
	"strings"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/breaker"
)

// defaults are what an outcome is to a breaker.
var defaults = [call.OutcomeCount]breaker.Result{
	call.Success:   breaker.Success,
	call.Failure:   breaker.Failure,
	call.Timeout:   breaker.Timeout,
	call.Cancelled: breaker.Ignored,
	call.Rejected:  breaker.Refused,
	call.Forwarded: breaker.Refused,
	call.Dropped:   breaker.Refused,
}

// business is the word for an error that is an answer.
const business = "business"

// classes are the words of breaker.failures and breaker.ignore: outcomes, codes of
// Triple, and exception classes or packages of them.
type classes struct {
	fails map[string]bool // false for those to ignore
}

// newClasses returns nil when there are no words.
func newClasses(failures, ignore []string) *classes {
	if len(failures)+len(ignore) == 0 {
		return nil
	}
	c := &classes{fails: map[string]bool{}}
	for _, w := range ignore {
		c.fails[w] = false
	}
	for _, w := range failures {
		c.fails[w] = true
	}
	return c
}

// result is what a call counts as.
func (c *classes) result(o call.Outcome, err error) breaker.Result {
	fails, known := false, false
	if c != nil {
		fails, known = c.find(o, err)
	}
	switch {
	case !known:
		return byDefault(o, err)
	case !fails:
		return breaker.Ignored
	case o == call.Timeout:
		return breaker.Timeout
	}
	return breaker.Failure
}

// exhausted is Triple's code for a refusal by whoever is full, without Weir too.
const exhausted = "resource_exhausted"

func byDefault(o call.Outcome, err error) breaker.Result {
	if o == call.Failure && err != nil {
		if _, code := guard.ErrorKind(err); code == exhausted {
			return breaker.Refused
		}
	}
	return defaults[o]
}

// find looks for the most exact word: the class, its packages from the inside out,
// the code, the outcome.
func (c *classes) find(o call.Outcome, err error) (fails, known bool) {
	if err != nil {
		class, code := guard.ErrorKind(err)
		if fails, known = c.class(class); known {
			return fails, true
		}
		if fails, known = c.fails[code]; known {
			return fails, true
		}
	}
	name := o.String()
	if o == call.Success {
		if err == nil {
			return false, false
		}
		name = business
	}
	fails, known = c.fails[name]
	return fails, known
}

func (c *classes) class(class string) (fails, known bool) {
	if class == "" {
		return false, false
	}
	if fails, known = c.fails[class]; known {
		return fails, true
	}
	for i := strings.LastIndexByte(class, '.'); i > 0; i = strings.LastIndexByte(class[:i], '.') {
		if fails, known = c.fails[class[:i]+".*"]; known {
			return fails, true
		}
	}
	return false, false
}
