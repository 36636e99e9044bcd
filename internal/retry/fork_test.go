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

package retry_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"
)

// filterOf makes a filter of a function, under a name of its own.
type filterOf func(context.Context, base.Invoker, base.Invocation) result.Result

func (f filterOf) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	return f(ctx, next, inv)
}

func (filterOf) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}

func named(f filterOf) string {
	name := fmt.Sprint("test-fork-", sequence.Add(1))
	extension.SetFilter(name, func() filter.Filter { return f })
	return name
}

// speaks is what dubbo's protocols do to the invocation of an attempt: they write
// attachments, read all of them without a lock, and write the answer.
func speaks(n int, wait <-chan struct{}) func(*reference) func(base.Invocation) error {
	return func(*reference) func(base.Invocation) error {
		return func(inv base.Invocation) error {
			for i := range 20 {
				inv.SetAttachment(fmt.Sprint("by ", n, i), "x")
				for range inv.Attachments() {
				}
				inv.SetAttribute(fmt.Sprint(n), i)
				runtime.Gosched()
			}
			if wait != nil {
				<-wait
			}
			*inv.Reply().(*string) = fmt.Sprint(n)
			if h, ok := inv.GetAttribute(constant.ResponseHeaderKey); ok {
				*h.(*http.Header) = http.Header{"By": {fmt.Sprint(n)}}
			}
			return nil
		}
	}
}

// Without parting them this ends the test process, as dubbo-go ends a program's.
func TestForksDoNotShareWhatTheyWrite(t *testing.T) {
	outer := named(func(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
		inv.SetAttachment("outer", next.GetURL().Location) // as one that traces does
		res := next.Invoke(ctx, inv)
		v, _ := inv.GetAttachment("outer")
		require.Equal(t, next.GetURL().Location, v)
		return res
	})
	r := refer(t, "forking", map[string]string{"forks": "3", constant.ReferenceFilterKey: "weir-fork," + outer + ",weir-consumer"},
		speaks(1, nil), speaks(2, nil), speaks(3, nil))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 20 {
				reply, header := "", http.Header{}
				inv := r.invocation()
				inv.SetReply(&reply)
				inv.SetAttachment("mine", "1")
				inv.SetAttribute(constant.ResponseHeaderKey, &header)
				res := r.cluster.Invoke(context.Background(), inv)
				require.NoError(t, res.Error())
				require.Contains(t, []string{"1", "2", "3"}, reply)
				require.Equal(t, http.Header{"By": {reply}}, header, "both are of one attempt")
				require.Equal(t, map[string]any{"mine": "1"}, inv.Attachments())
			}
		})
	}
	all.Wait()
}

// An answer that comes after the call's is nobody's.
func TestALateForkLeavesTheReplyAlone(t *testing.T) {
	late, home := make(chan struct{}), make(chan struct{})
	inside := named(func(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
		res := next.Invoke(ctx, inv)
		if *inv.Reply().(*string) == "2" {
			close(home)
		}
		return res
	})
	r := refer(t, "forking", map[string]string{"forks": "2", constant.ReferenceFilterKey: "weir-fork," + inside + ",weir-consumer"}, speaks(1, nil), speaks(2, late))
	reply := ""
	inv := r.invocation()
	inv.SetReply(&reply)
	require.NoError(t, r.invoke(inv))
	require.Equal(t, "1", reply)
	close(late)
	<-home
	require.Equal(t, "1", reply)
}

// A filter outside that makes a result of its own does not cost the caller the answer.
func TestAForkWhoseResultIsReplaced(t *testing.T) {
	outside := named(func(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
		res := next.Invoke(ctx, inv)
		return &result.RPCResult{Err: res.Error(), Rest: res.Result()}
	})
	r := refer(t, "forking", map[string]string{"forks": "2", constant.ReferenceFilterKey: outside + ",weir-fork,weir-consumer"}, speaks(1, nil), speaks(2, nil))
	for range 50 {
		reply := ""
		inv := r.invocation()
		inv.SetReply(&reply)
		require.NoError(t, r.invoke(inv))
		require.Contains(t, []string{"1", "2"}, reply)
	}
}

// Who does not wait for the answer finds it where it always was.
func TestAForkOfAnAsynchronousCall(t *testing.T) {
	reply := ""
	var same atomic.Bool
	r := refer(t, "forking", map[string]string{"forks": "1"}, func(*reference) func(base.Invocation) error {
		return func(inv base.Invocation) error {
			same.Store(inv.Reply() == any(&reply))
			return nil
		}
	})
	inv := r.invocation()
	inv.SetReply(&reply)
	require.NoError(t, r.invoke(inv))
	require.False(t, same.Load())
	inv.SetAttachment(constant.AsyncKey, "true")
	require.NoError(t, r.invoke(inv))
	require.True(t, same.Load())
}

// All fail: the caller has the error, and its reply is as it was.
func TestForksThatFail(t *testing.T) {
	r := refer(t, "forking", map[string]string{"forks": "2"}, fails, fails)
	reply := "before"
	inv := r.invocation()
	inv.SetReply(&reply)
	require.Error(t, r.invoke(inv))
	require.Equal(t, "before", reply)
}
