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

package executelimit_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/invocation"
	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

// Looks while the configuration changes and calls run; afterwards all are told.
func TestAttackLooksAtExecutes(t *testing.T) {
	const service = "attack.Looks"
	rt := guard.NewRuntime()
	var gs []*guard.Guard
	var us []base.Invoker
	for range 3 {
		gs = append(gs, guard.New(rt, conf.Provider))
		us = append(us, base.NewBaseInvoker(benchURL(service, nil)))
	}
	set := func(i int) {
		rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Policies: conf.Policies{Executes: &conf.Executes{Limit: conf.Of(100 + i%3)}}}})
	}
	set(0)
	for g := range gs { // a plan is in force once it is made
		gs[g].Invoke(context.Background(), us[g], invocation.NewRPCInvocation("Get", nil, nil))
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for !stop.Load() {
				gs[g].Invoke(context.Background(), us[g], invocation.NewRPCInvocation("Get", nil, nil))
			}
		})
	}
	var hidden, looks atomic.Int64
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				looks.Add(1)
				if len(limits(rt)) == 0 {
					hidden.Add(1)
				}
			}
		})
	}
	for i := range 100 {
		set(i)
		for until := looks.Load() + 5; looks.Load() < until; {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
	runtime.KeepAlive(gs)
	runtime.KeepAlive(us)
	assert.NotEmpty(t, limits(rt))
	assert.Zero(t, hidden.Load(), "a limit was in force all the time")
}
