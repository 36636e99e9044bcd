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

package loadbalance_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dubbo.apache.org/dubbo-go/v3/protocol/triple/triple_protocol"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/loadbalance"
)

// configure says what breakers the service has.
func (c *consumer) configure(t *testing.T, yaml string) {
	t.Helper()
	text := "weir: {}"
	if yaml != "" {
		text = "weir: {consumer: {services: {" + c.service + ": {breaker: {" + yaml + "}}}}}"
	}
	cfg, _, faults := conf.ParseYAML("test", []byte(text))
	require.Empty(t, faults)
	guard.Process().Store.Set(conf.FromFile, "test", cfg)
}

// each makes calls one after another and tells how many went to which instance.
func (c *consumer) each(t *testing.T, n int) []int64 {
	t.Helper()
	before := make([]int64, len(c.instances))
	for i := range before {
		before[i] = c.instances[i].hits.Load()
	}
	for range n {
		_ = c.call(context.Background())
	}
	for i := range before {
		before[i] = c.instances[i].hits.Load() - before[i]
	}
	return before
}

// Nobody calls an instance that is held open, so nobody tells it that it is free again: of
// those of a service the first one that heard of it got all calls from then on.
func TestRegression_HeldOpenNoMore(t *testing.T) {
	for _, to := range []string{
		"", "force: none, error-count: 1000", "force: closed, error-count: 1000", "mode: observe, error-count: 1000",
		"mode: off, error-count: 1000", "scope: service, error-count: 1000",
	} {
		for _, balance := range all {
			synctest.Test(t, func(t *testing.T) {
				c := refer(t, balance, "failover", nil, takes(ms), takes(ms), takes(ms))
				defer c.configure(t, "")
				c.configure(t, "force: open, error-count: 1000")
				c.each(t, 100)
				c.configure(t, to)
				synctest.Wait()
				for i, n := range c.each(t, 300) {
					assert.Greater(t, n, int64(50), "%s to %q: %d", balance, to, i)
				}
			})
		}
	}
}

// What a breaker that observed has found counts as soon as it is enforced.
func TestRegression_ObservedAndEnforced(t *testing.T) {
	for _, rules := range []string{"error-count: 3, open-for: 1h, open-jitter: 0", "force: open, error-count: 3"} {
		synctest.Test(t, func(t *testing.T) {
			c := refer(t, loadbalance.LeastActive, "failfast", nil, takes(ms), takes(ms), fails(sick))
			defer c.configure(t, "")
			c.configure(t, "mode: observe, "+rules)
			c.each(t, 200)
			c.configure(t, "mode: enforce, "+rules)
			synctest.Wait()
			assert.Positive(t, c.record(2).AvoidedFor(guard.Now()))
		})
	}
}

var sick = triple_protocol.NewError(triple_protocol.CodeUnavailable, errors.New("no"))

// While a probe hangs the instance refuses all others, and by its response time, which
// nobody knows, it is a good choice: it gets one call in a second, to see.
func TestRegression_ProbeThatHangs(t *testing.T) {
	for _, balance := range all {
		synctest.Test(t, func(t *testing.T) {
			var hangs atomic.Bool
			c := refer(t, balance, "failfast", map[string]string{
				"breaker.consecutive-errors": "3", "breaker.open-for": "10s", "breaker.open-jitter": "0", "breaker.probe-timeout": "60s",
			}, takes(20*ms), func(ctx context.Context) error {
				if hangs.Load() {
					return takes(50 * time.Second)(ctx)
				}
				return fails(sick)(ctx)
			})
			for c.record(1).AvoidedFor(guard.Now()) <= 0 {
				_ = c.call(context.Background())
			}
			hangs.Store(true)
			time.Sleep(10 * time.Second) //nolint:forbidigo // synctest
			for c.peer(1).Inflight() == 0 {
				go func() { _ = c.call(context.Background()) }()
				time.Sleep(100 * ms) //nolint:forbidigo // synctest
			}
			assert.LessOrEqual(t, c.run(1, 2000), int64(41), balance) // in 40 s
			time.Sleep(time.Minute)                                   //nolint:forbidigo // synctest
			c.atRest(t)
		})
	}
}

// One whose calls are given up because they take so long is slow: how long it would have
// taken nobody knows, but not that it may be fast.
func TestRegression_GivenUpBecauseSlow(t *testing.T) {
	for _, balance := range []string{loadbalance.ShortestResponse, loadbalance.FewChoices} {
		synctest.Test(t, func(t *testing.T) {
			c := refer(t, balance, "failfast", nil, takes(20*ms), takes(20*ms), takes(10*time.Second))
			for range 300 {
				ctx, cancel := context.WithCancel(context.Background())
				timer := time.AfterFunc(200*ms, cancel)
				_ = c.call(ctx)
				timer.Stop()
				cancel()
			}
			assert.Less(t, c.instances[2].hits.Load(), int64(50), balance)
			assert.Equal(t, 200*ms, c.record(2).Response(guard.Now()), balance)
		})
	}
}

// A breaker that nobody holds any more, as its provider has been away, says nothing when
// its policy is taken away. What it had said last must not hold for good.
func TestRegression_BreakerThatIsGone(t *testing.T) {
	for _, balance := range all {
		synctest.Test(t, func(t *testing.T) {
			c := refer(t, balance, "failover", nil, takes(ms), takes(ms), takes(ms))
			c.record(1).Manage(true)
			c.record(1).Avoid(guard.Now() + time.Second)
			time.Sleep(time.Second) //nolint:forbidigo // synctest
			assert.Greater(t, c.each(t, 300)[1], int64(50), balance)
		})
	}
}

// An instance that answers by business errors answers: where it was avoided once all
// calls may go there again, as with the others.
func TestRegression_AvoidedOnceAndOnlyBusinessErrors(t *testing.T) {
	for _, balance := range all {
		synctest.Test(t, func(t *testing.T) {
			answer := fails(triple_protocol.NewWireError(triple_protocol.CodeBizError, errors.New("no such user")))
			slow := func(ctx context.Context) error { _ = takes(ms)(ctx); return answer(ctx) }
			c := refer(t, balance, "failover", nil, slow, slow, slow)
			c.each(t, 30)
			c.record(1).Avoid(guard.Now() + time.Second)
			time.Sleep(time.Second) //nolint:forbidigo // synctest
			assert.Greater(t, c.each(t, 600)[1], int64(50), balance)
		})
	}
}
