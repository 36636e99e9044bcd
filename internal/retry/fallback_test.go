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
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	clusterpkg "dubbo.apache.org/dubbo-go/v3/cluster/cluster"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/dubbo/hessian2"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/fallback"
)

// standIn is a fallback and the runtime that its reference belongs to.
type standIn struct {
	*reference
	rt   *guard.Runtime
	name string
	runs atomic.Int64
}

var standIns atomic.Int64

// withFallback is a reference whose failed calls a function answers; more are its
// params besides.
func withFallback(t *testing.T, cluster string, more map[string]string, callees ...func(*reference) func(base.Invocation) error) *standIn {
	t.Helper()
	s := &standIn{rt: guard.NewRuntime(), name: fmt.Sprint("retry-", standIns.Add(1))}
	params := map[string]string{"fallback": s.name}
	for k, v := range more {
		params[k] = v
	}
	s.reference = refer(t, cluster, params, callees...)
	u := common.NewURLWithOptions(common.WithInterface(s.service), common.WithMethods([]string{"SayHello"}))
	s.ref.Answerer = guard.NewFallbacks(s.rt, u, s.ref)
	require.NoError(t, fallback.Register(s.name, func(_ context.Context, c fallback.Call) (any, error) {
		s.runs.Add(1)
		require.Equal(t, s.service, c.Service)
		require.Error(t, c.Cause)
		return "instead", nil
	}))
	return s
}

func (s *standIn) ask(ctx context.Context) (string, result.Result) {
	reply := ""
	inv := s.invocation()
	inv.SetReply(&reply)
	res := s.cluster.Invoke(ctx, inv)
	return reply, res
}

func (s *standIn) counts() (answered, failed, panicked int64) {
	s.rt.Fallbacks(func(k guard.FallbackKey, c *guard.FallbackCounts) {
		if k == (guard.FallbackKey{Side: "consumer", Service: s.service, Method: "SayHello", Fallback: s.name}) {
			answered, failed, panicked = c.Answered(), c.Failed(), c.Panicked()
		}
	})
	return answered, failed, panicked
}

func TestAFallbackRunsOnceUnderEveryCluster(t *testing.T) {
	for _, cluster := range []string{"failover", "failfast", "forking", "broadcast", "available"} {
		for name, callee := range map[string]func(*reference) func(base.Invocation) error{"refused": full, "refused on dubbo": fullDubbo, "failed": fails} {
			t.Run(cluster+"/"+name, func(t *testing.T) {
				s := withFallback(t, cluster, nil, callee, callee)
				for n := range int64(10) {
					ctx := fallback.Track(context.Background())
					reply, res := s.ask(ctx)
					require.NoError(t, res.Error())
					require.Equal(t, "instead", reply)
					require.Equal(t, s.name, res.Attachment(guard.FallbackAttachment, nil))
					by, ok := fallback.AnsweredBy(ctx)
					require.True(t, ok)
					require.Equal(t, s.name, by)
					require.Equal(t, n+1, s.runs.Load())
				}
				answered, failed, panicked := s.counts()
				require.Equal(t, []int64{10, 0, 0}, []int64{answered, failed, panicked})
			})
		}
	}
}

func TestAFallbackOfNestedClustersRunsOnce(t *testing.T) {
	s := withFallback(t, "failover", nil, full)
	s.cluster = clusterpkg.BuildInterceptorChain(s.cluster)
	for n := range int64(5) {
		reply, res := s.ask(context.Background())
		require.NoError(t, res.Error())
		require.Equal(t, "instead", reply)
		require.Equal(t, n+1, s.runs.Load())
	}
}

// Of two forks one is refused at once, and the other answers after the fallback.
func TestAForkThatComesHomeLate(t *testing.T) {
	gate, home := make(chan struct{}), make(chan struct{})
	slow := func(*reference) func(base.Invocation) error {
		return func(inv base.Invocation) error {
			<-gate
			*inv.Reply().(*string) = "late"
			close(home)
			return nil
		}
	}
	s := withFallback(t, "forking", nil, full, slow)
	reply := ""
	inv := s.invocation()
	inv.SetReply(&reply)
	require.NoError(t, s.cluster.Invoke(context.Background(), inv).Error())
	require.Equal(t, "instead", reply)
	close(gate)
	<-home
	require.Equal(t, "instead", reply)
}

func TestAForkThatAnswersIsHeard(t *testing.T) {
	answers := func(*reference) func(base.Invocation) error {
		return func(inv base.Invocation) error {
			*inv.Reply().(*string) = "answer"
			return nil
		}
	}
	s := withFallback(t, "forking", map[string]string{"forks": "1"}, answers)
	reply, res := s.ask(context.Background())
	require.NoError(t, res.Error())
	require.Equal(t, "answer", reply)
	require.Zero(t, s.runs.Load())
}

func TestWhatAFallbackAnswersInPlaceOf(t *testing.T) {
	refused := call.RejectError{Guard: "executes", Resource: "a.B#C", Reason: "concurrency", Limit: 1, Observed: 1}
	broken := refused
	broken.Guard = "breaker"
	forwarded := broken
	forwarded.Forwarded = true
	const breaker, refusals, failure, timeout = 1, 2, 4, 8
	words := map[int]string{breaker: "breaker", refusals: "refused", failure: "failure", timeout: "timeout"}
	var noPointer *triple_protocol.Error
	for name, tt := range map[string]struct {
		err error
		on  int
	}{
		"a refusal":            {call.NewRejectError(refused, nil), refusals},
		"a refusal, wrapped":   {fmt.Errorf("x: %w", call.NewRejectError(refused, nil)), refusals},
		"of a breaker":         {call.NewRejectError(broken, nil), breaker | refusals},
		"of another's breaker": {call.NewRejectError(forwarded, nil), refusals},
		"off the wire":         {wire(refused), refusals},
		"a broken connection":  {errors.New("connection refused"), failure},
		"no provider":          {errors.New("no provider available"), failure},
		"unavailable":          {triple_protocol.NewError(triple_protocol.CodeUnavailable, errors.New("x")), failure},
		"a panic there":        {triple_protocol.NewError(triple_protocol.CodeInternal, errors.New("x")), failure},
		"a nil pointer":        {fmt.Errorf("x: %w", error(noPointer)), failure},
		"a deadline":           {context.DeadlineExceeded, failure | timeout},
		"a deadline, Triple":   {triple_protocol.NewError(triple_protocol.CodeDeadlineExceeded, errors.New("x")), failure | timeout},
		"a timeout, dubbo":     {errors.New("maybe the client read timeout or fail to decode tcp stream in Writer.Write"), failure | timeout},
		"cancelled there":      {triple_protocol.NewError(triple_protocol.CodeCanceled, errors.New("x")), failure}, // not by the caller
		"an answer, Triple":    {triple_protocol.NewWireError(triple_protocol.CodeBizError, errors.New("no such user")), 0},
		"a handler's deadline": {triple_protocol.NewWireError(triple_protocol.CodeBizError, context.DeadlineExceeded), failure | timeout},
		"an answer by a code":  {triple_protocol.NewError(triple_protocol.CodeNotFound, errors.New("x")), 0},
		"an answer, dubbo":     {&hessian2.GenericException{ExceptionClass: "a.NoSuchUser", ExceptionMessage: "x"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, failBusiness := range []string{"success", "failure"} {
				for bit, word := range words {
					s := withFallback(t, "failfast", map[string]string{"fallback.on": word, "weir.business-errors": failBusiness},
						func(*reference) func(base.Invocation) error { return func(base.Invocation) error { return tt.err } })
					u := common.NewURLWithOptions(common.WithInterface(s.service))
					answerer := guard.NewFallbacks(s.rt, u, s.ref)
					reply := ""
					inv := s.invocation()
					inv.SetReply(&reply)
					res := answerer.Answer(context.Background(), inv, &result.RPCResult{Err: tt.err})
					if tt.on&bit == 0 {
						require.Equal(t, tt.err, res.Error(), word)
						require.Empty(t, reply)
						require.Zero(t, s.runs.Load())
						continue
					}
					require.NoError(t, res.Error(), word)
					require.Equal(t, "instead", reply)
					// Nobody waits any more.
					ctx, cancel := context.WithCancel(context.Background())
					cancel()
					require.Error(t, answerer.Answer(ctx, inv, &result.RPCResult{Err: tt.err}).Error())
				}
			}
		})
	}
}

func TestAModeThatEnforcesNothingLeavesErrorsAlone(t *testing.T) {
	s := withFallback(t, "failover", nil, full)
	for _, mode := range []conf.Mode{conf.Observe, conf.Off, conf.Enforce} {
		s.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: mode})
		reply, res := s.ask(context.Background())
		require.Equal(t, mode == conf.Enforce, res.Error() == nil, mode)
		require.Equal(t, mode == conf.Enforce, reply == "instead", mode)
	}
}

func TestFallbacksChangeUnderLoad(t *testing.T) {
	s := withFallback(t, "failover", nil, full)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				reply, res := s.ask(context.Background())
				if (res.Error() == nil) != (reply == "instead") {
					t.Errorf("%q %v", reply, res.Error())
				}
			}
		})
	}
	for n := range 50 {
		s.rt.Store.Set(conf.FromCode, "code", &conf.Config{Consumer: conf.Section{Services: map[string]conf.Service{
			s.service: {Policies: conf.Policies{Fallback: &conf.Fallback{Name: []string{"off", s.name, "nobody"}[n%3]}}},
		}}})
		answered, failed, _ := s.counts()
		require.GreaterOrEqual(t, answered, int64(0))
		require.Zero(t, failed)
	}
	wg.Wait()
	answered, _, _ := s.counts()
	require.Equal(t, s.runs.Load(), answered, "every answer is counted, whatever holds by now")
	require.LessOrEqual(t, s.rt.ConfigErrors(), int64(1), "what nobody registered is told once")
}

func TestThousandsOfMethodsAreBounded(t *testing.T) {
	s := withFallback(t, "failfast", nil, full)
	for n := range 3000 {
		reply := ""
		inv := invocation.NewRPCInvocationWithOptions(invocation.WithMethodName(fmt.Sprint("m", n)), invocation.WithArguments([]any{calls.Add(1)}), invocation.WithReply(&reply),
			invocation.WithAttachments(map[string]any{}))
		require.NoError(t, s.cluster.Invoke(context.Background(), inv).Error())
		require.Equal(t, "instead", reply)
	}
	series := 0
	s.rt.Fallbacks(func(guard.FallbackKey, *guard.FallbackCounts) { series++ })
	require.LessOrEqual(t, series, 1026)
}

// A method that the configuration names keeps its own fallback, however many others
// have been called before it. It had that of the unknown.
func TestRegression_ConfiguredMethodsAreNotCrowdedOut(t *testing.T) {
	s := withFallback(t, "failfast", map[string]string{"methods.Late.fallback": "off"}, full)
	ask := func(method string) error {
		reply := ""
		return s.cluster.Invoke(context.Background(), invocation.NewRPCInvocationWithOptions(invocation.WithMethodName(method),
			invocation.WithArguments([]any{calls.Add(1)}), invocation.WithReply(&reply), invocation.WithAttachments(map[string]any{}))).Error()
	}
	for n := range 1100 {
		require.NoError(t, ask(fmt.Sprint("m", n)))
	}
	require.ErrorIs(t, ask("Late"), call.ErrRejected)
	require.NoError(t, ask("m1101"))
}

// An error of the fallback comes with the call's; one that passes the call's on is alone.
func TestTheErrorOfAFallback(t *testing.T) {
	s := withFallback(t, "failover", nil, full)
	own := errors.New("the cache is empty")
	reuse := func(name string, f func(cause error) error) error {
		require.NoError(t, fallback.Register(s.name+name, func(_ context.Context, c fallback.Call) (any, error) { return nil, f(c.Cause) }))
		s.rt.Store.Set(conf.FromCode, "code", &conf.Config{Consumer: conf.Section{Services: map[string]conf.Service{
			s.service: {Policies: conf.Policies{Fallback: &conf.Fallback{Name: s.name + name}}},
		}}})
		_, res := s.ask(context.Background())
		return res.Error()
	}
	another := call.NewRejectError(call.RejectError{Guard: "tps", Resource: "c.D#*", Reason: "rate", Limit: 1, Observed: 1}, nil)
	var noPointer *triple_protocol.Error
	err := reuse("own", func(error) error { return own })
	require.ErrorIs(t, err, own)
	e, ok := call.As(err)
	require.True(t, ok)
	require.Equal(t, "executes", e.Guard)
	err = reuse("another", func(error) error { return another })
	e, _ = call.As(err)
	require.Equal(t, "executes", e.Guard, "the call's own refusal is found first")
	require.ErrorIs(t, err, another)
	requireTyped(t, reuse("same", func(cause error) error { return cause }), false)
	wrapped := reuse("wrapped", func(cause error) error { return fmt.Errorf("%w: %w", own, cause) })
	require.EqualError(t, wrapped, own.Error()+": "+errors.Unwrap(fmt.Errorf("%w", asRefusal(t, wrapped))).Error())
	require.ErrorIs(t, reuse("nil", func(error) error { return noPointer }), call.ErrRejected)
}

func asRefusal(t *testing.T, err error) error {
	e, ok := call.As(err)
	require.True(t, ok)
	return e
}
