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

package activelimit_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/rpcstatus"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// attackSteps lets a test put steps of its own into the plans of its service.
var attackSteps sync.Map // service -> func(guard.Site) []guard.Step

func init() { //nolint:gochecknoinits // the registry is the process's
	guard.RegisterPolicy("attack", conf.Consumer, func(conf.Effective) bool { return true }, func(s guard.Site) []guard.Step {
		if f, ok := attackSteps.Load(s.Service); ok {
			return f.(func(guard.Site) []guard.Step)(s)
		}
		return nil
	})
}

func (c *chain) limit(t testing.TB, method string) int64 {
	t.Helper()
	q := c.queue(t, method)
	require.NotNil(t, q)
	return q.Limit()
}

// Once: A provider changes what it declares, so dubbo makes a new invoker and
// with it a new chain. The former chain is out of use but not collected yet, or
// kept by a call that runs. The next change of the configuration makes its plan
// again as well (Runtime.renew), from its stale URL, at the same version: what
// the provider said last is undone until the configuration changes again.
func TestAttackAFormerChainBringsItsDeclaredLimitBack(t *testing.T) {
	for _, former := range []map[string]string{{"actives": "1"}, {}} {
		wrong := 0
		for range 200 {
			synctest.Test(t, func(t *testing.T) {
				rt, service := guard.NewRuntime(), fmt.Sprintf("actives.Stale%d", services.Add(1))
				ref := reference(t, service, map[string]string{"methods.Other.actives": "7"})
				old := refer(t, rt, ref, "tri", service, "20000", former)
				require.NoError(t, old.call(context.Background(), "Echo", answer))
				now := refer(t, rt, ref, "tri", service, "20000", map[string]string{"actives": "50"})
				require.NoError(t, now.call(context.Background(), "Echo", answer))
				require.EqualValues(t, 50, now.limit(t, "Echo"))

				rt.Store.Touch() // any change of any source
				synctest.Wait()
				require.NoError(t, now.call(context.Background(), "Echo", answer))
				if now.limit(t, "Echo") != 50 {
					wrong++
				}
				runtime.KeepAlive(old)
			})
		}
		assert.Zero(t, wrong, "of 200 changes undid what the provider declared last; former chain: %v", former)
	}
}

// Once: The same address stands twice in a reference, as under two registries of
// which one (application-level) does not carry the provider's actives: whichever
// chain is made last decides, here that the limit is off.
func TestAttackTheSameAddressTwiceWithAndWithoutADeclaration(t *testing.T) {
	rt, service := guard.NewRuntime(), fmt.Sprintf("actives.Twice%d", services.Add(1))
	ref := reference(t, service, nil)
	declared := refer(t, rt, ref, "tri", service, "20000", map[string]string{"actives": "1"})
	require.NoError(t, declared.call(context.Background(), "Echo", answer))
	silent := refer(t, rt, ref, "tri", service, "20000", nil)
	require.NoError(t, silent.call(context.Background(), "Echo", answer))
	assert.EqualValues(t, 1, declared.limit(t, "Echo"))
	runtime.KeepAlive(declared)
	runtime.KeepAlive(silent)
}

// openChain is a chain of a service that does not say which methods it has.
func openChain(t testing.TB, own map[string]string) *chain {
	c := consumer(t, "tri", own)
	c.url.Methods = nil
	c.url.DelParam(constant.MethodsKey)
	return c
}

// Once: On a chain that does not know its methods the first call of a method
// makes its plan (chain.add) while the limit is raised: renew has been there
// before chain.waits was set, and add does not look again as replaceLocked does.
// The call waits until its deadline though the limit is 100.
func TestAttackAMethodAddedDuringAChangeIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := func(n int) *conf.Config {
			return &conf.Config{Consumer: conf.Section{Policies: conf.Policies{Actives: &conf.Actives{Limit: conf.Of(n)}}}}
		}
		c := openChain(t, map[string]string{"timeout": "10s"})
		service := guard.ServiceOf(c.url).String()
		building, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		attackSteps.Store(service, func(s guard.Site) []guard.Step {
			if s.Method == "Late" {
				once.Do(func() { close(building); <-goOn })
			}
			return nil
		})
		c.rt.Store.Set(conf.FromCode, "code", limit(0))
		require.NoError(t, c.call(context.Background(), "Early", answer))
		c.rt.Store.Set(conf.FromCode, "code", limit(1))
		synctest.Wait()
		began := time.Now()
		var took time.Duration
		var err error
		done := make(chan struct{})
		go func() { // makes the plan of Late
			defer close(done)
			err = c.call(context.Background(), "Late", answer)
			took = time.Since(began)
		}()
		<-building
		q := c.queue(t, "Late")
		require.True(t, q.TryAcquire(), "another call runs")
		c.rt.Store.Set(conf.FromCode, "code", limit(100))
		synctest.Wait() // renew has run
		close(goOn)
		<-done
		assert.NoError(t, err)
		assert.Zero(t, took)
		q.Release()
	})
}

// Once: A call took its plan before the guard turned to observing and comes to
// wait afterwards, as behind a paced wait: the queue has let all go already, so
// it waits, and is refused, although nobody is to be refused any more.
func TestAttackACallThatComesToWaitAfterTheTurnToObserving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumer(t, "tri", map[string]string{"actives": "1", "timeout": "3s"})
		var block atomic.Bool
		reached, goOn := make(chan struct{}), make(chan struct{})
		attackSteps.Store(guard.ServiceOf(c.url).String(), func(guard.Site) []guard.Step {
			return []guard.Step{{Policy: "attack", Rank: guard.RankWait, Take: func(guard.Call) (guard.Permit, *guard.Refusal) {
				if block.Load() {
					close(reached)
					<-goOn
				}
				return guard.Permit{}, nil
			}}}
		})
		gate, held := make(chan struct{}), make(chan struct{})
		go func() {
			_ = c.call(context.Background(), "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
				close(held)
				<-gate
				return answer(ctx, inv)
			})
		}()
		<-held
		block.Store(true)
		var err error
		ended := make(chan struct{})
		go func() { defer close(ended); err = c.call(context.Background(), "Echo", answer) }()
		<-reached
		block.Store(false)
		c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: conf.Observe})
		synctest.Wait()
		close(goOn)
		<-ended
		assert.NoError(t, err, "the mode is observe since before the call came to wait")
		close(gate)
		synctest.Wait()
	})
}

// Once: dubbo merges the reference's params into the provider's URL where that
// has none: a placeholder in the reference's own actives, which is right and
// holds, is then met as a fault "of the provider" and counted as a configuration
// error.
func TestAttackTheReferencesOwnPlaceholderIsNoFaultOfTheProvider(t *testing.T) {
	service := fmt.Sprintf("actives.Placeholder%d", services.Add(1))
	own := map[string]string{"actives": "${WEIR_ATTACK_UNSET:5}"}
	rt := guard.NewRuntime()
	c := refer(t, rt, reference(t, service, own), "tri", service, "20000", own) // as MergeURL leaves it
	require.NoError(t, c.call(context.Background(), "Echo", answer))
	require.EqualValues(t, 5, c.limit(t, "Echo"))
	assert.Zero(t, rt.ConfigErrors())
}

// Once: The same with the two spellings of a method: the reference says
// methods.echo.actives, the provider methods.Echo.actives. Both are right, the
// merged URL has both.
func TestAttackTwoSpellingsInTheMergedURLAreNoFault(t *testing.T) {
	service := fmt.Sprintf("actives.Spelling%d", services.Add(1))
	rt := guard.NewRuntime()
	c := refer(t, rt, reference(t, service, map[string]string{"methods.echo.actives": "3"}), "tri", service, "20000",
		map[string]string{"methods.echo.actives": "3", "methods.Echo.actives": "9"})
	require.NoError(t, c.call(context.Background(), "Echo", answer))
	require.EqualValues(t, 3, c.limit(t, "Echo"))
	assert.Zero(t, rt.ConfigErrors())
}

// Once: the elapsed time of a stream's opening was left out in one place and
// taken in another.
func TestAttackTheOpeningOfAStreamIsNoResponseTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumer(t, "tri", map[string]string{"actives": "5"})
		inv := invocation.NewRPCInvocation("Echo", nil, map[string]any{})
		inv.SetAttribute(constant.CallTypeKey, constant.CallBidiStream)
		require.NoError(t, c.invoke(context.Background(), inv, takes(time.Second)).Error())
		c.rt.Status.Range(func(_ rpcstatus.Key, s *rpcstatus.Status) bool {
			assert.Zero(t, s.Figures().Elapsed)
			return true
		})
		runtime.KeepAlive(c)
	})
}

// oddContext panics when it is asked for its error for the n-th time.
type oddContext struct {
	context.Context
	left atomic.Int64
}

func (c *oddContext) Err() error {
	if c.left.Add(-1) == 0 {
		panic("boom")
	}
	return c.Context.Err()
}

// Once: A context whose Err panics once the call was given its slot: the slot is
// lost for good.
func TestAttackAContextThatPanicsKeepsNoSlot(t *testing.T) {
	for n := int64(1); n < 5; n++ {
		synctest.Test(t, func(t *testing.T) {
			q := concurrency.NewQueue(1)
			require.True(t, q.TryAcquire())
			ctx := &oddContext{Context: context.Background()}
			ctx.left.Store(n)
			done := make(chan struct{})
			got := false
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_, err := q.Acquire(ctx, time.Second)
				got = err == nil
			}()
			synctest.Wait()
			q.Release()
			<-done
			if got {
				q.Release()
			}
			assert.Zero(t, q.Inflight(), "panic at look %d", n)
			assert.Zero(t, q.Waiting(), "panic at look %d", n)
		})
	}
}

type doneContext struct{ context.Context }

func (doneContext) Done() <-chan struct{} { panic("boom") }

// Once: The same for Done: the waiter stays in the list and goes to the pool.
func TestAttackAContextWhoseDonePanicsKeepsNoPlaceInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := concurrency.NewQueue(1)
		require.True(t, q.TryAcquire())
		func() {
			defer func() { _ = recover() }()
			_, _ = q.Acquire(doneContext{context.Background()}, time.Second)
		}()
		assert.Zero(t, q.Waiting())
		q.Release()
		assert.Zero(t, q.Inflight())
	})
}

// Once: A nil context passes as long as there is a slot (dubbo's own invoker of the
// dubbo protocol reads none), and panics as soon as the call must wait.
func TestAttackANilContextDoesNotPanicWhenItMustWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumer(t, "dubbo", map[string]string{"actives": "1", "timeout": "1s"})
		gate, held := make(chan struct{}), make(chan struct{})
		go func() {
			_ = c.call(context.Background(), "Echo", func(ctx context.Context, inv base.Invocation) result.Result {
				close(held)
				<-gate
				return answer(ctx, inv)
			})
		}()
		<-held
		assert.NotPanics(t, func() {
			err := c.call(nil, "Echo", answer) //nolint:staticcheck // that is the attack
			assert.ErrorIs(t, err, call.ErrRejected)
		})
		close(gate)
		synctest.Wait()
	})
}

// Everything at once: changes of limit and mode, chains that are made anew,
// cancelled calls, panics, exits, nil results. At rest nothing is taken or waits,
// and with the guard off nobody waits.
func TestAttackEverythingAtOnce(t *testing.T) {
	rt, service := guard.NewRuntime(), fmt.Sprintf("actives.Storm%d", services.Add(1))
	ref := reference(t, service, map[string]string{"timeout": "200ms"})
	var chains [3]atomic.Pointer[chain]
	remake := func(i int) {
		c := refer(t, rt, ref, []string{"tri", "dubbo"}[i%2], service, fmt.Sprint(20000+i%2), map[string]string{"timeout": "200ms"})
		if i == 2 {
			c.url.Methods = nil
		}
		chains[i].Store(c)
	}
	for i := range chains {
		remake(i)
	}
	set := func(i int) {
		rt.Store.Set(conf.FromCode, "code", &conf.Config{Consumer: conf.Section{Policies: conf.Policies{
			Actives: &conf.Actives{Limit: conf.Of(1 + i%3), Mode: []conf.Mode{"", "", conf.Observe, conf.Off}[i/2%4]},
			TPS:     &conf.TPS{Limit: conf.Of(100000), Mode: []conf.Mode{"", conf.Off}[i/3%2]},
		}}})
	}
	set(0)
	ways := []inner{
		answer, // and for a while, by turns of the scheduler: this is no bubble
		func(ctx context.Context, inv base.Invocation) result.Result {
			for range 50 {
				runtime.Gosched()
			}
			return answer(ctx, inv)
		},
		func(context.Context, base.Invocation) result.Result { return nil },
		func(context.Context, base.Invocation) result.Result { panic("boom") },
		func(context.Context, base.Invocation) result.Result { runtime.Goexit(); return nil },
	}
	var stop atomic.Bool
	var calls atomic.Int64
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			for i := g; !stop.Load(); i++ {
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if i%5 == 0 {
						time.AfterFunc(time.Duration(i%700)*time.Microsecond, cancel)
					}
					c := chains[i%3].Load()
					c.invoke(ctx, invocation.NewRPCInvocation([]string{"Echo", "Other", "echo"}[i%3], nil, nil), ways[i%len(ways)])
				}()
				<-done
				calls.Add(1)
			}
		})
	}
	for i := range 400 {
		set(i)
		if i%7 == 0 {
			remake(i / 7 % 3)
		}
		for until := calls.Load() + 20; calls.Load() < until; {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
	activelimit.Queues(rt, func(k activelimit.Key, q *concurrency.Queue) {
		assert.Zero(t, q.Inflight(), k)
		assert.Zero(t, q.Waiting(), k)
	})
}
