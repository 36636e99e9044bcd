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

package group

import (
	"context"
	"strings"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/weir-go/weir/conf"
)

const (
	// AttachmentKey is the attachment in which a call carries its group. It is in lower
	// case, as Triple would make it.
	AttachmentKey = "weir-group"

	// markKey is the attribute of an invocation that tells which group was put into it
	// by configuration, so that it is not taken for the call's own when the program uses
	// the invocation again.
	markKey = "weir.group"
)

type contextKey struct{}

// With returns a context whose calls are of a group, whatever they came with and
// whatever is configured; [conf.GroupNone] for calls without one. A name that no
// group can have is none.
func With(ctx context.Context, group string) context.Context {
	if !conf.IsGroup(group) {
		group = conf.GroupNone
	}
	return context.WithValue(ctx, contextKey{}, group)
}

// From is the group that a call made with the context would be of but for what is
// configured, "" for none: in a provider's handler that of the caller.
func From(ctx context.Context) string {
	if name, ok := ctx.Value(contextKey{}).(string); ok {
		return named(name)
	}
	name, _ := inContext(ctx)
	return named(name)
}

// inContext is the group among the attachments of a context, in any of the forms that
// dubbo and its users give them, or among the headers that a program sends on Triple.
func inContext(ctx context.Context) (name string, found bool) {
	switch m := ctx.Value(constant.AttachmentKey).(type) {
	case map[string]any:
		name, found = text(find(m))
	case map[string]string:
		name, found = word(find(m))
	case map[string][]string:
		name, found = text(find(m))
	}
	if !found {
		name, found = text(find(triple_protocol.ExtractFromOutgoingContext(ctx)))
	}
	return name, found
}

// Of is the group that an invocation carries, "" for none.
func Of(inv base.Invocation) string {
	value := inv.GetAttachmentInterface(AttachmentKey)
	if value == nil {
		value = find(inv.Attachments())
	}
	name, _ := text(value)
	return named(name)
}

// Strip takes the group out of an invocation of which nobody else knows yet.
func Strip(inv base.Invocation) {
	only(inv, nil)
	if inv.GetAttachmentInterface(AttachmentKey) != nil {
		delete(inv.Attachments(), AttachmentKey)
	}
}

// only is the attachment of an invocation, which is value if there is one of the very
// name. Those of other cases are taken out: on Triple they would be one with it.
func only(inv base.Invocation, value any) any {
	all := inv.Attachments()
	if value != nil && len(all) == 1 {
		return value
	}
	for key, v := range all {
		if isKey(key) && (key != AttachmentKey || v == nil) { // Triple fails on nothing
			delete(all, key)
			if value == nil && v != nil {
				value = v
				all[AttachmentKey] = v
			}
		}
	}
	return value
}

// find is the attachment among others, the one of the very name first.
func find[V any](all map[string]V) (value V) {
	if v, ok := all[AttachmentKey]; ok {
		return v
	}
	for key, v := range all {
		if isKey(key) {
			return v
		}
	}
	return value
}

// isKey tells whether an attachment's name is ours: Triple makes it lower case, and the
// dubbo protocol keeps what a program has written.
func isKey(key string) bool {
	return len(key) == len(AttachmentKey) && strings.EqualFold(key, AttachmentKey)
}

// text is the value of an attachment, if it is a group or none.
func text(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return word(v)
	case []string:
		if len(v) > 0 {
			return word(v[0])
		}
	case []any: // as hessian reads a list
		if len(v) > 0 {
			s, _ := v[0].(string)
			return word(s)
		}
	}
	return "", false
}

// word is a text, if it is a group or none. Others come from outside: they may be as long
// as they like, and break the headers or the metrics that they get into.
func word(s string) (string, bool) {
	if s == conf.GroupNone || conf.IsGroup(s) {
		return s, true
	}
	return "", false
}

// named is a group by its name: none is none.
func named(name string) string {
	if name == conf.GroupNone {
		return ""
	}
	return name
}
