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

package reply

import (
	"testing"

	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func of(reply any) *invocation.RPCInvocation {
	return invocation.NewRPCInvocationWithOptions(invocation.WithMethodName("Get"), invocation.WithArguments([]any{"x"}), invocation.WithReply(reply),
		invocation.WithParameterRawValues([]any{"x", reply}), invocation.WithAttachment("a", "b"))
}

func TestACopyAnswersElsewhere(t *testing.T) {
	old := func() *string { s := "old"; return &s }
	for name, reply := range map[string]any{"message": wrapperspb.String("old"), "string": old()} {
		t.Run(name, func(t *testing.T) {
			whole := of(reply)
			attachments := map[string]any{"a": "b"}
			c, land := Copy(whole, attachments, map[string]any{"c": "d"}, Blank(whole))
			require.NotNil(t, land)
			require.NotSame(t, reply, c.Reply())
			require.Same(t, c.Reply(), c.ParameterRawValues()[1])
			require.Same(t, reply, whole.ParameterRawValues()[1])
			require.Equal(t, "Get", c.MethodName())
			require.Equal(t, []any{"x"}, c.Arguments())
			require.Equal(t, map[string]any{"a": "b"}, c.Attachments())
			require.Equal(t, map[string]any{"c": "d"}, c.Attributes())
			c.SetAttachment("a", "changed")
			c.SetAttribute("c", "changed")
			require.Equal(t, "b", whole.Attachments()["a"])
			require.Empty(t, whole.Attributes())
			switch own := c.Reply().(type) {
			case *wrapperspb.StringValue:
				own.Value = "new"
				require.Equal(t, "old", reply.(*wrapperspb.StringValue).GetValue())
				land()
				require.Equal(t, "new", reply.(*wrapperspb.StringValue).GetValue())
			case *string:
				*own = "new"
				require.Equal(t, "old", *reply.(*string))
				land()
				require.Equal(t, "new", *reply.(*string))
			}
		})
	}
}

func TestACopyThatAnswersWhereTheCallDoes(t *testing.T) {
	reply := wrapperspb.String("old")
	c, land := Copy(of(reply), nil, nil, nil)
	require.Nil(t, land)
	require.Same(t, reply, c.Reply())
	require.Same(t, reply, c.ParameterRawValues()[1])
	c.SetAttachment("a", "b")
	c.SetAttribute("a", "b")

	var none *string
	for _, reply := range []any{nil, none, "not a pointer"} {
		require.Nil(t, Blank(of(reply)), "%T", reply)
	}
}
