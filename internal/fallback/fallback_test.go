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
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	hessian "github.com/apache/dubbo-go-hessian2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var background = context.Background()

type user struct {
	Name string
	Tags []string
}

func TestRegister(t *testing.T) {
	type ctx = context.Context
	fits := func(ctx, string, error) (string, error) { return "", nil }
	for name, tt := range map[string]struct {
		name string
		fn   any
		want string
	}{
		"no name":           {"", fits, "letters, digits"},
		"a name with space": {"a b", fits, "letters, digits"},
		"a name that is too long for the configuration": {fmt.Sprintf("%065d", 1), fits, "1 to 64"},
		"off":                          {"off", fits, `not "off"`},
		"nil":                          {"bad", nil, "is nil"},
		"a nil function":               {"bad", (func(ctx, error) (string, error))(nil), "is nil"},
		"no function":                  {"bad", 17, "no function"},
		"no context":                   {"bad", func(string, error) (string, error) { return "", nil }, "context.Context"},
		"no arguments":                 {"bad", func() (string, error) { return "", nil }, "context.Context"},
		"no cause":                     {"bad", func(ctx, string) (string, error) { return "", nil }, "the error that it answers in place of"},
		"a context only":               {"bad", func(ctx) (string, error) { return "", nil }, "the error that it answers in place of"},
		"no answer":                    {"bad", func(ctx, error) error { return nil }, "an answer and an error"},
		"no error":                     {"bad", func(ctx, error) (string, int) { return "", 0 }, "an answer and an error"},
		"an error as the answer":       {"bad", func(ctx, error) (error, error) { return nil, nil }, "what it answers is an error"},
		"variadic":                     {"bad", func(ctx, error, ...error) (string, error) { return "", nil }, "variable number"},
		"half the general form":        {"bad", func(ctx, Call, error) (any, error) { return nil, nil }, "weir.FallbackCall"},
		"the general form with a type": {"bad", func(ctx, Call) (string, error) { return "", nil }, "returns (any, error)"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Register(tt.name, tt.fn)
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "allowed: ")
			require.Nil(t, Find(tt.name))
		})
	}
	defer Forget("register.ok-1_A")
	defer Forget("register.named-type")
	require.NoError(t, Register("register.ok-1_A", fits))
	require.ErrorContains(t, Register("register.ok-1_A", fits), "registered already")
	require.NotNil(t, Find("register.ok-1_A"))
	require.Contains(t, Names(), "register.ok-1_A")
	type general func(ctx, Call) (any, error)
	require.NoError(t, Register("register.named-type", general(func(ctx, Call) (any, error) { return nil, nil })))
	require.NotNil(t, Find("register.named-type").general)
}

func TestNamesAreRegisteredOnce(t *testing.T) {
	defer Forget("once")
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range 50 {
		wg.Go(func() {
			if Register("once", func(context.Context, error) (string, error) { return "", nil }) == nil {
				mu.Lock()
				defer mu.Unlock()
				done++
			}
			_, _ = Find("once"), Names()
		})
	}
	wg.Wait()
	require.Equal(t, 1, done)
}

func entry(t *testing.T, fn any) *Entry {
	t.Helper()
	e, err := newEntry("x", fn)
	require.NoError(t, err)
	return e
}

// inv is a call as dubbo's client and proxies make it.
func inv(reply any, args ...any) base.Invocation {
	return invocation.NewRPCInvocationWithOptions(invocation.WithMethodName("Get"), invocation.WithArguments(args), invocation.WithReply(reply))
}

func TestAnswers(t *testing.T) {
	msg := func(s string) *wrapperspb.StringValue { return wrapperspb.String(s) }
	var typedNil *wrapperspb.StringValue
	old := func() *user { return &user{"old", []string{"a"}} }
	for name, tt := range map[string]struct {
		fn          any
		reply, want any
		args        []any
	}{
		"a message": {func(_ context.Context, r *wrapperspb.StringValue, _ error) (*wrapperspb.StringValue, error) {
			return msg("to " + r.GetValue()), nil
		}, msg("old"), msg("to a"), []any{msg("a")}},
		"a nil message is empty":     {func(context.Context, error) (*wrapperspb.StringValue, error) { return nil, nil }, msg("old"), msg(""), nil},
		"a message, general":         {func(context.Context, Call) (any, error) { return msg("new"), nil }, msg("old"), msg("new"), nil},
		"a typed nil message":        {func(context.Context, Call) (any, error) { return typedNil, nil }, msg("old"), msg(""), nil},
		"no message":                 {func(context.Context, Call) (any, error) { return nil, nil }, msg("old"), msg(""), nil},
		"a pointer":                  {func(context.Context, string, int, error) (*user, error) { return &user{Name: "new"}, nil }, old(), &user{Name: "new"}, []any{"a", 1}},
		"a nil pointer is zero":      {func(context.Context, error) (*user, error) { return nil, nil }, old(), &user{}, nil},
		"a value":                    {func(context.Context, error) (user, error) { return user{Name: "new"}, nil }, old(), &user{Name: "new"}, nil},
		"a string":                   {func(context.Context, error) (string, error) { return "new", nil }, ptr("old"), ptr("new"), nil},
		"a pointer for a pointer":    {func(context.Context, error) (*user, error) { return &user{Name: "new"}, nil }, ptr(old()), ptr(&user{Name: "new"}), nil},
		"nil, general":               {func(context.Context, Call) (any, error) { return nil, nil }, old(), &user{}, nil},
		"a map":                      {func(context.Context, error) (map[string]int, error) { return map[string]int{"a": 1}, nil }, &map[string]int{}, &map[string]int{"a": 1}, nil},
		"anything for anything":      {func(context.Context, Call) (any, error) { return map[any]any{"a": 1}, nil }, ptr[any](7), ptr[any](map[any]any{"a": 1}), nil},
		"nil for anything":           {func(context.Context, Call) (any, error) { return nil, nil }, ptr[any](7), new(any), nil},
		"an interface that fits":     {func(context.Context, error) (fmt.Stringer, error) { return hessianName("x"), nil }, ptr[any](7), ptr[any](hessianName("x")), nil},
		"no reply, no answer":        {func(context.Context, Call) (any, error) { return nil, nil }, nil, nil, nil},
		"a nil argument":             {func(_ context.Context, u *user, _ error) (string, error) { return fmt.Sprint(u == nil), nil }, ptr(""), ptr("true"), []any{nil}},
		"an argument by its methods": {func(_ context.Context, s fmt.Stringer, _ error) (string, error) { return s.String(), nil }, ptr(""), ptr("y"), []any{hessianName("y")}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, entry(t, tt.fn).Answer(background, Call{Cause: errors.New("cause")}, inv(tt.reply, tt.args...)))
			if m, ok := tt.want.(proto.Message); ok {
				require.True(t, proto.Equal(m, tt.reply.(proto.Message)), "%v", tt.reply)
				return
			}
			require.Equal(t, tt.want, tt.reply)
		})
	}
}

func ptr[T any](v T) *T { return &v }

type hessianName string

func (h hessianName) String() string { return string(h) }

// A message that a fallback keeps for all callers is not what they get to change.
func TestAMessageIsCopied(t *testing.T) {
	kept, err := structpb.NewStruct(map[string]any{"a": map[string]any{"b": "c"}})
	require.NoError(t, err)
	reply := &structpb.Struct{}
	require.NoError(t, entry(t, func(context.Context, error) (*structpb.Struct, error) { return kept, nil }).Answer(background, Call{}, inv(reply)))
	require.True(t, proto.Equal(kept, reply))
	reply.GetFields()["a"].GetStructValue().GetFields()["b"] = structpb.NewStringValue("changed")
	require.Equal(t, "c", kept.GetFields()["a"].GetStructValue().GetFields()["b"].GetStringValue())
	// The reply itself is an answer, too.
	require.NoError(t, entry(t, func(context.Context, Call) (any, error) { return reply, nil }).Answer(background, Call{}, inv(reply)))
	require.NotEmpty(t, reply.GetFields())
}

func TestMisfits(t *testing.T) {
	never := func() { t.Error("it ran") }
	for name, tt := range map[string]struct {
		fn    any
		reply any
		args  []any
	}{
		"too few arguments":    {func(context.Context, error) (string, error) { never(); return "", nil }, ptr("old"), []any{"a"}},
		"too many arguments":   {func(context.Context, string, error) (string, error) { never(); return "", nil }, ptr("old"), nil},
		"another argument":     {func(context.Context, int, error) (string, error) { never(); return "", nil }, ptr("old"), []any{"a"}},
		"nil for an int":       {func(context.Context, int, error) (string, error) { never(); return "", nil }, ptr("old"), []any{nil}},
		"another answer":       {func(context.Context, error) (int, error) { never(); return 1, nil }, ptr("old"), nil},
		"another message":      {func(context.Context, error) (*wrapperspb.BoolValue, error) { never(); return nil, nil }, wrapperspb.String("old"), nil},
		"no reply":             {func(context.Context, error) (string, error) { never(); return "", nil }, nil, nil},
		"a nil reply":          {func(context.Context, error) (string, error) { never(); return "", nil }, (*string)(nil), nil},
		"no pointer":           {func(context.Context, error) (string, error) { never(); return "", nil }, "old", nil},
		"another, general":     {func(context.Context, Call) (any, error) { return 1, nil }, ptr("old"), nil},
		"a nil of another":     {func(context.Context, Call) (any, error) { return (*user)(nil), nil }, ptr("old"), nil},
		"a message, general":   {func(context.Context, Call) (any, error) { return wrapperspb.Bool(true), nil }, wrapperspb.String("old"), nil},
		"an answer for nobody": {func(context.Context, Call) (any, error) { return 1, nil }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(tt.reply)
			err := entry(t, tt.fn).Answer(background, Call{}, inv(tt.reply, tt.args...))
			require.ErrorIs(t, err, ErrMisfit)
			require.Equal(t, before, fmt.Sprint(tt.reply))
		})
	}
}

func TestWhatAFallbackIsTold(t *testing.T) {
	cause := errors.New("cause")
	require.NoError(t, entry(t, func(_ context.Context, c Call) (any, error) {
		require.Equal(t, Call{"a.B", "Get", []any{"x", 1}, cause}, c)
		return "", nil
	}).Answer(background, Call{Service: "a.B", Method: "Get", Cause: cause}, inv(ptr(""), "x", 1)))
	require.NoError(t, entry(t, func(_ context.Context, s string, n int, err error) (string, error) {
		require.Equal(t, "x", s)
		require.Equal(t, 1, n)
		require.Same(t, cause, err)
		return "", nil
	}).Answer(background, Call{Cause: cause}, inv(ptr(""), "x", 1)))

	generic := func(args any) base.Invocation {
		return invocation.NewRPCInvocationWithOptions(invocation.WithMethodName(constant.Generic),
			invocation.WithArguments([]any{"get", []string{"java.lang.String"}, args}), invocation.WithReply(new(any)))
	}
	for _, args := range []any{[]hessian.Object{"x"}, []any{"x"}} {
		require.NoError(t, entry(t, func(_ context.Context, c Call) (any, error) {
			require.Equal(t, []any{"x"}, c.Arguments)
			return nil, nil
		}).Answer(background, Call{}, generic(args)))
		require.NoError(t, entry(t, func(_ context.Context, s string, _ error) (any, error) { return s, nil }).Answer(background, Call{}, generic(args)))
	}
	require.NoError(t, entry(t, func(context.Context, Call) (any, error) { return nil, nil }).Answer(background, Call{}, generic(nil)))
}

func TestFailures(t *testing.T) {
	own := errors.New("own")
	reply := ptr("old")
	err := entry(t, func(context.Context, error) (string, error) { return "new", own }).Answer(background, Call{}, inv(reply))
	require.Same(t, own, err)
	for _, value := range []any{"text", own, nil} {
		err = entry(t, func(context.Context, error) (string, error) { panic(value) }).Answer(background, Call{}, inv(reply))
		var p *Panic
		require.ErrorAs(t, err, &p)
		require.Contains(t, string(p.Stack), "TestFailures")
	}
	require.Equal(t, "old", *reply)
}

func TestTracking(t *testing.T) {
	_, ok := AnsweredBy(background)
	require.False(t, ok)
	Note(background, "a")
	outer := Track(background)
	one, other := Track(outer), Track(outer)
	Note(one, "a")
	for ctx, want := range map[context.Context]string{outer: "a", one: "a", other: ""} {
		name, ok := AnsweredBy(ctx)
		require.Equal(t, want, name)
		require.Equal(t, want != "", ok)
	}
	// Calls of a fallback are its own.
	e := entry(t, func(ctx context.Context, _ error) (string, error) {
		Note(ctx, "inside")
		inside := Track(ctx)
		Note(inside, "inside")
		name, _ := AnsweredBy(inside)
		return name, nil
	})
	reply := ptr("")
	require.NoError(t, e.Answer(other, Call{}, inv(reply)))
	require.Equal(t, "inside", *reply)
	_, ok = AnsweredBy(other)
	require.False(t, ok)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				Note(one, "b")
				_, _ = AnsweredBy(outer)
			}
		})
	}
	wg.Wait()
	name, _ := AnsweredBy(outer)
	require.Equal(t, "b", name)
}
