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
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errCore = errors.New("a core's sentinel")

func refusal() *RejectError {
	return NewRejectError(RejectError{
		Guard: "executes", Resource: Resource("g/greet.GreetService:1.0", "SayHello"), Reason: ReasonConcurrency,
		Limit: 10, Observed: 11, RetryAfter: 250 * time.Millisecond,
	}, errCore)
}

func TestRejectErrorText(t *testing.T) {
	assert.Equal(t,
		"weir: call refused: guard=executes resource=g/greet.GreetService:1.0#SayHello reason=concurrency limit=10 observed=11 retry-after=250ms",
		refusal().Error())
	assert.Equal(t,
		`weir: call refused: guard=g resource="a b#*" reason="" limit=-1 observed=0 forwarded=true`,
		(&RejectError{Guard: "g", Resource: "a b#*", Limit: -1, Forwarded: true}).Error())
}

func TestRejectErrorIsAsUnwrap(t *testing.T) {
	e := refusal()
	for name, err := range map[string]error{
		"itself":  e,
		"wrapped": fmt.Errorf("upstream: %w", e),
		"joined":  errors.Join(errors.New("other"), fmt.Errorf("x: %w", e)),
	} {
		require.ErrorIs(t, err, ErrRejected, name)
		require.ErrorIs(t, err, errCore, name)
		got, ok := As(err)
		require.True(t, ok, name)
		assert.Same(t, e, got, name)
		var target *RejectError
		require.ErrorAs(t, err, &target, name)
		assert.Same(t, e, target, name)
	}
	assert.Equal(t, errCore, errors.Unwrap(e))
	assert.NotErrorIs(t, e, errors.New("a core's sentinel"), "another error of the same text")

	bare := &RejectError{Guard: "executes"}
	require.ErrorIs(t, bare, ErrRejected)
	require.NoError(t, bare.Unwrap(), "one that came over the wire has no cause")
}

func TestAsFindsNone(t *testing.T) {
	for _, err := range []error{nil, errors.New("x"), ErrRejected, errors.New("says " + refusal().Error()), errors.New(refusal().Error())} {
		e, ok := As(err)
		assert.False(t, ok)
		assert.Nil(t, e)
	}
}

// A handler's `var e *RejectError; return e` is an error that is not nil.
// Looking at it matched ErrRejected, and then dereferenced it.
func TestRegression_TypedNilIsNoRefusal(t *testing.T) {
	var none *RejectError
	var err error = none
	assert.NotErrorIs(t, err, ErrRejected)
	assert.NotErrorIs(t, fmt.Errorf("x: %w", err), errCore)
	_, ok := As(err)
	assert.False(t, ok)
	_, ok = As(fmt.Errorf("x: %w", err))
	assert.False(t, ok)
}

func TestNewRejectErrorCopies(t *testing.T) {
	value := RejectError{Guard: "executes", Limit: 1}
	e := NewRejectError(value, nil)
	value.Limit = 2
	assert.Equal(t, int64(1), e.Limit)
	assert.NoError(t, errors.Unwrap(e))
}

func TestAsForwarded(t *testing.T) {
	e := refusal()
	f := e.AsForwarded()
	assert.False(t, e.Forwarded, "the original is shared and stays as it is")
	assert.True(t, f.Forwarded)
	require.ErrorIs(t, f, errCore)
	f2 := *f
	f2.Forwarded = false
	assert.Equal(t, *e, f2, "all else is kept")
	assert.Same(t, f, f.AsForwarded(), "and stays one refusal on its way up")
}

func TestResource(t *testing.T) {
	for _, tt := range []struct{ resource, service, method string }{
		{"greet.GreetService#SayHello", "greet.GreetService", "SayHello"},
		{"g/greet.GreetService:1.0#*", "g/greet.GreetService:1.0", AnyMethod},
		{"team#1/greet.GreetService#SayHello", "team#1/greet.GreetService", "SayHello"}, // groups are free text
		{"greet.GreetService", "greet.GreetService", ""},
		{"#SayHello", "", "SayHello"},
		{"a#", "a", ""},
		{"", "", ""},
	} {
		service, method := SplitResource(tt.resource)
		assert.Equal(t, tt.service, service, tt.resource)
		assert.Equal(t, tt.method, method, tt.resource)
		e := &RejectError{Resource: tt.resource}
		assert.Equal(t, tt.service, e.Service(), tt.resource)
		assert.Equal(t, tt.method, e.Method(), tt.resource)
	}
	service, method := SplitResource(Resource("g/a.B:1", "m"))
	assert.Equal(t, "g/a.B:1", service)
	assert.Equal(t, "m", method)
}
