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
	"fmt"
	"reflect"
	"runtime/debug"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"

	"github.com/weir-go/weir/internal/reply"
)

// Answer calls the function for a failed call and puts its answer where the
// caller looks for one. The error is a [*Panic], one that is [ErrMisfit], or the
// function's own; the caller's reply is then as it was.
func (e *Entry) Answer(ctx context.Context, call Call, inv base.Invocation) error {
	call.Arguments = arguments(inv)
	into := reply.Of(inv)
	if e.general == nil {
		in, err := e.typed(ctx, call, inv, into)
		if err != nil {
			return err
		}
		return e.deliver(into, func() (any, error) {
			out := e.fn.Call(in)
			err, _ := out[1].Interface().(error)
			return out[0].Interface(), err
		})
	}
	return e.deliver(into, func() (any, error) { return e.general(shielded(ctx), call) })
}

// deliver runs the function and puts its answer into the reply.
func (e *Entry) deliver(into any, run func() (any, error)) error {
	answer, err := protected(run)
	if err != nil {
		return err
	}
	if !reply.Set(into, answer) {
		return fmt.Errorf("%w: it answers with a %T, the method's answer goes into a %T", ErrMisfit, answer, into)
	}
	return nil
}

// protected makes an error of a panic.
func protected(run func() (any, error)) (answer any, err error) {
	defer func() {
		if r := recover(); r != nil {
			answer, err = nil, &Panic{r, debug.Stack()}
		}
	}()
	return run()
}

// typed are the arguments for a function of one method's shape. Whether that is
// the shape of this method shows here, before it is called.
func (e *Entry) typed(ctx context.Context, call Call, inv base.Invocation, into any) ([]reflect.Value, error) {
	t := e.fn.Type()
	args := call.Arguments
	n := t.NumIn() - 2
	if whole, ok := oneSlice(inv); ok && n == 1 && reflect.TypeOf(whole) == t.In(1) {
		args = []any{whole}
	}
	if len(args) != n {
		return nil, fmt.Errorf("%w: it takes %d arguments of the method, the call has %d", ErrMisfit, n, len(args))
	}
	in := make([]reflect.Value, 0, n+2)
	in = append(in, reflect.ValueOf(shielded(ctx)))
	for i, arg := range args {
		want := t.In(i + 1)
		v := reflect.ValueOf(arg)
		switch {
		case !v.IsValid() && nilable(want):
			v = reflect.Zero(want)
		case !v.IsValid(), !v.Type().AssignableTo(want):
			return nil, fmt.Errorf("%w: its argument %d of the method is a %v, the call's a %T", ErrMisfit, i+1, want, arg)
		}
		in = append(in, v)
	}
	if out := t.Out(0); out.Kind() != reflect.Interface && !reply.Fits(into, out) {
		return nil, fmt.Errorf("%w: it answers with a %v, the method's answer goes into a %T", ErrMisfit, out, into)
	}
	return append(in, reflect.ValueOf(&call.Cause).Elem()), nil
}

func nilable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return true
	}
	return false
}

// arguments are those of the method, of a generic call too.
func arguments(inv base.Invocation) []any {
	args := inv.Arguments()
	if name := inv.MethodName(); name != constant.Generic && name != constant.GenericAsync || len(args) != 3 {
		return args
	}
	if plain, ok := args[2].([]any); ok {
		return plain
	}
	v := reflect.ValueOf(args[2]) // a slice of Hessian's own any
	if !v.IsValid() || v.Kind() != reflect.Slice {
		return args
	}
	plain := make([]any, v.Len())
	for i := range plain {
		plain[i] = v.Index(i).Interface()
	}
	return plain
}

// oneSlice is the only argument of a method that takes a []any, which dubbo's
// proxies spread out.
func oneSlice(inv base.Invocation) (any, bool) {
	if values := inv.ParameterValues(); len(values) == 1 && values[0].IsValid() && values[0].CanInterface() {
		whole, ok := values[0].Interface().([]any)
		return whole, ok
	}
	return nil, false
}
