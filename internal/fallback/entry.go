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

package fallback

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sync"
)

// Call is a failed call, for a function that answers for many methods.
type Call struct {
	// Service is [group/]interface[:version], as in a refusal's resource.
	Service string
	// Method is the method that was called, of a generic call the real one.
	Method string
	// Arguments are those of the method, of a generic call those that were given
	// for it. They must not be changed.
	Arguments []any
	// Cause is the error that the caller gets where the function has no answer.
	Cause error
}

// Shapes says what a fallback looks like.
const Shapes = "func(ctx context.Context, <the method's arguments>, cause error) (T, error) with T as the method returns it, " +
	"or func(ctx context.Context, call weir.FallbackCall) (any, error)"

// Entry is a registered function. It is immutable.
type Entry struct {
	name string
	// general answers for any method; nil where fn is of one method's shape.
	general func(context.Context, Call) (any, error)
	fn      reflect.Value
}

// registry is what Register has put in.
var registry struct {
	sync.RWMutex
	entries map[string]*Entry // guarded by the mutex
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	callType    = reflect.TypeFor[Call]()
	generalType = reflect.TypeFor[func(context.Context, Call) (any, error)]()
)

// off is the name by which the configuration takes a fallback away.
const off = "off"

// isName tells whether the configuration can give a name.
var isName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`).MatchString

// Register makes fn known by a name.
func Register(name string, fn any) error {
	if !isName(name) || name == off {
		return fmt.Errorf("weir: fallback name %q: allowed: 1 to 64 letters, digits, dots, underscores and hyphens, and not %q", name, off)
	}
	e, err := newEntry(name, fn)
	if err != nil {
		return err
	}
	registry.Lock()
	defer registry.Unlock()
	if registry.entries[name] != nil {
		return fmt.Errorf("weir: fallback %q is registered already: allowed: each name once", name)
	}
	if registry.entries == nil {
		registry.entries = map[string]*Entry{}
	}
	registry.entries[name] = e
	return nil
}

// Forget takes a name out again. It is for tests, which run more than once.
func Forget(name string) {
	registry.Lock()
	defer registry.Unlock()
	delete(registry.entries, name)
}

// Find returns the function of that name, nil for none.
func Find(name string) *Entry {
	registry.RLock()
	defer registry.RUnlock()
	return registry.entries[name]
}

// Names are those of all functions, sorted.
func Names() []string {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Sorted(maps.Keys(registry.entries))
}

func newEntry(name string, fn any) (*Entry, error) {
	v := reflect.ValueOf(fn)
	if !v.IsValid() || v.Kind() == reflect.Func && v.IsNil() {
		return nil, fmt.Errorf("weir: fallback %q is nil: allowed: %s", name, Shapes)
	}
	t := v.Type()
	if problem := wrongShape(t); problem != "" {
		return nil, fmt.Errorf("weir: fallback %q is a %v: %s; allowed: %s", name, t, problem, Shapes)
	}
	e := &Entry{name: name, fn: v}
	if t.ConvertibleTo(generalType) {
		e.general, _ = v.Convert(generalType).Interface().(func(context.Context, Call) (any, error))
	}
	return e, nil
}

// wrongShape says what is wrong with the type of a function, "" for nothing.
func wrongShape(t reflect.Type) string {
	switch {
	case t.Kind() != reflect.Func:
		return "that is no function"
	case t.ConvertibleTo(generalType):
		return ""
	case t.IsVariadic():
		return "it takes a variable number of arguments"
	case t.NumIn() == 0 || t.In(0) != contextType:
		return "its first argument is not a context.Context"
	case slices.ContainsFunc(slices.Collect(inputs(t)), func(in reflect.Type) bool { return in == callType }):
		return "it takes a weir.FallbackCall, so it takes that and a context only, and returns (any, error)"
	case t.NumIn() < 2 || t.In(t.NumIn()-1) != errorType:
		return "its last argument is not the error that it answers in place of"
	case t.NumOut() != 2 || t.Out(1) != errorType:
		return "it does not return an answer and an error"
	case t.Out(0) == errorType:
		return "what it answers is an error"
	}
	return ""
}

func inputs(t reflect.Type) func(func(reflect.Type) bool) {
	return func(yield func(reflect.Type) bool) {
		for i := range t.NumIn() {
			if !yield(t.In(i)) {
				return
			}
		}
	}
}

// ErrMisfit is that of a function whose shape is not that of the method that it
// was to answer for. Its answer, if it was called, is not used.
var ErrMisfit = errors.New("the function does not fit the method")

// Panic is the error of a function that panicked.
type Panic struct {
	Value any
	Stack []byte
}

// Error tells what it panicked with.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Error is what the caller gets when the fallback has failed as well. It is both
// errors, that of the call first.
type Error struct {
	Name string
	// Cause is the call's error.
	Cause error
	// Err is the fallback's.
	Err error
}

// Error has the texts of both.
func (e *Error) Error() string {
	return fmt.Sprintf("weir: fallback %q failed: %v; it stood in for: %v", e.Name, e.Err, e.Cause)
}

// Unwrap is the call's error and the fallback's.
func (e *Error) Unwrap() []error { return []error{e.Cause, e.Err} }
