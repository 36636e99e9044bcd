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
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/internal/retry"
)

// ledger has the permits that the steps of a plan gave, by their marks.
type ledger struct {
	mu           sync.Mutex
	last         uint32
	held         map[uint32]string
	ended, twice int
}

func (l *ledger) give(step string) Permit {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.held[l.last] = step
	return Permit{Held: true, Mark: l.last}
}

func (l *ledger) back(p Permit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.held[p.Mark]; !ok {
		l.twice++
	}
	delete(l.held, p.Mark)
}

type anyEnd struct {
	base.BaseInvoker
	f func(context.Context) result.Result
}

func (e *anyEnd) Invoke(ctx context.Context, _ base.Invocation) result.Result { return e.f(ctx) }

// anyStep is a step with whatever chance gives it.
func anyStep(site Site, l *ledger, r *rand.Rand, i int) Step {
	one := func(n int) bool { return r.IntN(n) == 0 }
	now := func(n int) bool { l.mu.Lock(); defer l.mu.Unlock(); return r.IntN(n) == 0 }
	name := fmt.Sprint("step", i)
	refusal := site.NewRefusal(call.RejectError{Guard: name, Reason: call.ReasonRate}, errors.New("x"))
	s := Step{Policy: name, Rank: Rank(r.IntN(800)), Observe: one(4), Waits: one(3), Clock: one(3), PerInstance: one(3)}
	s.Take = func(Call) (Permit, *Refusal) {
		if now(60) {
			panic("take")
		}
		var no *Refusal
		if now(25) {
			no = refusal
			if !s.Observe {
				return Permit{}, no
			}
		}
		if now(4) {
			return Permit{}, no
		}
		p := l.give(name)
		if s.Waits && !s.Observe && now(2) {
			time.Sleep(time.Millisecond) //nolint:forbidigo // synctest
			p.At, p.Token = clockNow(), uint64(time.Millisecond)
		}
		return p, no
	}
	s.Release = func(p Permit, _ call.Outcome) {
		l.back(p)
		if now(60) {
			panic("release")
		}
	}
	if one(2) {
		s.Look = func(Call) *Refusal {
			if now(40) {
				return refusal
			}
			return nil
		}
	}
	if one(2) {
		s.Again = func(p Permit, _ Call) (Permit, *Refusal) {
			switch {
			case now(30):
				panic("again")
			case now(30):
				if p.Held {
					l.back(p)
				}
				return Permit{}, refusal
			case now(3):
				if p.Held {
					l.back(p)
				}
				return l.give(name), nil
			}
			return p, nil
		}
	}
	switch r.IntN(3) {
	case 0:
		s.Ended = func(p Permit, _ call.Outcome, _, _ time.Duration, _ error) {
			if p.Held {
				l.back(p)
			}
			l.mu.Lock()
			l.ended++
			l.mu.Unlock()
		}
		if one(2) {
			s.Start = func(p Permit, _ time.Duration) Permit { p.Token++; return p }
		}
	case 1:
		if site.Side == conf.Provider {
			s.RunFor = time.Duration(r.IntN(3)) * time.Millisecond
		}
	}
	return s
}

// Whatever steps a plan has and however its calls end, each permit is given back once,
// and Ended is called once of each call that ran.
func TestPermitsOfAnyPlan(t *testing.T) {
	var next func(Site) []Step
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		RegisterPolicy("any", side, func(conf.Effective) bool { return false }, func(site Site) []Step {
			if next == nil || site.Method != "Any" || !strings.HasPrefix(site.Service, "any.") {
				return nil
			}
			return next(site)
		})
	}
	calls := int64(0)
	for seed := range uint64(600) {
		side := []conf.Side{conf.Provider, conf.Consumer}[seed%2]
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			l := &ledger{held: map[uint32]string{}}
			n := 1 + r.IntN(8)
			ends := 0
			next = func(site Site) []Step {
				var out []Step
				for i := range n {
					out = append(out, anyStep(site, l, r, i))
				}
				ends = 0
				for _, s := range out {
					if s.Ended != nil {
						ends++
					}
				}
				return out
			}
			u := common.NewURLWithOptions(common.WithProtocol("tri"), common.WithPath("any.S"), common.WithInterface("any.S"), common.WithMethods([]string{"Any"}))
			u.SetParam(constant.ServiceFilterKey, ProviderFilter)
			u.SetParam(constant.ReferenceFilterKey, ConsumerFilter)
			if side == conf.Consumer {
				u.SetAttribute(retry.AttributeKey, retry.NewReference(&conf.Service{}))
			}
			rt := NewRuntime()
			g := New(rt, side)
			var ran atomic.Int64
			for i := range 40 {
				func() {
					defer func() { _ = recover() }()
					g.Invoke(context.Background(), &anyEnd{*base.NewBaseInvoker(u), func(context.Context) result.Result {
						ran.Add(1)
						switch i % 5 {
						case 0:
							panic("handler")
						case 1:
							time.Sleep(time.Duration(i%4) * time.Millisecond) //nolint:forbidigo // synctest
							return nil
						case 2:
							time.Sleep(time.Hour) //nolint:forbidigo // synctest
							return &result.RPCResult{Err: errors.New("x")}
						case 3:
							time.Sleep(time.Millisecond) //nolint:forbidigo // synctest
						}
						return &result.RPCResult{}
					}}, invocation.NewRPCInvocation("Any", nil, map[string]any{}))
				}()
			}
			time.Sleep(2 * time.Hour) //nolint:forbidigo // synctest
			synctest.Wait()
			m := g.chain.Load().lookup(invocation.NewRPCInvocation("Any", nil, nil))
			require.Empty(t, l.held, "seed %d", seed)
			require.Zero(t, l.twice, "seed %d", seed)
			require.Equal(t, int(ran.Load())*ends, l.ended, "seed %d", seed)
			require.NotNil(t, m.stats)
			require.Zero(t, m.stats.Figures().Inflight)
			calls += ran.Load()
		})
	}
	require.Greater(t, calls, int64(2000))
}
