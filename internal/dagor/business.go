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
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// ErrLabels is wrapped by what [NewBusinessTable] and [NewLabeller] say of what is not to be
// gone by.
var ErrLabels = errors.New("weir: labels")

// Subject is what has a business level: a method of a service, a whole service where
// Method is "", or an action of the business that the entry names by itself, alone in a
// table and beside a service and a method in a call. The case of the first letter of a method
// does not matter: Java writes sayHello where Go writes SayHello.
type Subject struct {
	Service, Method, Action string
}

func (s Subject) String() string {
	switch {
	case s.Action != "":
		return fmt.Sprintf("action %q", s.Action)
	case s.Method != "":
		return fmt.Sprintf("method %q of service %q", s.Method, s.Service)
	}
	return fmt.Sprintf("service %q", s.Service)
}

// BusinessTable has the business levels of subjects. It is immutable. The nil table and
// the zero one have none.
type BusinessTable struct {
	actions map[string]uint8
	// cells are a hash table with linear probing, of services and of methods, these in both
	// spellings so that no lookup has to build one. At least half of the cells are
	// free. A map of maps takes twice the time, which every call would pay that comes in.
	cells []levelCell
}

type levelCell struct {
	service, method string // both "" in a free one
	level           uint8
}

// NewBusinessTable returns the table of these levels, 0 to 255. The error wraps
// [ErrLabels] and names all entries that are wrong.
func NewBusinessTable(levels map[Subject]int) (*BusinessTable, error) {
	t := &BusinessTable{
		actions: map[string]uint8{},
		cells:   make([]levelCell, 2<<bits.Len(uint(2*len(levels)))), // a method takes two
	}
	var bad []string
	for s, level := range levels {
		if why := t.add(s, level); why != "" {
			bad = append(bad, fmt.Sprintf("%v: %s", s, why))
		}
	}
	if len(bad) == 0 {
		return t, nil
	}
	slices.Sort(bad) // a map has no order, but messages should have one
	errs := make([]error, 0, len(bad))
	for _, b := range bad {
		errs = append(errs, fmt.Errorf("%w: %s", ErrLabels, b))
	}
	return nil, errors.Join(errs...)
}

// add returns what is wrong with an entry, "" for nothing.
func (t *BusinessTable) add(s Subject, level int) string {
	switch {
	case level < 0 || level >= Businesses:
		return fmt.Sprintf("business level %d, want 0 to %d", level, Businesses-1)
	case s.Action != "" && (s.Service != "" || s.Method != ""):
		return "an action stands for itself, without a service and a method"
	case s.Action != "":
		t.actions[s.Action] = uint8(level)
		return ""
	case s.Service == "":
		return "the name of the service is empty"
	}
	c := t.cell(s.Service, s.Method)
	if c.service != "" {
		return "the method stands here twice (the case of its first letter does not matter)"
	}
	*c = levelCell{s.Service, s.Method, uint8(level)}
	if s.Method != "" {
		other := otherCase(s.Method)
		*t.cell(s.Service, other) = levelCell{s.Service, other, uint8(level)}
	}
	return ""
}

// cell is that of a service, where method is "", or of a method of it, or the free one
// where it would be.
func (t *BusinessTable) cell(service, method string) *levelCell {
	last := uint64(len(t.cells) - 1)
	i := hashText(service)
	if method != "" {
		i += bits.RotateLeft64(hashText(method), 32)
	}
	for ; ; i++ {
		if c := &t.cells[i&last]; c.service == "" || c.method == method && c.service == service {
			return c
		}
	}
}

// otherCase is the other spelling of a method, itself where there is none.
func otherCase(method string) string {
	if c := method[0] | ' '; 'a' <= c && c <= 'z' {
		return string([]byte{method[0] ^ ' '}) + method[1:]
	}
	return method
}

// Level is the business level of a call: that of its action, or else that of its method, or
// else that of its service. It reports false, and the least important level, for a call
// that has none.
func (t *BusinessTable) Level(call Subject) (uint8, bool) {
	if t == nil {
		return Businesses - 1, false
	}
	if call.Action != "" {
		if level, ok := t.actions[call.Action]; ok {
			return level, true
		}
	}
	if len(t.cells) == 0 || call.Service == "" {
		return Businesses - 1, false
	}
	if call.Method != "" {
		if c := t.cell(call.Service, call.Method); c.service != "" {
			return c.level, true
		}
	}
	if c := t.cell(call.Service, ""); c.service != "" {
		return c.level, true
	}
	return Businesses - 1, false
}
