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
	"regexp"
	"strings"
)

const (
	allowedName = "a name of 1 to 64 letters, digits, dots, underscores and hyphens, not true or false; or off"
	allowedOn   = "a list of breaker, refused, failure and timeout"

	namePattern = `^[A-Za-z0-9._-]{1,64}$`
	noName      = `^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$`
)

var isName = regexp.MustCompile(namePattern).MatchString

// fallbackKeys answer calls that got no answer.
var fallbackKeys = []*key{
	{
		name: FallbackKey, sides: []Side{Consumer}, levels: anywhere, plain: "name",
		kind: "name", allowed: allowedName, def: "none",
		doc: "Name under which the program registered the function that answers for a call that was refused or failed. off takes it away here, although a wider level sets one.",
		set: setter(parseName, func(p *Policies, s string) { made(&p.Fallback).Name = s }),
		get: func(p *Policies) (string, bool) { return word(or(p.Fallback).Name) },
	},
	listRow(key{
		name: FallbackOnKey, sides: []Side{Consumer}, levels: anywhere,
		allowed: allowedOn, def: "refused,failure",
		doc:   "What the function answers for: an open breaker (breaker), any refusal, an open breaker's included (refused), a timeout (timeout), any failure, timeouts included (failure).",
		words: []string{"breaker", "refused", "failure", "timeout"},
	}, func(p *Policies) *[]string { return &made(&p.Fallback).On }, func(p *Policies) []string { return or(p.Fallback).On }),
}

// parseName reads a name. true and false would hardly be meant as one.
func parseName(s string) (string, error) {
	if !isName(s) || strings.EqualFold(s, "true") || strings.EqualFold(s, "false") {
		return "", errValue
	}
	return s, nil
}

// Fallback answers calls that got no answer.
type Fallback struct {
	// Name is that of a function, or off. Empty is not set.
	Name string
	// On are the words for what it answers. nil is not set.
	On []string
}

// FallbackOff is the name that takes away what a wider level sets.
const FallbackOff = "off"

// FallbackPolicy is a fallback in effect.
type FallbackPolicy struct {
	// Name is that of the function, empty for none.
	Name string
	// On is what it answers for.
	On FallbackOn
}

// FallbackOn is a set of what a fallback answers for.
type FallbackOn uint8

const (
	// OnBreaker are refusals of an open breaker.
	OnBreaker FallbackOn = 1 << iota
	// OnRefusal are all refusals. A set that has it has OnBreaker too.
	OnRefusal
	// OnTimeout are timeouts.
	OnTimeout
	// OnFailure are all failures. A set that has it has OnTimeout too.
	OnFailure
)

// Has reports whether all of o are in the set.
func (s FallbackOn) Has(o FallbackOn) bool { return s&o == o }

func fallbackOn(words []string) FallbackOn {
	if words == nil {
		words = []string{"refused", "failure"}
	}
	var s FallbackOn
	for _, w := range words {
		switch w {
		case "breaker":
			s |= OnBreaker
		case "refused":
			s |= OnRefusal | OnBreaker
		case "timeout":
			s |= OnTimeout
		case "failure":
			s |= OnFailure | OnTimeout
		}
	}
	return s
}

func (r *resolver) fallback(e *Effective) {
	var p Policies
	r.apply(e, FallbackKey, &p, anywhere)
	r.apply(e, FallbackOnKey, &p, anywhere)
	f := or(p.Fallback)
	if f.Name != "" && f.Name != FallbackOff {
		e.Fallback = FallbackPolicy{Name: f.Name, On: fallbackOn(f.On)}
	}
	if on := e.setting(FallbackOnKey); f.Name == "" && on.Value != "" && !r.setBelow(on.Level, FallbackKey) {
		e.noteIdle(FallbackKey, FallbackOnKey+"="+on.Value+" has no effect without "+FallbackKey)
	}
}
