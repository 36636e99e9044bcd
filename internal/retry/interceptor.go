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

package retry

import (
	"context"
	"errors"
	"sync/atomic"

	"dubbo.apache.org/dubbo-go/v3/cluster/cluster"
	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"

	"github.com/weir-go/weir/call"
)

const (
	// AttributeKey is the URL attribute that carries a *Reference.
	AttributeKey = "weir.reference"
	// ownerKey is the attribute of an invocation that holds the interceptor that
	// owns the call, where several are nested.
	ownerKey = "weir.owner"
)

// Of finds the reference of a URL, or of the one below a registry's.
func Of(u *common.URL) *Reference {
	for ; u != nil; u = u.SubURL {
		if v, ok := u.GetAttribute(AttributeKey); ok {
			if r, ok := v.(*Reference); ok {
				return r
			}
		}
	}
	return nil
}

// Interceptor sees each logical call of one reference once, outside of its
// retries. dubbo makes one per cluster that it joins: one per reference, or, for
// a reference to several groups or registries, some inside of another. Then the
// outermost owns the call.
type Interceptor struct {
	ref atomic.Pointer[Reference]
	// failback keeps the state of a call, because the cluster runs the call
	// again after its caller has gone.
	failback atomic.Bool
	// forking is set where the attempts of a call run at the same time, see [Forks].
	forking atomic.Bool
}

// NewInterceptor returns an interceptor that learns its reference from its first call.
func NewInterceptor() cluster.Interceptor { return &Interceptor{} }

// Invoke runs the call and hands its caller the refusal itself.
func (i *Interceptor) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	ref, first := i.ref.Load(), false
	if ref == nil {
		if ref = i.learn(next.GetURL()); ref == nil {
			return next.Invoke(ctx, inv)
		}
		first = true // whether others are inside shows only during this call
	}
	if first || ref.nested() {
		owner, ok := inv.GetAttribute(ownerKey)
		if ok && owner != nil || first && ref.nested() {
			// Somebody further out owns the call: it has marked it, or it did not
			// know before now that it is not alone. What is outside learns first.
			return next.Invoke(ctx, inv)
		}
		inv.SetAttribute(ownerKey, i)
		defer inv.SetAttribute(ownerKey, nil)
	}
	return i.own(ctx, ref, next, inv)
}

func (i *Interceptor) own(ctx context.Context, ref *Reference, next base.Invoker, inv base.Invocation) result.Result {
	ref.calls.Add(1)
	if ref.Grouper != nil {
		ref.Grouper.Mark(ctx, inv)
	}
	if ref.Refusing() && stateOf(inv) != nil {
		// The program uses the invocation again; it starts without a past.
		inv.SetAttribute(stateKey, nil)
	}
	var forks *Forks
	if i.forking.Load() {
		forks = fork(inv)
	}
	res := next.Invoke(ctx, inv)
	forks.land(res)
	if ref.Refusing() && !i.failback.Load() {
		ref.finish(inv)
	}
	if res == nil {
		return res
	}
	if err := res.Error(); err != nil {
		var last *Last
		if errors.As(err, &last) && last != nil {
			res.SetError(last.Err)
		}
		if ref.Answerer != nil {
			return ref.Answerer.Answer(ctx, inv, res)
		}
	}
	return res
}

func (i *Interceptor) learn(u *common.URL) *Reference {
	ref := Of(u)
	if ref == nil {
		return nil
	}
	cluster := ref.Cluster
	for s := u; s != nil && cluster == ""; s = s.SubURL {
		cluster = s.GetParam(constant.ClusterKey, "")
	}
	i.failback.Store(cluster == constant.ClusterKeyFailback)
	i.forking.Store(cluster == constant.ClusterKeyForking)
	if i.ref.CompareAndSwap(nil, ref) {
		ref.interceptors.Add(1)
	}
	return ref
}

// nested reports whether the reference is a cluster of clusters.
func (r *Reference) nested() bool { return r.interceptors.Load() > 1 }

// Final wraps a refusal so that failover's loop ends with it. Where no
// interceptor would unwrap it, it is returned as it is.
func (r *Reference) Final(e *call.RejectError) error { return r.Ends(e) }

// Ends is Final for an error that is no refusal.
func (r *Reference) Ends(err error) error {
	if r.Armed() {
		return &Last{err}
	}
	return err
}

// Nowhere is what a call ends with that no instance of its cluster may get: there is
// nothing to try here, though the loop of another group or registry around it may find
// somebody.
func (r *Reference) Nowhere(err error) error {
	if r.nested() {
		return err
	}
	return r.Ends(err)
}

// Armed reports whether somebody outside of failover's loop unwraps a [Last].
func (r *Reference) Armed() bool { return r.interceptors.Load() > 0 }

// Last is a refusal, or another error, that is not to be retried. Failover goes on after every
// error but a business error that came over the wire, so that is what it looks
// like to errors.As.
type Last struct {
	Err error
}

// bizWire is the only error that ends failover's loop.
var bizWire = triple_protocol.NewWireError(triple_protocol.CodeBizError, call.ErrRejected)

// Error is the error's text.
func (l *Last) Error() string { return l.Err.Error() }

// Unwrap is the error.
func (l *Last) Unwrap() error { return l.Err }

// As shows the business error to dubbo's loop.
func (l *Last) As(target any) bool {
	if t, ok := target.(**triple_protocol.Error); ok {
		*t = bizWire
		return true
	}
	return false
}
