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

package weir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/internal/fallback"
)

// The Go of docs/fallback.md stands in this file, and TestTheGoOfTheDocsIsTested
// compares the two.

// What the snippets call, as generated from a service's definition.
type (
	HelloRequest = helloRequest
	HelloReply   = helloReply
)

// A function of the method's own shape.
func ExampleRegisterFallback() {
	defer fallback.Forget("greet-plainly")
	err := weir.RegisterFallback("greet-plainly", func(ctx context.Context, request *HelloRequest, cause error) (*HelloReply, error) {
		return &HelloReply{Greeting: "Welcome, " + request.Name}, nil
	})
	fmt.Println(err)
	// A name is registered once.
	fmt.Println(weir.RegisterFallback("greet-plainly", func(ctx context.Context, cause error) (string, error) { return "", cause }))
	// Output:
	// <nil>
	// weir: fallback "greet-plainly" is registered already: allowed: each name once
}

// One function for many methods.
func ExampleRegisterFallback_manyMethods() {
	defer fallback.Forget("nothing")
	err := weir.RegisterFallback("nothing", func(ctx context.Context, failed weir.FallbackCall) (any, error) {
		if failed.Method == "ListFriends" {
			return []string{}, nil
		}
		return nil, failed.Cause // no answer: the caller gets the call's own error
	})
	fmt.Println(err)
	// Output:
	// <nil>
}

// A caller who wants to know who answered tracks its context.
func ExampleTrackFallback() {
	defer log.SetOutput(os.Stderr)
	log.SetOutput(os.Stdout)
	ctx, greeter, request := context.Background(), stub{}, &helloRequest{}

	ctx = weir.TrackFallback(ctx)
	reply, err := greeter.SayHello(ctx, request)
	if name, ok := weir.AnsweredByFallback(ctx); ok {
		log.Printf("%s answered in place of the greeter", name)
	}
	fmt.Println(reply.Greeting, err)
	// Output:
	// Hello <nil>
}

type cacheError struct{}

func (*cacheError) Error() string { return "the cache is empty" }

func why(err error) string {
	var gone *cacheError
	if errors.As(err, &gone) && weir.IsRejected(err) {
		return "refused, and not in the cache"
	}
	return "failed"
}

// When the fallback has no answer either, its error and the call's are both there.
func ExampleRegisterFallback_error() {
	both := fmt.Errorf("%w; %w", fullProvider, &cacheError{})
	fmt.Println(why(both), errors.Is(both, call.ErrRejected))
	fmt.Println(why(fullProvider))
	// Output:
	// refused, and not in the cache true
	// failed
}
