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

package balance

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"dubbo.apache.org/dubbo-go/v3/common"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"dubbo.apache.org/dubbo-go/v3/filter"
	"dubbo.apache.org/dubbo-go/v3/protocol/base"
	"dubbo.apache.org/dubbo-go/v3/protocol/result"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/integration_test/harness"
)

// attempts is a filter of consumers that keeps which providers a call was sent to.
type attempts struct {
	mu   sync.Mutex
	made map[string]map[string]int // guarded by mu: id -> address -> attempts
}

type idKey struct{}

// withID is the context of a call that attempts counts.
func withID(id string) context.Context { return context.WithValue(background, idKey{}, id) }

var tried = &attempts{made: map[string]map[string]int{}}

// count puts it into the chain of every reference that is made from now on.
var count = sync.OnceFunc(func() {
	extension.SetFilter("test-attempts", func() filter.Filter { return tried })
	extension.SetConfigPostProcessor("test-attempts", tried)
})

func (a *attempts) PostProcessServiceConfig(*common.URL) {}

func (a *attempts) PostProcessReferenceConfig(u *common.URL) {
	u.SetParam(constant.ReferenceFilterKey, "test-attempts,"+u.GetParam(constant.ReferenceFilterKey, ""))
}

func (a *attempts) Invoke(ctx context.Context, next base.Invoker, inv base.Invocation) result.Result {
	if id, ok := ctx.Value(idKey{}).(string); ok {
		a.mu.Lock()
		if a.made[id] == nil {
			a.made[id] = map[string]int{}
		}
		a.made[id][next.GetURL().Location]++
		a.mu.Unlock()
	}
	return next.Invoke(ctx, inv)
}

func (a *attempts) OnResponse(_ context.Context, res result.Result, _ base.Invoker, _ base.Invocation) result.Result {
	return res
}

// of is how often a call was sent to each address.
func (a *attempts) of(id string) map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.made[id]
}

// A provider that is full refuses, and the call goes to the other one.
func TestARefusedCallGoesToAnother(t *testing.T) {
	count()
	each(t, func(t *testing.T, protocol, balance string) {
		const calls = 200
		p := newPair(t, protocol, map[string]string{"executes": "1"})
		full := p.first.Dial(t)
		held := harness.Go(1, func(int) error {
			_, err := full.SayHello(background, harness.Hold("g"))
			return err
		})
		harness.Eventually(t, "the first is full", func() bool { return p.first.Running(harness.Hold("g")) == 1 })
		c := p.dial(balance)
		refused := 0
		for i := range calls {
			id := fmt.Sprint(p.group, "/", i)
			_, err := c.SayHello(withID(id), id)
			require.NoError(t, err)
			made := tried.of(id)
			require.Equal(t, 1, made[p.second.Addr], "call %d", i)
			require.LessOrEqual(t, made[p.first.Addr], 1, "call %d", i)
			refused += made[p.first.Addr]
		}
		first, second := p.total()
		require.Equal(t, 1, first, "a refused call never reaches the handler")
		require.Equal(t, calls, second)
		a, b := p.state()
		require.EqualValues(t, refused, a.Picks)
		require.EqualValues(t, calls, b.Picks)
		require.Positive(t, refused, "nobody knew at first")
		require.Less(t, refused, calls/2, "who refuses is asked less")
		require.Zero(t, a.Inflight+b.Inflight)
		t.Logf("%d of %d were refused by the one that is full", refused, calls)

		p.first.Open("g")
		noErrors(t, held)
		harness.Eventually(t, "it gets calls again", func() bool {
			_, err := c.SayHello(background, "x")
			require.NoError(t, err)
			first, _ := p.total()
			return first > 5
		})
	})
}

// Where all are full each is asked once at most by one call.
func TestNoCallIsRefusedTwiceByOne(t *testing.T) {
	count()
	each(t, func(t *testing.T, protocol, balance string) {
		const limit, calls = 3, 24
		p := newPair(t, protocol, map[string]string{"executes": "3"})
		c := p.dial(balance)
		id := func(i int) string { return fmt.Sprint(p.group, "/", i) }
		all := harness.Go(calls, func(i int) error {
			_, err := c.SayHello(withID(id(i)), harness.Hold("g"))
			return err
		})
		// One of the two may be left with a free slot: the budget of calls that are sent
		// again does not grow without end.
		harness.Eventually(t, "each has been sent", func() bool {
			a, b := p.state()
			running := p.first.Running(harness.Hold("g")) + p.second.Running(harness.Hold("g"))
			return int(a.Inflight+b.Inflight) == running && running >= limit && a.Picks+b.Picks >= calls
		})
		p.first.Open("g")
		p.second.Open("g")
		served := 0
		for i, err := range all.Wait(t) {
			for address, n := range tried.of(id(i)) {
				require.Equal(t, 1, n, "call %d at %s", i, address)
			}
			if err == nil {
				served++
				continue
			}
			e, ok := weir.AsRejected(err)
			require.True(t, ok, "%T %v", err, err)
			require.Equal(t, "executes", e.Guard)
			require.Equal(t, call.ReasonConcurrency, e.Reason)
		}
		first, second := p.total()
		require.Equal(t, served, first+second)
		require.LessOrEqual(t, p.first.Stats("").MaxRunning, limit)
		require.LessOrEqual(t, p.second.Stats("").MaxRunning, limit)
		a, b := p.state()
		require.Zero(t, a.Inflight+b.Inflight)
	})
}
