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
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

// The Go of docs/refusals.md stands in this file, and TestTheGoOfTheDocsIsTested
// compares the two.

// What the snippets call: a stub, its messages and a refusal of each guard.
type (
	helloRequest struct{ Name string }
	helloReply   struct{ Greeting string }
	stub         struct{ err error }
	replies      struct{ err error }
)

func (s stub) SayHello(context.Context, *helloRequest) (*helloReply, error) {
	return &helloReply{Greeting: "Hello"}, s.err
}

func (replies) Recv() bool       { return false }
func (replies) Msg() *helloReply { return nil }
func (r replies) Err() error     { return r.err }

var (
	fullProvider = call.NewRejectError(call.RejectError{
		Guard: "executes", Resource: "greet.GreetService#SayHello", Reason: call.ReasonConcurrency, Limit: 10, Observed: 10,
	}, nil)
	overRate = call.NewRejectError(call.RejectError{
		Guard: "tps", Resource: "greet.GreetService#*", Reason: call.ReasonRate, Limit: 200, Observed: 200,
		RetryAfter: 320 * time.Millisecond,
	}, nil)
	waitedTooLong = call.NewRejectError(call.RejectError{
		Guard: "actives", Resource: "greet.GreetService#SayHello", Reason: call.ReasonWaitTimeout, Limit: 8, Observed: 8,
		Waited: 200300 * time.Microsecond, MaxWait: 200 * time.Millisecond,
	}, nil)
)

func greet(ctx context.Context, greeter stub, request *helloRequest) (*helloReply, error) {
	fallback := &helloReply{Greeting: "Welcome"}

	reply, err := greeter.SayHello(ctx, request)
	if refusal, ok := weir.AsRejected(err); ok {
		log.Printf("%s of %s refused: %s", refusal.Guard, refusal.Service(), refusal.Reason)
		return fallback, nil
	}
	return reply, err
}

// A caller that has something else to offer takes a refusal for a sign to do so.
func ExampleAsRejected_fallback() {
	defer log.SetOutput(log.Writer())
	log.SetOutput(io.Discard)
	reply, err := greet(context.Background(), stub{fmt.Errorf("greeting: %w", fullProvider)}, &helloRequest{})
	fmt.Println(reply.Greeting, err)
	reply, err = greet(context.Background(), stub{}, &helloRequest{})
	fmt.Println(reply.Greeting, err)
	// Output:
	// Welcome <nil>
	// Hello <nil>
}

func kind(err error) string {
	if errors.Is(err, call.ErrRejected) {
		return "refused, the call did not run"
	}
	return "failed"
}

// Where the fields do not matter the sentinel is enough.
func ExampleIsRejected() {
	fmt.Println(kind(fullProvider), weir.IsRejected(fullProvider))
	fmt.Println(kind(errors.New("broken pipe")))
	// Output:
	// refused, the call did not run true
	// failed
}

func advice(refusal *call.RejectError) string {
	switch {
	case refusal.Forwarded:
		return "a service further down is full; the one that was called did run"
	case refusal.Reason == call.ReasonRate:
		return fmt.Sprintf("over the rate, worth a try after %v", refusal.RetryAfter)
	case refusal.Reason == call.ReasonConcurrency:
		return fmt.Sprintf("%d calls run already", refusal.Limit)
	case refusal.Reason == call.ReasonWaitTimeout:
		return fmt.Sprintf("waited %v for one of %d slots", refusal.Waited, refusal.Limit)
	case refusal.Reason == call.ReasonCancelled:
		return "its own caller gave up"
	case refusal.Guard == conf.BreakerKey:
		return "the dependency is not well: " + refusal.Reason
	}
	return refusal.Error() // a guard of a later version
}

// The reason says what ran out.
func ExampleAsRejected_reasons() {
	for _, refusal := range []*call.RejectError{fullProvider, overRate, waitedTooLong, fullProvider.AsForwarded()} {
		fmt.Println(advice(refusal))
	}
	// Output:
	// 10 calls run already
	// over the rate, worth a try after 320ms
	// waited 200.3ms for one of 8 slots
	// a service further down is full; the one that was called did run
}

// writeRefusal answers an HTTP client whose request ended in a refusal.
func writeRefusal(w http.ResponseWriter, refusal *call.RejectError) {
	status := http.StatusServiceUnavailable
	if refusal.Reason == call.ReasonRate && !refusal.Forwarded {
		status = http.StatusTooManyRequests
	}
	if refusal.RetryAfter > 0 {
		seconds := int64(math.Ceil(refusal.RetryAfter.Seconds()))
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	http.Error(w, "busy, try again later", status)
}

// A gateway answers 429 where the rate was exceeded and 503 where there was no room.
func ExampleAsRejected_gateway() {
	for _, refusal := range []*call.RejectError{overRate, fullProvider, overRate.AsForwarded()} {
		w := httptest.NewRecorder()
		writeRefusal(w, refusal)
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 429 "1"
	// 503 ""
	// 503 "1"
}

// pause is how long work that can wait stays away after a refusal.
func pause(refusal *call.RejectError) time.Duration {
	least := max(refusal.RetryAfter, time.Second)
	return least + rand.N(least/2)
}

// Work that can wait stays away for as long as the refusal says, a second at least.
func ExampleAsRejected_pause() {
	for _, refusal := range []*call.RejectError{overRate, fullProvider} {
		p := pause(refusal)
		fmt.Println(p >= time.Second && p < 1500*time.Millisecond)
	}
	// Output:
	// true
	// true
}

func read(stream replies) error {
	for stream.Recv() {
		fmt.Println(stream.Msg().Greeting)
	}
	if refusal, ok := weir.AsRejected(stream.Err()); ok {
		return fmt.Errorf("no room for another stream, at most %d: %w", refusal.Limit, refusal)
	}
	return stream.Err()
}

// A stream is opened without an answer: a refusal comes with the first message.
func ExampleAsRejected_stream() {
	fmt.Println(read(replies{onTheWire(fullProvider)}))
	// Output:
	// no room for another stream, at most 10: weir: call refused: guard=executes resource=greet.GreetService#SayHello reason=concurrency limit=10 observed=10
}

// onTheWire is what a Triple consumer without Weir gets.
func onTheWire(refusal *call.RejectError) error {
	err := triple_protocol.NewError(triple_protocol.CodeResourceExhausted, refusal)
	for _, f := range refusal.Fields() {
		err.Meta().Set("weir-"+f.Key, f.Value)
	}
	return err
}

// guardOf is for a consumer that does not link Weir.
func guardOf(err error) (guard string, refused bool) {
	var te *triple_protocol.Error
	if triple_protocol.CodeOf(err) != triple_protocol.CodeResourceExhausted || !errors.As(err, &te) {
		return "", false
	}
	guard = te.Meta().Get("weir-guard")
	return guard, guard != ""
}

// A Triple consumer without Weir tells a refusal by its code and its metadata.
func Example_tripleWithoutWeir() {
	fmt.Println(guardOf(onTheWire(overRate)))
	fmt.Println(guardOf(triple_protocol.NewError(triple_protocol.CodeUnavailable, errors.New("gone"))))
	// Output:
	// tps true
	//  false
}

// parse is for a consumer that imports nothing of Weir but the package call.
func parse(err error) (*call.RejectError, bool) {
	var ge *hessian2.GenericException
	if !errors.As(err, &ge) || ge.ExceptionClass != "org.apache.dubbo.rpc.RpcException" {
		return nil, false
	}
	return call.Parse(ge.ExceptionMessage)
}

// On the dubbo protocol a consumer without Weir has a class and a text to go by.
func Example_dubboWithoutWeir() {
	err := fmt.Errorf("greeting: %w", &hessian2.GenericException{
		ExceptionClass: "org.apache.dubbo.rpc.RpcException", ExceptionMessage: waitedTooLong.Error(),
	})
	refusal, ok := parse(err)
	fmt.Println(refusal.Guard, refusal.Reason, refusal.Waited, ok)
	_, ok = parse(&hessian2.GenericException{ExceptionClass: "greet.NotFound", ExceptionMessage: overRate.Error()})
	fmt.Println(ok)
	// Output:
	// actives wait-timeout 200.3ms true
	// false
}
