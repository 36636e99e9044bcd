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

package bulkhead_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dubbogo/gost/log/logger"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/call"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/bulkhead"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/rpcstatus/concurrency"
)

// warnings has what was logged as a warning.
type warnings struct {
	logger.Logger
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (w *warnings) Warnf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

func (w *warnings) of(part string) (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.lines {
		if strings.Contains(line, part) {
			lines = append(lines, line)
		}
	}
	return lines
}

var warned = &warnings{}

func TestMain(m *testing.M) {
	warned.Logger = logger.GetLogger()
	logger.SetLogger(warned)
	os.Exit(m.Run())
}

// Methods of several services, references and protocols share an island when they
// say so; nobody else has a part in it.
func TestAGroupIsOneIsland(t *testing.T) {
	everywhere(t, func(t *testing.T, side conf.Side, protocol string) {
		own := params{"methods.Echo.bulkhead": "1", "methods.Echo.bulkhead.queue": "1", "methods.Echo.bulkhead.group": "island", "timeout": "1h"}
		a := newChain(t, side, protocol, own)
		b := chainOf(t, a.rt, side, protocol, newService(), "20001", nil, own)
		aside := chainOf(t, a.rt, side, protocol, newService(), "20002", nil, params{"bulkhead": "1", "bulkhead.group": "other"})
		other := conf.Provider
		if side == other {
			other = conf.Consumer
		}
		across := chainOf(t, a.rt, other, protocol, newService(), "20003", nil, own)
		elsewhere := newChain(t, side, protocol, own) // in another runtime

		release := a.hold(t, "Echo")
		waiting := b.later("Echo", answer)
		require.EqualValues(t, 1, a.queue(t, "", "island").Waiting())
		e := refusal(t, b.echo())
		assert.Equal(t, guard.ServiceOf(b.url).String()+"#Echo", e.Resource, "what was called, whoever has the slots")
		refused(t, a.echo())
		for _, free := range []*chain{aside, across, elsewhere} {
			require.NoError(t, free.echo())
		}
		require.NoError(t, a.call(context.Background(), "Other", answer), "has no bulkhead")
		release()
		synctest.Wait()
		require.NoError(t, *waiting)
		require.Nil(t, a.queue(t, "Echo", ""))
		a.atRest(t)
		runtime.KeepAlive([]*chain{b, aside, across})
	})
}

// Two that do not name a group never share one, though they are alike.
func TestNobodySharesWithoutSayingSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := params{"bulkhead": "1", "bulkhead.group": "g", "methods.Other.bulkhead.group": "none"}
		c := newChain(t, conf.Provider, "tri", own)
		release := c.hold(t, "Echo")
		require.NoError(t, c.call(context.Background(), "Other", answer))
		release()
	})
}

// Members that say different things: the smallest max holds with its queue, and a
// line tells so, once.
func TestAGroupThatDisagrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := fmt.Sprintf("disagree%d", services.Add(1))
		say := func(most, queue string, more ...string) params {
			return with(params{"bulkhead": most, "bulkhead.queue": queue, "bulkhead.group": group}, more...)
		}
		a := newChain(t, conf.Provider, "tri", say("3", "0"))
		b := chainOf(t, a.rt, conf.Provider, "tri", newService(), "20001", nil, say("2", "1"))
		free := chainOf(t, a.rt, conf.Provider, "tri", newService(), "20002", nil, say("0", "0"))
		watch := chainOf(t, a.rt, conf.Provider, "tri", newService(), "20003", nil, say("1", "0", "bulkhead.mode", "observe"))
		holds := func(most int64, told int) {
			t.Helper()
			assert.Equal(t, most, a.queue(t, "", group).Limit())
			assert.Len(t, warned.of("="+group+" "), told)
		}
		require.NoError(t, a.echo())
		holds(3, 0)
		require.NoError(t, b.echo())
		holds(2, 1)
		require.NoError(t, free.echo())
		require.NoError(t, watch.echo())
		require.NoError(t, a.echo())
		holds(2, 1)
		assert.Contains(t, warned.of(group)[0], "2 may run, 1 may wait")

		first, second := a.hold(t, "Echo"), free.hold(t, "Echo")
		waiting := a.later("Echo", answer) // in b's place, as b's queue holds for all
		require.EqualValues(t, 1, a.queue(t, "", group).Waiting())
		e := refusal(t, a.echo())
		assert.EqualValues(t, 2, e.Limit, "the one that holds, not its own")
		assert.EqualValues(t, 2, e.Observed)
		require.NoError(t, watch.echo(), "it only observes")
		first()
		synctest.Wait()
		require.NoError(t, *waiting)
		second()
		a.atRest(t)
		runtime.KeepAlive([]*chain{b, free, watch})
	})
}

// A member that leaves, or whose service is gone, has no say any more, and those who
// wait learn of it.
func TestAMemberThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := func(most string) params {
			return params{"bulkhead": most, "bulkhead.queue": "5", "bulkhead.group": "leaving", "bulkhead.max-wait": "1h", "timeout": "1h"}
		}
		a := newChain(t, conf.Provider, "tri", own("2"))
		b := chainOf(t, a.rt, conf.Provider, "tri", newService(), "20001", nil, own("1"))
		require.NoError(t, b.echo())
		release := a.hold(t, "Echo")
		waiting := a.later("Echo", answer)
		require.EqualValues(t, 1, a.queue(t, "", "leaving").Waiting())
		a.rt.Store.Set(conf.FromCode, "code", &conf.Config{Provider: conf.Section{Services: map[string]conf.Service{
			guard.ServiceOf(b.url).Interface: {Policies: conf.Policies{Bulkhead: &conf.Bulkhead{Group: conf.GroupNone}}},
		}}})
		synctest.Wait()
		require.NoError(t, *waiting, "nobody has called b since")
		assert.EqualValues(t, 2, a.queue(t, "", "leaving").Limit())
		release()

		// Back again, and gone with its service: a call that finds no slot looks.
		a.rt.Store.Set(conf.FromCode, "code", &conf.Config{})
		synctest.Wait()
		require.EqualValues(t, 1, a.queue(t, "", "leaving").Limit())
		release = a.hold(t, "Echo")
		*b.url = *newURL("tri", "", "", nil) // as dubbo leaves it
		b.url.Path = ""
		b.url.SetParam("interface", "")
		sleep(2 * 1000 * ms)
		require.NoError(t, a.echo())
		release()
		a.atRest(t)
	})
}

// Groups are made and left while calls run and wait: nothing is lost.
func TestGroupsChangeUnderLoad(t *testing.T) {
	for _, side := range []conf.Side{conf.Provider, conf.Consumer} {
		rt := guard.NewRuntime()
		var chains []*chain
		for range 4 {
			chains = append(chains, chainOf(t, rt, side, "tri", newService(), "20000", nil, params{"timeout": "1h"}))
		}
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for _, c := range chains {
			for range 4 {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							if err := c.echo(); err != nil {
								assert.ErrorIs(t, err, call.ErrRejected)
							}
						}
					}
				})
			}
		}
		for i := range 200 {
			chains[0].configure([]conf.Bulkhead{
				{Max: conf.Of(2), Queue: conf.Of(3), Group: "x"}, {Max: conf.Of(1), Queue: conf.Of(99)},
				{Max: conf.Of(3), Group: "y"}, {}, {Max: conf.Of(1), Queue: conf.Of(2), Group: "x", Mode: conf.Observe},
			}[i%5])
			runtime.Gosched()
		}
		close(stop)
		wg.Wait()
		for _, c := range chains {
			require.NoError(t, c.echo())
			c.atRest(t)
		}
	}
}

// N15: services and references come and go.
func TestWhatIsGoneTakesNoMemory(t *testing.T) {
	rt := guard.NewRuntime()
	n := 20_000
	if testing.Short() {
		n = 2000
	}
	for i := range n {
		own := params{"bulkhead": "1", "methods.Other.bulkhead.group": fmt.Sprint("g", i)}
		require.NoError(t, chainOf(t, rt, conf.Provider, "tri", fmt.Sprint("bulkhead.Gone", i), "20000", nil, own).echo())
	}
	left := func() (k int) {
		bulkhead.Queues(rt, func(bulkhead.Key, *concurrency.Queue) { k++ })
		return k
	}
	for range 100 {
		if runtime.GC(); left() <= 10 {
			break
		}
		runtime.Gosched()
	}
	assert.LessOrEqual(t, left(), 10)
}
