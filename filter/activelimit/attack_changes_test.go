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

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/activelimit"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// Once: a limit that was turned off was still told of, as one of 0, until the garbage
// collector came by.
func TestAttackALimitTurnedOffIsTold(t *testing.T) {
	for _, mode := range []conf.Mode{conf.Off} {
		c := consumer(t, "tri", map[string]string{"actives": "3"})
		require.NoError(t, c.call(context.Background(), "Echo", answer))
		c.rt.Store.Set(conf.FromCode, "code", &conf.Config{Mode: mode})
		if q := c.queue(t, "Echo"); q != nil {
			t.Errorf("told with limit %d", q.Limit())
		}
		runtime.KeepAlive(c)
	}
}

// lookup -> spell does not look again for a change, as lookup -> add does: the
// method is configured at the moment of the call and by no source after.
func TestAttackAMethodSpelledDuringAChangeIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openChain(t, map[string]string{"timeout": "10s"})
		service := guard.ServiceOf(c.url).String()
		cfg := func(n int, named bool) *conf.Config {
			p := conf.Policies{Actives: &conf.Actives{Limit: conf.Of(n)}}
			s := conf.Service{Policies: p}
			if named {
				s.Methods = map[string]conf.Policies{"late": p}
			}
			return &conf.Config{Consumer: conf.Section{Services: map[string]conf.Service{service: s}}}
		}
		building, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		attackSteps.Store(service, func(s guard.Site) []guard.Step {
			if s.Method == "Late" {
				once.Do(func() { close(building); <-goOn })
			}
			return nil
		})
		c.rt.Store.Set(conf.FromCode, "code", cfg(1, true))
		require.NoError(t, c.call(context.Background(), "Early", answer))
		began := time.Now()
		var took time.Duration
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			err = c.call(context.Background(), "Late", answer)
			took = time.Since(began)
		}()
		<-building
		var q *concurrency.Queue
		activelimit.Queues(c.rt, func(k activelimit.Key, x *concurrency.Queue) {
			if k.Method == "Late" || k.Method == "late" {
				q = x
			}
		})
		require.NotNil(t, q)
		require.True(t, q.TryAcquire(), "another call runs")
		c.rt.Store.Set(conf.FromCode, "code", cfg(100, false))
		synctest.Wait()
		close(goOn)
		<-done
		assert.NoError(t, err)
		assert.Zero(t, took)
		q.Release()
	})
}

// Looks from several goroutines while calls run and the configuration changes.
func TestAttackLooks(t *testing.T) {
	rt, service := guard.NewRuntime(), fmt.Sprintf("actives.Looks%d", services.Add(1))
	ref := reference(t, service, nil)
	var cs []*chain
	for i := range 3 {
		c := refer(t, rt, ref, "tri", service, "20000", map[string]string{"timeout": "50ms"})
		if i == 1 {
			c.url.Methods = nil
		}
		cs = append(cs, c)
	}
	var stop atomic.Bool
	var calls atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := g; !stop.Load(); i++ {
				_ = cs[i%3].call(context.Background(), []string{"Echo", "echo", "New"}[i%3], func(ctx context.Context, inv base.Invocation) result.Result {
					runtime.Gosched()
					return answer(ctx, inv)
				})
				calls.Add(1)
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				activelimit.Queues(rt, func(k activelimit.Key, q *concurrency.Queue) {
					_ = q.Limit()
					rt.Refresh()
				})
				rt.Methods(func(guard.MethodInfo) { rt.Refresh() })
			}
		})
	}
	for i := range 300 {
		rt.Store.Set(conf.FromCode, "code", &conf.Config{Consumer: conf.Section{Policies: conf.Policies{
			Actives: &conf.Actives{Limit: conf.Of(i % 3), Mode: []conf.Mode{"", conf.Observe, conf.Off}[i/2%3]}}}})
		for until := calls.Load() + 10; calls.Load() < until; {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
	activelimit.Queues(rt, func(k activelimit.Key, q *concurrency.Queue) {
		assert.Zero(t, q.Inflight())
		assert.Zero(t, q.Waiting())
	})
}
