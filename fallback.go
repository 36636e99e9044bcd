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

package weir

import (
	"context"

	"github.com/weir-go/weir/internal/fallback"
)

// FallbackCall is a failed call, for a function that answers for many methods.
type FallbackCall = fallback.Call

// RegisterFallback makes a function known by a name, under which a consumer's
// configuration (`fallback: name`, for a method, a reference or all references)
// has it answer in place of an error.
//
// The function takes the arguments that callers of the method give, after the
// context and before the error that it answers in place of, and returns what the
// method returns:
//
//	func(ctx context.Context, request *greet.HelloRequest, cause error) (*greet.HelloReply, error)
//
// for a generated Triple stub, func(context.Context, string, int, error) (*User, error)
// for a method of the dubbo protocol. One function for many methods, and for generic
// calls, is a func(context.Context, [FallbackCall]) (any, error).
//
// It runs on the goroutine of the call, once, after all of the call's tries, with
// the call's context, whose deadline may have passed. It does not run for a call
// that its caller has cancelled, for a business error, a stream or an asynchronous
// call. A protobuf message that it returns is copied; other answers are shared as an
// assignment shares them. An error that it returns reaches the caller together with
// the call's own. If it panics, or does not fit the method, the caller gets the
// call's own error.
//
// A name is 1 to 64 letters, digits, dots, underscores and hyphens, not "off", and is
// registered once. It may be called at any time, before the first call that needs
// the function. It is safe for concurrent use.
func RegisterFallback(name string, fn any) error { return fallback.Register(name, fn) }

// TrackFallback returns a context that remembers whether a fallback answered a call
// that was made with it; see [AnsweredByFallback]. Several calls may be made with
// it, also at the same time: it then tells whether any of them was, and which
// fallback answered last. To tell calls apart make a context for each. What a context
// made of a tracked one remembers, the outer one remembers too. Calls that a fallback
// makes itself are not among them.
func TrackFallback(ctx context.Context) context.Context { return fallback.Track(ctx) }

// AnsweredByFallback tells after a call which fallback answered it, false for none
// or where ctx is not of [TrackFallback].
func AnsweredByFallback(ctx context.Context) (name string, ok bool) { return fallback.AnsweredBy(ctx) }
