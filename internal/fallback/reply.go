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
	"maps"
	"reflect"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"google.golang.org/protobuf/proto"
)

// replyOf is what a protocol decodes the provider's answer into: the pointer that
// stubs and proxies read. It is nil for a method without an answer.
func replyOf(inv base.Invocation) any {
	if reply := inv.Reply(); reply != nil {
		return reply
	}
	if raw := inv.ParameterRawValues(); len(raw) > len(inv.Arguments()) {
		return raw[len(raw)-1]
	}
	return nil
}

// fits reports whether an answer of type t can be put into the reply.
func fits(reply any, t reflect.Type) bool {
	v := reflect.ValueOf(reply)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return false
	}
	if _, ok := reply.(proto.Message); ok {
		return t == v.Type()
	}
	return t == v.Type() || t.AssignableTo(v.Type().Elem())
}

// set puts an answer into the reply, and reports whether it fits. A nil answer is
// the zero value. Messages are copied deeply, other values as an assignment does.
func set(reply, answer any) bool {
	if reply == nil {
		return answer == nil
	}
	r := reflect.ValueOf(reply)
	if r.Kind() != reflect.Pointer || r.IsNil() || answer != nil && !fits(reply, reflect.TypeOf(answer)) {
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

// Apart is a copy of an invocation whose answer goes elsewhere, for a call of which
// attempts may still run when its caller has had an answer. land puts the answer
// into the invocation's own reply. It reports false where that cannot be done.
func Apart(inv base.Invocation) (apart base.Invocation, land func(), ok bool) {
	rpc, ok := inv.(*invocation.RPCInvocation)
	reply := replyOf(inv)
	if v := reflect.ValueOf(reply); !ok || v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, nil, false
	}
	scratch := blank(reply)
	raw := append([]any(nil), rpc.ParameterRawValues()...)
	if n := len(raw); n > 0 && raw[n-1] == reply {
		raw[n-1] = scratch
	}
	into := rpc.Reply()
	if into != nil {
		into = scratch
	}
	attachments := maps.Clone(rpc.Attachments())
	if attachments == nil {
		attachments = map[string]any{}
	}
	c := invocation.NewRPCInvocationWithOptions(
		invocation.WithMethodName(rpc.MethodName()),
		invocation.WithArguments(rpc.Arguments()),
		invocation.WithParameterTypes(rpc.ParameterTypes()),
		invocation.WithParameterTypeNames(rpc.ParameterTypeNames()),
		invocation.WithParameterValues(rpc.ParameterValues()),
		invocation.WithParameterRawValues(raw),
		invocation.WithReply(into),
		invocation.WithCallBack(rpc.CallBack()),
		invocation.WithAttachments(attachments),
	)
	for k, v := range rpc.Attributes() {
		c.SetAttribute(k, v)
	}
	return c, func() { set(reply, scratch) }, true
}

func blank(reply any) any {
	if m, ok := reply.(proto.Message); ok {
		return m.ProtoReflect().New().Interface()
	}
	return reflect.New(reflect.TypeOf(reply).Elem()).Interface()
}
