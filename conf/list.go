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
	"errors"
	"fmt"
	"slices"
	"strings"
)

// valueError is what is wrong with a part of a value.
type valueError struct {
	problem, allowed string
	// at is the word of a list that it is about, -1 for all of it.
	at int
}

func (e *valueError) Error() string { return e.problem + "; allowed: " + e.allowed }

// because puts what err says more exactly than that the value is wrong, and what
// else is to be said of it.
func (f *Fault) because(err error, also string) {
	f.Problem = also
	var v *valueError
	if !errors.As(err, &v) {
		return
	}
	f.Problem, f.Allowed = v.problem, v.allowed
	if also != "" {
		f.Problem += "; " + also
	}
}

// listRow is the row of a list of words.
func listRow(k key, at func(*Policies) *[]string, get func(*Policies) []string) *key {
	k.kind = "list"
	k.set = setter(func(s string) ([]string, error) { return k.list(splitWords(s)) }, func(p *Policies, words []string) { *at(p) = words })
	k.get = func(p *Policies) (string, bool) {
		words := get(p)
		return joinWords(words), words != nil
	}
	return &k
}

// splitWords parts a list at its commas, around which spaces may stand.
func splitWords(s string) []string {
	if s == "" {
		return nil
	}
	words := strings.Split(s, ",")
	for i := range words {
		if i > 0 {
			words[i] = strings.TrimLeft(words[i], " ")
		}
		if i < len(words)-1 {
			words[i] = strings.TrimRight(words[i], " ")
		}
	}
	return words
}

// joinWords is the text of a list. A word that is none, because it would be read
// as another or as several, is put in quotes and so stays wrong.
func joinWords(words []string) string {
	quoted := slices.Clone(words)
	for i, w := range quoted {
		if strings.Contains(w, ",") || strings.Trim(w, " ") != w {
			quoted[i] = fmt.Sprintf("%q", w)
		}
	}
	return strings.Join(quoted, ",")
}

// list checks the words of a list.
func (k *key) list(words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, &valueError{"the list is empty", k.allowed, -1}
	}
	for i, w := range words {
		switch {
		case w == "":
			return nil, &valueError{"a word of the list is empty", k.allowed, i}
		case slices.Contains(words[:i], w):
			return nil, &valueError{fmt.Sprintf("%q stands in the list twice", shorten(w)), "once", i}
		case !slices.Contains(k.words, w) && (k.other == nil || !k.other(w)):
			allowed := k.allowed
			if near := nearest(w, k.words); near != "" {
				allowed = "did you mean " + near + "? all: " + allowed
			}
			return nil, &valueError{fmt.Sprintf("%q is not a word of this list", shorten(w)), allowed, i}
		}
	}
	return words, nil
}

// apartFrom turns down a value with a word that stands in the other list too.
func (k *key) apartFrom(p *Policies, value string) error {
	text, ok := keyNamed(k.apart).get(p)
	if !ok {
		return nil
	}
	others := splitWords(text)
	for i, w := range splitWords(value) {
		if slices.Contains(others, w) {
			return &valueError{fmt.Sprintf("%q stands in %s too", shorten(w), k.apart), "in one of the two", i}
		}
	}
	return nil
}
