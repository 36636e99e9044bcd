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

package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
)

// overtimePrefix begins the text of the answer to a call that ran too long.
const overtimePrefix = "weir: answered while the call still runs:"

// overtimeClass is its exception class on the dubbo protocol, that of Java Dubbo's
// timeouts.
const overtimeClass = "org.apache.dubbo.remoting.TimeoutException"

// overtime is the answer to a call that ran longer than it may. It is no refusal, as
// the call did run. On Triple it is a business error, the only one that failover does
// not run again; its text ends as that of any handler that ran out of time, so that
// it counts as a timeout on both sides.
type overtime struct {
	text   string
	triple *triple_protocol.Error
}

func overtimeText(resource, policy string, d time.Duration) string {
	return fmt.Sprintf("%s guard=%s resource=%s run-timeout=%s: %v", overtimePrefix, policy, resource, d, context.DeadlineExceeded)
}

// newOvertime is the answer to one call: a Triple error has metadata that is made when
// somebody looks.
func newOvertime(text string) *overtime {
	o := &overtime{text: text}
	o.triple = triple_protocol.NewError(triple_protocol.CodeBizError, o)
	return o
}

// Error is the text.
func (o *overtime) Error() string { return o.text }

// Unwrap says that it is a timeout.
func (o *overtime) Unwrap() error { return context.DeadlineExceeded }

// As shows the prepared Triple error.
func (o *overtime) As(target any) bool {
	if t, ok := target.(**triple_protocol.Error); ok {
		*t = o.triple
		return true
	}
	return false
}

func asOvertime(err error) (o *overtime, ok bool) {
	defer notNil(func() { o, ok = nil, false })
	ok = errors.As(err, &o)
	return o, ok
}

// cameOvertime tells whether what came over the wire of the dubbo protocol is the
// answer to a call that runs too long.
func cameOvertime(err error) (ok bool) {
	defer notNil(func() { ok = false })
	return exceptionClass(err) == overtimeClass && strings.Contains(textOf(err), overtimePrefix)
}

// boundRun finds how long a call may run.
func (m *method) boundRun() {
	m.path = len(m.steps)
	if m.chain.streams[conf.MethodKey(m.name)] {
		return
	}
	for i := range m.steps {
		s := &m.steps[i]
		if s.RunFor > 0 && (m.runFor == 0 || s.RunFor < m.runFor) {
			m.runFor = s.RunFor
			m.overtime = overtimeText(call.Resource(m.chain.serviceKey, m.name), s.Policy, s.RunFor)
			m.path = pathBounded
		}
	}
}

// pathBounded is the path of a method whose calls may run only so long.
const pathBounded = -1

// bounded runs a call whose caller is answered when it has run for too long.
func (m *method) bounded(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	rpc, ok := inv.(*invocation.RPCInvocation)
	if !ok || streaming(inv) { // one that is not dubbo's own cannot be parted from its caller
		return m.several(ctx, next, inv)
	}
	h := &handling{Invoker: next, m: m, caller: rpc, permits: make([]Permit, len(m.steps)), done: make(chan struct{})}
	return m.serve(ctx, h, inv, h.permits)
}

// handling is a call that runs on a goroutine of its own, which may outlive the answer
// to its caller. Either the call ends first or its time does: state decides.
type handling struct {
	base.Invoker
	m      *method
	caller *invocation.RPCInvocation
	// permits are those of serve. Those of slots are taken over when the time is up,
	// as they are held until the call really ends.
	permits, kept []Permit
	state         atomic.Int32
	done          chan struct{} // closed when the call ended first

	// How the call ended, written before done is closed.
	res      result.Result
	returned bool
	panicked any
}

const (
	runs int32 = iota
	ended
	answered
)

// Invoke waits for the call or for its time to be up. What its goroutine does to end,
// this one does, too.
func (h *handling) Invoke(ctx context.Context, _ base.Invocation) result.Result {
	if ctx == nil {
		ctx = context.Background() // dubbo's own invokers do not all look at it
	}
	a := part(ctx, h.caller)
	timer := time.NewTimer(h.m.runFor)
	defer timer.Stop()
	go h.run(a)
	select {
	case <-h.done:
	case <-timer.C:
		if h.answer() {
			a.cancel(newOvertime(h.m.overtime))
			return &result.RPCResult{Err: newOvertime(h.m.overtime)}
		}
		<-h.done
	}
	if ctx.Done() != nil {
		// It ends soon in any case, and one that lives on must not keep the call's.
		defer a.cancel(nil)
	}
	a.join(ctx, h.caller)
	switch {
	case h.returned:
		return h.res
	case h.panicked != nil:
		panic(h.panicked)
	}
	runtime.Goexit()
	return nil
}

// answer takes the slots over and reports whether the time was up first.
func (h *handling) answer() bool {
	h.kept = make([]Permit, len(h.permits))
	for i := range h.permits {
		if s := &h.m.steps[i]; s.Ended == nil && !s.OnlyDropped {
			h.kept[i] = h.permits[i]
		}
	}
	if !h.state.CompareAndSwap(runs, answered) {
		return false
	}
	for i := range h.kept {
		if h.kept[i].Held {
			h.permits[i] = Permit{}
		}
	}
	return true
}

func (h *handling) run(a *apart) {
	defer h.end()
	h.res = h.Invoker.Invoke(a.ctx, a.inv)
	h.returned = true
}

// end is deferred: nothing that the call does may take the process with it.
func (h *handling) end() {
	if !h.returned {
		if h.panicked = recover(); h.panicked != nil {
			h.tell(debug.Stack())
		}
	}
	if h.state.CompareAndSwap(runs, ended) {
		close(h.done)
		return
	}
	h.release(len(h.kept))
}

// tell logs where a call panicked: on the goroutine that has to go on with the panic,
// if any does, that is lost.
func (h *handling) tell(stack []byte) {
	defer func() { _ = recover() }() // a logger that panics here would end the process
	logger.Errorf("[Weir][Guard] a call panicked, service=%s method=%s panic=%v\n%s", h.m.chain.serviceKey, h.m.name, h.panicked, stack)
}

// release gives back the slots of a call that has ended after all, the last first.
func (h *handling) release(n int) {
	done := false
	defer func() {
		if !done { // one panicked or exited, perhaps that of the first step
			_ = recover()
			h.release(n)
		}
	}()
	for n > 0 {
		n--
		if p := h.kept[n]; p.Held {
			h.m.steps[n].Release(p, call.Timeout)
		}
	}
	done = true
}

// apart is a call as its goroutine has it: it shares no map with the caller's.
type apart struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	inv    *invocation.RPCInvocation
	conn   apartConn
}

// part makes a call's own.
func part(ctx context.Context, caller *invocation.RPCInvocation) *apart {
	a := &apart{inv: invocation.NewRPCInvocationWithOptions(
		invocation.WithMethodName(caller.MethodName()),
		invocation.WithArguments(caller.Arguments()),
		invocation.WithParameterTypes(caller.ParameterTypes()),
		invocation.WithParameterTypeNames(caller.ParameterTypeNames()),
		invocation.WithParameterValues(caller.ParameterValues()),
		invocation.WithParameterRawValues(caller.ParameterRawValues()),
		invocation.WithReply(caller.Reply()),
		invocation.WithCallBack(caller.CallBack()),
		invocation.WithInvoker(caller.Invoker()),
		invocation.WithAttachments(cloneAttachments(caller.Attachments())),
	)}
	for k, v := range caller.Attributes() {
		a.inv.SetAttribute(k, v)
	}
	ctx, a.cancel = context.WithCancelCause(ctx)
	if _, ok := ctx.Value(constant.AttachmentKey).(map[string]any); ok {
		ctx = context.WithValue(ctx, constant.AttachmentKey, a.inv.Attachments())
	}
	if headersHere(ctx) {
		ctx = triple_protocol.NewOutgoingContext(ctx, triple_protocol.ExtractFromOutgoingContext(ctx))
	}
	a.ctx = &apartContext{Context: ctx, a: a}
	return a
}

func cloneAttachments(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if list, ok := v.([]string); ok {
			v = slices.Clone(list)
		}
		out[k] = v
	}
	return out
}

// headersHere tells whether the context has Triple's map of headers, which is changed
// in place.
func headersHere(ctx context.Context) bool {
	_, in := triple_protocol.FromIncomingContext(ctx)
	return in || triple_protocol.ExtractFromOutgoingContext(ctx) != nil
}

// join gives the caller what a call that has ended left in its maps.
func (a *apart) join(ctx context.Context, caller *invocation.RPCInvocation) {
	for k, v := range a.inv.Attachments() {
		caller.SetAttachment(k, v)
	}
	for k, v := range a.inv.Attributes() {
		caller.SetAttribute(k, v)
	}
	if headersHere(ctx) {
		before := maps.Clone(triple_protocol.ExtractFromOutgoingContext(ctx))
		for k, values := range triple_protocol.ExtractFromOutgoingContext(a.ctx) {
			for _, v := range values[min(len(before[k]), len(values)):] {
				triple_protocol.AppendToOutgoingContext(ctx, k, v)
			}
		}
	}
	if conn := a.conn.StreamingHandlerConn; conn != nil {
		add(conn.ResponseHeader(), a.conn.header)
		add(conn.ResponseTrailer(), a.conn.trailer)
	}
}

func add(to, from http.Header) {
	for k, values := range from {
		to[k] = append(to[k], values...)
	}
}

// apartContext keeps Triple's connection, in which handlers set headers, from a call's
// goroutine.
type apartContext struct {
	context.Context
	a *apart
}

// Value is that of the context.
func (c *apartContext) Value(key any) any {
	v := c.Context.Value(key)
	conn, ok := v.(triple_protocol.StreamingHandlerConn)
	if !ok {
		return v
	}
	c.a.conn.found(conn)
	return &c.a.conn
}

// apartConn is a connection with headers of its own. Only what sets headers asks for
// it: a unary call neither receives nor sends by it.
type apartConn struct {
	triple_protocol.StreamingHandlerConn
	once                     sync.Once
	request, header, trailer http.Header
}

func (c *apartConn) found(conn triple_protocol.StreamingHandlerConn) {
	c.once.Do(func() {
		c.StreamingHandlerConn = conn
		c.request, c.header, c.trailer = conn.RequestHeader().Clone(), http.Header{}, http.Header{}
	})
}

// RequestHeader is a copy of what came.
func (c *apartConn) RequestHeader() http.Header { return c.request }

// ResponseHeader is what will be added to the response's.
func (c *apartConn) ResponseHeader() http.Header { return c.header }

// ResponseTrailer is what will be added to the response's.
func (c *apartConn) ResponseTrailer() http.Header { return c.trailer }

// Send refuses: the response may have been sent.
func (c *apartConn) Send(any) error { return errApart }

var errApart = errors.New("weir: a call with a bulkhead.run-timeout cannot send before it ends")
