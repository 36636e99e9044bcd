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
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/fallback"
	"github.com/weir-go/weir/internal/retry"
)

// FallbackAttachment is the attachment of a result that a fallback has answered. It
// names the fallback.
const FallbackAttachment = "weir-fallback"

// Fallbacks answers the failed calls of one reference where its configuration
// names a function for that. It is asked outside of retries, and only about calls
// that have failed. It is safe for concurrent use.
type Fallbacks struct {
	runtime    *Runtime
	service    conf.ServiceKey
	serviceKey string
	params     *conf.Service
	known      []string // the methods, where the reference says
	async      bool     // nobody waits for what its calls answer

	plans atomic.Pointer[fallbackPlans]
	mu    sync.Mutex // guarded by mu: adding a plan
	// counts are those of all plans, former ones too: they go with the reference.
	counts map[FallbackKey]*FallbackCounts // guarded by mu
}

// fallbackPlans are those of one version of the configuration. It is immutable.
type fallbackPlans struct {
	view    *conf.View
	methods map[string]*fallbackPlan // by conf.MethodKey
}

// fallbackPlan is what holds for the failed calls of one method.
type fallbackPlan struct {
	method string // as it was called first
	policy conf.FallbackPolicy
	counts *FallbackCounts // nil without a policy
	told   atomic.Bool     // that the function is at fault
}

// NewFallbacks returns what answers the failed calls of a reference that is about
// to be made.
func NewFallbacks(rt *Runtime, u *common.URL, ref *retry.Reference) *Fallbacks {
	service := ServiceOf(u)
	return rt.fallbacks.Get(ref.ID, func() *Fallbacks {
		return &Fallbacks{
			runtime: rt, service: service, serviceKey: service.String(), params: ref.Params, known: KnownMethods(u),
			async:  u.GetParamBool(constant.AsyncKey, false),
			counts: map[FallbackKey]*FallbackCounts{},
		}
	})
}

// Answer runs the fallback of a failed call, if there is one for its error. Where
// nobody answers the result is as it was.
func (f *Fallbacks) Answer(ctx context.Context, inv base.Invocation, res result.Result) result.Result {
	method := methodName(inv)
	p := f.plan(method)
	if p.policy.Name == "" || !f.waitedFor(inv) || errors.Is(ctx.Err(), context.Canceled) {
		return res
	}
	cause := res.Error()
	if !covers(ctx, p.policy.On, cause) {
		return res
	}
	entry := fallback.Find(p.policy.Name)
	if entry == nil {
		p.counts.failed.Add(1)
		f.fault(p, unregistered())
		return res
	}
	err := entry.Answer(ctx, fallback.Call{Service: f.serviceKey, Method: method, Cause: cause}, inv)
	if err == nil {
		p.counts.answered.Add(1)
		fallback.Note(ctx, p.policy.Name)
		answer := &result.RPCResult{Rest: inv.Reply()}
		answer.AddAttachment(FallbackAttachment, p.policy.Name)
		return answer
	}
	if panicked, ok := err.(*fallback.Panic); ok { //nolint:errorlint // its own panic, not one that an error of its tells of
		p.counts.panicked.Add(1)
		p.counts.log.note(panicked)
		return res
	}
	p.counts.failed.Add(1)
	if misfit(err) {
		f.fault(p, err.Error())
		return res
	}
	res.SetError(bothOf(p.policy.Name, cause, err))
	return res
}

// waitedFor reports whether the caller of a call waits for its answer, and finds it in
// the call's reply.
func (f *Fallbacks) waitedFor(inv base.Invocation) bool {
	return !f.async && !streaming(inv) && !async(inv)
}

// misfit reports whether the function was of the wrong shape.
func misfit(err error) (ok bool) {
	defer notNil(func() { ok = false })
	return errors.Is(err, fallback.ErrMisfit)
}

// bothOf is the error of a call whose fallback has failed too. A fallback that
// passes the call's error on has said all.
func bothOf(name string, cause, err error) (both error) {
	both = &fallback.Error{Name: name, Cause: cause, Err: err}
	defer notNil(func() {})
	if errors.Is(err, cause) {
		return err
	}
	return both
}

// plan is what holds for a method now.
func (f *Fallbacks) plan(method string) *fallbackPlan {
	key := conf.MethodKey(method)
	if ps := f.plans.Load(); ps != nil && ps.view.Version == f.runtime.Store.Version() {
		if p := ps.methods[key]; p != nil {
			return p
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.planLocked(key, method)
}

func (f *Fallbacks) planLocked(key, method string) *fallbackPlan {
	next := &fallbackPlans{methods: map[string]*fallbackPlan{}}
	if ps := f.plans.Load(); ps != nil && ps.view.Version == f.runtime.Store.Version() {
		if p := ps.methods[key]; p != nil {
			return p
		}
		next.view = ps.view
		maps.Copy(next.methods, ps.methods)
	} else {
		next.view = f.runtime.Store.View()
	}
	if !nameable(method) || len(next.methods) >= maxMethods && !f.configured(next.view, key) {
		key, method = call.AnyMethod, call.AnyMethod
		if p := next.methods[key]; p != nil {
			return p
		}
	}
	p := &fallbackPlan{method: method}
	if mode, _ := next.view.Mode(); mode == conf.Enforce {
		p.policy = next.view.Resolve(conf.Consumer, f.service, method, f.params).Fallback
	}
	if p.policy.Name != "" {
		p.counts = f.countsLocked(method, p.policy.Name)
	}
	next.methods[key] = p
	f.plans.Store(next)
	return p
}

// configured reports whether a source names a method.
func (f *Fallbacks) configured(view *conf.View, key string) bool {
	if f.params != nil {
		if _, ok := f.params.Methods[key]; ok {
			return true
		}
	}
	return slices.Contains(view.MethodsOf(conf.Consumer, f.service), key)
}

func (f *Fallbacks) countsLocked(method, name string) *FallbackCounts {
	key := FallbackKey{Side: conf.Consumer.String(), Service: f.serviceKey, Method: method, Fallback: name}
	c := f.counts[key]
	if c == nil {
		c = f.runtime.fellBack.Get(key, func() *FallbackCounts { return &FallbackCounts{log: panicLog{key: key}} })
		f.counts[key] = c
	}
	return c
}

// fault tells once that a function cannot answer.
func (f *Fallbacks) fault(p *fallbackPlan, problem string) {
	if p.told.Swap(true) {
		return
	}
	f.runtime.ConfigError(&conf.Error{Faults: []conf.Fault{{
		Source: "fallback", Side: conf.Consumer.String(), Service: f.serviceKey, Method: p.method, Key: conf.FallbackKey, Value: p.policy.Name,
		Problem: problem + "; the call's own error stays", Allowed: "a name given to weir.RegisterFallback, of a " + fallback.Shapes,
	}}})
}

func unregistered() string {
	names := fallback.Names()
	if len(names) == 0 {
		return "no function of that name is registered, and none of any other"
	}
	return "no function of that name is registered; there are: " + strings.Join(names, ", ")
}

// refresh has a plan for each method that is known, so that it is counted from the
// beginning on.
func (f *Fallbacks) refresh() []*fallbackPlan {
	spelled := map[string]string{}
	for _, name := range f.known {
		if key := conf.MethodKey(name); spelled[key] == "" || name != key { // dubbo lists a Go method under both of its spellings
			spelled[key] = name
		}
	}
	names := slices.Sorted(maps.Values(spelled))
	if ps := f.plans.Load(); ps != nil {
		for key, p := range ps.methods { // those that were called under a former version, as they are spelled
			if spelled[key] == "" {
				names = append(names, p.method)
			}
		}
	}
	out := make([]*fallbackPlan, 0, len(names))
	for _, name := range names {
		out = append(out, f.plan(name))
	}
	return out
}

// WarnFallbacks tells of functions that are configured and not registered. It is for
// once all should be.
func (rt *Runtime) WarnFallbacks() {
	rt.fallbacks.Range(func(_ uint64, f *Fallbacks) bool {
		view := rt.Store.View()
		names := append([]string{""}, f.known...)
		names = append(names, view.MethodsOf(conf.Consumer, f.service)...)
		if f.params != nil {
			names = slices.AppendSeq(names, maps.Keys(f.params.Methods))
		}
		told := map[string]bool{}
		for _, method := range names {
			name := view.Resolve(conf.Consumer, f.service, method, f.params).Fallback.Name
			if name != "" && !told[name] && fallback.Find(name) == nil {
				told[name] = true
				rt.Warn(fmt.Sprintf("side=%s service=%s %s=%s is configured: %s", conf.Consumer, f.serviceKey, conf.FallbackKey, name, unregistered()))
			}
		}
		return true
	})
}
