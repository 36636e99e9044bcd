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
	"runtime"
	"slices"
	"strings"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

// outcomeOf says how a call ended whose error is no refusal. Business errors
// are answers, unless failBusiness.
func outcomeOf(ctx context.Context, err error, failBusiness bool) (outcome call.Outcome) {
	defer notNil(func() { outcome = call.Failure })
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return call.Timeout
	case errors.Is(err, context.Canceled):
		if ctx.Err() != nil {
			return call.Cancelled
		}
		return call.Failure
	}
	var te *triple_protocol.Error
	if errors.As(err, &te) && te != nil && te.Code() != triple_protocol.CodeBizError {
		if te.Code() == triple_protocol.CodeCanceled && ctx.Err() == nil {
			return call.Failure // whoever gave it up was not the caller
		}
		return tripleOutcome(te.Code(), failBusiness)
	}
	var re runtime.Error
	if errors.As(err, &re) { // a panic that dubbo recovered
		return call.Failure
	}
	class := exceptionClass(err)
	switch {
	case isRPCException(class), strings.HasSuffix(class, ".RemotingException"):
		return call.Failure
	case strings.HasSuffix(class, "TimeoutException"):
		return call.Timeout
	case errors.Is(err, base.ErrClientClosed), errors.Is(err, base.ErrDestroyedInvoker), errors.Is(err, base.ErrNoReply):
		return call.Failure
	}
	if o, ok := noAnswer(ctx, textOfGo(err)); ok {
		return o
	}
	return business(failBusiness)
}

func business(fail bool) call.Outcome {
	if fail {
		return call.Failure
	}
	return call.Success
}

// tripleOutcome sorts Triple's codes: those by which a service answers its
// caller, and those by which a system fails.
func tripleOutcome(code triple_protocol.Code, failBusiness bool) call.Outcome {
	switch code {
	case triple_protocol.CodeDeadlineExceeded:
		return call.Timeout
	case triple_protocol.CodeCanceled:
		return call.Cancelled
	case triple_protocol.CodeUnknown, triple_protocol.CodeResourceExhausted, triple_protocol.CodeUnimplemented,
		triple_protocol.CodeInternal, triple_protocol.CodeUnavailable, triple_protocol.CodeDataLoss:
		return call.Failure
	}
	return business(failBusiness)
}

func exceptionClass(err error) string {
	var ge *hessian2.GenericException
	if errors.As(err, &ge) && ge != nil {
		return ge.ExceptionClass
	}
	var gv hessian2.GenericException
	if errors.As(err, &gv) {
		return gv.ExceptionClass
	}
	return ""
}

// codeWords are the names of Triple's codes, from the first.
var codeWords = conf.CodeWords()

// ErrorKind is the exception class of an error, and its Triple code as it stands in
// a configuration; each is "" where it has none.
func ErrorKind(err error) (class, code string) {
	defer notNil(func() { class, code = "", "" })
	var te *triple_protocol.Error
	if errors.As(err, &te) && te != nil {
		if i := int(te.Code()) - 1; i >= 0 && i < len(codeWords) {
			code = codeWords[i]
		}
	}
	return exceptionClass(err), code
}

// readTimeout is the text of the error by which the dubbo protocol's client
// gives a call up; the error itself is not exported.
const readTimeout = "maybe the client read timeout"

// noConnection are texts of dubbo's errors for a call that found nobody: those at
// the end of the text, and those before an address or the like. None is exported.
var noConnection = struct{ end, within []string }{
	end: []string{"session Already Closed", "session not exist", "client have been closed", "remoting client has closed", "request Destroyed invoker"},
	within: []string{
		"failed to create client connection to ", "Failed to connect server ", "No provider is available because can't connect server",
		"No provider available for the service ",
	},
}

// goError is the class that dubbo gives to errors of Go on the dubbo protocol.
const goError = "java.lang.Throwable"

// textOfGo is the text of an error that a handler in Go answered with, "" for
// another. On the wire it is all that is left of it, as a business error.
func textOfGo(err error) string {
	var ge *hessian2.GenericException
	if errors.As(err, &ge) && ge != nil {
		if ge.ExceptionClass != goError {
			return ""
		}
		return ge.ExceptionMessage
	}
	var te *triple_protocol.Error
	if errors.As(err, &te) && te != nil {
		return te.Message()
	}
	return err.Error()
}

// noAnswer finds out how a call ended whose handler passed on an error that is no
// answer of its service: that its context was over, that a call of its own over the
// dubbo protocol did not come through, or that it panicked, which that protocol
// carries as any error. Handlers put words before it.
func noAnswer(ctx context.Context, text string) (outcome call.Outcome, ok bool) {
	ends := func(end string) bool { return strings.HasSuffix(text, end) }
	contains := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case ends(context.DeadlineExceeded.Error()), contains(readTimeout):
		return call.Timeout, true
	case ends(context.Canceled.Error()):
		if ctx.Err() != nil {
			return call.Cancelled, true
		}
		return call.Failure, true
	case strings.HasPrefix(text, "runtime error: "):
		return call.Failure, true
	}
	return call.Failure, slices.ContainsFunc(noConnection.end, ends) || slices.ContainsFunc(noConnection.within, contains)
}

// consumerOutcome says how an attempt ended that was no refusal. Unlike on a
// provider an error without a class is the transport's.
func consumerOutcome(ctx context.Context, err error, failBusiness bool) (outcome call.Outcome) {
	defer notNil(func() { outcome = call.Failure })
	if ctx == nil {
		ctx = context.Background() // not all of dubbo's invokers look at it
	}
	var te *triple_protocol.Error
	coded := errors.As(err, &te)
	if coded && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return call.Timeout // the provider has the same deadline, so its handler may be heard before the context
	}
	if coded || exceptionClass(err) != "" {
		return outcomeOf(ctx, err, failBusiness)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(err.Error(), readTimeout):
		return call.Timeout
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return call.Cancelled
	}
	return call.Failure
}

// late reports whether an answer on a dubbo-protocol provider comes after the
// time that its caller waits, which the timeout attachment tells in
// milliseconds or as a Go duration.
func late(inv base.Invocation, elapsed time.Duration) bool {
	text, ok := inv.GetAttachment(constant.TimeoutKey)
	if !ok || text == "" {
		return false
	}
	d, ok := parseTimeout(text)
	return ok && d > 0 && elapsed > d
}

func parseTimeout(s string) (time.Duration, bool) {
	ms := int64(0)
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' || i > 9 {
			d, err := time.ParseDuration(s)
			return d, err == nil
		}
		ms = ms*10 + int64(c-'0')
	}
	return time.Duration(ms) * time.Millisecond, true
}
