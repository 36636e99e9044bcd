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

package guard

import (
	"context"
	"errors"
	"testing"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/call"
)

// A handler that gives up because its context is over says so with an error of its
// own, which comes over the wire as a business error: one timeout in ten did, and
// was held to be an answer.
func TestRegressionAnErrorOfGosOwnIsNoAnswer(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	code := func(c triple_protocol.Code) func(string) error {
		return func(text string) error { return triple_protocol.NewWireError(c, errors.New(text)) }
	}
	exception := func(class string) func(string) error {
		return func(text string) error {
			return &hessian2.GenericException{ExceptionClass: class, ExceptionMessage: text}
		}
	}
	biz, throwable := code(triple_protocol.CodeBizError), exception(goError)
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want call.Outcome
	}{
		{"deadline on Triple", nil, biz("context deadline exceeded"), call.Timeout},
		{"deadline on dubbo", nil, throwable("context deadline exceeded"), call.Timeout},
		{"deadline with words before", nil, biz("load user: context deadline exceeded"), call.Timeout},
		{"deadline within the words", nil, biz("context deadline exceeded is what I saw"), call.Success},
		{"given up on Triple", nil, biz("context canceled"), call.Failure},
		{"given up on dubbo", nil, throwable("context canceled"), call.Failure},
		{"given up by the caller", cancelled, biz("context canceled"), call.Cancelled},
		{"panic on dubbo", nil, throwable("runtime error: index out of range [1] with length 1"), call.Failure},
		{"dead provider further down on Triple", nil, biz("stock: session Already Closed"), call.Failure},
		{"dead provider further down on dubbo", nil, throwable("failed to create client connection to x:1 in 3s"), call.Failure},
		{"timeout further down", nil, biz("maybe the client read timeout or fail to decode tcp stream in Writer.Write"), call.Timeout},
		{"panic in the middle", nil, throwable("no runtime error: x"), call.Success},
		{"a Java exception's text is its own", nil, exception("com.acme.X")("context deadline exceeded"), call.Success},
		{"another code's text is its own", nil, code(triple_protocol.CodeNotFound)("context deadline exceeded"), call.Success},
		{"whatever a handler says at its deadline", late, biz("no time left"), call.Timeout},
		{"stream reset at the deadline", late, code(triple_protocol.CodeCanceled)("x"), call.Timeout},
		{"the dubbo protocol knows no deadline", late, throwable("no such user"), call.Success},
		{"business while the caller gives up", cancelled, biz("no such user"), call.Success},
	} {
		ctx := tt.ctx
		if ctx == nil && tt.want != call.Failure { // also without any
			ctx = context.Background()
		}
		assert.Equal(t, tt.want, consumerOutcome(ctx, tt.err, false), tt.name)
	}
}

// What a provider's handler passes on of the calls that it makes itself over the
// dubbo protocol has no type, and over Triple dubbo wraps it as a business error.
func TestRegressionWhatAHandlerPassesOnOfItsOwnCalls(t *testing.T) {
	const nobody = "Failed to invoke the method M of the service S .No provider is available because can't connect server."
	for _, tt := range []struct {
		err  error
		want call.Outcome
	}{
		{errors.New("session Already Closed"), call.Failure},
		{errors.New("Failed to connect server 10.0.0.1:20000"), call.Failure},
		{errors.New(nobody), call.Failure},
		{errors.New("maybe the client read timeout or fail to decode tcp stream in Writer.Write"), call.Timeout},
		{&hessian2.GenericException{ExceptionClass: "org.apache.dubbo.rpc.RpcException", ExceptionMessage: "x"}, call.Failure},
		{errors.New("the session Already Closed its doors"), call.Success},
		{errors.New("no such user"), call.Success},
		{&hessian2.GenericException{ExceptionClass: "com.acme.X", ExceptionMessage: "session Already Closed"}, call.Success},
	} {
		for _, err := range []error{tt.err, triple_protocol.NewError(triple_protocol.CodeBizError, tt.err)} {
			assert.Equal(t, tt.want, outcomeOf(context.Background(), err, false), "%v", err)
		}
	}
}
