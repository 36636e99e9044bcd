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

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

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
// dubbo and its users give them.
func inContext(ctx context.Context) (string, bool) {
	switch m := ctx.Value(constant.AttachmentKey).(type) {
	case map[string]any:
		return text(m[AttachmentKey])
	case map[string]string:
		name, ok := m[AttachmentKey]
		return name, ok
	case map[string][]string:
		return text(m[AttachmentKey])
	}
	return "", false
}

// Of is the group that an invocation carries, "" for none.
func Of(inv base.Invocation) string {
	name, _ := text(inv.GetAttachmentInterface(AttachmentKey))
	return named(name)
}

// text is the value of an attachment.
func text(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case []string:
		if len(v) > 0 {
			return v[0], true
		}
	case []any: // as hessian reads a list
		if len(v) > 0 {
			s, ok := v[0].(string)
			return s, ok
		}
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
