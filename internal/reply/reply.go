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

// Package reply knows where protocols put the answer to a call on its consumer's side, and
// makes copies of calls whose answers go elsewhere.
package reply

import (
	"reflect"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"google.golang.org/protobuf/proto"
)

// Of is what a protocol decodes the provider's answer into: the pointer that
// stubs and proxies read. It is nil for a method without an answer.
func Of(inv base.Invocation) any {
	if reply := inv.Reply(); reply != nil {
		return reply
	}
	if raw := inv.ParameterRawValues(); len(raw) > len(inv.Arguments()) {
		return raw[len(raw)-1]
	}
	return nil
}

// Fits reports whether an answer of type t can be put into the reply.
func Fits(reply any, t reflect.Type) bool {
	v := reflect.ValueOf(reply)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return false
	}
	if _, ok := reply.(proto.Message); ok {
		return t == v.Type()
	}
	return t == v.Type() || t.AssignableTo(v.Type().Elem())
}

// Set puts an answer into the reply, and reports whether it fits. A nil answer is
// the zero value. Messages are copied deeply, other values as an assignment does.
func Set(reply, answer any) bool {
	if reply == nil {
		return answer == nil
	}
	r := reflect.ValueOf(reply)
	if r.Kind() != reflect.Pointer || r.IsNil() || answer != nil && !Fits(reply, reflect.TypeOf(answer)) {
		return false
	}
	if m, ok := reply.(proto.Message); ok {
		return setMessage(m, answer)
	}
	a := reflect.ValueOf(answer)
	switch {
	case answer == nil:
		r.Elem().SetZero()
	case a.Type().AssignableTo(r.Type().Elem()):
		r.Elem().Set(a)
	case a.IsNil():
		r.Elem().SetZero()
	default:
		r.Elem().Set(a.Elem())
	}
	return true
}

func setMessage(reply proto.Message, answer any) bool {
	m, _ := answer.(proto.Message)
	if m == nil || !m.ProtoReflect().IsValid() {
		proto.Reset(reply) // a nil message is an empty one
		return true
	}
	if m == reply {
		return true
	}
	if m.ProtoReflect().Descriptor() != reply.ProtoReflect().Descriptor() {
		return false // dynamic messages share a Go type
	}
	proto.Reset(reply)
	proto.Merge(reply, m)
	return true
}

// Blank is an empty answer of the kind that a call has, for [Copy]. It is nil for a call
// that has none.
func Blank(inv base.Invocation) any {
	reply := Of(inv)
	if v := reflect.ValueOf(reply); v.Kind() != reflect.Pointer || v.IsNil() {
		return nil
	}
	return blank(reply)
}

// Copy is a copy of a call with attachments and attributes of its own. Its answer goes into
// one like a [Blank], and land puts that into the reply of the call; without a Blank it goes
// where that of the call does, and land is nil. Of the call it reads neither attachments,
// attributes nor answer, which others may write at the time.
func Copy(of *invocation.RPCInvocation, attachments, attributes map[string]any, like any) (c *invocation.RPCInvocation, land func()) {
	raw, into := of.ParameterRawValues(), of.Reply()
	if like != nil {
		reply, scratch := Of(of), blank(like)
		if n := len(raw); n > 0 && raw[n-1] == reply {
			raw = append(raw[:n-1:n-1], scratch)
		}
		if into != nil {
			into = scratch
		}
		land = func() { Set(reply, scratch) }
	}
	if attachments == nil {
		attachments = map[string]any{}
	}
	c = invocation.NewRPCInvocationWithOptions(
		invocation.WithMethodName(of.MethodName()),
		invocation.WithArguments(of.Arguments()),
		invocation.WithParameterTypes(of.ParameterTypes()),
		invocation.WithParameterTypeNames(of.ParameterTypeNames()),
		invocation.WithParameterValues(of.ParameterValues()),
		invocation.WithParameterRawValues(raw),
		invocation.WithReply(into),
		invocation.WithCallBack(of.CallBack()),
		invocation.WithAttachments(attachments),
	)
	for k, v := range attributes {
		c.SetAttribute(k, v)
	}
	return c, land
}

func blank(reply any) any {
	if m, ok := reply.(proto.Message); ok {
		return m.ProtoReflect().New().Interface()
	}
	return reflect.New(reflect.TypeOf(reply).Elem()).Interface()
}
