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
	"errors"
	"strings"

	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

// An error comes from somebody's handler. A nil pointer in it, at the top or
// wrapped, panics as soon as the chain is walked; it is then no refusal, and the
// call has failed. notNil is deferred by everything that walks a chain.
func notNil(reset func()) {
	if recover() != nil {
		reset()
	}
}

// Decode finds a refusal in err: the typed one of this process, or one that
// came over the wire and was not rebuilt yet.
func Decode(err error) (*call.RejectError, bool) {
	if err == nil {
		return nil, false
	}
	if e, ok := asRefusal(err); ok {
		return e, true
	}
	return decodeWire(err)
}

// asRefusal is call.As for errors that may hold nil pointers.
func asRefusal(err error) (e *call.RejectError, ok bool) {
	defer notNil(func() { e, ok = nil, false })
	return call.As(err)
}

// textOf is an error's text, "" where it has none.
func textOf(err error) (text string) {
	defer notNil(func() { text = "" })
	return err.Error()
}

// passedOn finds the refusal that an error from a handler passes on. An answer
// that a handler makes on purpose, with a code of its own, stays one even if a
// refusal is its cause.
func passedOn(err error) (e *call.RejectError, ok bool) {
	defer notNil(func() { e, ok = nil, false })
	var te *triple_protocol.Error
	if errors.As(err, &te) && te != nil {
		if code := te.Code(); code != triple_protocol.CodeBizError && code != triple_protocol.CodeResourceExhausted {
			return nil, false
		}
	}
	return Decode(err)
}

// asWireRefusal finds what a Guard of this process sends.
func asWireRefusal(err error) (w *wireRefusal, ok bool) {
	defer notNil(func() { w, ok = nil, false })
	ok = errors.As(err, &w)
	return w, ok
}

// decodeWire reads a refusal out of what a protocol made of it. Only what a
// provider's Guard itself sent comes back as the called instance's own refusal.
// What merely reads like one is held to be forwarded: it is then neither
// retried nor held against the instance, just like any other answer.
func decodeWire(err error) (e *call.RejectError, ok bool) {
	defer notNil(func() { e, ok = nil, false })
	var te *triple_protocol.Error
	if errors.As(err, &te) && te != nil {
		return decodeTriple(te)
	}
	var ge *hessian2.GenericException
	if errors.As(err, &ge) && ge != nil {
		return decodeException(ge.ExceptionClass, ge.ExceptionMessage)
	}
	var gv hessian2.GenericException
	if errors.As(err, &gv) {
		return decodeException(gv.ExceptionClass, gv.ExceptionMessage)
	}
	return nil, false
}

func decodeTriple(te *triple_protocol.Error) (*call.RejectError, bool) {
	code := te.Code()
	if code != triple_protocol.CodeResourceExhausted && code != triple_protocol.CodeBizError {
		return nil, false
	}
	meta := te.Meta()
	if meta.Get(metaPrefix+"guard") != "" {
		e, ok := call.FromFields(func(key string) string { return meta.Get(metaPrefix + key) })
		if ok {
			if code == triple_protocol.CodeBizError {
				e = e.AsForwarded()
			}
			return e, true
		}
	}
	e, ok := call.Parse(te.Message())
	if !ok {
		return nil, false
	}
	return e.AsForwarded(), true // a Guard would have sent the fields
}

func decodeException(class, message string) (*call.RejectError, bool) {
	e, ok := call.Parse(message)
	if !ok {
		return nil, false
	}
	if !isRPCException(class) {
		e = e.AsForwarded()
	}
	return e, true
}

// ownRefusal reports whether the instance that was called made the refusal.
// Where no Guard stood to stamp it, the resource tells.
func ownRefusal(e *call.RejectError, service conf.ServiceKey, method string) bool {
	if e.Forwarded {
		return false
	}
	if e.Service() != service.String() {
		return false
	}
	m := e.Method()
	return m == call.AnyMethod || conf.SameMethod(m, method)
}

// trimPath is a URL's path as an interface's name.
func trimPath(path string) string { return strings.Trim(path, "/") }
