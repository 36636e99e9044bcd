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

package breaker

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/client"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	hessian "github.com/apache/dubbo-go-hessian2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/integration_test/harness"
)

// What a call counts as.
const (
	nothing = "nothing"
	answer  = "answer"
	failure = "failure"
)

// counted makes a call that ends with an error, and tells what it counts as.
func counted(t *testing.T, p *harness.Provider, c *harness.Consumer, arg string) string {
	t.Helper()
	before := breakerOf(t, p.Group, p.Addr)
	_, err := c.SayHello(background, arg)
	require.Error(t, err)
	require.False(t, weir.IsRejected(err), "%v", err)
	after := breakerOf(t, p.Group, p.Addr)
	calls, failures := after.Calls-before.Calls, after.Failures-before.Failures
	switch {
	case calls == 0 && failures == 0:
		return nothing
	case calls == 1 && failures == 0:
		return answer
	case calls == 1 && failures == 1:
		return failure
	}
	t.Fatalf("one call counts as %d of which %d failed", calls, failures)
	return ""
}

// panics is the argument of a call whose handler panics as handlers do.
const panics = "panics"

// failing is a provider in this process.
func failing(t *testing.T, protocol string) *harness.Provider {
	t.Helper()
	scripted := &harness.Handler{}
	return harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Handler: &harness.Handler{
		Func: func(ctx context.Context, method, arg string) (string, error) {
			if arg == panics {
				return strings.Fields(arg)[len(arg)], nil
			}
			return scripted.Script(ctx, method, arg)
		},
	}})
}

func TestWhatIsAFailureOverTheWire(t *testing.T) {
	code := func(c triple_protocol.Code) string { return harness.Code(c) }
	for protocol, tests := range map[string]map[string]string{
		harness.Triple: {
			harness.Fail("no such user"):                   answer,
			panics:                                         failure,
			harness.Panic("text"):                          failure,
			code(triple_protocol.CodeUnknown):              failure,
			code(triple_protocol.CodeUnimplemented):        failure,
			code(triple_protocol.CodeInternal):             failure,
			code(triple_protocol.CodeUnavailable):          failure,
			code(triple_protocol.CodeDataLoss):             failure,
			code(triple_protocol.CodeDeadlineExceeded):     failure,
			code(triple_protocol.CodeCanceled):             failure, // it was not this caller who gave up
			code(triple_protocol.CodeInvalidArgument):      answer,
			code(triple_protocol.CodeNotFound):             answer,
			code(triple_protocol.CodeAlreadyExists):        answer,
			code(triple_protocol.CodePermissionDenied):     answer,
			code(triple_protocol.CodeFailedPrecondition):   answer,
			code(triple_protocol.CodeAborted):              answer,
			code(triple_protocol.CodeOutOfRange):           answer,
			code(triple_protocol.CodeUnauthenticated):      answer,
			harness.Throw("org.apache.dubbo.RpcException"): answer, // Triple carries no class
		},
		harness.Dubbo: {
			harness.Fail("no such user"):                                  answer,
			panics:                                                        failure,
			harness.Panic("text"):                                         answer, // the same on the wire as a business error
			code(triple_protocol.CodeUnavailable):                         answer, // so is this
			harness.Throw("com.acme.StockException"):                      answer,
			harness.Throw("java.lang.NullPointerException"):               answer,
			harness.Throw("java.lang.Exception"):                          answer,
			harness.Throw("org.apache.dubbo.rpc.RpcException"):            failure,
			harness.Throw("com.alibaba.dubbo.rpc.RpcException"):           failure,
			harness.Throw("org.apache.dubbo.remoting.RemotingException"):  failure,
			harness.Throw("com.alibaba.dubbo.remoting.RemotingException"): failure,
			harness.Throw("org.apache.dubbo.remoting.TimeoutException"):   failure,
			harness.Throw("java.util.concurrent.TimeoutException"):        failure,
		},
	} {
		t.Run(protocol, func(t *testing.T) {
			p := failing(t, protocol)
			c := dial(t, p.Endpoint, params("breaker.error-count", "1000"))
			_, err := c.SayHello(background, "x")
			require.NoError(t, err)
			for arg, want := range tests {
				assert.Equal(t, want, counted(t, p, c, arg), arg)
			}
		})
	}
}

func TestWordsOverTheWire(t *testing.T) {
	stock, rpc := harness.Throw("com.acme.stock.StockException"), harness.Throw("org.apache.dubbo.rpc.RpcException")
	for protocol, tests := range map[string][]struct{ failures, ignore, arg, want string }{
		harness.Triple: {
			{"not_found", "", harness.Code(triple_protocol.CodeNotFound), failure},
			{"not_found", "", harness.Code(triple_protocol.CodeAborted), answer},
			{"biz_error", "", harness.Fail("no such user"), failure},
			{"biz_error", "", harness.Code(triple_protocol.CodeAborted), answer},
			{"business", "", harness.Code(triple_protocol.CodeAborted), failure},
			{"", "biz_error", harness.Fail("no such user"), nothing},
			{"", "unavailable,aborted", harness.Code(triple_protocol.CodeUnavailable), nothing},
			{"", "unavailable,aborted", harness.Code(triple_protocol.CodeAborted), nothing},
			{"", "unavailable", harness.Code(triple_protocol.CodeInternal), failure},
			{"unavailable", "failure", harness.Code(triple_protocol.CodeUnavailable), failure},
			{"unavailable", "failure", harness.Code(triple_protocol.CodeInternal), nothing},
			{"", "timeout", harness.Code(triple_protocol.CodeDeadlineExceeded), nothing},
			{"resource_exhausted", "", harness.Code(triple_protocol.CodeResourceExhausted), failure},
			{"", "resource_exhausted", harness.Code(triple_protocol.CodeResourceExhausted), nothing},
		},
		harness.Dubbo: {
			{"com.acme.stock.StockException", "", stock, failure},
			{"com.acme.*", "", stock, failure},
			{"com.acme.other.*", "", stock, answer},
			{"com.acme.*", "com.acme.stock.*", stock, nothing},
			{"", "com.acme.stock.StockException", stock, nothing},
			{"", "org.apache.dubbo.rpc.RpcException", rpc, nothing},
			{"", "com.acme.*", rpc, failure},
			{"business", "", stock, failure},
			{"java.lang.Throwable", "", harness.Fail("no such user"), failure},
			{"", "timeout", harness.Throw("org.apache.dubbo.remoting.TimeoutException"), nothing},
		},
	} {
		t.Run(protocol, func(t *testing.T) {
			p := failing(t, protocol)
			for _, tt := range tests {
				own := params("breaker.error-count", "1000")
				if tt.failures != "" {
					own["breaker.failures"] = tt.failures
				}
				if tt.ignore != "" {
					own["breaker.ignore"] = tt.ignore
				}
				c := dial(t, p.Endpoint, own)
				// Those of the references before have counted their own.
				b := func() (calls, failures int64) {
					for _, b := range breakersOf(p.Group, "SayHello") {
						calls, failures = calls+b.Calls, failures+b.Failures
					}
					return calls, failures
				}
				calls, failures := b()
				_, err := c.SayHello(background, tt.arg)
				require.Error(t, err)
				moreCalls, moreFailures := b()
				want := map[string][2]int64{nothing: {0, 0}, answer: {1, 0}, failure: {1, 1}}[tt.want]
				assert.Equal(t, want, [2]int64{moreCalls - calls, moreFailures - failures}, "%+v", tt)
			}
		})
	}
}

func TestBusinessErrorsNeverTrip(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		p := failing(t, protocol)
		c := dial(t, p.Endpoint, params("breaker.consecutive-errors", "2", "breaker.error-count", "2", "breaker.error-ratio", "1%", "breaker.min-calls", "1"))
		const calls = 50
		arg := harness.Fail("no such user")
		if protocol == harness.Dubbo {
			arg = harness.Throw("com.acme.UserException")
		}
		errs := harness.Go(calls, func(int) error {
			_, err := c.SayHello(background, arg)
			if err == nil || weir.IsRejected(err) {
				return errors.New("it is another")
			}
			return nil
		}).Wait(t)
		require.Zero(t, harness.Failed(errs))
		b := breakerOf(t, p.Group, p.Addr)
		require.Equal(t, closed, b.State)
		require.EqualValues(t, calls, b.Calls)
	})
}

func TestAGenericCallCountsUnderTheRealMethod(t *testing.T) {
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Dubbo})
	cli, err := client.NewClient()
	require.NoError(t, err)
	opts := []client.ReferenceOption{
		client.WithURL(p.URL()), client.WithProtocolDubbo(), client.WithGroup(p.Group), client.WithGenericType("true"),
		client.WithSerialization(constant.Hessian2Serialization), client.WithRetries(0),
	}
	for k, v := range params("breaker.consecutive-errors", "3") {
		opts = append(opts, client.WithParam(k, v))
	}
	generic, err := cli.NewGenericService("greet.GreetService", opts...)
	require.NoError(t, err)
	invoke := func(method, arg string) error {
		_, err := generic.Invoke(background, method, []string{"java.lang.String"}, []hessian.Object{arg})
		return err
	}
	for range 3 {
		err := invoke("SayHello", harness.Broken(harness.Dubbo))
		require.Error(t, err)
		require.False(t, weir.IsRejected(err), "%v", err)
	}
	for _, spelling := range []string{"SayHello", "sayHello"} {
		opened(t, invoke(spelling, "x"), p.Group, call.ReasonConsecutiveErrors)
	}
	require.NoError(t, invoke("Echo", "x"), "another method")
	require.Equal(t, 3, p.Handler.Stats("SayHello").Total)
	require.Equal(t, open, breakersOf(p.Group, "SayHello")[0].State)
	runtime.KeepAlive(generic) // its breakers go with it
}

// An asynchronous call counts as soon as it is sent, whatever comes of it.
func TestAnAsynchronousCallCountsWhenItIsSent(t *testing.T) {
	p := harness.StartProvider(t, harness.ProviderConfig{Protocol: harness.Dubbo})
	c := dial(t, p.Endpoint, params("breaker.consecutive-errors", "1"))
	// What a reference is told by WithAsync reaches calls of its proxies only.
	async := context.WithValue(background, constant.AttachmentKey, map[string]any{constant.AsyncKey: "true"})
	for n := range 3 {
		_, err := c.SayHello(async, harness.Broken(harness.Dubbo))
		require.NoError(t, err)
		harness.Eventually(t, "it ran", func() bool { return p.Handler.Stats("SayHello").Total == n+1 })
	}
	b := breakerOf(t, p.Group, p.Addr)
	require.Equal(t, closed, b.State)
	require.EqualValues(t, 3, b.Calls)
	require.Zero(t, b.Failures)

	configureForced(t, p.Group)
	_, err := c.SayHello(async, "x")
	refused(t, err, p.Group, call.ReasonForced)
	require.Equal(t, 3, p.Handler.Stats("SayHello").Total)
}

func TestRefusalsOfTheOtherSideAreNoFailures(t *testing.T) {
	for _, tt := range []struct {
		name, failures string
		trips          bool
	}{{"by default", "", false}, {"where they are named", "rejected", true}, {"where others are named", "forwarded", false}} {
		t.Run(tt.name, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol string) {
				p := harness.StartProvider(t, harness.ProviderConfig{Protocol: protocol, Params: map[string]string{"executes": "1"}})
				own := params("breaker.consecutive-errors", "3")
				if tt.failures != "" {
					own["breaker.failures"] = tt.failures
				}
				c := dial(t, p.Endpoint, own)
				held := harness.Go(1, func(int) error {
					_, err := c.SayHello(background, harness.Hold("g"))
					return err
				})
				harness.Eventually(t, "the slot is taken", func() bool { return p.Handler.Stats("").Running == 1 })
				guards := ""
				for range 6 {
					_, err := c.SayHello(background, "x")
					e, ok := weir.AsRejected(err)
					require.True(t, ok, "%T %v", err, err)
					guards += e.Guard + " "
				}
				b := breakerOf(t, p.Group, p.Addr)
				if tt.trips {
					require.Equal(t, strings.Repeat("executes ", 3)+strings.Repeat("breaker ", 3), guards)
					require.Equal(t, open, b.State)
				} else {
					require.Equal(t, strings.Repeat("executes ", 6), guards)
					require.Equal(t, closed, b.State)
					require.EqualValues(t, 6, b.Refused)
					require.Zero(t, b.Calls)
				}
				p.Handler.Open("g")
				require.Zero(t, harness.Failed(held.Wait(t)))
			})
		})
	}
}

func TestForwardedRefusalsAreNoFailures(t *testing.T) {
	for _, failures := range []string{"", "forwarded"} {
		t.Run("failures="+failures, func(t *testing.T) {
			for _, downProtocol := range harness.Protocols {
				eachProtocol(t, func(t *testing.T, protocol string) {
					down := harness.StartProvider(t, harness.ProviderConfig{Protocol: downProtocol, Params: map[string]string{"executes": "1"}})
					fromMiddle := down.Dial(t)
					held := harness.Go(1, func(int) error {
						_, err := fromMiddle.SayHello(background, harness.Hold("g"))
						return err
					})
					harness.Eventually(t, "the slot is taken", func() bool { return down.Handler.Stats("").Running == 1 })
					// The middle service has a breaker too: what its handler passes on is no failure of it.
					middle := harness.StartProvider(t, harness.ProviderConfig{
						Protocol: protocol, Params: params("breaker.consecutive-errors", "1"),
						Handler: &harness.Handler{Func: func(_ context.Context, _, arg string) (string, error) {
							return fromMiddle.SayHello(context.WithoutCancel(background), arg)
						}},
					})
					own := params("breaker.consecutive-errors", "3")
					if failures != "" {
						own["breaker.failures"] = failures
					}
					top := dial(t, middle.Endpoint, own)
					for n := range 6 {
						_, err := top.SayHello(background, "x")
						e, ok := weir.AsRejected(err)
						require.True(t, ok, "%T %v", err, err)
						if failures != "" && n >= 3 {
							require.Equal(t, "breaker", e.Guard)
							continue
						}
						require.Equal(t, "executes", e.Guard)
						require.True(t, e.Forwarded)
					}
					down.Handler.Open("g")
					require.Zero(t, harness.Failed(held.Wait(t)))
				})
			}
		})
	}
}
