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

package overload

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/overload"
)

const (
	// ProviderFilter is the filter's name in a provider's chain.
	ProviderFilter = "overload"
	// ConsumerFilter is its name in a consumer's.
	ConsumerFilter = "overload-consumer"
	// Policy is the policy's name, and the guard's in a refusal.
	Policy = conf.OverloadKey
)

// rankConsumer is behind all waits of a consumer: who waits there holds no slot here.
const rankConsumer = guard.RankSlot + 80

// ErrOverloaded is what a refusal unwraps to.
var ErrOverloaded = errors.New("weir: the method has as many running calls as it may")

func set(e conf.Effective) bool { return e.Overload.Set && e.Overload.Mode != conf.Off }

// steps builds the stage for a site.
func steps(site guard.Site) []guard.Step {
	if !set(site.Policy) {
		return nil
	}
	p := site.Policy.Overload
	if site.Streams && p.Auto {
		// How long a stream stays open tells nothing of how many there may be.
		site.Runtime().Warn(fmt.Sprintf("service=%s method=%s: overload=auto finds out nothing by streams; overload.ceiling=%d is their limit", site.Service, site.Method, p.Ceiling))
		p.Auto, p.Limit, p.MaxExpand = false, p.Ceiling, 1
	}
	key := Key{Side: site.Side, Reference: site.Reference, Service: site.Service, Method: conf.MethodKey(site.Method), runtime: site.Runtime()}
	e := entries.Get(key, func() *entry {
		return &entry{teller: &teller{key: key, profiles: profilesOf(site.Runtime())}, watch: watchOf(site.Runtime())}
	})
	if err := e.set(site, p); err != nil {
		// Values are checked when they are read; a cap that cannot be made must neither
		// pass silently nor take the service down.
		site.Runtime().ConfigError(fmt.Errorf("service=%s method=%s: the last good cap stays in force, if there is one: %w", site.Service, site.Method, err))
		if e.Cap == nil {
			return nil
		}
	}
	e.watch.start()
	s := &stage{entry: e, site: site, measures: p.Auto && site.Side == conf.Consumer}
	for _, r := range []overload.Reason{overload.Highest, overload.SlowCalls, overload.Tight} {
		s.counters = append(s.counters, site.NewRefusal(s.reject(overload.Verdict{Reason: r}), ErrOverloaded))
	}
	step := guard.Step{
		Policy: Policy, Rank: guard.RankSlot, Observe: p.Mode == conf.Observe, Clock: true,
		Look: s.look, Take: s.take, Release: s.release,
	}
	if site.Side == conf.Consumer {
		step.Rank = rankConsumer
	}
	switch {
	case p.Auto && site.Policy.Bulkhead.RunTimeout > 0:
		// A step that is told of the end is told when the caller is answered, and a slot
		// comes back only when the call really ends.
		return []guard.Step{step, {
			Policy: Policy, Rank: guard.RankSlot, Clock: true, Ended: s.answered,
			Take: func(guard.Call) (guard.Permit, *guard.Refusal) { return guard.Permit{}, nil },
		}}
	case p.Auto:
		step.Ended = s.ended
	}
	return []guard.Step{step}
}

// stage is a cap as a plan uses it.
type stage struct {
	entry *entry // owned
	site  guard.Site
	// measures is set on a consumer whose calls are what the limit is found out by.
	measures bool
	// counters keep those of the refusals that may come.
	counters []*guard.Refusal
	// last is the refusal of the newest verdict.
	last atomic.Pointer[refusal]
}

type refusal struct {
	verdict overload.Verdict
	*guard.Refusal
}

func (s *stage) reject(v overload.Verdict) call.RejectError {
	return call.RejectError{
		Guard: Policy, Resource: call.Resource(s.site.Service, s.site.Method),
		Reason: v.Reason.String(), Limit: v.Cap, Observed: v.Cap,
	}
}

func (s *stage) refused(v *overload.Verdict) *guard.Refusal {
	r := s.last.Load()
	if r == nil || r.verdict != *v {
		r = &refusal{*v, s.site.NewRefusal(s.reject(*v), ErrOverloaded)}
		s.last.Store(r)
	}
	return r.Refusal
}

func nowOf(c guard.Call) time.Duration {
	if c.Now == 0 {
		return guard.Now()
	}
	return c.Now
}

func (s *stage) look(c guard.Call) *guard.Refusal {
	if c.Opens {
		return nil // as in take
	}
	if v, full := s.entry.Full(nowOf(c)); full {
		return s.refused(v)
	}
	return nil
}

// take admits the call. On a consumer a call that opens a stream is left alone: nobody
// learns there when it is over.
func (s *stage) take(c guard.Call) (guard.Permit, *guard.Refusal) {
	if c.Opens {
		return guard.Permit{}, nil
	}
	var caller *string
	if s.site.Side == conf.Provider {
		if name, ok := s.site.Caller(c.Inv); ok {
			caller = s.entry.callers.of(name)
		}
	}
	p, v := s.entry.Enter(nowOf(c), caller)
	if v != nil {
		return guard.Permit{}, s.refused(v)
	}
	token := uint64(p)
	if s.measures && s.site.Async(c.Inv) {
		token |= unanswered
	}
	return guard.Permit{Held: true, Token: token}, nil
}

// unanswered is set in a token beside the permit of the core: the call is over when it is
// sent, and that is no response time.
const unanswered = 1 << 32

func (s *stage) release(p guard.Permit, _ call.Outcome) { s.entry.Leave(overload.Permit(p.Token)) }

// ended is the end of a call that ran, where the limit is found out.
func (s *stage) ended(p guard.Permit, o call.Outcome, began, elapsed time.Duration, _ error) {
	if !p.Held {
		return
	}
	s.entry.Leave(overload.Permit(p.Token))
	if p.Token&unanswered == 0 {
		s.answered(p, o, began, elapsed, nil)
	}
}

// answered is that the caller of a call that ran has its answer.
func (s *stage) answered(_ guard.Permit, o call.Outcome, began, elapsed time.Duration, _ error) {
	if a := s.entry.auto.Load(); a != nil && elapsed >= 0 && (o == call.Success || o == call.Timeout) {
		a.Observe(began, elapsed)
	}
}
