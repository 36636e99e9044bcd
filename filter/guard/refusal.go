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
	"strings"
	"sync/atomic"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/dubbogo/gost/log/logger"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/retry"
)

// metaPrefix stands before the name of a refusal's field in a Triple error's
// metadata: weir-guard, weir-resource and so on.
const metaPrefix = "weir-"

// Refusal is a prepared refusal: everything about it that does not differ from
// call to call is made once. It is safe for concurrent use.
type Refusal struct {
	// Reject is the error that the caller gets to see.
	Reject *call.RejectError
	// Last keeps failover from trying another instance, which it may after the
	// refusal of a step that is PerInstance.
	Last bool

	err     error
	last    *retry.Last // what ends failover's loop, a consumer's
	counter *Rejections
	callers *Callers // a provider's
	service string
	// logs are that of refusals and that of those that were only observed.
	logs [2]*refusalLog
}

// NewRefusal prepares a refusal of a site. cause is the core's sentinel.
func (s Site) NewRefusal(e call.RejectError, cause error) *Refusal {
	reject := call.NewRejectError(e, cause)
	r := &Refusal{Reject: reject, err: reject, service: s.Service}
	if s.Side == conf.Provider {
		r.err = newWireRefusal(reject)
		r.callers = s.runtime.callers.Get(CallersKey{s.Service, e.Guard}, func() *Callers { return &Callers{} })
	} else {
		r.last = &retry.Last{Refusal: reject}
	}
	r.counter = s.runtime.rejections(RejectionKey{
		Side: s.Side.String(), Service: s.Service, Method: s.Method, Guard: e.Guard, Reason: e.Reason,
	})
	for i := range r.logs {
		key := refusalLogKey{e.Resource, e.Guard, e.Reason, i == 1}
		r.logs[i] = s.runtime.refusalLogs.Get(key, func() *refusalLog { return &refusalLog{refusalLogKey: key} })
	}
	return r
}

// With is the refusal of one call, which tells more than those prepared can. It
// counts with r.
func (r *Refusal) With(e call.RejectError, cause error) *Refusal {
	reject := call.NewRejectError(e, cause)
	out := &Refusal{Reject: reject, err: reject, counter: r.counter, callers: r.callers, service: r.service, logs: r.logs}
	if r.last == nil {
		out.err = newWireRefusal(reject)
	} else {
		out.last = &retry.Last{Refusal: reject}
	}
	return out
}

// result is the one allocation of a refused call: filters outside may write to it.
func (r *Refusal) result() result.Result { return &result.RPCResult{Err: r.err} }

// note counts a refusal, and logs a line now and then.
func (r *Refusal) note(ctx context.Context, inv base.Invocation, observed bool) {
	log := r.logs[0]
	if observed {
		log = r.logs[1]
		r.counter.wouldReject.Add(1)
	} else if n := r.counter.rejected.Add(1); r.callers != nil {
		r.callers.note(r.service, inv, n)
	}
	traceRefusal(ctx, r.Reject, !observed)
	log.note(r.Reject.Limit)
}

// logEvery is how often the refusals of one resource are worth a line.
const logEvery = time.Second

type refusalLogKey struct {
	resource, guard, reason string
	observed                bool
}

// refusalLog writes the lines of one resource, whichever methods, protocols and
// plans its refusals come from.
type refusalLog struct {
	refusalLogKey
	// muted is set for a second after a line. A timer ends it, so that a refusal
	// need not read the clock.
	muted atomic.Bool
	// quiet are the refusals since the last line, and limit that of the newest.
	quiet, limit atomic.Int64
}

func (l *refusalLog) note(limit int64) {
	if l.limit.Load() != limit {
		l.limit.Store(limit)
	}
	if l.muted.Load() || !l.muted.CompareAndSwap(false, true) {
		l.quiet.Add(1)
		return
	}
	time.AfterFunc(logEvery, l.unmute)
	logger.Warnf("[Weir][%s] %s a call, resource=%q reason=%s limit=%d", l.guard, verdict(l.observed), l.resource, l.reason, limit)
}

// unmute tells of the refusals since the last line, and is quiet again for as long
// as there were any.
func (l *refusalLog) unmute() {
	defer func() { _ = recover() }() // a logger that panics here would end the process
	n := l.quiet.Swap(0)
	if n == 0 {
		l.muted.Store(false)
		return
	}
	time.AfterFunc(logEvery, l.unmute)
	logger.Warnf("[Weir][%s] %s %d more calls in the last second, resource=%q reason=%s limit=%d",
		l.guard, verdict(l.observed), n, l.resource, l.reason, l.limit.Load())
}

func verdict(observed bool) string {
	if observed {
		return "would refuse (observing)"
	}
	return "refused"
}

// wireRefusal is a refusal on its way out of a provider. Outer filters see the
// typed error; the Triple server asks for a *triple_protocol.Error and finds the
// prepared one; the dubbo codec turns the typed error into an exception.
type wireRefusal struct {
	reject *call.RejectError
	triple *triple_protocol.Error
}

func newWireRefusal(e *call.RejectError) *wireRefusal {
	code := triple_protocol.CodeResourceExhausted
	if e.Forwarded {
		// The service that was called did run: for everybody who does not know
		// refusals this is an answer of it, and none to try again.
		code = triple_protocol.CodeBizError
	}
	t := triple_protocol.NewError(code, e)
	for _, f := range e.Fields() {
		t.Meta().Set(metaPrefix+f.Key, f.Value)
	}
	return &wireRefusal{reject: e, triple: t}
}

// Error is the refusal's text.
func (w *wireRefusal) Error() string { return w.reject.Error() }

// Unwrap is the refusal.
func (w *wireRefusal) Unwrap() error { return w.reject }

// As shows the prepared Triple error.
func (w *wireRefusal) As(target any) bool {
	if t, ok := target.(**triple_protocol.Error); ok {
		*t = w.triple
		return true
	}
	return false
}

// RejectionKey is what refusals are counted by.
type RejectionKey struct {
	Side, Service, Method, Guard, Reason string
}

// Rejections counts the refusals of one key.
type Rejections struct {
	rejected, wouldReject atomic.Int64
}

// Rejected is the number of refused calls.
func (r *Rejections) Rejected() int64 { return r.rejected.Load() }

// WouldReject is the number of calls that an observing guard let pass.
func (r *Rejections) WouldReject() int64 { return r.wouldReject.Load() }

// DubboException turns the refusal that a Guard made or stamped into the
// exception that the dubbo protocol carries: a class that Java readers know, and
// the refusal's text. A typed refusal that no Guard has seen is left to dubbo.
func DubboException(err error) (class, message string, ok bool) {
	w, ok := asWireRefusal(err)
	if !ok {
		return "", "", false
	}
	return rpcExceptionClass, w.reject.Error(), true
}

const rpcExceptionClass = "org.apache.dubbo.rpc.RpcException"

// isRPCException reports whether a Java class is dubbo's own exception, of
// either package that it had.
func isRPCException(class string) bool {
	return strings.HasSuffix(class, ".dubbo.rpc.RpcException")
}
